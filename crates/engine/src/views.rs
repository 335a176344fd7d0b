//! Views: what is kept of a watched object.
//!
//! A view names the fields that decisions read; everything else is skipped while decoding, so it costs no memory and
//! little time. Every field is optional on the wire: a server that leaves one out, or adds one, breaks nothing.

mod batch;
mod condition;
mod crd;
mod lease;
mod metadata_only;
mod network;
mod node;
mod pod;
#[cfg(test)]
mod recorded;
mod storage;
mod whole;
mod workloads;

pub use batch::{ActiveJob, CronJobSpec, CronJobStatus, CronJobView, JobPhase, JobSpec, JobStatus, JobView};
pub use condition::{Condition, Truth, condition, holds};
pub use crd::{CrdNames, CrdSpec, CrdStatus, CrdVersion, CrdView};
pub use lease::{LeaseSpec, LeaseView};
pub use metadata_only::{ConfigMapView, RoleBindingView, RoleView, SecretView, ServiceAccountView};
pub use network::{
    Endpoint, EndpointConditions, EndpointSliceView, Ingress, LoadBalancer, PortRef, ServicePort,
    ServiceSpec, ServiceStatus, ServiceType, ServiceView, TargetRef,
};
pub use node::{Address, Effect, NodeCondition, NodeInfo, NodeSpec, NodeStatus, NodeView, Taint};
pub use pod::{ContainerState, ContainerStatus, PodPhase, PodSpec, PodStatus, PodView};
pub use storage::{
    ClaimPhase, PersistentVolumeClaimSpec, PersistentVolumeClaimStatus, PersistentVolumeClaimView, Requested,
};
pub use whole::{Typed, Whole};
pub use workloads::{
    ControllerRevisionView, DaemonSetStatus, DaemonSetView, DeploymentSpec, DeploymentStatus, DeploymentView,
    PodDisruptionBudgetStatus, PodDisruptionBudgetView, StatefulSetSpec, StatefulSetStatus, StatefulSetView,
};

use std::fmt::Debug;

use serde::de::DeserializeOwned;

use crate::meta::Meta;
use crate::text::Text;

/// A kind of object, as the API server names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Kind {
    /// Empty for the core group.
    pub group: &'static str,
    pub version: &'static str,
    pub kind: &'static str,
    pub plural: &'static str,
    pub namespaced: bool,
}

impl Kind {
    #[must_use]
    pub const fn namespaced(
        group: &'static str,
        version: &'static str,
        kind: &'static str,
        plural: &'static str,
    ) -> Self {
        Self { group, version, kind, plural, namespaced: true }
    }

    #[must_use]
    pub const fn cluster(
        group: &'static str,
        version: &'static str,
        kind: &'static str,
        plural: &'static str,
    ) -> Self {
        Self { group, version, kind, plural, namespaced: false }
    }

    #[must_use]
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }
}

/// A reason for which an object can be found without knowing its name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Facet {
    /// Owned by the object with this uid.
    Owner(Text),
    /// Carries this label. Only for the keys that a watch is told to index.
    Label(Text, Text),
    /// Runs on this node.
    Node(Text),
    /// Names an object of this kind, in its own namespace.
    Reference(&'static str, Text),
}

/// Lean facts about one object of a kind.
pub trait View: DeserializeOwned + PartialEq + Debug + Send + Sync + 'static {
    /// Only metadata is asked for: the server leaves the content out.
    const METADATA_ONLY: bool = false;

    fn kind() -> Kind;

    fn meta(&self) -> &Meta;

    /// Facets beyond owners and labels: the node it runs on, objects it names.
    fn facets(&self, add: &mut dyn FnMut(Facet)) {
        let _ = add;
    }
}

/// A view that has no facets of its own.
macro_rules! view {
    ($name:ident, $kind:expr) => {
        impl $crate::views::View for $name {
            fn kind() -> $crate::views::Kind {
                $kind
            }

            fn meta(&self) -> &$crate::meta::Meta {
                &self.meta
            }
        }
    };
}

use view;
