//! ActiveCheck: checks that run at intervals, and what is done about nodes that fail them.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::Reactions;
use crate::Open;
use crate::condition::{Condition, Conditions};
use crate::default::yes;
use crate::schema::DateTime;
use crate::schema::rule::{Rule, rule};
use crate::soperator::common::{AppArmorProfile, ImagePullPolicy};

const SPEC_RULES: &[Rule] = &[
    rule(
        "self.checkType != 'k8sJob' || has(self.k8sJobSpec) || has(self.podTemplateNameRef)",
        "k8sJobSpec is required with checkType: k8sJob",
    )
    .at(".k8sJobSpec"),
    rule(
        "self.checkType != 'slurmJob' || has(self.slurmJobSpec) || has(self.podTemplateNameRef)",
        "slurmJobSpec is required with checkType: slurmJob",
    )
    .at(".slurmJobSpec"),
    rule(
        "!self.runAfterCreation || self.name.size() <= 51",
        "name must have at most 51 characters with runAfterCreation: the first Job is called NAME-initial-run",
    )
    .at(".name"),
];

const NAME_RULES: &[Rule] = &[rule(
    "self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && self.size() <= 63",
    "name becomes the name of a container: at most 63 lower-case letters, digits and dashes, with a letter or digit at both ends",
)];

const SCHEDULE_RULES: &[Rule] = &[rule(
    r"self.matches('^\\s*(@[a-z]+(\\s+\\S+)?|\\S+(\\s+\\S+){4})\\s*$')",
    "schedule must be five fields of cron (minute, hour, day of month, month, day of week), as in 0 */6 * * *, or a word such as @daily",
)];

/// What is checked, when, and what follows.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "slurm.nebius.ai",
    version = "v1alpha1",
    kind = "ActiveCheck",
    namespaced,
    status = "ActiveCheckStatus",
    schema = "disabled",
    derive = "PartialEq",
    shortname = "ac",
    category = "slurm",
    printcolumn(json_path = ".spec.checkType", name = "Type", type_ = "string"),
    printcolumn(json_path = ".spec.runAfterCreation", name = "Init", type_ = "boolean"),
    printcolumn(json_path = ".spec.suspend", name = "Suspend", type_ = "boolean"),
    printcolumn(json_path = ".spec.schedule", name = "Schedule", type_ = "string"),
    printcolumn(json_path = ".status.k8sJobsStatus.lastJobStatus", name = "K8s Status", type_ = "string"),
    printcolumn(
        json_path = ".status.slurmJobsStatus.lastRunStatus",
        name = "Slurm Status",
        type_ = "string"
    ),
    printcolumn(
        json_path = ".status.slurmJobsStatus.lastRunSubmitTime",
        name = "Slurm Submit Time",
        type_ = "string"
    ),
    printcolumn(json_path = ".status.slurmJobsStatus.lastRunId", name = "Slurm ID", type_ = "string"),
    printcolumn(json_path = ".metadata.creationTimestamp", name = "Age", type_ = "date")
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = SPEC_RULES))]
pub struct ActiveCheckSpec {
    /// How long the pod of one run may take, in seconds. Of Slurm jobs that is the time to submit them. Default: 1800.
    #[serde(default = "deadline")]
    pub active_deadline_seconds: i64,
    /// Affinity of the Job's pods, as in a pod.
    pub affinity: Option<Open<core::Affinity>>,
    /// What a run is. Default: `k8sJob`.
    #[serde(default)]
    pub check_type: CheckType,
    /// Names of ActiveChecks whose first run must have ended well before this one runs. Only those with `runAfterCreation` count.
    pub depends_on: Option<Vec<String>>,
    /// How many failed Jobs are kept. Default: 16.
    #[serde(default = "failed_history")]
    pub failed_jobs_history_limit: i32,
    /// What is done about the nodes of a Slurm job that failed. Default: nothing.
    pub failure_reactions: Option<Reactions>,
    /// Whether the Job's pods share the user namespace of the host. Default: what Kubernetes chooses (1.x: `false`).
    pub host_users: Option<bool>,
    /// What runs with `checkType: k8sJob`.
    #[serde(rename = "k8sJobSpec")]
    pub k8s_job_spec: Option<K8sJobSpec>,
    /// Name of the check: of its container, its first Job (`<name>-initial-run`) and its script.
    #[schemars(extend("x-kubernetes-validations" = NAME_RULES))]
    pub name: String,
    /// Labels that a Kubernetes node must have to run the Job's pods.
    pub node_selector: Option<BTreeMap<String, String>>,
    /// A PodTemplate of Kubernetes that is laid over the Job's pods.
    pub pod_template_name_ref: Option<String>,
    /// What is done about nodes in Soperator 1.x before reactions were split. Deprecated: read as `failureReactions` where that is not given.
    pub reactions: Option<Reactions>,
    /// Whether the check runs once as soon as the cluster is available. Default: `true`.
    #[serde(default = "yes")]
    pub run_after_creation: bool,
    /// When the check runs, in the notation of cron: `0 */6 * * *`. Default: `0 0 1 1 *`, once a year.
    #[serde(default = "yearly")]
    #[schemars(length(max = 1024), extend("x-kubernetes-validations" = SCHEDULE_RULES))]
    pub schedule: String,
    /// The SlurmCluster that is checked, in the same namespace.
    pub slurm_cluster_ref_name: String,
    /// What runs with `checkType: slurmJob`.
    pub slurm_job_spec: Option<SlurmJobSpec>,
    /// What is done about the nodes of a Slurm job that went well. Default: nothing.
    pub success_reactions: Option<Reactions>,
    /// How many Jobs that went well are kept. Default: 3.
    #[serde(default = "successful_history")]
    pub successful_jobs_history_limit: i32,
    /// Whether `schedule` is ignored. Default: `true`.
    #[serde(default = "yes")]
    pub suspend: bool,
    /// Taints of Kubernetes nodes that the Job's pods tolerate, as in a pod.
    pub tolerations: Option<Vec<Open<core::Toleration>>>,
}

