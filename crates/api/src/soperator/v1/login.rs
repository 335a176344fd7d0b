//! Login nodes.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::{NodeContainer, NodeVolume, NodeVolumeMount, SlurmNode, Sssd, rules};
use crate::scalar::Quantity;

/// Login nodes: where users arrive by ssh. They land inside the jail.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::LOGIN))]
pub struct Login {
    /// The container with munged, which authenticates Slurm's commands.
    pub munge: NodeContainer,
    #[serde(flatten)]
    pub node: SlurmNode,
    /// Public keys with which root may log in, one line each as in `authorized_keys`. May be empty: `[]`.
    pub ssh_root_public_keys: Vec<String>,
    /// The container with sshd.
    pub sshd: NodeContainer,
    /// ConfigMap with a configuration of sshd in place of the generated one.
    pub sshd_config_map_ref_name: Option<String>,
    /// Annotations of the Service that users reach, for example those of a load balancer.
    pub sshd_service_annotations: Option<BTreeMap<String, String>>,
    /// Address of the load balancer. Default: one that the load balancer chooses.
    #[serde(rename = "sshdServiceLoadBalancerIP")]
    pub sshd_service_load_balancer_ip: Option<String>,
    /// Networks from which the load balancer may be reached, for example `192.0.2.0/24`. Default: all.
    pub sshd_service_load_balancer_source_ranges: Option<Vec<String>>,
    /// Port on every Kubernetes node, for `sshdServiceType: NodePort`: 30000 to 32768. Default: 0, which is none.
    #[serde(default)]
    pub sshd_service_node_port: i32,
    /// How users reach the login nodes.
    pub sshd_service_type: SshdServiceType,
    #[serde(flatten)]
    pub sssd: Sssd,
    /// Limits of one user's processes on a login node. Default: none.
    pub user_isolation: Option<UserIsolation>,
    /// Volumes of the pods.
    pub volumes: LoginVolumes,
}

/// How users reach the login nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SshdServiceType {
    /// By a load balancer of the cloud.
    LoadBalancer,
    /// By a port of every Kubernetes node.
    NodePort,
}

/// Limits of one user's processes on a login node, so that one user cannot take it from the others.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::USER_ISOLATION))]
pub struct UserIsolation {
    /// A user's share of the CPU against other users (`cpu.weight`), from 1 to 10000. Default: 100.
    #[serde(default = "cpu_weight")]
    #[schemars(range(min = 1, max = 10000))]
    pub cpu_weight: i64,
    /// Whether users are limited. Default: `false`.
    #[serde(default)]
    pub enabled: bool,
    /// Memory of a user from which on the kernel slows the user down (`memory.high`). Default: 80 % of the sshd container's.
    pub memory_high: Option<Quantity>,
    /// Memory of a user that is never exceeded (`memory.max`). Default: 90 % of the sshd container's.
    pub memory_max: Option<Quantity>,
}

fn cpu_weight() -> i64 {
    100
}

/// Volumes of the login nodes.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoginVolumes {
    /// Volumes of your own, mounted in the container of sshd, outside the jail.
    #[schemars(length(max = 256))]
    pub custom_mounts: Option<Vec<NodeVolumeMount>>,
    /// The shared root file system, mounted at `/mnt/jail`.
    pub jail: NodeVolume,
    /// Volumes of your own inside the jail: `mountPath` is the path that users see.
    #[schemars(length(max = 256))]
    pub jail_sub_mounts: Option<Vec<NodeVolumeMount>>,
}
