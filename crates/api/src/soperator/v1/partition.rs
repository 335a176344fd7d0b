//! Partitions: the queues of a cluster.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::rules;

/// The partitions of the cluster.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::PARTITIONS))]
pub struct PartitionConfiguration {
    /// Where the partitions come from. Default: `default`.
    #[serde(default)]
    pub config_type: PartitionConfigType,
    /// The partitions, for `configType: structured`. At least one.
    pub partitions: Option<Vec<Partition>>,
    /// Lines of slurm.conf, for `configType: custom`. Each begins with `PartitionName`, for example
    /// `PartitionName=main Nodes=ALL Default=YES State=UP`.
    #[schemars(length(max = 4096), inner(length(max = 65536)))]
    pub raw_config: Option<Vec<String>>,
}

/// Where the partitions come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PartitionConfigType {
    /// A partition `main` with all workers, and hidden ones for health checks (1.x also one for jobs in the background).
    #[default]
    Default,
    /// From `rawConfig`, line by line.
    Custom,
    /// From `partitions`.
    Structured,
}

/// One partition.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Partition {
    /// The rest of the line in slurm.conf, for example `Default=YES MaxTime=8:00:00 State=UP`.
    pub config: Option<String>,
    /// Whether all workers belong to the partition. Default: `false`.
    #[serde(default)]
    pub is_all: bool,
    /// Name of the partition, for `sbatch --partition`.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Names of the NodeSets whose workers belong to the partition. One that does not exist is left out, and a condition says so.
    pub node_set_refs: Option<Vec<String>>,
}
