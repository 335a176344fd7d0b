//! The custom resources of the sample.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

/// A message, kept in a ConfigMap, and some pods.
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "sample.slipway.hpc",
    version = "v1",
    kind = "Sample",
    namespaced,
    status = "SampleStatus",
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
pub struct SampleSpec {
    /// What the ConfigMap says.
    pub message: String,
    /// A second line; without it the ConfigMap has none.
    pub footnote: Option<String>,
    /// What a second ConfigMap says; without it there is none.
    pub extra: Option<String>,
    /// A Gadget is wanted where there are Gadgets.
    pub gadget: Option<bool>,
    /// Pods of the StatefulSet; without it there is none.
    pub replicas: Option<i32>,
    /// Name of the Service of the StatefulSet, which cannot be changed in place.
    pub service_name: Option<String>,
    /// Name of a Secret whose keys are counted.
    pub secret: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SampleStatus {
    pub observed_generation: i64,
    pub ready_pods: i32,
    pub secret_keys: Option<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
}

/// Another operator's kind, which may be missing.
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "gadgets.example.com",
    version = "v1",
    kind = "Gadget",
    namespaced,
    status = "GadgetStatus",
    derive = "PartialEq"
)]
pub struct GadgetSpec {
    pub message: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GadgetStatus {}

fn conditions(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["type"],
            "properties": {
                "type": { "type": "string" }, "status": { "type": "string" }, "reason": { "type": "string" },
                "message": { "type": "string" }, "lastTransitionTime": { "type": "string", "format": "date-time" },
                "observedGeneration": { "type": "integer", "format": "int64" },
            },
        },
    })
}
