//! The calls, a file for each part of Slurm.

mod accounting;
mod control;
mod jobs;
mod nodes;
mod reservations;

pub use accounting::AccountingJobs;
pub use control::ControllerPing;
pub(crate) use jobs::may_have;
pub use jobs::{Job as JobDescription, JobFilter, Requeue, SignalTo, Submitted};
pub use nodes::{NodeAction, NodeUpdate, Reboot};
pub use reservations::ReservationRequest;

use serde::Serialize;

/// A number as slurmrestd wants it set.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Set {
    set: bool,
    infinite: bool,
    number: u64,
}

impl From<u64> for Set {
    fn from(number: u64) -> Self {
        Self { set: true, infinite: false, number }
    }
}

impl Set {
    /// Without end.
    pub const INFINITE: Self = Self { set: false, infinite: true, number: 0 };
}
