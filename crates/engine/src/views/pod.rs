//! Pods: where they run, how their containers fare, and what they use.

mod on_wire;

use jiff::Timestamp;
use serde::Deserialize;

use super::condition::{Condition, condition, holds};
use super::{Facet, Kind, View};
use crate::lean::lean;
use crate::meta::Meta;
use crate::second::Second;
use crate::text::Text;
use on_wire::{SpecOnWire, StateOnWire};

lean! {
    pub struct PodView {
        #[serde(rename = "metadata")]
        pub meta: Meta,
        pub spec: PodSpec,
        pub status: PodStatus,
    }
}

/// What was asked for.
#[derive(Debug, PartialEq, Default, Deserialize)]
#[serde(from = "SpecOnWire")]
pub struct PodSpec {
    /// Empty until it is placed.
    pub node_name: Text,
    pub hostname: Text,
    pub subdomain: Text,
    pub service_account: Text,
    /// Names of the PersistentVolumeClaims in its volumes; sorted, as are the next two.
    pub claims: Box<[Text]>,
    /// Names of the ConfigMaps in its volumes and its containers' environments.
    pub config_maps: Box<[Text]>,
    /// Names of the Secrets likewise, and of those for its images.
    pub secrets: Box<[Text]>,
}

lean! {
    pub struct PodStatus {
        pub phase: PodPhase,
        /// Why it is in this phase, such as `Evicted`.
        pub reason: Text,
        #[serde(rename = "podIP")]
        pub pod_ip: Text,
        pub conditions: Box<[Condition]>,
        #[serde(rename = "containerStatuses")]
        pub containers: Box<[ContainerStatus]>,
        #[serde(rename = "initContainerStatuses")]
        pub init_containers: Box<[ContainerStatus]>,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Deserialize)]
pub enum PodPhase {
    Pending,
    Running,
    Succeeded,
    Failed,
    /// The node does not answer, or the phase is one that is not known here.
    #[default]
    #[serde(other)]
    Unknown,
}

lean! {
    pub struct ContainerStatus {
        pub name: Text,
        pub image: Text,
        pub ready: bool,
        pub restart_count: i32,
        pub state: ContainerState,
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(from = "StateOnWire")]
pub enum ContainerState {
    /// The kubelet has said nothing yet.
    #[default]
    Unknown,
    /// Such as `CrashLoopBackOff`, `ImagePullBackOff` or `PodInitializing`.
    Waiting {
        reason: Text,
    },
    Running,
    Terminated {
        reason: Text,
        exit_code: i32,
    },
}

impl PodView {
    #[must_use]
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        condition(&self.status.conditions, kind)
    }

    /// Runs, and takes part in its Services.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.status.phase == PodPhase::Running && holds(&self.status.conditions, "Ready")
    }

    /// Since when it is ready, if it is.
    #[must_use]
    pub fn ready_since(&self) -> Option<Timestamp> {
        if self.is_ready() { self.condition("Ready")?.since.map(Second::timestamp) } else { None }
    }

    /// Has ended for good.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        matches!(self.status.phase, PodPhase::Succeeded | PodPhase::Failed)
    }

    /// All containers, the ones that run first included.
    pub fn containers(&self) -> impl Iterator<Item = &ContainerStatus> {
        self.status.init_containers.iter().chain(&self.status.containers)
    }
}

impl View for PodView {
    fn kind() -> Kind {
        Kind::namespaced("", "v1", "Pod", "pods")
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }

    fn facets(&self, add: &mut dyn FnMut(Facet)) {
        let spec = &self.spec;
        if !spec.node_name.is_empty() {
            add(Facet::Node(spec.node_name.clone()));
        }
        let named = [
            ("PersistentVolumeClaim", &spec.claims),
            ("ConfigMap", &spec.config_maps),
            ("Secret", &spec.secrets),
        ];
        for (kind, names) in named {
            names.iter().for_each(|name| add(Facet::Reference(kind, name.clone())));
        }
    }
}
