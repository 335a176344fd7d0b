//! Controller: slurmctld, and with it a cluster.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1 as core;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

use super::{ConfigMapKeyRef, ExternalConfig, ObjectRef, PodTemplate, SecretKeyRef, ServiceTemplate, rules};
use crate::Open;
use crate::condition::{Condition, Conditions};
use crate::default::{one, yes};
use crate::scalar::PrometheusDuration;
use crate::schema::AnyObject;

pub(super) fn crd() -> Value {
    crate::schema::crd::<Controller, ControllerSpec, ControllerStatus>(
        "A Slurm cluster: slurmctld and the configuration of all its daemons. NodeSets, LoginSets \
         and RestApis in the same namespace belong to it by naming it in `controllerRef`.",
    )
}

/// What the cluster shall be.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "slinky.slurm.net",
    version = "v1beta1",
    kind = "Controller",
    namespaced,
    status = "ControllerStatus",
    schema = "disabled",
    derive = "PartialEq",
    shortname = "slurmctld",
    category = "slurm",
    printcolumn(
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#,
        name = "READY",
        type_ = "string"
    ),
    printcolumn(json_path = ".metadata.creationTimestamp", name = "AGE", type_ = "date")
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::CONTROLLER))]
pub struct ControllerSpec {
    /// The Accounting that remembers jobs, users and shares. One that does not exist is the same as none.
    /// Default: none.
    pub accounting_ref: Option<ObjectRef>,
    /// `ClusterName` of slurm.conf, at most 40 characters; it cannot be changed later. Default:
    /// `<namespace>_<name>`.
    #[schemars(length(max = 40), extend("x-kubernetes-validations" = [rules::CLUSTER_NAME]))]
    pub cluster_name: Option<String>,
    /// ConfigMaps whose keys become files in `/etc/slurm`, for example `gres.conf` or `topology.yaml`.
    /// `slurm.conf` and `slurmdbd.conf` are not among them. Default: none.
    #[schemars(extend("nullable" = true))]
    pub config_file_refs: Option<Vec<ObjectRef>>,
    /// ConfigMaps whose keys are programs that slurmd runs after a job (`Epilog`). Default: none.
    #[schemars(extend("nullable" = true))]
    pub epilog_script_refs: Option<Vec<ObjectRef>>,
    /// ConfigMaps whose keys are programs that slurmctld runs after a job (`EpilogSlurmctld`). Default: none.
    #[schemars(extend("nullable" = true))]
    pub epilog_slurmctld_script_refs: Option<Vec<ObjectRef>>,
    /// Whether slurmctld runs outside of this Kubernetes cluster, at the place that `externalConfig` names.
    /// Default: `false`.
    #[serde(default)]
    pub external: bool,
    /// Where slurmctld is, for `external: true`.
    pub external_config: Option<ExternalConfig>,
    /// Lines for slurm.conf. They come after the generated ones, for example
    /// `SelectTypeParameters=CR_Core_Memory`.
    pub extra_conf: Option<String>,
    /// Further copies of slurmctld that take over when the first one fails. Default: none.
    pub ha: Option<HighAvailability>,
    /// Whether slurmctld reads a changed configuration without a restart: a container beside it runs
    /// `scontrol reconfigure`. With `false` the pod is replaced when slurm.conf changes. Default: `false`.
    #[serde(default)]
    pub inplace_reconfigure: bool,
    /// The key of a ConfigMap that holds a JSON Web Key Set: tokens signed by one of these keys are accepted
    /// too. Default: none.
    pub jwks_key_ref: Option<ConfigMapKeyRef>,
    /// The key of a Secret that tokens are signed with. Deprecated: use `jwtKeyRef`, which wins over it.
    pub jwt_hs256_key_ref: Option<SecretKeyRef>,
    /// The key of a Secret that tokens are signed with, usually `jwt.key`, mounted as `/etc/slurm/jwt.key`. Required unless
    /// `external`; it cannot be changed later.
    pub jwt_key_ref: Option<SecretKeyRef>,
    /// What is laid over the container that brings slurmctld's log to the pod's output, for example its
    /// `image`.
    #[schemars(with = "Option<AnyObject>")]
    pub logfile: Option<Open<core::Container>>,
    /// Metrics of slurmctld for Prometheus. Default: none.
    pub metrics: Option<Metrics>,
    /// Where slurmctld keeps the state of the cluster (`StateSaveLocation`). What is lost here is lost: jobs,
    /// reservations, drained nodes. A claim that is made needs `accessModes` and `resources.requests.storage`.
    /// Default: as with `enabled: true`.
    pub persistence: Option<Persistence>,
    /// ConfigMaps whose keys are programs that slurmd runs before a job (`Prolog`). Default: none.
    #[schemars(extend("nullable" = true))]
    pub prolog_script_refs: Option<Vec<ObjectRef>>,
    /// ConfigMaps whose keys are programs that slurmctld runs before a job (`PrologSlurmctld`). Default:
    /// none.
    #[schemars(extend("nullable" = true))]
    pub prolog_slurmctld_script_refs: Option<Vec<ObjectRef>>,
    /// What is laid over the container that runs `scontrol reconfigure`, for `inplaceReconfigure: true`.
    #[schemars(with = "Option<AnyObject>")]
    pub reconfigure: Option<Open<core::Container>>,
    /// What is laid over the Service of slurmctld. Its port is 6817 if nothing else is said.
    pub service: Option<ServiceTemplate>,
    /// The key of a Secret by which Slurm's daemons know each other (`auth/slurm`), usually `slurm.key`, mounted
    /// as `/etc/slurm/slurm.key`. Required unless `external`; another Secret cannot be named later.
    #[schemars(extend("x-kubernetes-validations" = [rules::SAME_SLURM_KEY]))]
    pub slurm_key_ref: Option<SecretKeyRef>,
    /// What is laid over the container of slurmctld, for example `image`, `resources` or `args`, which come
    /// after the operator's own.
    #[schemars(with = "Option<AnyObject>")]
    pub slurmctld: Option<Open<core::Container>>,
    /// What is laid over the pod of slurmctld.
    pub template: Option<PodTemplate>,
}

