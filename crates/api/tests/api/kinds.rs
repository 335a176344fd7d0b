//! All twelve kinds, so that a test can treat them alike.

use api::slinky::v1beta1 as slinky;
use api::soperator::{v1, v1alpha1};
use kube::CustomResourceExt;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub(crate) struct Kind {
    pub(crate) group: String,
    pub(crate) kind: String,
    /// Decodes an object into our types and encodes it again.
    pub(crate) round_trip: fn(Value) -> serde_json::Result<Value>,
}

pub(crate) fn all() -> Vec<Kind> {
    vec![
        kind::<v1::SlurmCluster>(),
        kind::<v1alpha1::NodeSet>(),
        kind::<v1alpha1::NodeSetPowerState>(),
        kind::<v1alpha1::NodeConfigurator>(),
        kind::<v1alpha1::JailedConfig>(),
        kind::<v1alpha1::ActiveCheck>(),
        kind::<slinky::Controller>(),
        kind::<slinky::NodeSet>(),
        kind::<slinky::LoginSet>(),
        kind::<slinky::Accounting>(),
        kind::<slinky::RestApi>(),
        kind::<slinky::Token>(),
    ]
}

fn kind<K: CustomResourceExt + DeserializeOwned + Serialize>() -> Kind {
    let names = K::crd().spec;
    Kind {
        group: names.group,
        kind: names.names.kind,
        round_trip: |object| serde_json::to_value(K::deserialize(object)?),
    }
}
