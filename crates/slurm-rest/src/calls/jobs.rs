//! Jobs of slurmctld: look, submit, signal, cancel, requeue.

use http::Method;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use slurm::facts;
use tokio::time::Instant;

use super::Set;
use super::nodes::exactly;
use crate::call::{Call, query};
use crate::client::{Client, Listed};
use crate::decode::SlurmError;
use crate::error::{RestError, numbers};
use crate::record::{Record, job};
use crate::served::ApiVersion;
use crate::wire::Text;

const ONE: &str = "job/{job_id}";

/// Which jobs are kept of a list; slurmctld sends all. What is None lets all pass.
#[derive(Debug, Clone, Default)]
pub struct JobFilter {
    pub user: Option<String>,
    pub account: Option<String>,
    pub partition: Option<String>,
    /// Those that have nodes now, also while they end, and those whose state says nothing that we know.
    pub holding_nodes: bool,
    /// Those that this node is allocated to, by a job's host list.
    pub node: Option<String>,
}

impl JobFilter {
    fn wants(&self, job: &job::Job) -> bool {
        let is = |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|wanted| wanted == found);
        is(&self.user, &job.user_name)
            && is(&self.account, &job.account)
            && is(&self.partition, &job.partition)
            && (!self.holding_nodes || job.job_state.holds_nodes())
            && self.node.as_ref().is_none_or(|node| may_have(&job.nodes, node))
    }
}

/// Whether a host list has a name. One that cannot be read may have any.
pub(crate) fn may_have(nodes: &str, name: &str) -> bool {
    slurm::hostlist::Hostlist::parse(nodes).map_or(true, |list| list.contains(name))
}

/// A job to submit. Slurm requires where it runs and one variable of its environment at least.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Job {
    #[serde(skip)]
    pub script: String,
    pub name: String,
    pub current_working_directory: String,
    pub environment: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub qos: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reservation: Option<String>,
    /// Names; the job gets at least these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub required_nodes: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks: Option<u32>,
    /// `2` or `2-4`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus_per_task: Option<u32>,
    /// Minutes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_limit: Option<Set>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requeue: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub constraints: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standard_output: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standard_error: Option<String>,
}

#[derive(Serialize)]
struct Submission<'a> {
    script: &'a str,
    job: &'a Job,
}

/// A job that Slurm has taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submitted {
    pub id: u32,
}

/// Which processes of a job get a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignalTo {
    /// Those that `srun` started, as with `scancel --signal`.
    Steps,
    /// The batch script's shell.
    Batch,
    /// The shell, what it started, and all steps.
    Everything,
}

impl SignalTo {
    fn flag(self) -> &'static str {
        match self {
            Self::Steps => "FULL_STEPS_ONLY",
            Self::Batch => "BATCH_JOB",
            Self::Everything => "FULL_JOB",
        }
    }
}

/// What becomes of a job that is requeued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Requeue {
    #[default]
    Pending,
    Held,
}

#[derive(Deserialize)]
#[serde(transparent)]
struct JobId(u32);

/// How one job, or one of an array, took what it was told.
trait Outcome: DeserializeOwned {
    fn error(self) -> SlurmError;
}

#[derive(Deserialize)]
struct Killed {
    error: KillError,
}

#[derive(Deserialize)]
struct KillError {
    code: i64,
    #[serde(default)]
    string: Text,
}

impl Outcome for Killed {
    fn error(self) -> SlurmError {
        // What is over already is as it was wanted.
        let number = if self.error.code == numbers::ALREADY_DONE { 0 } else { self.error.code };
        SlurmError { number, error: self.error.string, ..SlurmError::default() }
    }
}

#[derive(Deserialize)]
struct Requeued {
    error_code: i64,
    #[serde(default)]
    error: Text,
    #[serde(default)]
    why: Text,
}

impl Outcome for Requeued {
    fn error(self) -> SlurmError {
        let Self { error_code: number, error, why: description } = self;
        SlurmError { number, error, description, ..SlurmError::default() }
    }
}

impl Client {
    /// Jobs of slurmctld. For tens of thousands slurmrestd needs seconds and gigabytes, whatever is kept of them.
    pub async fn jobs(&self, filter: &JobFilter) -> Result<Listed<job::Job>, RestError> {
        self.list(&jobs(), |job| filter.wants(job)).await
    }

    /// All jobs, with the fields of the caller's own [`crate::record!`].
    pub async fn jobs_as<T: Record>(&self) -> Result<Listed<T>, RestError> {
        self.list(&jobs(), |_| true).await
    }

    /// What keeps a node busy, now and all of it: a list with a job that cannot be understood is an error.
    pub async fn jobs_on(&self, node: &str) -> Result<Vec<facts::Job>, RestError> {
        self.jobs_holding_nodes(Some(node.to_owned())).await
    }

