//! RestApi: slurmrestd.

use k8s_openapi::api::core::v1 as core;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

use super::{ObjectRef, PodTemplate, ServiceTemplate, rules};
use crate::Open;
use crate::condition::{Condition, Conditions};
use crate::default::one;
use crate::schema::AnyObject;

pub(super) fn crd() -> Value {
    crate::schema::crd::<RestApi, RestApiSpec, RestApiStatus>(
        "slurmrestd, the REST API of a Slurm cluster. The operator itself asks Slurm through it, so every \
         Controller needs one.",
    )
}

/// What slurmrestd shall be.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "slinky.slurm.net",
    version = "v1beta1",
    kind = "RestApi",
    namespaced,
    status = "RestApiStatus",
    schema = "disabled",
    derive = "PartialEq",
    shortname = "slurmrestd",
    category = "slurm",
    printcolumn(
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#,
        name = "READY",
        type_ = "string"
    ),
    printcolumn(json_path = ".metadata.creationTimestamp", name = "AGE", type_ = "date")
)]
#[serde(rename_all = "camelCase")]
pub struct RestApiSpec {
    /// The Controller whose cluster this is an API of.
    #[schemars(extend("x-kubernetes-validations" = [rules::CONTROLLER_NAMED]))]
    pub controller_ref: ObjectRef,
    /// How many pods with slurmrestd there shall be. Default: 1.
    #[serde(default = "one")]
    #[schemars(range(min = 0))]
    pub replicas: i32,
    /// What is laid over the Service of slurmrestd. Its port is 6820 if nothing else is said.
    pub service: Option<ServiceTemplate>,
    /// What is laid over the container of slurmrestd, for example `image`, `env`, `resources` or `args`.
    #[schemars(with = "Option<AnyObject>")]
    pub slurmrestd: Option<Open<core::Container>>,
    /// What is laid over the pods of slurmrestd.
    pub template: Option<PodTemplate>,
}

/// What slurmrestd is now, and what it waits for.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestApiStatus {
    /// What is true of slurmrestd now, and what it waits for.
    #[schemars(with = "Option<Conditions>")]
    pub conditions: Option<Vec<Condition>>,
    /// The `metadata.generation` that this status speaks of; older than the object's own: not yet looked at.
    pub observed_generation: Option<i64>,
}
