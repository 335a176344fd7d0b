//! Nodes: whether they take pods, what they have, and what is said about them. Heartbeats are not kept, so a node that
//! only says that it lives is equal to what it was.

use serde::Deserialize;

use super::condition::Truth;
use super::{Kind, view};
use crate::lean::lean;
use crate::meta::{Meta, Pairs};
use crate::second::Second;
use crate::shared::Shared;
use crate::text::Text;

lean! {
    pub struct NodeView {
        #[serde(rename = "metadata")]
        pub meta: Meta,
        pub spec: NodeSpec,
        pub status: NodeStatus,
    }
}

view!(NodeView, Kind::cluster("", "v1", "Node", "nodes"));

lean! {
    pub struct NodeSpec {
        pub unschedulable: bool,
        pub taints: Box<[Taint]>,
        #[serde(rename = "providerID")]
        pub provider_id: Text,
    }
}

lean! {
    #[derive(Clone, Eq)]
    pub struct Taint {
        pub key: Text,
        pub value: Text,
        pub effect: Effect,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Deserialize)]
pub enum Effect {
    NoSchedule,
    PreferNoSchedule,
    NoExecute,
    /// One that is not known here.
    #[default]
    #[serde(other)]
    Other,
}

lean! {
    pub struct NodeStatus {
        /// Quantities as Kubernetes writes them, by resource. Nodes of one type have the same.
        pub capacity: Shared<Pairs>,
        pub allocatable: Shared<Pairs>,
        pub conditions: Box<[NodeCondition]>,
        pub addresses: Box<[Address]>,
        #[serde(rename = "nodeInfo")]
        pub info: NodeInfo,
    }
}

lean! {
    /// A condition of a node; the message becomes part of the reason for which its Slurm nodes are drained.
    pub struct NodeCondition {
        #[serde(rename = "type")]
        pub kind: Text,
        pub status: Truth,
        pub reason: Text,
        pub message: Text,
        #[serde(rename = "lastTransitionTime")]
        pub since: Option<Second>,
    }
}

lean! {
    pub struct Address {
        #[serde(rename = "type")]
        pub kind: Text,
        pub address: Text,
    }
}

lean! {
    pub struct NodeInfo {
        /// A new one after each boot.
        #[serde(rename = "bootID")]
        pub boot_id: Text,
        pub kubelet_version: Text,
        pub architecture: Text,
    }
}

impl NodeView {
    #[must_use]
    pub fn condition(&self, kind: &str) -> Option<&NodeCondition> {
        self.status.conditions.iter().find(|condition| condition.kind == *kind)
    }

    /// Whether the condition of a type is there and holds.
    #[must_use]
    pub fn holds(&self, kind: &str) -> bool {
        self.condition(kind).is_some_and(|condition| condition.status == Truth::True)
    }

    /// The address of a type, such as `InternalIP`.
    #[must_use]
    pub fn address(&self, kind: &str) -> Option<&Text> {
        self.status.addresses.iter().find(|address| address.kind == *kind).map(|address| &address.address)
    }
}
