//! NodeSet: workers.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1 as core;
use kube::CustomResource;
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use serde_with::skip_serializing_none;

use super::{Moment, ObjectRef, PodTemplate, SecretKeyRef, rules};
use crate::Open;
use crate::condition::{Condition, Conditions};
use crate::default::{one, yes};
use crate::scalar::{GoDuration, IntOrString};
use crate::schema::{AnyObject, Integer};

pub(super) fn crd() -> Value {
    crate::schema::crd::<NodeSet, NodeSetSpec, NodeSetStatus>(
        "Workers of a Slurm cluster, all alike: pods with slurmd that register themselves as Slurm nodes. \
         A worker is drained before it is removed or replaced.",
    )
}

/// What the workers shall be.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "slinky.slurm.net",
    version = "v1beta1",
    kind = "NodeSet",
    namespaced,
    status = "NodeSetStatus",
    schema = "disabled",
    derive = "PartialEq",
    shortname = "nodesets",
    shortname = "nss",
    shortname = "slurmd",
    category = "slurm",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.selector"
    ),
    printcolumn(json_path = ".status.desired", name = "DESIRED", type_ = "integer"),
    printcolumn(json_path = ".status.replicas", name = "REPLICAS", type_ = "integer"),
    printcolumn(json_path = ".status.updatedReplicas", name = "UPDATED", type_ = "integer"),
    printcolumn(json_path = ".status.readyReplicas", name = "READY", type_ = "integer"),
    printcolumn(json_path = ".status.slurmIdle", name = "IDLE", type_ = "integer", priority = 1),
    printcolumn(json_path = ".status.slurmAllocated", name = "ALLOCATED", type_ = "integer", priority = 1),
    printcolumn(json_path = ".status.slurmDown", name = "DOWN", type_ = "integer", priority = 1),
    printcolumn(json_path = ".status.slurmDrain", name = "DRAIN", type_ = "integer", priority = 1),
    printcolumn(json_path = ".metadata.creationTimestamp", name = "AGE", type_ = "date")
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [rules::CLAIM_TEMPLATES]))]
pub struct NodeSetSpec {
    /// The Controller whose cluster the workers belong to. It cannot be changed later.
    #[schemars(extend("x-kubernetes-validations" = [rules::CONTROLLER_NAMED, rules::SAME_CONTROLLER]))]
    pub controller_ref: ObjectRef,
    /// What the workers tell Slurm of themselves when they register (`slurmd --conf`): `Key=Value` pairs with
    /// spaces between them, for example `Features=fast Weight=10`. Default: none.
    #[schemars(extend("x-kubernetes-validations" = [rules::EXTRA_CONF]))]
    pub extra_conf: Option<String>,
    /// What is laid over the container that brings slurmd's log to the pod's output, for example its `image`.
    #[schemars(with = "Option<AnyObject>")]
    pub logfile: Option<Open<core::Container>>,
    /// How long a worker has to be ready before it counts as available, in seconds. Default: 0.
    pub min_ready_seconds: Option<i32>,
    /// How many digits the number at the end of a worker's name has at least: with 3 the first is `-000`.
    /// Only for `scalingMode: StatefulSet`. Default: 0, no more than needed.
    #[serde(default)]
    #[schemars(with = "Integer", range(min = 0))]
    pub ordinal_padding: i64,
    /// Whether several workers may run on one Kubernetes node. Default: `false`.
    #[serde(default)]
    pub oversubscribe_node: bool,
    /// A partition (queue) with the workers of this NodeSet. Default: none.
    pub partition: Option<NodeSetPartition>,
    /// What becomes of claims made from `volumeClaimTemplates`. Default: they are kept.
    pub persistent_volume_claim_retention_policy: Option<ClaimRetentionPolicy>,
    /// Whether a worker comes back to the Kubernetes node that it first ran on, as long as the node exists and
    /// its pod fits there. Only for `scalingMode: StatefulSet`. Default: `false`.
    #[serde(default)]
    pub pin_to_node: bool,
    /// Whether Slurm forgets workers that will not come back. Only for `scalingMode: DaemonSet`. Default:
    /// `Never`.
    #[serde(default)]
    pub prune_slurm_node_records: PruneSlurmNodeRecords,
    /// How many workers there shall be, for `scalingMode: StatefulSet`; 0 is allowed. Default: 1.
    #[serde(default = "one")]
    #[schemars(range(min = 0))]
    pub replicas: i32,
    /// How many earlier revisions of the pods are remembered beside those in use. Default: 0.
    #[serde(default)]
    pub revision_history_limit: i32,
    /// What decides how many workers there are. Default: `StatefulSet`.
    #[serde(default)]
    pub scaling_mode: ScalingMode,
    /// What is laid over the container of slurmd, for example `image`, `resources` or `args`, which come
    /// after the operator's own. `cpu` and `memory` of its limits are what Slurm gives to jobs; GPUs are told to
    /// Slurm in `extraConf` (`Gres=gpu:8`).
    #[schemars(with = "Option<AnyObject>")]
    pub slurmd: Option<Open<core::Container>>,
    /// Whether users may log in to workers on which they have a job. Default: they may not.
    pub ssh: Option<NodeSetSsh>,
    /// Whether Kubernetes nodes with workers were tainted, in releases before 1.2. Deprecated: it is ignored,
    /// and a condition warns of it; taint the nodes yourself.
    pub taint_kube_nodes: Option<bool>,
    /// What is laid over the pods of the workers. `spec.hostname` is what the names of the Slurm nodes begin
    /// with: `gpu-` makes them `gpu-0`, `gpu-1` and so on, and their partition `gpu`.
    #[schemars(transform = with_hostname)]
    pub template: Option<PodTemplate>,
    /// How workers are replaced when their pods change. Default: `RollingUpdate`, a quarter at a time.
    pub update_strategy: Option<UpdateStrategy>,
    /// Claims that are made for each worker, as in a StatefulSet; each is a volume of the pod by its name.
    /// They cannot be changed later. Default: none.
    #[schemars(with = "Option<Vec<AnyObject>>", extend("nullable" = true))]
    pub volume_claim_templates: Option<Vec<Open<core::PersistentVolumeClaim>>>,
    /// Whether a worker with running jobs is protected from evictions, for example by `kubectl drain`.
    /// Default: `true`.
    #[serde(default = "yes")]
    pub workload_disruption_protection: bool,
}

