//! Token: a JSON Web Token for a user of Slurm.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

use super::{SecretKeyRef, rules};
use crate::condition::{Condition, Conditions};
use crate::default::yes;
use crate::scalar::GoDuration;
use crate::schema::DateTime;

pub(super) fn crd() -> Value {
    crate::schema::crd::<Token, TokenSpec, TokenStatus>(
        "A JSON Web Token with which a user of Slurm may use the REST API. It is signed with the \
         cluster's key and kept in a Secret; it is made anew before it ends.",
    )
}

/// What the token shall be.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "slinky.slurm.net",
    version = "v1beta1",
    kind = "Token",
    namespaced,
    status = "TokenStatus",
    schema = "disabled",
    derive = "PartialEq",
    shortname = "tokens",
    shortname = "jwt",
    category = "slurm",
    printcolumn(json_path = ".spec.username", name = "USER", type_ = "string"),
    printcolumn(json_path = ".status.issuedAt", name = "IAT", type_ = "date"),
    printcolumn(json_path = ".metadata.creationTimestamp", name = "AGE", type_ = "date")
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::TOKEN))]
pub struct TokenSpec {
    /// The key of a Secret that the token is signed with. Deprecated: use `jwtKeyRef`, which wins over it.
    pub jwt_hs256_key_ref: Option<OldTokenKeyRef>,
    /// The key of a Secret that the token is signed with, the same as that of the Controller. It cannot be
    /// changed later.
    pub jwt_key_ref: Option<SecretKeyRef>,
    /// How long a token is good for, as a duration such as `15m` or `24h`. Default: `15m`.
    #[schemars(length(max = 256), extend("x-kubernetes-validations" = [rules::LIFETIME]))]
    pub lifetime: Option<GoDuration>,
    /// Whether the token is made anew when a fifth of its lifetime is left. With `false` it is made once, in
    /// a Secret that cannot be changed. Default: `true`.
    #[serde(default = "yes")]
    pub refresh: bool,
    /// The key of a Secret that the token is written to. Default: key `SLURM_JWT` of `<name>-jwt-<username>`.
    pub secret_ref: Option<SecretKeyRef>,
    /// The user of Slurm that the token is for (claim `sun`), for example `slurm`.
    pub username: String,
}

impl TokenSpec {
    /// The key that the token is signed with, by whichever of the two fields names it.
    pub fn jwt_key(&self) -> Option<SecretKeyRef> {
        self.jwt_key_ref.clone().or_else(|| self.jwt_hs256_key_ref.clone().map(Into::into))
    }
}

/// A key of a Secret, as it was when it could be in another namespace.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct OldTokenKeyRef {
    /// Which key of the Secret is meant, for example `jwt.key`.
    pub key: String,
    /// Name of the Secret, in the namespace of the token.
    #[serde(default)]
    pub name: String,
    /// Namespace of the Secret, from releases that could refer to other namespaces. Deprecated: it is
    /// honoured only if it is the namespace of the token; else a condition warns of it. Default: that
    /// namespace.
    pub namespace: Option<String>,
    /// Part of every reference to a key in Kubernetes; without effect here.
    pub optional: Option<bool>,
}

impl From<OldTokenKeyRef> for SecretKeyRef {
    fn from(OldTokenKeyRef { key, name, namespace: _, optional }: OldTokenKeyRef) -> Self {
        Self { key, name, optional }
    }
}

/// What the token is now, and what it waits for.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenStatus {
    /// What is true of the token now, and what it waits for.
    #[schemars(with = "Option<Conditions>")]
    pub conditions: Option<Vec<Condition>>,
    /// When the token that is in the Secret now was made.
    #[schemars(with = "Option<DateTime>")]
    pub issued_at: Option<Time>,
    /// The `metadata.generation` that this status speaks of; older than the object's own: not yet looked at.
    pub observed_generation: Option<i64>,
}
