//! `slurm.nebius.ai/v1`: SlurmCluster.
//!
//! Two dialects live in one schema: S, objects of Soperator 1.x with workers inside the cluster, and H, objects of 5.x with workers
//! in NodeSets. [`SlurmClusterSpec::dialect`] is the one rule that tells them apart, and [`SlurmClusterSpec::fill_defaults`] knows the
//! defaults in which they differ.

mod accounting;
mod config;
mod controller;
mod exporter;
mod jail;
mod login;
mod node;
mod partition;
mod plug_stack;
mod rest;
mod rules;
mod sconfig_controller;
mod status;
mod volume;
mod worker;

pub use accounting::*;
pub use config::*;
pub use controller::*;
pub use exporter::*;
pub use jail::*;
pub use login::*;
pub use node::*;
pub use partition::*;
pub use plug_stack::*;
pub use rest::*;
pub use sconfig_controller::*;
pub use status::*;
pub use volume::*;
pub use worker::*;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

use crate::soperator::common::CgroupVersion;

pub(crate) fn crd() -> Value {
    crate::schema::crd::<SlurmCluster, SlurmClusterSpec, SlurmClusterStatus>(
        "A Slurm cluster: its controller, login nodes, accounting and configuration, on one shared root file system, the jail. \
         Workers are NodeSets that name this cluster, or `slurmNodes.worker` as in Soperator 1.x.",
    )
}

/// What the cluster shall be.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "slurm.nebius.ai",
    version = "v1",
    kind = "SlurmCluster",
    namespaced,
    status = "SlurmClusterStatus",
    schema = "disabled",
    derive = "PartialEq",
    shortname = "slc",
    category = "slurm",
    printcolumn(json_path = ".status.phase", name = "Status", type_ = "string"),
    printcolumn(
        json_path = r#".status.conditions[?(@.type=="ControllersAvailable")].status"#,
        name = "Controllers",
        type_ = "string"
    ),
    printcolumn(json_path = ".status.readyWorkers", name = "Workers", type_ = "integer"),
    printcolumn(json_path = ".status.desiredWorkers", name = "Desired", type_ = "integer"),
    printcolumn(json_path = ".status.readyLogin", name = "Login", type_ = "integer"),
    printcolumn(
        json_path = r#".status.conditions[?(@.type=="SConfigControllerAvailable")].status"#,
        name = "SConfigCtrl",
        type_ = "string"
    ),
    printcolumn(
        json_path = r#".status.conditions[?(@.type=="AccountingAvailable")].status"#,
        name = "Accounting",
        type_ = "string"
    ),
    printcolumn(json_path = ".metadata.creationTimestamp", name = "Age", type_ = "date")
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::SPEC))]
pub struct SlurmClusterSpec {
    /// The cgroup hierarchy of the worker nodes. Default: `v2`. A 1.x cluster says it in `slurmNodes.worker.cgroupVersion`.
    #[serde(default)]
    pub cgroup_version: CgroupVersion,
    /// Whether the workers of a 1.x cluster have GPUs. Deprecated: a 5.x cluster learns it from its NodeSets. Setting it marks
    /// the object as one of the 1.x dialect, where the default is `gpu`.
    pub cluster_type: Option<ClusterType>,
    /// The release of Soperator that this object was written for, for example `1.22.2`. With `1.` at its beginning the object is
    /// read in the 1.x dialect. Default: the operator's own version.
    pub cr_version: Option<String>,
    /// Lines for cgroup.conf. They win over the lines that are generated.
    pub custom_cgroup_config: Option<String>,
    /// Lines for slurm.conf. They come after the generated ones and win over them, for example `MaxStepCount=50000`.
    pub custom_slurm_config: Option<String>,
    /// A program that slurmd runs on the nodes at intervals to find out whether they are healthy. Default: none.
    pub health_check_config: Option<HealthCheckConfig>,
    /// Named answers to the question which Kubernetes nodes a part of the cluster may run on. Every `k8sNodeFilterName` of the
    /// cluster is the name of one of them.
    #[schemars(length(min = 1, max = 256), extend("x-kubernetes-validations" = rules::NODE_FILTERS))]
    pub k8s_node_filters: Vec<K8sNodeFilter>,
    /// Stops the cluster, in whole or in part, while the jail is worked on. Default: `none`.
    #[serde(default)]
    pub maintenance: Maintenance,
    /// What goes into mpi.conf.
    #[serde(default)]
    pub mpi_config: MpiConfig,
    /// The partitions (queues) of the cluster. Default: one partition `main` with all workers.
    pub partition_configuration: Option<PartitionConfiguration>,
    /// SPANK plugins: what goes into plugstack.conf beside the plugin that enters the jail.
    #[serde(default)]
    pub plug_stack_config: PlugStackConfig,
    /// The Job that fills the jail with a root file system.
    pub populate_jail: PopulateJail,
    /// The program that copies the configuration into the jail and tells Slurm to read it again.
    pub s_config_controller: Option<SConfigController>,
    /// Secrets of the cluster that are not generated under their usual names. May be empty: `{}`.
    pub secrets: Secrets,
    /// Keys of slurm.conf that have a field of their own; all others go into `customSlurmConfig`.
    #[serde(default)]
    pub slurm_config: SlurmConfig,
    /// The parts of the cluster that run Slurm's daemons.
    pub slurm_nodes: SlurmNodes,
    /// What Slurm is told about the network. Default: blocks of 16 nodes for `topology/block`.
    pub topology: Option<Topology>,
    /// Whether an AppArmor profile is made for the cluster and used by login nodes and workers. It needs the
    /// security-profiles-operator. Default: `false`.
    #[serde(default)]
    pub use_default_app_armor_profile: bool,
    /// Volumes that parts of the cluster mount by name. The one named `jail` is the shared root file system.
    #[schemars(length(max = 256))]
    pub volume_sources: Option<Vec<VolumeSource>>,
    /// Features of Slurm nodes by host list, for workers of a 1.x cluster. Deprecated: NodeSets have `nodeConfig.features`.
    pub worker_features: Option<Vec<WorkerFeature>>,
}

