//! What several kinds of this API are made of: references, templates, and the parts outside of Kubernetes.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1 as core;
use schemars::{JsonSchema, json_schema};
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::Open;
use crate::schema::{AnyObject, Integer, inline_schema};

/// Another object in the same namespace, by its name.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct ObjectRef {
    /// Name of the object, in the namespace of the object that refers to it.
    #[serde(default)]
    pub name: String,
    /// Namespace of the object, from releases that could refer to other namespaces. Deprecated: it is
    /// honoured only if it is the namespace that the reference itself is in; else a condition warns of it.
    /// Default: that namespace.
    pub namespace: Option<String>,
}

/// A key of a Secret in the same namespace.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct SecretKeyRef {
    /// Which key of the Secret is meant.
    pub key: String,
    /// Name of the Secret, in the namespace of the object that refers to it.
    #[serde(default)]
    pub name: String,
    /// Part of every reference to a key in Kubernetes; without effect here.
    pub optional: Option<bool>,
}

/// A key of a ConfigMap in the same namespace.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct ConfigMapKeyRef {
    /// Which key of the ConfigMap is meant, for example `jwks.json`.
    pub key: String,
    /// Name of the ConfigMap, in the namespace of the object that refers to it.
    #[serde(default)]
    pub name: String,
    /// Part of every reference to a key in Kubernetes; without effect here.
    pub optional: Option<bool>,
}

/// A daemon that runs outside of this Kubernetes cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExternalConfig {
    /// Host name or address at which the daemon is reached, for example `slurmctld.example.org`.
    pub host: String,
    /// Port of the daemon; slurmctld usually has 6817, slurmdbd 6819.
    #[schemars(with = "Integer")]
    pub port: i64,
}

/// Labels and annotations of what is made.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TemplateMetadata {
    /// Annotations that are added to those of the operator. Default: none.
    #[schemars(extend("nullable" = true))]
    pub annotations: Option<BTreeMap<String, String>>,
    /// Labels that are added to those of the operator; the ones that the operator selects by cannot be
    /// changed. Default: none.
    #[schemars(extend("nullable" = true))]
    pub labels: Option<BTreeMap<String, String>>,
}

/// What is laid over the pods of the operator.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodTemplate {
    /// Labels and annotations of the pods.
    pub metadata: Option<TemplateMetadata>,
    /// The spec of a pod, of which only those fields need to be given that shall be otherwise, for example
    /// `nodeSelector` or `tolerations`. Containers are added to those of the operator.
    #[schemars(with = "Option<AnyObject>")]
    pub spec: Option<Open<core::PodSpec>>,
}

/// What is laid over the Service of the operator.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceTemplate {
    /// Labels and annotations of the Service, for example those of a load balancer.
    pub metadata: Option<TemplateMetadata>,
    /// Port on every Kubernetes node, where the Service has the type `NodePort` or `LoadBalancer`. Default:
    /// 0, one that Kubernetes chooses.
    #[schemars(with = "Option<Integer>", range(min = 0, max = 65535))]
    pub node_port: Option<i64>,
    /// Port of the Service. Default: 0, which is the usual one of the daemon: 6817 for slurmctld, 6819 for
    /// slurmdbd, 6820 for slurmrestd, 22 for sshd.
    #[schemars(with = "Option<Integer>", range(min = 0, max = 65535))]
    pub port: Option<i64>,
    /// The spec of a Service, of which only those fields need to be given that shall be otherwise, for
    /// example `type: LoadBalancer`. `externalIPs` is left out: it would let traffic of others be taken over.
    #[schemars(with = "Option<AnyObject>")]
    pub spec: Option<Open<core::ServiceSpec>>,
}

/// A moment in the notation of RFC 3339, kept as it was written: one that lies beyond what our clock can
/// count, such as the end of the year 9999, must not keep an object from being read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Moment(pub String);

inline_schema!(Moment, json_schema!({ "type": "string", "format": "date-time" }));
