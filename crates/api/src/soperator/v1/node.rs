//! What the parts of a cluster have in common: where they run and what their containers are.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1 as core;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::Open;
use crate::soperator::common::{AppArmorProfile, ImagePullPolicy, ProcMount, Resources};

/// Which Kubernetes nodes a part of the cluster may run on.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct K8sNodeFilter {
    /// Affinity of the pods, as in a pod. Use this or `nodeSelector`.
    pub affinity: Option<Open<core::Affinity>>,
    /// Name by which the parts of the cluster choose this filter. No two filters have the same.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Labels that a Kubernetes node must have.
    pub node_selector: Option<BTreeMap<String, String>>,
    /// Taints of Kubernetes nodes that the pods tolerate, as in a pod.
    pub tolerations: Option<Vec<Open<core::Toleration>>>,
}

/// Where and how often a part of the cluster runs.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SlurmNode {
    /// Init containers of your own, as in a pod. They run before those of the operator. Not for the program that writes the configuration.
    pub custom_init_containers: Option<Vec<Open<core::Container>>>,
    /// Whether the pods share the user namespace of the host; `false` gives each pod one of its own. Default: what Kubernetes chooses.
    pub host_users: Option<bool>,
    /// Name of the entry of `k8sNodeFilters` that says where the pods run.
    pub k8s_node_filter_name: String,
    /// Priority class of the pods. Default: the one of the Kubernetes cluster.
    pub priority_class: Option<String>,
    /// How many pods there shall be. slurmdbd and the exporter are one each, whatever this says. Default: 0.
    #[schemars(range(min = 0))]
    pub size: Option<i32>,
}

/// A container of a part of the cluster.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeContainer {
    /// AppArmor profile of the container: `unconfined`, `localhost/NAME`, or the bare name of a profile that is loaded on
    /// the node. Default: `unconfined`.
    #[serde(default)]
    pub app_armor_profile: AppArmorProfile,
    /// Arguments of the entry point, in place of those of the image. Not for slurmctld, the exporter and the program that writes the
    /// configuration.
    pub args: Option<Vec<String>>,
    /// Entry point of the container, in place of that of the image. Not for slurmctld and the program that writes the configuration.
    pub command: Option<Vec<String>>,
    /// Environment variables that are added to those of the operator, as in a pod. Not for slurmctld, the exporter and the program that
    /// writes the configuration.
    pub custom_env: Option<Vec<Open<core::EnvVar>>>,
    /// Image of the container with its tag, for example `registry.example.org/slurm/controller:26.05`.
    pub image: String,
    /// When the kubelet fetches the image. Default: `IfNotPresent`.
    #[serde(default)]
    pub image_pull_policy: ImagePullPolicy,
    /// Secrets with which images are fetched. Those of a pod's main container are used for the whole pod.
    pub image_pull_secrets: Option<Vec<Open<core::LocalObjectReference>>>,
    /// When the container is restarted, as in a pod. Default: none; of a 1.x cluster the operator's own probe.
    pub liveness_probe: Option<Open<core::Probe>>,
    /// Port that the daemon listens on; 0 is the same as none given. Default: the usual port of the daemon.
    pub port: Option<i32>,
    /// How much of `/proc` the container sees. Only slurmd makes use of it, and sees all of it in a 1.x cluster, whatever this says.
    pub proc_mount: Option<ProcMount>,
    /// When the container counts as ready, as in a pod. Default: none; of a 1.x cluster the operator's own probe.
    pub readiness_probe: Option<Open<core::Probe>>,
    /// What the container asks for. All but `cpu` is its limit as well; for slurmd `cpu` too.
    pub resources: Option<Resources>,
    /// Text of `/etc/security/limits.conf` in the container, for example `* soft memlock unlimited`. Only slurmctld, sshd and slurmd
    /// make use of it.
    pub security_limits_config: Option<String>,
}
