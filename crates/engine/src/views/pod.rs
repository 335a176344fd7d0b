//! Pods: where they run, how their containers fare, and what they use.

use jiff::Timestamp;
use serde::Deserialize;

use super::condition::{Condition, condition, holds};
use super::{Facet, Kind, View};
use crate::lean::lean;
use crate::meta::Meta;
use crate::text::Text;

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
        if self.is_ready() { self.condition("Ready")?.since } else { None }
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

lean! {
    struct SpecOnWire {
        node_name: Text,
        hostname: Text,
        subdomain: Text,
        service_account_name: Text,
        image_pull_secrets: Vec<Named>,
        volumes: Vec<Volume>,
        containers: Vec<Container>,
        init_containers: Vec<Container>,
    }
}

lean! {
    struct Volume {
        persistent_volume_claim: Claim,
        config_map: Named,
        secret: SecretVolume,
        projected: Projected,
    }
}

lean! {
    struct Claim {
        claim_name: Text,
    }
}

lean! {
    struct SecretVolume {
        secret_name: Text,
    }
}

lean! {
    struct Projected {
        sources: Vec<Sources>,
    }
}

lean! {
    struct Container {
        env: Vec<Variable>,
        env_from: Vec<Sources>,
    }
}

lean! {
    struct Variable {
        value_from: Sources,
    }
}

lean! {
    /// Something that comes from a ConfigMap or a Secret; each user of this type has its own words for it.
    struct Sources {
        #[serde(alias = "configMapRef", alias = "configMapKeyRef")]
        config_map: Named,
        #[serde(alias = "secretRef", alias = "secretKeyRef")]
        secret: Named,
    }
}

lean! {
    struct Named {
        name: Text,
    }
}

impl From<SpecOnWire> for PodSpec {
    fn from(wire: SpecOnWire) -> Self {
        let (mut claims, mut config_maps) = (Vec::new(), Vec::new());
        let mut secrets: Vec<Text> = wire.image_pull_secrets.into_iter().map(|secret| secret.name).collect();
        let mut sources = Vec::new();
        for volume in wire.volumes {
            claims.push(volume.persistent_volume_claim.claim_name);
            config_maps.push(volume.config_map.name);
            secrets.push(volume.secret.secret_name);
            sources.extend(volume.projected.sources);
        }
        for container in wire.containers.into_iter().chain(wire.init_containers) {
            sources.extend(container.env_from);
            sources.extend(container.env.into_iter().map(|variable| variable.value_from));
        }
        for source in sources {
            config_maps.push(source.config_map.name);
            secrets.push(source.secret.name);
        }
        Self {
            node_name: wire.node_name,
            hostname: wire.hostname,
            subdomain: wire.subdomain,
            service_account: wire.service_account_name,
            claims: names(claims),
            config_maps: names(config_maps),
            secrets: names(secrets),
        }
    }
}

fn names(mut names: Vec<Text>) -> Box<[Text]> {
    names.retain(|name| !name.is_empty());
    names.sort_unstable();
    names.dedup();
    names.into_boxed_slice()
}

lean! {
    struct StateOnWire {
        waiting: Option<Waiting>,
        running: Option<Running>,
        terminated: Option<Terminated>,
    }
}

lean! {
    struct Waiting {
        reason: Text,
    }
}

lean! {
    struct Running {}
}

lean! {
    struct Terminated {
        reason: Text,
        exit_code: i32,
    }
}

impl From<StateOnWire> for ContainerState {
    fn from(wire: StateOnWire) -> Self {
        match wire {
            StateOnWire { terminated: Some(Terminated { reason, exit_code }), .. } => {
                Self::Terminated { reason, exit_code }
            }
            StateOnWire { running: Some(Running {}), .. } => Self::Running,
            StateOnWire { waiting: Some(Waiting { reason }), .. } => Self::Waiting { reason },
            _ => Self::Unknown,
        }
    }
}