/// Declares the one field of a worker's pod spec that a rule looks at. All others stay as open as they are.
fn with_hostname(template: &mut Schema) {
    if let Some(spec) = template.pointer_mut("/properties/spec") {
        spec["properties"] = json!({ "hostname": {
            "type": "string",
            "maxLength": 253,
            "description": "What the names of the Slurm nodes begin with; without the dash at its end it is also the name of their \
                            partition and a feature of them. With `scalingMode: DaemonSet` or `hostNetwork` the nodes have the \
                            name of the Kubernetes node. Default: the name of the NodeSet and a dash.",
            "x-kubernetes-validations": [rules::HOSTNAME],
        } });
    }
}

/// A partition with the workers of a NodeSet.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeSetPartition {
    /// The rest of the partition's line in slurm.conf, for example `State=UP MaxTime=8:00:00`. One line only.
    #[schemars(regex(pattern = r"^[^\n]+$"))]
    pub config: Option<String>,
    /// Whether there is a partition with the workers. Its name is `template.spec.hostname` without the dash at
    /// its end, else the name of the NodeSet. Default: `false`.
    #[serde(default)]
    pub enabled: bool,
}

/// What becomes of claims.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ClaimRetentionPolicy {
    /// What becomes of the claims once the NodeSet is deleted. Default: `Retain`.
    pub when_deleted: RetentionPolicy,
    /// What becomes of a worker's claims when it is removed because there shall be fewer. Default: `Retain`.
    pub when_scaled: RetentionPolicy,
}

/// What becomes of a claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RetentionPolicy {
    /// It is kept, and so is what is on it.
    #[default]
    Retain,
    /// It is deleted, and what is on it is lost.
    Delete,
}

/// When Slurm forgets a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PruneSlurmNodeRecords {
    /// Slurm keeps the node, in the state down.
    #[default]
    Never,
    /// The Slurm node is deleted when the Kubernetes node of the worker does not exist any more.
    NodeNotFound,
}

/// What decides how many workers there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ScalingMode {
    /// One worker on every Kubernetes node that its pods may run on.
    DaemonSet,
    /// As many as `replicas` says, with numbers from 0 on.
    #[default]
    StatefulSet,
}

