//! The jobs that hold nodes, asked for when a wait has to be explained.
//!
//! slurmrestd sends all jobs or one, and for ten thousand it needs seconds and gigabytes. So one answer serves all
//! who ask, as long as asking again would take more than a tenth of its time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use slurm::facts;
use tokio::time::Instant;

use super::pace::rest;
use crate::calls::may_have;
use crate::client::Client;
use crate::error::RestError;

/// An answer is used so long at least, and a failure so long at most.
const LEAST: Duration = Duration::from_secs(2);
const LONGEST_FAILURE: Duration = Duration::from_secs(300);

type Answer = Result<Arc<[facts::Job]>, RestError>;

#[derive(Debug, Clone, Default)]
pub(super) struct Jobs(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// All wait for the one that is under way, which goes on when they give up.
    question: Option<Shared<BoxFuture<'static, Answer>>>,
    /// What the last one brought, and until when that is used. A failure is an answer to all who ask meanwhile, too.
    answer: Option<(Answer, Instant)>,
}

impl Jobs {
    pub(super) async fn on(&self, client: &Client, node: &str) -> Result<Vec<facts::Job>, RestError> {
        let jobs = self.all(client).await?;
        Ok(jobs.iter().filter(|job| may_have(&job.nodes, node)).cloned().collect())
    }

    async fn all(&self, client: &Client) -> Answer {
        let question = {
            let mut state = self.state();
            match &state.answer {
                Some((answer, use_until)) if Instant::now() < *use_until => return answer.clone(),
                _ => state.question.get_or_insert_with(|| self.ask(client.clone())).clone(),
            }
        };
        question.await
    }

    fn ask(&self, client: Client) -> Shared<BoxFuture<'static, Answer>> {
        let this = self.clone();
        let asking = tokio::spawn(async move {
            let begin = Instant::now();
            let answer = client.jobs_holding_nodes(None).await.map(Arc::from);
            let pause = rest(begin.elapsed()).max(LEAST);
            let pause = if answer.is_ok() { pause } else { pause.min(LONGEST_FAILURE) };
            *this.state() = State { question: None, answer: Some((answer.clone(), Instant::now() + pause)) };
            answer
        });
        let this = self.clone();
        // It panicked, or its runtime has ended: the next who asks begins anew.
        let ended = move |error: tokio::task::JoinError| {
            this.state().question = None;
            Err(RestError::NoAnswer { call: "jobs", why: error.to_string() })
        };
        asking.map(|answer| answer.unwrap_or_else(ended)).boxed().shared()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
