//! NodeConfigurator: a program on Kubernetes nodes.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1 as core;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::Open;
use crate::condition::{Condition, Conditions};
use crate::default::yes;
use crate::schema::rule::{Rule, rule};
use crate::soperator::common::Image;

const SPEC_RULES: &[Rule] = &[rule(
    "has(self.customContainer) || !has(self.nodeConfigurator) || self.rebooter.enabled != self.nodeConfigurator.enabled",
    "Either rebooter or nodeConfigurator must be enabled, but not both simultaneously.",
)];

/// What shall run on the nodes.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "slurm.nebius.ai",
    version = "v1alpha1",
    kind = "NodeConfigurator",
    namespaced,
    status = "NodeConfiguratorStatus",
    schema = "disabled",
    derive = "PartialEq",
    shortname = "nodecfg",
    category = "slurm",
    printcolumn(json_path = ".spec.rebooter.enabled", name = "Rebooter Enabled", type_ = "boolean"),
    printcolumn(
        json_path = ".spec.nodeConfigurator.enabled",
        name = "NodeConfigurator Enabled",
        type_ = "boolean"
    ),
    printcolumn(json_path = ".spec.customContainer.enabled", name = "Custom Enabled", type_ = "boolean"),
    printcolumn(json_path = ".metadata.creationTimestamp", name = "Age", type_ = "date")
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = SPEC_RULES))]
pub struct NodeConfiguratorSpec {
    /// A container of your own, which runs if the rebooter does not. Default: none.
    pub custom_container: Option<CustomContainer>,
    /// Whether the pods see the IPC of the host. Default: `false`.
    #[serde(default, rename = "hostIPC")]
    pub host_ipc: bool,
    /// Whether the pods use the network of the host. Default: `true`; the pods of a 1.x object never do.
    #[serde(default = "yes")]
    pub host_network: bool,
    /// Containers that run on the node before the others, as in a pod, for example to set sysctls. Default: none; of a 1.x object one
    /// that lets users make user namespaces (`kernel.unprivileged_userns_clone=1`).
    pub init_containers: Option<Vec<Open<core::Container>>>,
    /// What keeps the pods alive where there is no rebooter, in Soperator 1.x: a container that sleeps, whatever its `command` says.
    /// Exactly one of it and the rebooter is enabled. Without `customContainer` it marks the object as one of 1.x. Deprecated: use
    /// `customContainer`, which goes before it.
    pub node_configurator: Option<CustomContainer>,
    /// The rebooter: drains and reboots the node when a condition of the node asks for it. On if this is not given.
    #[serde(default = "Rebooter::on")]
    pub rebooter: Rebooter,
    /// Whether the containers of a pod see each other's processes. Default: `false`.
    #[serde(default)]
    pub share_process_namespace: bool,
}

/// A container on the nodes, and where its pods run.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeProgram {
    /// Affinity of the pods, as in a pod.
    pub affinity: Option<Open<core::Affinity>>,
    /// Entry point of the container, in place of that of the image. Not for the rebooter.
    pub command: Option<Vec<String>>,
    /// Environment variables of the container, as in a pod.
    pub env: Option<Vec<Open<core::EnvVar>>>,
    /// Whether the pods share the user namespace of the host. Default: what Kubernetes chooses.
    pub host_users: Option<bool>,
    /// Image of the container.
    pub image: Option<Image>,
    /// When the container is restarted, as in a pod.
    pub liveness_probe: Option<Open<core::Probe>>,
    /// Name of the container. Not for the rebooter.
    pub name: Option<String>,
    /// Labels that a Kubernetes node must have.
    pub node_selector: Option<BTreeMap<String, String>>,
    /// Priority class of the pods. Default: the one of the Kubernetes cluster.
    pub priority_class_name: Option<String>,
    /// When the container counts as ready, as in a pod.
    pub readiness_probe: Option<Open<core::Probe>>,
    /// What the container asks for and its limits, as in a pod. Default: nothing.
    #[serde(default)]
    pub resources: Open<core::ResourceRequirements>,
    /// Service account of the pods.
    pub service_account_name: Option<String>,
    /// Taints of Kubernetes nodes that the pods tolerate, as in a pod.
    pub tolerations: Option<Vec<Open<core::Toleration>>>,
}

/// A container of your own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CustomContainer {
    /// Whether the container runs.
    pub enabled: bool,
    #[serde(flatten)]
    pub program: NodeProgram,
}

/// The rebooter.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rebooter {
    /// Whether the rebooter runs.
    pub enabled: bool,
    /// How pods leave a node before it is rebooted. Default: `evict`, the only way there is.
    #[serde(default)]
    pub eviction_method: EvictionMethod,
    /// Form of the rebooter's log: `json` or `plain`. Default: `plain`.
    pub log_format: Option<String>,
    /// How much the rebooter says in its log. Default: `info`.
    #[serde(default)]
    pub log_level: RebooterLogLevel,
    #[serde(flatten)]
    pub program: NodeProgram,
}

impl Rebooter {
    fn on() -> Self {
        Self {
            enabled: true,
            eviction_method: EvictionMethod::default(),
            log_format: None,
            log_level: RebooterLogLevel::default(),
            program: NodeProgram::default(),
        }
    }
}

/// How pods leave a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EvictionMethod {
    #[default]
    Evict,
}

/// How much the rebooter says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RebooterLogLevel {
    Debug,
    #[default]
    Info,
    Warn,
    Error,
}

/// What runs on the nodes.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeConfiguratorStatus {
    /// What is true of the pods on the nodes now, and what is waited for.
    #[schemars(with = "Option<Conditions>")]
    pub conditions: Option<Vec<Condition>>,
    /// The `metadata.generation` that this status speaks of; older than the object's own: not yet looked at.
    pub observed_generation: Option<i64>,
    /// Why the last update is in the state that `updateStatus` says. Kept for readers of Soperator's status.
    pub reason: Option<String>,
    /// The last update in a word: `updating`, `failed` or `succeeded`. Kept for readers of Soperator's status.
    pub update_status: Option<String>,
}