impl ControllerSpec {
    /// The key that tokens are signed with, by whichever of the two fields names it.
    pub fn jwt_key(&self) -> Option<&SecretKeyRef> {
        self.jwt_key_ref.as_ref().or(self.jwt_hs256_key_ref.as_ref())
    }
}

/// Further copies of slurmctld.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HighAvailability {
    /// How many copies wait beside the first, at least 1. Default: 1.
    #[serde(default = "one")]
    #[schemars(range(min = 1))]
    pub backups: i32,
    /// Whether there are copies. They share the state, so `persistence.existingClaim` has to name a volume
    /// that several pods can write (`ReadWriteMany`). Default: `false`.
    #[serde(default)]
    pub enabled: bool,
}

/// Where slurmctld keeps the state of the cluster: a claim that exists, or else the spec of the claim that is
/// made.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Persistence {
    /// Whether the state outlives the pod; it cannot be changed later. With `false` it is on a volume that is
    /// lost with the pod. Default: `true`.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// Name of a claim that exists, in the same namespace; it cannot be changed later. Default: one that is
    /// made, as the other fields say.
    pub existing_claim: Option<String>,
    /// The claim that is made, as in a StatefulSet.
    #[serde(flatten)]
    pub claim: Open<core::PersistentVolumeClaimSpec>,
}

/// Metrics of slurmctld for Prometheus.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Metrics {
    /// Whether slurmctld gives metrics (`MetricsType`). Slurm gives none while `PrivateData` is set. Default:
    /// `false`.
    #[serde(default)]
    pub enabled: bool,
    /// How the Prometheus operator collects them. Default: not at all.
    #[schemars(extend("nullable" = true))]
    pub service_monitor: Option<MetricsServiceMonitor>,
}

/// How the Prometheus operator collects the metrics.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MetricsServiceMonitor {
    /// Annotations of the ServiceMonitor. Default: none.
    #[schemars(extend("nullable" = true))]
    pub annotations: Option<BTreeMap<String, String>>,
    /// Whether a ServiceMonitor is made, where the Prometheus operator is installed and `metrics.enabled` is
    /// set. Default: `false`.
    #[serde(default)]
    pub enabled: bool,
    /// Which groups of metrics are collected. Default: `/metrics/jobs`, `/metrics/nodes`,
    /// `/metrics/partitions` and `/metrics/scheduler`.
    #[schemars(extend("nullable" = true))]
    pub endpoints: Option<Vec<MetricsEndpoint>>,
    /// How often they are collected, for example `30s`. Default: that of Prometheus.
    pub interval: Option<PrometheusDuration>,
    /// Labels of the ServiceMonitor, for example the one that Prometheus selects by. Default: none.
    #[schemars(extend("nullable" = true))]
    pub labels: Option<BTreeMap<String, String>>,
    /// How long one collection may take, for example `25s`; at most `interval`. Default: that of Prometheus.
    pub scrape_timeout: Option<PrometheusDuration>,
}

/// A group of metrics that is collected.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MetricsEndpoint {
    /// How often this group is collected. Default: that of the ServiceMonitor.
    pub interval: Option<PrometheusDuration>,
    /// Where slurmctld gives this group, for example `/metrics/jobs-users-accts`.
    pub path: String,
    /// How long one collection of this group may take. Default: that of the ServiceMonitor.
    pub scrape_timeout: Option<PrometheusDuration>,
}

/// What the cluster is now.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ControllerStatus {
    /// What is true of slurmctld now, and what it waits for.
    #[schemars(with = "Option<Conditions>")]
    pub conditions: Option<Vec<Condition>>,
    /// The `metadata.generation` that this status speaks of; older than the object's own: not yet looked at.
    pub observed_generation: Option<i64>,
}
