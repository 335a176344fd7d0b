//! Claims for storage.

use serde::Deserialize;

use super::{Kind, view};
use crate::lean::lean;
use crate::meta::{Meta, Pairs};
use crate::text::Text;

lean! {
    pub struct PersistentVolumeClaimView {
        #[serde(rename = "metadata")]
        pub meta: Meta,
        pub spec: PersistentVolumeClaimSpec,
        pub status: PersistentVolumeClaimStatus,
    }
}

view!(
    PersistentVolumeClaimView,
    Kind::namespaced("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")
);

lean! {
    pub struct PersistentVolumeClaimSpec {
        /// Such as `ReadWriteMany`, which several slurmctld need.
        pub access_modes: Box<[Text]>,
        /// None is the cluster's default class; empty is none at all.
        pub storage_class_name: Option<Text>,
        pub volume_name: Text,
        pub resources: Requested,
    }
}

lean! {
    pub struct Requested {
        pub requests: Pairs,
    }
}

lean! {
    pub struct PersistentVolumeClaimStatus {
        pub phase: ClaimPhase,
        pub capacity: Pairs,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Deserialize)]
pub enum ClaimPhase {
    Pending,
    Bound,
    /// Its volume is gone.
    Lost,
    /// One that is not known here.
    #[default]
    #[serde(other)]
    Unknown,
}

impl PersistentVolumeClaimView {
    /// The size that was asked for, as Kubernetes writes quantities.
    #[must_use]
    pub fn requested(&self) -> Option<&Text> {
        self.spec.resources.requests.get("storage")
    }

    /// The size that there is.
    #[must_use]
    pub fn capacity(&self) -> Option<&Text> {
        self.status.capacity.get("storage")
    }
}
