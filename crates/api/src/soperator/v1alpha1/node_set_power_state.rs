//! NodeSetPowerState: which ephemeral nodes are on.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::condition::{Condition, Conditions};
use crate::schema::DateTime;
use crate::schema::rule::{Rule, rule};

const ACTIVE_NODES: &[Rule] = &[rule(
    "self.all(ordinal, ordinal >= 0)",
    "activeNodes are ordinals of the NodeSet's nodes, from 0 on: remove the negative ones",
)];

/// Which nodes shall be on.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "slurm.nebius.ai",
    version = "v1alpha1",
    kind = "NodeSetPowerState",
    namespaced,
    status = "NodeSetPowerStateStatus",
    schema = "disabled",
    derive = "PartialEq",
    shortname = "nsps",
    category = "slurm",
    printcolumn(json_path = ".spec.nodeSetRef", name = "NodeSet", type_ = "string"),
    printcolumn(json_path = ".status.activeCount", name = "Active", type_ = "integer"),
    printcolumn(
        json_path = ".status.conditions[?(@.type=='Ready')].status",
        name = "Ready",
        type_ = "string"
    ),
    printcolumn(json_path = ".metadata.creationTimestamp", name = "Age", type_ = "date")
)]
#[serde(rename_all = "camelCase")]
pub struct NodeSetPowerStateSpec {
    /// Ordinals of the nodes that shall be on, each once: `[0, 3, 7]`.
    #[schemars(extend("x-kubernetes-list-type" = "set", "x-kubernetes-validations" = ACTIVE_NODES))]
    pub active_nodes: Option<Vec<i32>>,
    /// Name of the NodeSet, in the same namespace. This object has the same name.
    #[schemars(length(min = 1))]
    pub node_set_ref: String,
}

/// Which nodes are on.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeSetPowerStateStatus {
    /// How many nodes are on or about to be.
    pub active_count: Option<i32>,
    /// What is true of the nodes now, and what is waited for.
    #[schemars(with = "Option<Conditions>")]
    pub conditions: Option<Vec<Condition>>,
    /// The nodes by their ordinals.
    pub node_states: Option<BTreeMap<String, NodePower>>,
    /// The `metadata.generation` that this status speaks of; older than the object's own: not yet looked at.
    pub observed_generation: Option<i64>,
}

/// One node.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodePower {
    /// When the phase last changed.
    #[schemars(with = "Option<DateTime>")]
    pub last_transition_time: Option<Time>,
    /// For people: why the node is in this state.
    pub message: Option<String>,
    /// Phase of the node's pod.
    pub phase: Option<PodPhase>,
    /// Name of the node's pod.
    pub pod_name: Option<String>,
    /// State of the node as Slurm names it, for example `IDLE+CLOUD`.
    pub slurm_state: Option<String>,
}

/// Phase of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PodPhase {
    Pending,
    Running,
    Succeeded,
    Failed,
    Unknown,
}
