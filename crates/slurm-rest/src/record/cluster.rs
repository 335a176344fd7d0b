//! Controllers, partitions, reservations, licences, shares.

use serde::Deserialize;
use slurm::facts;

use crate::calls::ControllerPing;
use crate::wire::{Number, Text, Words};

#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct Ping {
    pub hostname: Text,
    /// `UP` or `DOWN`; before v0.0.45.
    pub pinged: Text,
    pub responding: Option<bool>,
    pub primary: Option<bool>,
    /// `primary`, `backup`; before v0.0.45.
    pub mode: Text,
    /// What went wrong; from v0.0.45 on.
    pub status: Text,
}

impl From<Ping> for ControllerPing {
    fn from(ping: Ping) -> Self {
        Self {
            responding: ping.responding.unwrap_or(&*ping.pinged == "UP"),
            primary: ping.primary.unwrap_or(&*ping.mode == "primary"),
            hostname: ping.hostname.0,
        }
    }
}

/// A part of `diag/`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct Diag {
    pub req_time: Number,
    pub server_thread_count: Number,
    pub agent_queue_size: Number,
    pub agent_count: Number,
    pub agent_thread_count: Number,
    pub dbd_agent_queue_size: Number,
    pub schedule_cycle_last: Number,
    pub schedule_cycle_max: Number,
    pub schedule_cycle_mean: Number,
    pub schedule_queue_length: Number,
    pub jobs_submitted: Number,
    pub jobs_started: Number,
    pub jobs_completed: Number,
    pub jobs_canceled: Number,
    pub jobs_failed: Number,
    pub jobs_pending: Number,
    pub jobs_running: Number,
    pub bf_active: bool,
    pub bf_backfilled_jobs: Number,
    pub bf_cycle_last: Number,
    pub bf_cycle_mean: Number,
    pub bf_queue_len: Number,
    pub rpcs_by_message_type: Vec<RpcsByType>,
    pub rpcs_by_user: Vec<RpcsByUser>,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct RpcsByType {
    pub message_type: Text,
    pub count: Number,
    /// Microseconds.
    pub total_time: Number,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct RpcsByUser {
    pub user: Text,
    pub count: Number,
    /// Microseconds.
    pub total_time: Number,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Partition {
    pub name: Text,
    #[serde(default)]
    pub nodes: PartitionNodes,
    #[serde(default)]
    pub node_sets: Text,
    #[serde(default)]
    pub partition: PartitionState,
    #[serde(default)]
    pub maximums: PartitionMaximums,
    #[serde(default)]
    pub priority: PartitionPriority,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct PartitionNodes {
    /// A host list.
    pub configured: Text,
    pub total: Number,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct PartitionState {
    pub state: Words,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct PartitionMaximums {
    /// Minutes.
    pub time: Number,
    pub nodes: Number,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct PartitionPriority {
    pub tier: Number,
}

impl Partition {
    #[must_use]
    pub fn into_fact(self) -> facts::Partition {
        facts::Partition {
            name: self.name.0,
            state: self.partition.state.0,
            nodes: self.nodes.configured.0,
            total_nodes: self
                .nodes
                .total
                .to_u64()
                .and_then(|total| total.try_into().ok())
                .unwrap_or_default(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Reservation {
    pub name: Text,
    /// A host list.
    #[serde(default)]
    pub node_list: Text,
    #[serde(default)]
    pub node_count: Number,
    #[serde(default)]
    pub start_time: Number,
    #[serde(default)]
    pub end_time: Number,
    #[serde(default)]
    pub flags: Words,
    #[serde(default)]
    pub users: Words,
    #[serde(default)]
    pub accounts: Words,
    #[serde(default)]
    pub partition: Text,
}

impl Reservation {
    #[must_use]
    pub fn into_fact(self) -> facts::Reservation {
        facts::Reservation {
            name: self.name.0,
            nodes: self.node_list.0,
            start: self.start_time.to_time(),
            end: self.end_time.to_time().filter(|end| !never(*end)),
            flags: self.flags.0,
            users: self.users.0,
            accounts: self.accounts.0,
        }
    }
}

/// Slurm writes "without end" as the greatest numbers of 32 bits, too.
fn never(time: facts::UnixTime) -> bool {
    time.0 >= u64::from(u32::MAX - 1)
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct License {
    #[serde(rename = "LicenseName")]
    pub name: Text,
    #[serde(rename = "Total")]
    pub total: Number,
    #[serde(rename = "Used")]
    pub used: Number,
    #[serde(rename = "Free")]
    pub free: Number,
    #[serde(rename = "Reserved")]
    pub reserved: Number,
    #[serde(rename = "Remote")]
    pub remote: bool,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct Share {
    pub id: Number,
    pub cluster: Text,
    /// Of the account or the user.
    pub name: Text,
    pub parent: Text,
    pub partition: Text,
    pub shares: Number,
    pub shares_normalized: Number,
    pub usage: Number,
    pub usage_normalized: Number,
    pub effective_usage: Number,
    pub fairshare: FairShare,
    /// `USER` or `ASSOCIATION`.
    #[serde(rename = "type")]
    pub kind: Words,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct FairShare {
    pub factor: Number,
    pub level: Number,
}
