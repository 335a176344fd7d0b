//! Parts of a pod that are not kept as they are sent: only the names of what it uses, only which state a container is in.

use super::{ContainerState, PodSpec};
use crate::lean::lean;
use crate::text::Text;

lean! {
    pub(super) struct SpecOnWire {
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
    pub(super) struct StateOnWire {
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
