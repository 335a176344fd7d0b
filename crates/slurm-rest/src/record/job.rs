//! A job, as `jobs/` and `job/ID` show it.

use slurm::facts;
use slurm::state::JobState;

use crate::wire::{Number, Text};

crate::record! {
    pub struct Job {
        job_id: u32 = required b"job_id",
        job_state: JobState = required b"job_state",
        state_reason: Text = b"state_reason",
        name: Text = b"name",
        user_name: Text = b"user_name",
        user_id: Number = b"user_id",
        account: Text = b"account",
        partition: Text = b"partition",
        qos: Text = b"qos",
        /// A host list. Without it nobody knows where the job is.
        nodes: Text = required b"nodes",
        required_nodes: Text = b"required_nodes",
        node_count: Number = b"node_count",
        cpus: Number = b"cpus",
        submit_time: Number = b"submit_time",
        eligible_time: Number = b"eligible_time",
        start_time: Number = b"start_time",
        end_time: Number = b"end_time",
        /// Minutes.
        time_limit: Number = b"time_limit",
        priority: Number = b"priority",
        array_job_id: Number = b"array_job_id",
        array_task_id: Number = b"array_task_id",
        tres_req_str: Text = b"tres_req_str",
        tres_alloc_str: Text = b"tres_alloc_str",
        resv_name: Text = b"resv_name",
        comment: Text = b"comment",
        admin_comment: Text = b"admin_comment",
        requeue: bool = b"requeue",
        restart_cnt: Number = b"restart_cnt",
    }
}

impl Job {
    #[must_use]
    pub fn into_fact(self) -> facts::Job {
        facts::Job {
            id: self.job_id,
            state: self.job_state,
            name: self.name.0,
            user: self.user_name.0,
            nodes: self.nodes.0,
            start: self.start_time.to_time(),
            // Of a job without a limit Slurm says that it ends in a year.
            end: self.end_time.to_time().filter(|_| self.time_limit != Number::Infinite),
        }
    }
}
