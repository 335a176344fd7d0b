//! slurmctld.

use k8s_openapi::api::core::v1 as core;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::{NodeContainer, NodeVolume, NodeVolumeMount, rules};
use crate::Open;
use crate::scalar::PrometheusDuration;

/// slurmctld. There is always exactly one.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Controller {
    /// Init containers of your own, as in a pod. They run before those of the operator.
    pub custom_init_containers: Option<Vec<Open<core::Container>>>,
    /// Whether the pod shares the user namespace of the host; `false` gives it one of its own. Default: what Kubernetes chooses.
    pub host_users: Option<bool>,
    /// Name of the entry of `k8sNodeFilters` that says where the pod runs.
    pub k8s_node_filter_name: String,
    /// The container with munged, which authenticates Slurm's daemons to each other.
    pub munge: NodeContainer,
    /// Metrics that slurmctld itself gives for Prometheus.
    #[serde(default)]
    pub open_metrics: OpenMetrics,
    /// Priority class of the pod. Default: the one of the Kubernetes cluster.
    pub priority_class: Option<String>,
    /// Service account of the pod. It lets slurmctld power ephemeral nodes on and off.
    pub service_account_name: Option<String>,
    /// The container with slurmctld.
    pub slurmctld: NodeContainer,
    #[serde(flatten)]
    pub sssd: Sssd,
    /// Volumes of the pod: the state of slurmctld, the jail, and your own.
    pub volumes: ControllerVolumes,
}

/// Users and groups from a directory server, by a container with sssd beside the main one.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Sssd {
    /// The container with sssd. Default: none, users come from the jail's own files.
    pub sssd: Option<NodeContainer>,
    /// Secret whose key `sssd.conf` is the configuration of sssd. Default: one that only says that there is nothing to ask.
    pub sssd_conf_secret_ref_name: Option<String>,
    /// How much sssd says in its log, from 0 on. Default: 0.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub sssd_debug_level: i32,
    /// ConfigMap with the certificate that the LDAP server's certificate is checked against.
    #[serde(rename = "sssdLdapCAConfigMapRefName")]
    pub sssd_ldap_ca_config_map_ref_name: Option<String>,
}

/// Volumes of the controller.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ControllerVolumes {
    /// Volumes of your own, mounted in the container of slurmctld.
    #[schemars(length(max = 256), extend("x-kubernetes-validations" = rules::MOUNTS), transform = rules::one_volume_each)]
    pub custom_mounts: Option<Vec<NodeVolumeMount>>,
    /// The shared root file system, mounted at `/mnt/jail`.
    #[schemars(extend("x-kubernetes-validations" = [rules::ONE_VOLUME]))]
    pub jail: NodeVolume,
    /// Where slurmctld keeps the state of the cluster (`StateSaveLocation`). What is lost here is lost: jobs, reservations, drained nodes.
    #[schemars(extend("x-kubernetes-validations" = [rules::ONE_VOLUME]))]
    pub spool: NodeVolume,
}

/// Metrics that slurmctld gives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct OpenMetrics {
    /// Whether slurmctld gives metrics and, where the Prometheus operator is installed, a ServiceMonitor is made. Default: `true`.
    pub enabled: bool,
    /// How Prometheus collects them.
    pub service_monitor: OpenMetricsServiceMonitor,
}

impl Default for OpenMetrics {
    fn default() -> Self {
        Self { enabled: true, service_monitor: OpenMetricsServiceMonitor::default() }
    }
}

/// How Prometheus collects slurmctld's metrics.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct OpenMetricsServiceMonitor {
    /// Which groups of metrics are collected. Default: all five.
    pub endpoints: Option<Vec<OpenMetricsEndpoint>>,
    /// How often. Default: `30s`.
    pub interval: PrometheusDuration,
    /// How long one collection may take; at most `interval`. Default: `28s`.
    pub scrape_timeout: PrometheusDuration,
}

impl Default for OpenMetricsServiceMonitor {
    fn default() -> Self {
        Self { endpoints: None, interval: "30s".into(), scrape_timeout: "28s".into() }
    }
}

/// A group of slurmctld's metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OpenMetricsEndpoint {
    Jobs,
    JobsUsersAccts,
    Nodes,
    Partitions,
    Scheduler,
}
