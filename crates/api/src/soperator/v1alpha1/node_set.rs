//! NodeSet: workers that are all alike.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1 as core;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::Open;
use crate::condition::{Condition, Conditions};
use crate::default::{one, yes};
use crate::scalar::{IntOrString, Quantity};
use crate::schema::kubernetes::VolumeSource;
use crate::schema::rule::{Rule, rule};
use crate::soperator::common::{
    AppArmorProfile, CgroupVersion, ClaimPolicy, Image, NO_CPU_OR_MEMORY, ONE_VOLUME_SOURCE, ProcMount,
    Resources, SAME_MOUNT_NAME, has_cpu_and_memory, one_volume, own_names, own_names_in_both,
};

const SPEC_RULES: &[Rule] = &[
    rule(
        "!has(self.maxUnavailable) || (type(self.maxUnavailable) == int ? (self.maxUnavailable >= 1 && self.maxUnavailable <= 500) : \
         (self.maxUnavailable.matches('^[1-9][0-9]*%$') && int(self.maxUnavailable.find('^[0-9]+')) * self.replicas / 100 <= 500))",
        "maxUnavailable must resolve to no more than 500 workers",
    ),
    rule(
        "!self.enableHostUserNamespace || !has(self.slurmd.security) || !has(self.slurmd.security.procMount) || \
         self.slurmd.security.procMount != 'Unmasked'",
        "procMount: Unmasked needs a user namespace of the pod's own: set enableHostUserNamespace to false, or procMount to Default",
    )
    .at(".slurmd.security.procMount"),
];

const SLURMD_RULES: &[Rule] = &[
    rule(has_cpu_and_memory!("self.resources"), NO_CPU_OR_MEMORY).at(".resources"),
    rule(
        "!has(self.customEnv) || self.customEnv.all(variable, variable.name != 'SOPERATOR_NODE_REAL_MEMORY_BYTES')",
        "customEnv must not set SOPERATOR_NODE_REAL_MEMORY_BYTES: the operator computes it; remove the variable",
    )
    .at(".customEnv"),
];

const MOUNT_RULES: &[Rule] = &[rule(
    one_volume!("self", "volumeSource"),
    "exactly one of volumeSource and volumeClaimTemplateSpec must be set",
)];

const MOUNTS_RULES: &[Rule] = &[rule(own_names!("self", "volumeSource"), SAME_MOUNT_NAME)];

const VOLUMES_RULES: &[Rule] = &[rule(
    own_names_in_both!("self.customVolumeMounts", "self.jailSubMounts", "volumeSource"),
    SAME_MOUNT_NAME,
)];

