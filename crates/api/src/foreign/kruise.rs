//! OpenKruise, which runs Soperator's pods and copies its ConfigMaps: what taking over from Soperator needs.

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::CustomResource;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::Open;
use crate::scalar::IntOrString;

/// Pods with numbers, some of which can be left out. The pods themselves are not ours to write.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "apps.kruise.io",
    version = "v1beta1",
    kind = "StatefulSet",
    namespaced,
    status = "StatefulSetStatus",
    schema = "disabled",
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
pub struct StatefulSetSpec {
    /// How many pods there shall be; 1 if not given.
    pub replicas: Option<i32>,
    /// Numbers that no pod has, each alone (`3`) or as a range (`"5-7"`).
    pub reserve_ordinals: Option<Vec<IntOrString>>,
    /// Labels that the pods have.
    pub selector: LabelSelector,
    /// The headless Service that gives the pods their names in DNS.
    pub service_name: Option<String>,
}

/// What has become of the pods.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatefulSetStatus {
    /// How many pods are ready for long enough.
    pub available_replicas: Option<i32>,
    /// How many pods are ready.
    pub ready_replicas: Option<i32>,
    /// How many pods there are.
    pub replicas: Option<i32>,
}

/// An object that is copied into namespaces.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "apps.kruise.io",
    version = "v1alpha1",
    kind = "ResourceDistribution",
    schema = "disabled",
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
pub struct ResourceDistributionSpec {
    /// The object, whole: a ConfigMap in what we write, and whatever else in what others write.
    pub resource: Open<core::ConfigMap>,
    /// Where it is copied to.
    pub targets: DistributionTargets,
}

/// Where an object is copied to.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DistributionTargets {
    /// Namespaces, by their names.
    pub included_namespaces: Option<DistributionNamespaces>,
}

/// Namespaces that an object is copied to.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DistributionNamespaces {
    /// One entry for each namespace.
    pub list: Option<Vec<DistributionNamespace>>,
}

/// A namespace that an object is copied to.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DistributionNamespace {
    /// Name of the namespace.
    pub name: Option<String>,
}

#[cfg(test)]
mod tests {
    use kube::Resource;
    use kube::core::ClusterResourceScope;
    use serde_json::json;

    use super::*;
    use crate::foreign::round_trip;

    #[test]
    fn a_stateful_set_keeps_what_taking_over_needs() {
        let set = json!({
            "apiVersion": "apps.kruise.io/v1beta1",
            "kind": "StatefulSet",
            "metadata": { "name": "worker", "namespace": "slurm", "annotations": { "versions": "1" } },
            "spec": {
                "replicas": 3,
                "reserveOrdinals": [1, "5-7"],
                "selector": { "matchLabels": { "app.kubernetes.io/component": "worker" } },
                "serviceName": "demo-worker-svc",
            },
            "status": { "availableReplicas": 1, "readyReplicas": 2, "replicas": 3 },
        });
        let mut recorded = set.clone();
        recorded["spec"]["podManagementPolicy"] = json!("Parallel");
        recorded["spec"]["template"] = json!({ "spec": { "containers": [] } });
        assert_eq!(round_trip::of::<StatefulSet>(&recorded), set);
    }

    #[test]
    fn a_resource_distribution_keeps_its_object_and_its_namespaces() {
        let distribution = json!({
            "apiVersion": "apps.kruise.io/v1alpha1",
            "kind": "ResourceDistribution",
            "metadata": { "name": "topology-soperator" },
            "spec": {
                "resource": {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": { "name": "topology-node-labels" },
                    "data": { "node-1": "{\"tier-1\":\"leaf-7\"}" },
                },
                "targets": { "includedNamespaces": { "list": [{ "name": "slurm" }, { "name": "sys" }] } },
            },
        });
        assert_eq!(round_trip::of::<ResourceDistribution>(&distribution), distribution);
    }

    #[test]
    fn a_resource_distribution_belongs_to_no_namespace() {
        fn is_of_the_cluster<K: Resource<Scope = ClusterResourceScope, DynamicType = ()>>() -> String {
            K::url_path(&(), None)
        }
        assert_eq!(
            is_of_the_cluster::<ResourceDistribution>(),
            "/apis/apps.kruise.io/v1alpha1/resourcedistributions"
        );
    }
}
