//! Workers of a 1.x cluster.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1 as core;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::{NodeContainer, NodeVolume, NodeVolumeMount, rules};
use crate::Open;
use crate::scalar::{IntOrString, Quantity};
use crate::soperator::common::CgroupVersion;

/// Workers of a 1.x cluster: all alike, pods `worker-0`, `worker-1` and so on.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::WORKER))]
pub struct Worker {
    /// The cgroup hierarchy of the worker nodes. Default: `v2`.
    #[serde(default)]
    pub cgroup_version: CgroupVersion,
    /// Init containers of your own, as in a pod. They run after those of the operator.
    pub custom_init_containers: Option<Vec<Open<core::Container>>>,
    /// Whether jobs may use GDRCopy, NVIDIA's fast copies between host and GPU. Default: `false`.
    #[serde(default, rename = "enableGDRCopy")]
    pub enable_gdr_copy: bool,
    /// Whether the pods share the user namespace of the host. Default: `false`, each pod has one of its own.
    #[serde(default)]
    pub host_users: bool,
    /// Name of the entry of `k8sNodeFilters` that says where the workers run.
    pub k8s_node_filter_name: String,
    /// How many workers may be replaced at a time, as a number or a share: `2`, `20%`. Default: `20%`.
    #[serde(default = "max_unavailable")]
    pub max_unavailable: IntOrString,
    /// The container with munged, which authenticates Slurm's daemons to each other.
    pub munge: NodeContainer,
    /// Priority class of the pods. Default: the one of the Kubernetes cluster.
    pub priority_class: Option<String>,
    /// How many workers there shall be. 0 where NodeSets are used in partitions.
    #[schemars(range(min = 0))]
    pub size: Option<i32>,
    /// What the node's `Extra` field in Slurm says. Environment variables are filled in, for example
    /// `{"monitoring": "https://example.org/$INSTANCE_ID"}`.
    pub slurm_node_extra: Option<String>,
    /// The container with slurmd. It has to ask for `cpu` and `memory`; the memory is what Slurm gives to jobs.
    pub slurmd: NodeContainer,
    /// ConfigMap with a configuration of sshd in place of the generated one.
    pub sshd_config_map_ref_name: Option<String>,
    /// ConfigMap with a configuration of supervisord in place of the generated one.
    pub supervisord_config_map_ref_name: Option<String>,
    /// Volumes of the pods.
    pub volumes: WorkerVolumes,
    /// Annotations of the pods.
    pub worker_annotations: Option<BTreeMap<String, String>>,
}

fn max_unavailable() -> IntOrString {
    "20%".into()
}

/// Volumes of the workers.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::BOTH_MOUNTS))]
pub struct WorkerVolumes {
    /// Volumes of your own, mounted in the container of slurmd, outside the jail.
    #[schemars(length(max = 256), extend("x-kubernetes-validations" = rules::MOUNTS), transform = rules::one_volume_each)]
    pub custom_mounts: Option<Vec<NodeVolumeMount>>,
    /// The shared root file system, mounted at `/mnt/jail`.
    #[schemars(extend("x-kubernetes-validations" = [rules::ONE_VOLUME]))]
    pub jail: NodeVolume,
    /// Volumes of your own inside the jail: `mountPath` is the path that jobs see.
    #[schemars(length(max = 256), extend("x-kubernetes-validations" = rules::MOUNTS), transform = rules::one_volume_each)]
    pub jail_sub_mounts: Option<Vec<NodeVolumeMount>>,
    /// Size of `/dev/shm`. It counts as memory of the container. Default: `64Gi`.
    #[serde(default = "shared_memory_size")]
    pub shared_memory_size: Quantity,
    /// Where slurmd keeps its own files.
    #[schemars(extend("x-kubernetes-validations" = [rules::ONE_VOLUME]))]
    pub spool: NodeVolume,
}

fn shared_memory_size() -> Quantity {
    "64Gi".into()
}