/// What the workers shall be.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "slurm.nebius.ai",
    version = "v1alpha1",
    kind = "NodeSet",
    namespaced,
    status = "NodeSetStatus",
    schema = "disabled",
    derive = "PartialEq",
    shortname = "sns",
    category = "slurm",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.labelSelector"
    ),
    printcolumn(json_path = ".status.phase", name = "Status", type_ = "string"),
    printcolumn(json_path = ".spec.replicas", name = "Desired", type_ = "integer"),
    printcolumn(json_path = ".status.replicas", name = "Ready", type_ = "integer"),
    printcolumn(json_path = ".status.idle", name = "Idle", type_ = "integer"),
    printcolumn(json_path = ".status.allocated", name = "Allocated", type_ = "integer"),
    printcolumn(json_path = ".status.drained", name = "Drained", type_ = "integer"),
    printcolumn(json_path = ".status.down", name = "Down", type_ = "integer"),
    printcolumn(json_path = ".spec.ephemeralNodes", name = "Ephemeral", type_ = "boolean"),
    printcolumn(json_path = ".metadata.creationTimestamp", name = "Age", type_ = "date")
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = SPEC_RULES))]
pub struct NodeSetSpec {
    /// Affinity of the pods, as in a pod.
    pub affinity: Option<Open<core::Affinity>>,
    /// The SlurmCluster that the workers belong to, in the same namespace. Without it the annotation
    /// `slurm.nebius.ai/parental-cluster-ref` says it.
    pub cluster_name: Option<String>,
    /// ConfigMap with a configuration of sshd in place of the generated one.
    pub config_map_ref_sshd: Option<String>,
    /// ConfigMap with a configuration of supervisord in place of the generated one.
    pub config_map_ref_supervisord: Option<String>,
    /// Init containers of your own, as in a pod. They run before those of the operator.
    pub custom_init_containers: Option<Vec<Open<core::Container>>>,
    /// Docker for jobs. On if this is not given.
    pub docker: Option<Docker>,
    /// Whether the pods share the user namespace of the host (the pod's `hostUsers`). Default: `false`, each pod has one of its own.
    #[serde(default)]
    pub enable_host_user_namespace: bool,
    /// Whether workers exist only while Slurm has work for them; `replicas` is then the most there can be. Default: `false`.
    #[serde(default)]
    pub ephemeral_nodes: bool,
    /// How long a worker waits at its start to learn where in the network it is, in seconds, at least 60, if the cluster has a
    /// `topologyPlugin`. Default: 180.
    #[serde(default = "topology_wait")]
    #[schemars(range(min = 60))]
    pub ephemeral_topology_wait_timeout: i32,
    /// GPUs of the workers. None if this is not given.
    pub gpu: Option<Gpu>,
    /// Secrets with which the images are fetched.
    pub image_pull_secrets: Option<Vec<Open<core::LocalObjectReference>>>,
    /// How many ephemeral workers are powered on when the NodeSet is new. Default: 1.
    #[serde(default = "one")]
    #[schemars(range(min = 0))]
    pub initial_number_ephemeral_nodes: i32,
    /// How many workers may be replaced at a time, as a number from 1 to 500 or a share: `2`, `20%`. Default: 500 (of a 1.x cluster: `20%`).
    pub max_unavailable: Option<IntOrString>,
    /// The container with munged, which authenticates Slurm's daemons to each other.
    pub munge: SideContainer,
    /// What Slurm is told about the nodes.
    pub node_config: Option<NodeConfig>,
    /// Labels that a Kubernetes node must have.
    pub node_selector: Option<BTreeMap<String, String>>,
    /// Priority class of the pods. Default: the one of the Kubernetes cluster.
    pub priority_class: Option<String>,
    /// How many workers there shall be. Default: 1.
    #[serde(default = "one")]
    #[schemars(range(min = 0))]
    pub replicas: i32,
    /// The container with slurmd, in which jobs run.
    pub slurmd: Slurmd,
    /// A container with sssd beside slurmd: users and groups from a directory server. Default: none.
    pub sssd: Option<SideContainer>,
    /// Secret whose key `sssd.conf` is the configuration of sssd. Default: one that only says that there is nothing to ask.
    pub sssd_conf_secret_ref_name: Option<String>,
    /// How much sssd says in its log, from 0 on. Default: 0.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub sssd_debug_level: i32,
    /// ConfigMap with the certificate that the LDAP server's certificate is checked against.
    #[serde(rename = "sssdLdapCAConfigMapRefName")]
    pub sssd_ldap_ca_config_map_ref_name: Option<String>,
    /// Taints of Kubernetes nodes that the pods tolerate, as in a pod.
    pub tolerations: Option<Vec<Open<core::Toleration>>>,
    /// Where in the network the workers are.
    pub topology: Option<NodeSetTopology>,
    /// How workers are replaced when their pods change. Default: `rollingUpdate`.
    #[serde(default)]
    #[schemars(required)]
    pub update_strategy: UpdateStrategy,
    /// Annotations of the pods.
    pub worker_annotations: Option<BTreeMap<String, String>>,
    /// Longest random pause of a worker at its start, in seconds, so that many do not ask slurmctld at once. Default: 0.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub worker_init_random_delay_seconds: i32,
}

fn topology_wait() -> i32 {
    180
}

/// How workers are replaced when their pods change. A worker with a job is waited for in both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum UpdateStrategy {
    /// As many at a time as `maxUnavailable` allows.
    #[default]
    RollingUpdate,
    /// The same, in the order in which Slurm has no more work on them.
    SlurmAwareRollingUpdate,
}

/// Docker for jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Docker {
    /// Whether jobs can use docker, by a proxy that keeps their containers inside the job. Default: `true`.
    #[serde(default = "yes")]
    pub enabled: bool,
}

/// GPUs of the workers.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Gpu {
    /// Whether the workers have GPUs. Default: `false`.
    #[serde(default)]
    pub enabled: bool,
    /// What only GPUs of NVIDIA have.
    pub nvidia: Option<Nvidia>,
}

/// What only GPUs of NVIDIA have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Nvidia {
    /// Whether jobs may use GDRCopy, fast copies between host and GPU. Default: `false`.
    #[serde(default)]
    pub gdr_copy_enabled: bool,
}

/// What Slurm is told about the nodes.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeConfig {
    /// Whether Slurm powers a node on by itself when a job needs it. `false` writes `AutoResume=Off`. Default: `true`.
    pub auto_resume: bool,
    /// What the node's `Extra` field in Slurm says. Environment variables are filled in, for example
    /// `{"monitoring": "https://example.org/$INSTANCE_ID"}`. Default: empty.
    pub dynamic: String,
    /// Features of the nodes, for `sbatch --constraint`.
    pub features: Option<Vec<String>>,
    /// Lines for gres.conf, for example `AutoDetect=nvidia`. Each gets the `NodeName=` of these nodes.
    pub gres_config: Option<Vec<String>>,
    /// The rest of the node's line in slurm.conf, for example `Gres=gpu:nvidia_h100:8 SocketsPerBoard=2`. `Feature=` and `State=` are left
    /// out of it. Default: empty.
    #[serde(rename = "static")]
    pub static_: String,
}

