//! What slurmdbd keeps.

use crate::call::{Call, query};
use crate::client::{Client, Listed};
use crate::error::{RestError, numbers};
use crate::record::accounting::{Association, Job, Qos, User};

/// Which jobs to ask slurmdbd for. It filters for itself.
#[derive(Debug, Clone, Default)]
pub struct AccountingJobs {
    pub cluster: Option<String>,
    /// Jobs that were there in this span: seconds since 1970.
    pub from: Option<u64>,
    pub until: Option<u64>,
    pub user: Option<String>,
    pub account: Option<String>,
    pub partition: Option<String>,
    /// `RUNNING`, `FAILED`, …
    pub state: Option<String>,
    /// Times and usage as they are, and not cut to the span.
    pub whole_usage: bool,
}

impl AccountingJobs {
    fn query(&self) -> String {
        let time = |time: Option<u64>| time.map(|seconds| format!("uts{seconds}"));
        let yes = || "true".to_owned();
        query([
            ("cluster", self.cluster.clone()),
            ("start_time", time(self.from)),
            ("end_time", time(self.until)),
            ("users", self.user.clone()),
            ("account", self.account.clone()),
            ("partition", self.partition.clone()),
            ("state", self.state.clone()),
            ("disable_truncate_usage_time", self.whole_usage.then(yes)),
            // They make an answer many times larger.
            ("skip_steps", Some(yes())),
        ])
    }
}

impl Client {
    pub async fn accounting_jobs(&self, wanted: &AccountingJobs) -> Result<Listed<Job>, RestError> {
        let path = format!("jobs/{}", wanted.query());
        self.list_json(&Call::read("accounting_jobs", path).slurmdb().template("jobs").key("jobs")).await
    }

    /// Every record of one job: an array has one for each of its tasks, a job that was requeued may have several.
    pub async fn accounting_job(&self, id: u32) -> Result<Vec<Job>, RestError> {
        const NAME: &str = "accounting_job";
        let call = Call::read(NAME, format!("job/{id}")).slurmdb().template("job/{job_id}").key("jobs");
        let what = format!("job {id}");
        let listed = self.list_json(&call.about(what.clone(), numbers::INVALID_JOB).one()).await?;
        match listed.odd {
            Some((_, why)) => Err(RestError::Garbage { call: NAME, why }),
            None if listed.records.is_empty() => Err(RestError::NotFound { call: NAME, what }),
            None => Ok(listed.records),
        }
    }

    pub async fn associations(&self) -> Result<Listed<Association>, RestError> {
        let call = Call::read("associations", "associations/").slurmdb();
        self.list_json(&call.template("associations").key("associations")).await
    }

    pub async fn users(&self) -> Result<Listed<User>, RestError> {
        // Without its associations a user has no default account, either.
        let call = Call::read("users", "users/?with_assocs=true").slurmdb();
        self.list_json(&call.template("users").key("users")).await
    }

    pub async fn qos(&self) -> Result<Listed<Qos>, RestError> {
        self.list_json(&Call::read("qos", "qos/").slurmdb().template("qos").key("qos")).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_asked_for_is_in_the_query() {
        assert_eq!(AccountingJobs::default().query(), "?skip_steps=true");
        let wanted = AccountingJobs {
            from: Some(7),
            user: Some("a b".into()),
            whole_usage: true,
            ..AccountingJobs::default()
        };
        assert_eq!(
            wanted.query(),
            "?start_time=uts7&users=a%20b&disable_truncate_usage_time=true&skip_steps=true"
        );
    }
}