impl ActiveCheckSpec {
    /// What is done about nodes that fail, under the name of either release.
    pub fn on_failure(&self) -> Option<&Reactions> {
        self.failure_reactions.as_ref().or(self.reactions.as_ref())
    }
}

fn deadline() -> i64 {
    1800
}

fn failed_history() -> i32 {
    16
}

fn successful_history() -> i32 {
    3
}

fn yearly() -> String {
    "0 0 1 1 *".to_owned()
}

/// What a run of a check is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CheckType {
    /// A Job of Kubernetes.
    #[default]
    #[serde(rename = "k8sJob")]
    K8sJob,
    /// Jobs of Slurm on the workers, submitted by a Job of Kubernetes.
    #[serde(rename = "slurmJob")]
    SlurmJob,
}

/// A check that is a Job of Kubernetes.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct K8sJobSpec {
    /// The container that checks.
    pub job_container: Option<CheckContainer>,
    /// A container with munged beside it, for checks that use Slurm's commands. Default: none.
    pub munge_container: Option<CheckContainer>,
    /// ConfigMap whose key `script.sh` is run in place of the container's own command.
    pub script_ref_name: Option<String>,
}

/// A check that is jobs of Slurm.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SlurmJobSpec {
    /// Whether each worker gets a task of one job array, in Soperator 1.x. Deprecated: read as `eachWorkerJobs`. Default: `false`.
    pub each_worker_job_array: Option<bool>,
    /// Whether each worker gets a job of its own. Default: `false`, one job.
    #[serde(default)]
    pub each_worker_jobs: bool,
    /// The container that submits the jobs.
    pub job_container: Option<CheckContainer>,
    /// On how many workers at most a run checks, chosen at random; 0 is all. Default: 0.
    #[serde(default)]
    pub max_number_of_jobs: i64,
    /// The container with munged beside it.
    pub munge_container: Option<CheckContainer>,
    /// The script that `sbatch` gets, where `sbatchScriptRefName` is not given.
    pub sbatch_script: Option<String>,
    /// ConfigMap whose key `sbatch.sh` is the script that `sbatch` gets. It goes before `sbatchScript`.
    pub sbatch_script_ref_name: Option<String>,
}

impl SlurmJobSpec {
    /// Whether each worker is checked on its own, under the name of either release.
    pub fn on_each_worker(&self) -> bool {
        self.each_worker_jobs || self.each_worker_job_array == Some(true)
    }
}

/// A container of a check.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckContainer {
    /// AppArmor profile of the container: `unconfined`, `localhost/NAME`, or the bare name of a profile that is loaded on the node.
    /// Default: `unconfined`.
    #[serde(default)]
    pub app_armor_profile: AppArmorProfile,
    /// Arguments of the entry point, in place of those of the image.
    pub args: Option<Vec<String>>,
    /// Entry point of the container, in place of that of the image.
    pub command: Option<Vec<String>>,
    /// Environment variables of the container, as in a pod.
    pub env: Option<Vec<Open<core::EnvVar>>>,
    /// Image of the container with its tag.
    pub image: Option<String>,
    /// When the kubelet fetches the image. Default: `IfNotPresent`.
    #[serde(default)]
    pub image_pull_policy: ImagePullPolicy,
    /// Secrets with which the image is fetched.
    pub image_pull_secrets: Option<Vec<Open<core::LocalObjectReference>>>,
    /// Where the volumes are mounted, as in a pod.
    pub volume_mounts: Option<Vec<Open<core::VolumeMount>>>,
    /// Volumes of the Job's pods, as in a pod.
    pub volumes: Option<Vec<Open<core::Volume>>>,
    /// Directory in which the container starts. Default: that of the image.
    pub working_dir: Option<String>,
}