/// Whether users may log in to workers.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [rules::SSH]))]
pub struct NodeSetSsh {
    /// Whether workers run sshd. Only users with a job on the worker get in (`pam_slurm_adopt`). Default:
    /// `false`.
    #[serde(default)]
    pub enabled: bool,
    /// Lines for sshd_config, for example `PermitRootLogin no`. They come after the generated ones, and sshd takes
    /// the first of two lines with the same keyword.
    pub extra_sshd_config: Option<String>,
    /// The key of a Secret that holds `sssd.conf`, the configuration by which users are found. Usually the key is
    /// called so too.
    pub sssd_conf_ref: SecretKeyRef,
}

/// How workers are replaced when their pods change.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::UPDATE_STRATEGY))]
pub struct UpdateStrategy {
    /// How many workers are replaced at a time, for `type: RollingUpdate`.
    pub rolling_update: Option<RollingUpdate>,
    /// When workers are replaced, for `type: ScheduledUpdate`.
    pub scheduled_update: Option<ScheduledUpdate>,
    /// When workers are replaced. Default: `RollingUpdate`.
    #[serde(rename = "type", default)]
    pub type_: UpdateStrategyType,
}

/// When workers are replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum UpdateStrategyType {
    /// A few at a time, each after its jobs have ended.
    #[default]
    RollingUpdate,
    /// When somebody deletes their pods.
    OnDelete,
    /// In a maintenance window, which is a reservation in Slurm.
    ScheduledUpdate,
}

/// How many workers are replaced at a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RollingUpdate {
    /// How many workers may be missing because of the update, as a number or a share that is rounded up: `2`,
    /// `25%`. More than zero. Default: `25%`.
    pub max_unavailable: IntOrString,
}

impl Default for RollingUpdate {
    fn default() -> Self {
        Self { max_unavailable: "25%".into() }
    }
}

/// A maintenance window: a reservation in Slurm of all workers of the NodeSet.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ScheduledUpdate {
    /// How long the window is, as a duration such as `30m` or `2h`, at least `1m`. Default: `30m`.
    #[schemars(length(max = 256), extend("x-kubernetes-validations" = [rules::WINDOW]))]
    pub duration: GoDuration,
    /// Flags of the reservation beside `MAINT` and `IGNORE_JOBS`, for example `DAILY`. Default: none.
    #[schemars(extend("nullable" = true))]
    pub flags: Option<Vec<String>>,
    /// When the window begins, for example `2026-03-01T22:00:00Z`. Required for `type: ScheduledUpdate`.
    pub start_time: Option<Moment>,
}

impl Default for ScheduledUpdate {
    fn default() -> Self {
        Self { duration: "30m".to_owned(), flags: None, start_time: None }
    }
}

/// What the workers are now.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeSetStatus {
    /// How many workers are available: ready, and that since `minReadySeconds` or longer.
    pub available_replicas: Option<i32>,
    /// How often the name of a revision was taken already; it goes into the name of the next.
    pub collision_count: Option<i32>,
    /// What is true of the workers now, and what they wait for.
    #[schemars(with = "Option<Conditions>")]
    pub conditions: Option<Vec<Condition>>,
    /// How many workers there shall be: `replicas`, or with `scalingMode: DaemonSet` the number of Kubernetes
    /// nodes that fit.
    pub desired: Option<i32>,
    /// The revision that new workers have, by its hash; pods carry theirs in the label
    /// `controller.kubernetes.io/hash`.
    pub node_set_hash: String,
    /// The `metadata.generation` that this status speaks of; older than the object's own: not yet looked at.
    pub observed_generation: Option<i64>,
    /// The Kubernetes node that each worker is pinned to, by the worker's number, for `pinToNode: true`.
    #[schemars(extend("nullable" = true))]
    pub ordinal_to_node: Option<BTreeMap<String, String>>,
    /// Which workers exist or are about to, as ranges of their numbers: `0-3,7`.
    pub ordinals: Option<String>,
    /// How many workers are ready.
    pub ready_replicas: Option<i32>,
    /// How many workers there are, ready or not.
    pub replicas: Option<i32>,
    /// Labels that the pods are found by, for programs that scale, as in `kubectl get --selector`.
    pub selector: String,
    /// How many workers are allocated or mixed in Slurm: they have jobs.
    pub slurm_allocated: Option<i32>,
    /// How many workers are down in Slurm.
    pub slurm_down: Option<i32>,
    /// How many workers are drained or draining in Slurm.
    pub slurm_drain: Option<i32>,
    /// How many workers are idle in Slurm.
    pub slurm_idle: Option<i32>,
    /// How many workers are missing or not yet available.
    pub unavailable_replicas: Option<i32>,
    /// How many workers have the newest revision.
    pub updated_replicas: Option<i32>,
}