impl Default for NodeConfig {
    fn default() -> Self {
        Self {
            auto_resume: true,
            dynamic: String::new(),
            features: None,
            gres_config: None,
            static_: String::new(),
        }
    }
}

/// A container beside slurmd.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SideContainer {
    /// Image of the container.
    pub image: Image,
    /// When the container is restarted, as in a pod. Default: none.
    pub liveness_probe: Option<Open<core::Probe>>,
    /// When the container counts as ready, as in a pod. Default: none.
    pub readiness_probe: Option<Open<core::Probe>>,
    /// What the container asks for. All but `cpu` is its limit as well.
    pub resources: Resources,
    /// What the container may do.
    pub security: Option<ContainerSecurity>,
}

/// What a container may do.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContainerSecurity {
    /// AppArmor profile of the container: `unconfined`, `localhost/NAME`, or the bare name of a profile that is loaded on the node.
    /// Default: `unconfined`.
    #[serde(default)]
    pub app_armor_profile: AppArmorProfile,
    /// Text of `/etc/security/limits.conf` in the container, for example `* soft memlock unlimited`. Only slurmd makes use of it.
    /// Default: no limits, and 1048576 open files.
    pub limits_config: Option<String>,
    /// How much of `/proc` the container sees. Only slurmd makes use of it. Default: what Kubernetes chooses.
    pub proc_mount: Option<ProcMount>,
}

/// The container with slurmd.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = SLURMD_RULES))]
pub struct Slurmd {
    /// The cgroup hierarchy of the worker nodes, in a 1.x cluster, where the default is `v2`. Of a 5.x cluster `cgroupVersion` says it.
    pub cgroup_version: Option<CgroupVersion>,
    /// Environment variables that are added to those of the operator, as in a pod.
    #[schemars(length(max = 4096))]
    pub custom_env: Option<Vec<Open<core::EnvVar>>>,
    /// Image of the container.
    pub image: Image,
    /// When the container is restarted, as in a pod. Default: none.
    pub liveness_probe: Option<Open<core::Probe>>,
    /// Port that slurmd listens on; 0 is the same as none given. Default: 6818.
    #[serde(default = "slurmd_port")]
    #[schemars(range(min = 0, max = 65535))]
    pub port: i32,
    /// When the container counts as ready, as in a pod. Default: none.
    pub readiness_probe: Option<Open<core::Probe>>,
    /// What the worker asks for, which is its limit too: `cpu`, `memory`, `nvidia.com/gpu`. The memory is what Slurm gives to jobs;
    /// what else a node has is said in `nodeConfig.static`.
    pub resources: Resources,
    /// What the container may do.
    pub security: Option<ContainerSecurity>,
    /// Volumes of the worker.
    pub volumes: WorkerVolumes,
}

fn slurmd_port() -> i32 {
    6818
}

/// Volumes of the worker.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = VOLUMES_RULES))]
pub struct WorkerVolumes {
    /// Volumes of your own, mounted in the container of slurmd, outside the jail.
    #[schemars(length(max = 256), extend("x-kubernetes-validations" = MOUNTS_RULES))]
    pub custom_volume_mounts: Option<Vec<WorkerVolumeMount>>,
    /// The shared root file system, mounted at `/mnt/jail`: one of the volume sources of Kubernetes.
    #[schemars(extend("x-kubernetes-validations" = [ONE_VOLUME_SOURCE]))]
    pub jail: Open<VolumeSource>,
    /// Volumes of your own inside the jail: `mountPath` is the path that jobs see.
    #[schemars(length(max = 256), extend("x-kubernetes-validations" = MOUNTS_RULES))]
    pub jail_sub_mounts: Option<Vec<WorkerVolumeMount>>,
    /// What becomes of the claims of workers that go.
    #[serde(default)]
    pub persistent_volume_claim_retention_policy: ClaimRetention,
    /// Size of `/dev/shm`. It counts as memory of the container. Default: `64Gi`.
    #[serde(default = "shared_memory_size")]
    pub shared_memory_size: Quantity,
    /// Where slurmd keeps its own files: one of the volume sources of Kubernetes, or a claim of each worker's own. `{}` is an emptyDir,
    /// and a condition warns of it.
    pub spool: Spool,
}

fn shared_memory_size() -> Quantity {
    "64Gi".into()
}