/// Whether workers have GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ClusterType {
    Gpu,
    Cpu,
}

/// Stops the cluster, in whole or in part, while the jail is worked on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Maintenance {
    /// The cluster runs.
    #[default]
    None,
    /// Everything is scaled to zero.
    Downscale,
    /// Everything is scaled to zero, and the Job that populated the jail is deleted.
    DownscaleAndDeletePopulateJail,
    /// Everything is scaled to zero, and the jail is populated anew over what is in it.
    DownscaleAndOverwritePopulateJail,
    /// The cluster runs without waiting for the jail to be populated.
    SkipPopulateJail,
}

/// Secrets of the cluster.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Secrets {
    /// The Secret with the host keys of sshd. It is generated if it does not exist. Default: `<cluster>-sshd-keys`.
    pub sshd_keys_name: Option<String>,
}

/// The parts of the cluster that run Slurm's daemons.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SlurmNodes {
    /// slurmdbd and its database: what jobs, users and shares are remembered in. Off by default.
    pub accounting: Accounting,
    /// slurmctld, the heart of the cluster. There is always exactly one.
    pub controller: Controller,
    /// The exporter of metrics for Prometheus. Off by default.
    pub exporter: Exporter,
    /// Login nodes: where users arrive by ssh.
    pub login: Login,
    /// slurmrestd, the REST API. Off by default for users; the operator runs one for itself as long as there are workers.
    pub rest: Rest,
    /// Workers of a 1.x cluster, pods `worker-0`, `worker-1` and so on. Deprecated: NodeSets can do more. Setting it marks the
    /// object as one of the 1.x dialect.
    pub worker: Option<Worker>,
}

/// A feature of some workers.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkerFeature {
    /// Which workers have it, as a host list of Slurm: `worker-[0-3,7]`.
    #[schemars(length(min = 1))]
    pub hostlist_expr: String,
    /// Name of the feature, for `sbatch --constraint`.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Name of a `NodeSet` line in slurm.conf that holds the workers with this feature, for use in partitions. Default: none.
    pub nodeset_name: Option<String>,
}
