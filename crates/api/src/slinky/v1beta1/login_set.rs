//! LoginSet: where users arrive by ssh.

use k8s_openapi::api::core::v1 as core;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

use super::{ObjectRef, PodTemplate, SecretKeyRef, ServiceTemplate, rules};
use crate::Open;
use crate::condition::{Condition, Conditions};
use crate::default::one;
use crate::scalar::IntOrString;
use crate::schema::AnyObject;

pub(super) fn crd() -> Value {
    crate::schema::crd::<LoginSet, LoginSetSpec, LoginSetStatus>(
        "Login nodes of a Slurm cluster, all alike: users arrive by ssh and find Slurm's commands. \
         Users come from a directory server through sssd.",
    )
}

/// What the login nodes shall be.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "slinky.slurm.net",
    version = "v1beta1",
    kind = "LoginSet",
    namespaced,
    status = "LoginSetStatus",
    schema = "disabled",
    derive = "PartialEq",
    shortname = "loginsets",
    shortname = "lss",
    shortname = "sackd",
    category = "slurm",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.selector"
    ),
    printcolumn(json_path = ".status.replicas", name = "REPLICAS", type_ = "integer"),
    printcolumn(
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#,
        name = "READY",
        type_ = "string"
    ),
    printcolumn(json_path = ".metadata.creationTimestamp", name = "AGE", type_ = "date")
)]
#[serde(rename_all = "camelCase")]
pub struct LoginSetSpec {
    /// The Controller whose cluster users log in to. It cannot be changed later.
    #[schemars(extend("x-kubernetes-validations" = [rules::CONTROLLER_NAMED, rules::SAME_CONTROLLER]))]
    pub controller_ref: ObjectRef,
    /// Lines for sshd_config, for example `MaxSessions 50`. They come after the generated ones, and sshd takes the
    /// first of two lines with the same keyword.
    pub extra_sshd_config: Option<String>,
    /// What is laid over the init container that puts Slurm's key into `/etc/slurm` for the right user, for
    /// example its `image`.
    #[schemars(with = "Option<AnyObject>")]
    pub initconf: Option<Open<core::Container>>,
    /// What is laid over the container of sshd, sssd and sackd, for example `image`, `resources` or
    /// `volumeMounts`. A port with the name `login` takes the place of 22.
    #[schemars(with = "Option<AnyObject>")]
    pub login: Option<Open<core::Container>>,
    /// How many login nodes there shall be. Default: 1.
    #[serde(default = "one")]
    #[schemars(range(min = 0))]
    pub replicas: i32,
    /// Public keys with which root may log in, one line each as in `authorized_keys`. Default: none.
    pub root_ssh_authorized_keys: Option<String>,
    /// What is laid over the Service that users reach, for example `type: LoadBalancer` in its `spec`. Its
    /// port is 22 if nothing else is said.
    pub service: Option<ServiceTemplate>,
    /// The key of a Secret that holds `sssd.conf`, the configuration by which users are found.
    #[schemars(extend("x-kubernetes-validations" = [rules::SSSD_CONF_NAMED]))]
    pub sssd_conf_ref: SecretKeyRef,
    /// How pods are replaced when they change, as in a Deployment. Default: that of a Deployment, a quarter
    /// at a time.
    pub strategy: Option<DeploymentStrategy>,
    /// What is laid over the pods of the login nodes.
    pub template: Option<PodTemplate>,
}

/// How pods are replaced, as in a Deployment.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::STRATEGY))]
pub struct DeploymentStrategy {
    /// How many pods are replaced at a time, for `type: RollingUpdate`.
    pub rolling_update: Option<DeploymentRollingUpdate>,
    /// `RollingUpdate` replaces pods a few at a time, `Recreate` ends all of them first. Default:
    /// `RollingUpdate`.
    #[serde(rename = "type")]
    pub type_: Option<String>,
}

/// How many pods are replaced at a time.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeploymentRollingUpdate {
    /// How many pods there may be above `replicas`, as a number or a share: `1`, `25%`. Default: `25%`.
    pub max_surge: Option<IntOrString>,
    /// How many pods may be missing below `replicas`, as a number or a share: `1`, `25%`. Default: `25%`.
    pub max_unavailable: Option<IntOrString>,
}

/// What the login nodes are now.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoginSetStatus {
    /// What is true of the login nodes now, and what they wait for.
    #[schemars(with = "Option<Conditions>")]
    pub conditions: Option<Vec<Condition>>,
    /// The `metadata.generation` that this status speaks of; older than the object's own: not yet looked at.
    pub observed_generation: Option<i64>,
    /// How many pods there are, ready or not.
    pub replicas: Option<i32>,
    /// Labels that the pods are found by, for programs that scale, as in `kubectl get --selector`.
    pub selector: String,
}