/// How the check went.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActiveCheckStatus {
    /// What is true of the check now, and what it waits for.
    #[schemars(with = "Option<Conditions>")]
    pub conditions: Option<Vec<Condition>>,
    /// The last Job of Kubernetes.
    #[serde(rename = "k8sJobsStatus")]
    pub k8s_jobs_status: Option<K8sJobsStatus>,
    /// The `metadata.generation` that this status speaks of; older than the object's own: not yet looked at.
    pub observed_generation: Option<i64>,
    /// Why the last update is in the state that `updateStatus` says. Kept for readers of Soperator's status.
    pub reason: Option<String>,
    /// The last jobs of Slurm.
    pub slurm_jobs_status: Option<SlurmJobsStatus>,
    /// The last update in a word: `updating`, `failed` or `succeeded`. Kept for readers of Soperator's status.
    pub update_status: Option<String>,
}

/// The last Job of Kubernetes.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct K8sJobsStatus {
    /// Name of the Kubernetes Job that ran last.
    pub last_job_name: String,
    /// When a Job was last due.
    #[schemars(with = "Option<DateTime>")]
    pub last_job_schedule_time: Option<Time>,
    /// How the Job went: `Active`, `Pending`, `Complete`, `Failed`, `Suspended` or `Unknown`.
    pub last_job_status: String,
    /// When a Job last went well.
    #[schemars(with = "Option<DateTime>")]
    pub last_job_successful_time: Option<Time>,
    /// When this was last written.
    #[schemars(with = "Option<DateTime>")]
    pub last_transition_time: Option<Time>,
}

/// The last jobs of Slurm.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SlurmJobsStatus {
    /// Numbers of the jobs that were cancelled.
    pub last_run_cancelled_jobs: Option<Vec<String>>,
    /// Jobs that could not be judged, and why.
    pub last_run_error_jobs_and_reasons: Option<Vec<JobAndReason>>,
    /// Jobs that failed, and why.
    pub last_run_fail_jobs_and_reasons: Option<Vec<JobAndReason>>,
    /// Number of the run's first job, as in `squeue`.
    pub last_run_id: Option<String>,
    /// Name of the run's jobs.
    pub last_run_name: Option<String>,
    /// How the run went: `InProgress`, `Complete`, `Failed`, `Cancelled`, `Error` or `Skipped`.
    pub last_run_status: Option<String>,
    /// When the jobs were submitted.
    #[schemars(with = "Option<DateTime>")]
    pub last_run_submit_time: Option<Time>,
    /// When this was last written.
    #[schemars(with = "Option<DateTime>")]
    pub last_transition_time: Option<Time>,
}

/// A job of Slurm and a reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobAndReason {
    /// Number of the Slurm job, as in `squeue`.
    #[serde(rename = "jobID")]
    pub job_id: String,
    /// Why the job is in this list.
    pub reason: String,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec(more: serde_json::Value) -> ActiveCheckSpec {
        let mut spec = json!({ "name": "gpu", "slurmClusterRefName": "slurm" });
        if let (Some(spec), serde_json::Value::Object(more)) = (spec.as_object_mut(), more) {
            spec.extend(more);
        }
        serde_json::from_value(spec).unwrap()
    }

    #[test]
    fn reactions_of_1x_are_those_to_a_failure() {
        let old = json!({ "setCondition": true });
        assert_eq!(
            spec(json!({ "reactions": old })).on_failure().and_then(|all| all.set_condition),
            Some(true)
        );
        let both = spec(json!({ "reactions": old, "failureReactions": { "setCondition": false } }));
        assert_eq!(both.on_failure().and_then(|all| all.set_condition), Some(false));
        assert_eq!(spec(json!({})).on_failure(), None);
    }

    #[test]
    fn a_job_array_of_1x_checks_each_worker() {
        for (job, each) in [
            (json!({ "eachWorkerJobArray": true }), true),
            (json!({ "eachWorkerJobs": true, "eachWorkerJobArray": false }), true),
            (json!({}), false),
        ] {
            let job: SlurmJobSpec = serde_json::from_value(job).unwrap();
            assert_eq!(job.on_each_worker(), each, "{job:?}");
        }
    }
}
