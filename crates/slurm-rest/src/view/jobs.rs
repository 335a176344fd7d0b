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
use crate::calls::{JobFilter, has_node};
use crate::client::Client;
use crate::error::RestError;
use crate::record::job::Job;

/// An answer is used so long at least.
const LEAST: Duration = Duration::from_secs(2);

#[derive(Debug, Default)]
pub(super) struct Jobs(Mutex<Option<Answer>>);

#[derive(Debug)]
struct Answer {
    at: Instant,
    pace: Pace,
    jobs: Arc<[facts::Job]>,
}

impl Jobs {
    pub(super) async fn on(&self, client: &Client, node: &str) -> Result<Vec<facts::Job>, RestError> {
        let jobs = self.all(client).await?;
        Ok(jobs.iter().filter(|job| has_node(&job.nodes, node)).cloned().collect())
    }

    async fn all(&self, client: &Client) -> Result<Arc<[facts::Job]>, RestError> {
        // Held while asking: whoever comes meanwhile gets the same answer.
        let mut answer = self.0.lock().await;
        if let Some(answer) = answer.as_ref().filter(|answer| answer.at.elapsed() < answer.pace.pause(LEAST))
        {
            return Ok(answer.jobs.clone());
        }
        let at = Instant::now();
        let filter = JobFilter { holding_nodes: true, ..JobFilter::default() };
        let jobs: Arc<[_]> = client.jobs(&filter).await?.records.into_iter().map(Job::into_fact).collect();
        let pace = Pace { cost: at.elapsed(), failed: false };
        *answer = Some(Answer { at, pace, jobs: jobs.clone() });
        Ok(jobs)
    }
}
