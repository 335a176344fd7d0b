//! The jobs that hold nodes, asked for when a wait has to be explained.
//!
//! slurmrestd sends all jobs or one, and for ten thousand it needs seconds and gigabytes. So one answer serves all
//! who ask, as long as asking again would take more than a tenth of its time.

use std::sync::Arc;
use std::time::Duration;

use slurm::facts;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::pace::Pace;
use crate::calls::may_have;
use crate::client::Client;
use crate::error::RestError;

/// An answer is used so long at least.
const LEAST: Duration = Duration::from_secs(2);

#[derive(Debug, Default)]
pub(super) struct Jobs(Mutex<Option<Answer>>);

/// What the last question brought; a failure is an answer to all who ask meanwhile, too.
#[derive(Debug)]
struct Answer {
    use_until: Instant,
    jobs: Result<Arc<[facts::Job]>, RestError>,
}

impl Jobs {
    pub(super) async fn on(&self, client: &Client, node: &str) -> Result<Vec<facts::Job>, RestError> {
        let jobs = self.all(client).await?;
        Ok(jobs.iter().filter(|job| may_have(&job.nodes, node)).cloned().collect())
    }

    async fn all(&self, client: &Client) -> Result<Arc<[facts::Job]>, RestError> {
        // Held while asking: whoever comes meanwhile gets the same answer.
        let mut answer = self.0.lock().await;
        if let Some(answer) = answer.as_ref().filter(|answer| Instant::now() < answer.use_until) {
            return answer.jobs.clone();
        }
        let begin = Instant::now();
        let jobs = client.jobs_holding_nodes(None).await.map(Arc::from);
        let pace = Pace { cost: begin.elapsed(), failed: jobs.is_err() };
        *answer = Some(Answer { use_until: Instant::now() + pace.pause(LEAST), jobs: jobs.clone() });
        jobs
    }
}
