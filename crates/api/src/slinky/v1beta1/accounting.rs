//! Accounting: slurmdbd.

use k8s_openapi::api::core::v1 as core;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

use super::{ConfigMapKeyRef, ExternalConfig, PodTemplate, SecretKeyRef, ServiceTemplate, rules};
use crate::Open;
use crate::condition::{Condition, Conditions};
use crate::schema::{AnyObject, Integer};

pub(super) fn crd() -> Value {
    crate::schema::crd::<Accounting, AccountingSpec, AccountingStatus>(
        "slurmdbd, which remembers jobs, users and shares in a MySQL or MariaDB that exists already. Several \
         Controllers of the same namespace may name it in `accountingRef`.",
    )
}

/// What slurmdbd shall be.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "slinky.slurm.net",
    version = "v1beta1",
    kind = "Accounting",
    plural = "accountings",
    namespaced,
    status = "AccountingStatus",
    schema = "disabled",
    derive = "PartialEq",
    shortname = "slurmdbd",
    category = "slurm",
    printcolumn(
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#,
        name = "READY",
        type_ = "string"
    ),
    printcolumn(json_path = ".metadata.creationTimestamp", name = "AGE", type_ = "date")
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::ACCOUNTING))]
pub struct AccountingSpec {
    /// Whether slurmdbd runs outside of this Kubernetes cluster, at the place that `externalConfig` names.
    /// Default: `false`.
    #[serde(default)]
    pub external: bool,
    /// Where slurmdbd is, for `external: true`.
    pub external_config: Option<ExternalConfig>,
    /// Lines for slurmdbd.conf. They come after the generated ones, for example `PurgeJobAfter=12months`.
    pub extra_conf: Option<String>,
    /// The key of a ConfigMap that holds a JSON Web Key Set: tokens signed by one of these keys are accepted
    /// too. Default: none.
    pub jwks_key_ref: Option<ConfigMapKeyRef>,
    /// The key of a Secret that tokens are signed with. Deprecated: use `jwtKeyRef`, which wins over it.
    pub jwt_hs256_key_ref: Option<SecretKeyRef>,
    /// The key of a Secret that tokens are signed with, the same as that of the Controllers. Required unless
    /// `external`; it cannot be changed later.
    pub jwt_key_ref: Option<SecretKeyRef>,
    /// What is laid over the Service of slurmdbd. Its port is 6819 if nothing else is said.
    pub service: Option<ServiceTemplate>,
    /// The key of a Secret by which Slurm's daemons know each other (`auth/slurm`), the same as that of the
    /// Controllers. Required unless `external`.
    pub slurm_key_ref: Option<SecretKeyRef>,
    /// What is laid over the container of slurmdbd, for example `image`, `resources` or `args`, which come
    /// after the operator's own.
    #[schemars(with = "Option<AnyObject>")]
    pub slurmdbd: Option<Open<core::Container>>,
    /// The database that slurmdbd writes to. Required unless `external`.
    pub storage_config: Option<StorageConfig>,
    /// What is laid over the pod of slurmdbd.
    pub template: Option<PodTemplate>,
}

impl AccountingSpec {
    /// The key that tokens are signed with, by whichever of the two fields names it.
    pub fn jwt_key(&self) -> Option<&SecretKeyRef> {
        self.jwt_key_ref.as_ref().or(self.jwt_hs256_key_ref.as_ref())
    }
}

/// The database that slurmdbd writes to.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StorageConfig {
    /// Name of the database on its server (`StorageLoc`). Default: `slurm_acct_db`, also where it is empty.
    #[serde(default = "database")]
    pub database: String,
    /// Host name or address of the database (`StorageHost`), for example `mariadb`.
    pub host: String,
    /// The key of a Secret that holds the password of the user (`StoragePass`).
    pub password_key_ref: SecretKeyRef,
    /// Port of the database (`StoragePort`); 0 is the same as none given. Default: 3306.
    #[serde(default = "mysql_port")]
    #[schemars(with = "Integer")]
    pub port: i64,
    /// User of the database (`StorageUser`), for example `slurm`. Default: left to slurmdbd.
    pub username: Option<String>,
}

fn database() -> String {
    "slurm_acct_db".to_owned()
}

fn mysql_port() -> i64 {
    3306
}

/// What slurmdbd is now, and what it waits for.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AccountingStatus {
    /// What is true of slurmdbd now, and what it waits for.
    #[schemars(with = "Option<Conditions>")]
    pub conditions: Option<Vec<Condition>>,
    /// The `metadata.generation` that this status speaks of; older than the object's own: not yet looked at.
    pub observed_generation: Option<i64>,
}
