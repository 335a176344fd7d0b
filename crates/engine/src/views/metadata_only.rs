//! Kinds of which only the metadata is watched. The content of ConfigMaps and Secrets is large or secret and is fetched
//! when it is needed; that of permissions is compared by the server when it is applied.
//!
//! Content that is not seen cannot be compared, and these kinds do not count generations. So here, and only here, the
//! version says whether something changed. The server gives no new version for a write that changes nothing.

use serde::Deserialize;

use super::{Kind, View};
use crate::meta::{Meta, null_is_empty};

macro_rules! metadata_only {
    ($($name:ident = $kind:expr;)*) => {$(
        #[derive(Debug, Default, Deserialize)]
        #[serde(default)]
        pub struct $name {
            #[serde(rename = "metadata", deserialize_with = "null_is_empty")]
            pub meta: Meta,
        }

        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                self.meta.version == other.meta.version && self.meta == other.meta
            }
        }

        impl View for $name {
            const METADATA_ONLY: bool = true;

            fn kind() -> Kind {
                $kind
            }

            fn meta(&self) -> &Meta {
                &self.meta
            }
        }
    )*};
}

metadata_only! {
    ConfigMapView = Kind::namespaced("", "v1", "ConfigMap", "configmaps");
    SecretView = Kind::namespaced("", "v1", "Secret", "secrets");
    ServiceAccountView = Kind::namespaced("", "v1", "ServiceAccount", "serviceaccounts");
    RoleView = Kind::namespaced("rbac.authorization.k8s.io", "v1", "Role", "roles");
    RoleBindingView = Kind::namespaced("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings");
}