    pub(crate) async fn jobs_holding_nodes(
        &self,
        node: Option<String>,
    ) -> Result<Vec<facts::Job>, RestError> {
        let listed = self.jobs(&JobFilter { holding_nodes: true, node, ..JobFilter::default() }).await?;
        match listed.odd {
            Some((count, why)) => {
                let why = format!("{count} jobs cannot be understood: {why}");
                Err(RestError::Garbage { call: "jobs", why })
            }
            None => Ok(listed.records.into_iter().map(job::Job::into_fact).collect()),
        }
    }

    pub async fn job(&self, id: u32) -> Result<job::Job, RestError> {
        const NAME: &str = "job";
        let mut listed = self.job_and_its_tasks(NAME, id).await?;
        listed.records.retain(|job| job.job_id == id);
        exactly(NAME, listed, |_| true, || what(id))
    }

    /// Of an array all that are left of it, which may not be the one of that number.
    async fn job_and_its_tasks(&self, name: &'static str, id: u32) -> Result<Listed<job::Job>, RestError> {
        let call = Call::read(name, format!("job/{id}")).template(ONE).key("jobs");
        let listed = self.list::<job::Job>(&about(call, id).one(), |_| true).await?;
        if listed.records.is_empty() && listed.odd.is_none() {
            return Err(RestError::NotFound { call: name, what: what(id) });
        }
        Ok(listed)
    }

    pub async fn submit(&self, job: &Job) -> Result<Submitted, RestError> {
        let call = Call::write("submit", Method::POST, "job/submit").template("job/submit").key("job_id");
        let JobId(id) = self.one(&call.body(&Submission { script: &job.script, job })?).await?;
        Ok(Submitted { id })
    }

    /// Of a job that is over already Slurm says yes as well.
    pub async fn cancel(&self, id: u32) -> Result<(), RestError> {
        self.kill("cancel", id, None).await
    }

    /// A signal by its name, such as `USR1`.
    pub async fn signal(&self, id: u32, signal: &str, to: SignalTo) -> Result<(), RestError> {
        self.kill("signal", id, Some((signal, to))).await
    }

    async fn kill(
        &self,
        name: &'static str,
        id: u32,
        signal: Option<(&str, SignalTo)>,
    ) -> Result<(), RestError> {
        let begin = Instant::now();
        let flags = signal.map(|(_, to)| to.flag().to_owned());
        let query = query([("signal", signal.map(|(signal, _)| signal.to_owned())), ("flags", flags)]);
        let call = Call::write(name, Method::DELETE, format!("job/{id}{query}")).template(ONE);
        if self.version_for(name).await? < ApiVersion::V0_0_42 {
            // Its answer says yes to every number.
            self.rest_of(begin).job_and_its_tasks(name, id).await?;
        }
        // It may be another one by now.
        if self.rest_of(begin).version_for(name).await? < ApiVersion::V0_0_42 {
            return self.rest_of(begin).done(&about(call, id)).await;
        }
        self.rest_of(begin).tell::<Killed>(call, id).await
    }

    /// Puts a job back into the queue, running or over. From v0.0.45 on. Of an array of which some tasks are refused, such as
    /// those that have not begun, Slurm says so, and requeues the others all the same.
    pub async fn requeue(&self, id: u32, then: Requeue) -> Result<(), RestError> {
        let hold = (then == Requeue::Held).then(|| "true".to_owned());
        // A GET by its path, a change by what it does.
        let path = format!("job/{id}/requeue{}", query([("Hold", hold)]));
        let call = Call::write("requeue", Method::GET, path).template("job/{job_id}/requeue");
        self.tell::<Requeued>(call, id).await
    }

    /// What went wrong stands in a list, under HTTP 200 and no errors.
    async fn tell<T: Outcome>(&self, call: Call, id: u32) -> Result<(), RestError> {
        let call = about(call, id).key("status");
        let outcomes = self.list_json::<T>(&call).await?;
        if let Some((_, why)) = outcomes.odd {
            return Err(RestError::Garbage { call: call.name, why });
        }
        let mut errors: Vec<SlurmError> = outcomes.records.into_iter().map(Outcome::error).collect();
        errors.retain(|error| error.number != 0);
        match errors.iter().any(|error| error.number == numbers::INVALID_JOB) {
            _ if errors.is_empty() => Ok(()),
            true => Err(RestError::NotFound { call: call.name, what: what(id) }),
            false => Err(RestError::Slurm { call: call.name, status: 200, errors }),
        }
    }
}

fn jobs() -> Call {
    Call::read("jobs", "jobs/").template("jobs").key("jobs")
}

fn about(call: Call, id: u32) -> Call {
    call.about(what(id), numbers::INVALID_JOB)
}

fn what(id: u32) -> String {
    format!("job {id}")
}
