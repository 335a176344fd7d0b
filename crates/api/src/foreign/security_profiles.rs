//! The security profiles operator: AppArmor profiles that it loads on the nodes.

use kube::CustomResource;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// An AppArmor profile.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[kube(
    group = "security-profiles-operator.x-k8s.io",
    version = "v1alpha1",
    kind = "AppArmorProfile",
    namespaced,
    schema = "disabled",
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
pub struct AppArmorProfileSpec {
    /// Text of the profile, in the language of AppArmor.
    pub policy: Option<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::foreign::round_trip;

    #[test]
    fn an_app_armor_profile_keeps_its_policy() {
        let profile = json!({
            "apiVersion": "security-profiles-operator.x-k8s.io/v1alpha1",
            "kind": "AppArmorProfile",
            "metadata": { "name": "soperator-cluster-demo-ns-slurm", "namespace": "slurm" },
            "spec": { "policy": "profile demo flags=(attach_disconnected) {\n}\n" },
        });
        assert_eq!(round_trip::of::<AppArmorProfile>(&profile), profile);

        let mut recorded = profile.clone();
        recorded["spec"]["abstract"] = json!({});
        assert_eq!(round_trip::of::<AppArmorProfile>(&recorded), profile);
    }
}
