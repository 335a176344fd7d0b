//! Keys of Slurm's configuration files.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::schema::Integer;

/// Keys of slurm.conf. A field without a default here has one that differs between Soperator 1.x and 5.x.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SlurmConfig {
    /// `CompleteWait`, in seconds: how long the scheduler waits for nodes of an ended job before it starts another. Default: 5.
    pub complete_wait: i32,
    /// `DefCpuPerGPU`: how many CPUs a job gets for each GPU it asks for, if it does not say. Default: 4.
    #[serde(rename = "defCpuPerGPU")]
    pub def_cpu_per_gpu: i32,
    /// `DefMemPerNode`, in MiB: memory of a job on each node, if it does not say; 0 is all of it. Default: 0 (1.x: 1048576).
    pub def_mem_per_node: Option<i32>,
    /// `Epilog`: program that runs on each node after a job. Empty: none.
    pub epilog: String,
    /// `MaxJobCount`: how many jobs slurmctld keeps at a time. Default: 20000.
    pub max_job_count: i32,
    /// `MessageTimeout`, in seconds: how long a daemon waits for an answer. Default: 60.
    pub message_timeout: i32,
    /// `MinJobAge`, in seconds: how long an ended job stays in slurmctld. Default: 1800 (1.x: 28800).
    pub min_job_age: Option<i32>,
    /// `Prolog`: program that runs on each node before a job. Empty: none.
    pub prolog: String,
    /// `ResumeTimeout`, in seconds: how long a node that is powered up may take to register. Default: 1800.
    #[schemars(range(min = 1))]
    pub resume_timeout: i32,
    /// `SuspendTime`, in seconds: how long a node is idle before it is powered down. Default: 1000000000, in effect never, but
    /// finite, since Slurm without a finite time cannot power nodes at all.
    pub suspend_time: i32,
    /// `TaskPluginParam`, for example `Verbose`. Empty: the line is left out.
    pub task_plugin_param: String,
    /// `TaskProlog`: program that runs as the user before each task of a job. Empty: none.
    pub task_prolog: String,
    /// How many nodes are a block for `topology/block`, in a 1.x object. Default: 18. In 5.x it is `topology.blockSize`.
    #[schemars(with = "Option<Integer>")]
    pub topology_block_size: Option<i64>,
    /// `TopologyParam`. Default: `SwitchAsNodeRank`.
    pub topology_param: String,
    /// `TopologyPlugin`: `topology/tree` or `topology/block` make Slurm place jobs by the network; empty turns that off.
    /// Default: `topology/tree`.
    pub topology_plugin: String,
}

impl Default for SlurmConfig {
    fn default() -> Self {
        Self {
            complete_wait: 5,
            def_cpu_per_gpu: 4,
            def_mem_per_node: None,
            epilog: String::new(),
            max_job_count: 20_000,
            message_timeout: 60,
            min_job_age: None,
            prolog: String::new(),
            resume_timeout: 1800,
            suspend_time: 1_000_000_000,
            task_plugin_param: String::new(),
            task_prolog: String::new(),
            topology_block_size: None,
            topology_param: "SwitchAsNodeRank".to_owned(),
            topology_plugin: "topology/tree".to_owned(),
        }
    }
}

/// What Slurm is told about the network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Topology {
    /// How many nodes are a block for `topology/block` (`BlockSizes`). Default: 18; 16 if `topology` is not given at all.
    #[schemars(with = "Integer")]
    pub block_size: i64,
}

impl Default for Topology {
    fn default() -> Self {
        Self { block_size: 18 }
    }
}

/// What goes into mpi.conf.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MpiConfig {
    /// `PMIxEnv`: environment variables for MPI over PMIx, `NAME=VALUE` separated by semicolons.
    /// Default: `OMPI_MCA_btl_tcp_if_include=eth0`.
    pub pmix_env: String,
}

impl Default for MpiConfig {
    fn default() -> Self {
        Self { pmix_env: "OMPI_MCA_btl_tcp_if_include=eth0".to_owned() }
    }
}

/// A health check that slurmd runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HealthCheckConfig {
    /// `HealthCheckInterval`, in seconds: how often the program runs.
    pub health_check_interval: i32,
    /// `HealthCheckNodeState`: on nodes in which states the program runs. At least one.
    #[schemars(length(min = 1))]
    pub health_check_node_state: Vec<HealthCheckNodeState>,
    /// `HealthCheckProgram`: path of the program in the container of slurmd, outside the jail.
    pub health_check_program: String,
}

/// A state in which a node is checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HealthCheckNodeState {
    /// The state, as slurm.conf names it; `CYCLE` spreads the checks over the interval.
    pub state: HealthCheckState,
}

/// A value of `HealthCheckNodeState`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum HealthCheckState {
    Alloc,
    Any,
    Cycle,
    Idle,
    NondrainedIdle,
    Mixed,
}