/// Where slurmd keeps its own files.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [ONE_VOLUME_SOURCE]))]
pub struct Spool {
    /// A claim that is made for each worker, as in a StatefulSet. Use this or a volume source: beside a source it has no effect.
    pub volume_claim_template_spec: Option<Open<core::PersistentVolumeClaimSpec>>,
    #[serde(flatten)]
    pub source: Open<VolumeSource>,
}

impl Spool {
    /// The claim that is made for each worker. A source goes before it: Soperator drops the claim, and such an object has
    /// always used the source.
    pub fn claim(&self) -> Option<&Open<core::PersistentVolumeClaimSpec>> {
        self.volume_claim_template_spec.as_ref().filter(|_| self.source.fields().is_empty())
    }

    /// Whether nothing is said: it is an emptyDir then, whose content goes with the pod, and the user is warned of it.
    pub fn is_unset(&self) -> bool {
        self.volume_claim_template_spec.is_none() && self.source.fields().is_empty()
    }
}

/// A volume and where it is mounted.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = MOUNT_RULES))]
pub struct WorkerVolumeMount {
    /// Where the volume is mounted: for a sub-mount of the jail a path inside the jail, else one in the container.
    pub mount_path: String,
    /// Name of the volume in the pod. Mounts have different names, unless they are of one claim.
    #[schemars(length(max = 63))]
    pub name: String,
    /// Whether the volume is mounted read-only. Default: `false`.
    pub read_only: Option<bool>,
    /// Directory inside the volume that is mounted in place of its root. Default: the root.
    pub sub_path: Option<String>,
    /// A claim that is made for each worker, as in a StatefulSet. Use this or `volumeSource`.
    pub volume_claim_template_spec: Option<Open<core::PersistentVolumeClaimSpec>>,
    /// What the volume is: one of the volume sources of Kubernetes. Use this or `volumeClaimTemplateSpec`.
    #[schemars(extend("x-kubernetes-validations" = [ONE_VOLUME_SOURCE]))]
    pub volume_source: Option<Open<VolumeSource>>,
}

/// What becomes of the claims of workers that go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ClaimRetention {
    /// When the NodeSet is deleted. Default: `Delete`.
    pub when_deleted: ClaimPolicy,
    /// When a worker is removed by scaling in. Default: `Delete`.
    pub when_scaled: ClaimPolicy,
}

impl Default for ClaimRetention {
    fn default() -> Self {
        Self { when_deleted: ClaimPolicy::Delete, when_scaled: ClaimPolicy::Delete }
    }
}

/// Where in the network the workers are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeSetTopology {
    /// Name of the fabric that the workers share; each has a root switch of its own. Default: `root`.
    pub fabric: String,
}

impl Default for NodeSetTopology {
    fn default() -> Self {
        Self { fabric: "root".to_owned() }
    }
}

/// What the workers are.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeSetStatus {
    /// How many workers have jobs.
    pub allocated: Option<i32>,
    /// What is true of the workers now, and what is waited for.
    #[schemars(with = "Option<Conditions>")]
    pub conditions: Option<Vec<Condition>>,
    /// How many workers Slurm cannot use.
    pub down: Option<i32>,
    /// How many workers take no new jobs.
    pub drained: Option<i32>,
    /// How many workers wait for jobs.
    pub idle: Option<i32>,
    /// Selector of the workers' pods, for autoscalers.
    pub label_selector: Option<String>,
    /// The `metadata.generation` that this status speaks of; older than the object's own: not yet looked at.
    pub observed_generation: Option<i64>,
    /// Which workers exist or are about to, as ranges of their ordinals: `0-3,7`. slurm.conf names exactly these.
    pub ordinals: Option<String>,
    /// The state of the workers in a word: `Pending`, `Configuring`, `Provisioning`, `Ready`, `Degraded` or `Terminating`.
    #[serde(default = "pending")]
    pub phase: String,
    /// How many workers are available.
    pub replicas: i32,
}

fn pending() -> String {
    "Pending".to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn spool_is_a_claim_a_source_or_unset() {
        let claim: Spool =
            serde_json::from_value(json!({ "volumeClaimTemplateSpec": { "storageClassName": "fast" } }))
                .unwrap();
        assert!(!claim.is_unset() && claim.claim().is_some());
        let source: Spool = serde_json::from_value(json!({ "hostPath": { "path": "/spool" } })).unwrap();
        assert!(!source.is_unset() && source.volume_claim_template_spec.is_none());
        let unset: Spool = serde_json::from_value(json!({})).unwrap();
        assert!(unset.is_unset() && unset.claim().is_none());
        let both: Spool =
            serde_json::from_value(json!({ "volumeClaimTemplateSpec": {}, "emptyDir": {} })).unwrap();
        assert!(!both.is_unset() && both.claim().is_none());
    }
}
