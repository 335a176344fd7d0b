//! Jobs and what starts them.

use jiff::Timestamp;

use super::condition::{Condition, holds};
use super::{Kind, view};
use crate::lean::lean;
use crate::meta::Meta;
use crate::text::Text;

lean! {
    pub struct JobView {
        #[serde(rename = "metadata")]
        pub meta: Meta,
        pub spec: JobSpec,
        pub status: JobStatus,
    }
}

view!(JobView, Kind::namespaced("batch", "v1", "Job", "jobs"));

lean! {
    pub struct JobSpec {
        pub suspend: bool,
        pub completions: Option<i32>,
        pub backoff_limit: Option<i32>,
    }
}

lean! {
    pub struct JobStatus {
        pub active: i32,
        pub ready: i32,
        pub succeeded: i32,
        pub failed: i32,
        pub start_time: Option<Timestamp>,
        pub completion_time: Option<Timestamp>,
        pub conditions: Box<[Condition]>,
    }
}

/// How far a Job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JobPhase {
    Suspended,
    /// It has no pods yet.
    Pending,
    Active,
    Complete,
    Failed,
}

impl JobView {
    #[must_use]
    pub fn phase(&self) -> JobPhase {
        let status = &self.status;
        if holds(&status.conditions, "Complete") {
            JobPhase::Complete
        } else if holds(&status.conditions, "Failed") {
            JobPhase::Failed
        } else if self.spec.suspend || holds(&status.conditions, "Suspended") {
            JobPhase::Suspended
        } else if status.active > 0 {
            JobPhase::Active
        } else {
            JobPhase::Pending
        }
    }
}

lean! {
    pub struct CronJobView {
        #[serde(rename = "metadata")]
        pub meta: Meta,
        pub spec: CronJobSpec,
        pub status: CronJobStatus,
    }
}

view!(CronJobView, Kind::namespaced("batch", "v1", "CronJob", "cronjobs"));

lean! {
    pub struct CronJobSpec {
        pub schedule: Text,
        pub suspend: bool,
    }
}

lean! {
    pub struct CronJobStatus {
        /// The Jobs that run now.
        pub active: Box<[ActiveJob]>,
        pub last_schedule_time: Option<Timestamp>,
        pub last_successful_time: Option<Timestamp>,
    }
}

lean! {
    pub struct ActiveJob {
        pub name: Text,
        pub uid: Text,
    }
}
