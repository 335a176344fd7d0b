//! CustomResourceDefinitions: which kinds of others are there to be watched. Their schemas, nearly all of their bytes,
//! are not kept.

use super::condition::{Condition, holds};
use super::{Kind, view};
use crate::lean::lean;
use crate::meta::Meta;
use crate::text::Text;

lean! {
    pub struct CrdView {
        #[serde(rename = "metadata")]
        pub meta: Meta,
        pub spec: CrdSpec,
        pub status: CrdStatus,
    }
}

view!(
    CrdView,
    Kind::cluster("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions")
);

lean! {
    pub struct CrdSpec {
        pub group: Text,
        pub names: CrdNames,
        pub versions: Box<[CrdVersion]>,
    }
}

lean! {
    pub struct CrdNames {
        pub kind: Text,
        pub plural: Text,
    }
}

lean! {
    pub struct CrdVersion {
        pub name: Text,
        pub served: bool,
        pub storage: bool,
    }
}

lean! {
    pub struct CrdStatus {
        pub conditions: Box<[Condition]>,
        pub stored_versions: Box<[Text]>,
    }
}

impl CrdView {
    /// Whether objects of a version can be asked for.
    #[must_use]
    pub fn serves(&self, version: &str) -> bool {
        holds(&self.status.conditions, "Established")
            && self.spec.versions.iter().any(|known| known.served && known.name == *version)
    }
}
