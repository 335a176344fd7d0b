//! Services and the addresses behind them.

use serde::Deserialize;

use super::{Kind, view};
use crate::lean::lean;
use crate::meta::{Meta, Pairs};
use crate::text::Text;

lean! {
    pub struct ServiceView {
        #[serde(rename = "metadata")]
        pub meta: Meta,
        pub spec: ServiceSpec,
        pub status: ServiceStatus,
    }
}

view!(ServiceView, Kind::namespaced("", "v1", "Service", "services"));

lean! {
    pub struct ServiceSpec {
        #[serde(rename = "type")]
        pub kind: ServiceType,
        /// `None` for a headless one, empty until there is one.
        #[serde(rename = "clusterIP")]
        pub cluster_ip: Text,
        pub ports: Box<[ServicePort]>,
        pub selector: Pairs,
        /// Services do not count generations: what we set is kept, so that changes of it by others are seen.
        pub publish_not_ready_addresses: bool,
        pub external_traffic_policy: Text,
        pub session_affinity: Text,
        pub load_balancer_class: Text,
        #[serde(rename = "loadBalancerIP")]
        pub load_balancer_ip: Text,
        pub external_name: Text,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Deserialize)]
pub enum ServiceType {
    #[serde(rename = "ClusterIP")]
    ClusterIp,
    NodePort,
    LoadBalancer,
    ExternalName,
    /// One that is not known here.
    #[default]
    #[serde(other)]
    Other,
}

lean! {
    pub struct ServicePort {
        pub name: Text,
        pub protocol: Text,
        pub port: i32,
        pub target_port: PortRef,
        pub node_port: i32,
    }
}

/// A port by its number or by its name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize)]
#[serde(untagged)]
pub enum PortRef {
    Number(i32),
    Name(Text),
}

impl Default for PortRef {
    fn default() -> Self {
        Self::Number(0)
    }
}

lean! {
    pub struct ServiceStatus {
        pub load_balancer: LoadBalancer,
    }
}

lean! {
    pub struct LoadBalancer {
        pub ingress: Box<[Ingress]>,
    }
}

lean! {
    pub struct Ingress {
        pub ip: Text,
        pub hostname: Text,
    }
}

impl ServiceView {
    #[must_use]
    pub fn is_headless(&self) -> bool {
        self.spec.cluster_ip == "None"
    }
}

lean! {
    /// Some of the addresses of a Service, whose name is in a label.
    pub struct EndpointSliceView {
        #[serde(rename = "metadata")]
        pub meta: Meta,
        pub endpoints: Box<[Endpoint]>,
    }
}

view!(EndpointSliceView, Kind::namespaced("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices"));

lean! {
    pub struct Endpoint {
        pub addresses: Box<[Text]>,
        pub conditions: EndpointConditions,
        pub hostname: Text,
        pub node_name: Text,
        pub target_ref: TargetRef,
    }
}

lean! {
    pub struct EndpointConditions {
        /// None is "not known", to be taken as true.
        pub ready: Option<bool>,
        pub terminating: Option<bool>,
    }
}

lean! {
    /// The object behind an address, mostly a Pod.
    pub struct TargetRef {
        pub kind: Text,
        pub name: Text,
        pub uid: Text,
    }
}

impl Endpoint {
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.conditions.ready.unwrap_or(true)
    }
}
