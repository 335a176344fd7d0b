//! What a cluster is.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::condition::{Condition, Conditions};

/// What the cluster is.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SlurmClusterStatus {
    /// What is true of the cluster now, and what it waits for.
    #[schemars(with = "Option<Conditions>")]
    pub conditions: Option<Vec<Condition>>,
    /// How many workers there shall be: those of `slurmNodes.worker` and of all NodeSets of the cluster.
    pub desired_workers: Option<i32>,
    /// The `metadata.generation` that this status speaks of; older than the object's own: not yet looked at.
    pub observed_generation: Option<i64>,
    /// The state of the cluster in a word: `Pending`, `Reconciling`, `Not available` or `Available`.
    pub phase: Option<String>,
    /// How many login nodes are available.
    pub ready_login: Option<i32>,
    /// How many copies of the program that writes configuration into the jail are available.
    pub ready_s_config_controller: Option<i32>,
    /// How many workers are available: those of `slurmNodes.worker` and of all NodeSets of the cluster.
    pub ready_workers: Option<i32>,
    /// Which workers of `slurmNodes.worker` exist or are about to, as ranges of their ordinals: `0-3,7`. slurm.conf names exactly these.
    pub worker_ordinals: Option<String>,
}
