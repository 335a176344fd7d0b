//! Leases: who leads, and since when it has not said so again.

use std::time::Duration;

use jiff::Timestamp;

use super::{Kind, view};
use crate::lean::lean;
use crate::meta::Meta;
use crate::text::Text;

lean! {
    pub struct LeaseView {
        #[serde(rename = "metadata")]
        pub meta: Meta,
        pub spec: LeaseSpec,
    }
}

view!(LeaseView, Kind::namespaced("coordination.k8s.io", "v1", "Lease", "leases"));

lean! {
    pub struct LeaseSpec {
        /// Empty when nobody holds it.
        #[serde(rename = "holderIdentity")]
        pub holder: Text,
        pub acquire_time: Option<Timestamp>,
        pub renew_time: Option<Timestamp>,
        pub lease_duration_seconds: i32,
        #[serde(rename = "leaseTransitions")]
        pub transitions: i32,
    }
}

impl LeaseView {
    /// How long it holds after it was renewed.
    #[must_use]
    pub fn duration(&self) -> Duration {
        Duration::from_secs(u64::try_from(self.spec.lease_duration_seconds).unwrap_or_default())
    }
}
