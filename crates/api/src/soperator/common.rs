//! What several kinds of this API are made of.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::scalar::Quantity;
use crate::schema::rule::{Rule, rule};

/// Amounts of resources by their name: `cpu`, `memory`, `ephemeral-storage`, `nvidia.com/gpu`.
pub type Resources = BTreeMap<String, Quantity>;

/// When the kubelet fetches an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ImagePullPolicy {
    Always,
    Never,
    #[default]
    IfNotPresent,
}

/// How much of `/proc` a container sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ProcMount {
    /// The container runtime hides and protects parts of `/proc`.
    Default,
    /// All of `/proc`; Kubernetes allows it only in pods with a user namespace of their own.
    Unmasked,
}

/// The cgroup hierarchy of the nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CgroupVersion {
    V1,
    #[default]
    V2,
}

/// What becomes of a claim when what it was made for goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ClaimPolicy {
    Retain,
    Delete,
}

/// An AppArmor profile: `unconfined`, `localhost/NAME`, or a bare NAME that is loaded on the node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct AppArmorProfile(pub String);

impl Default for AppArmorProfile {
    fn default() -> Self {
        Self("unconfined".to_owned())
    }
}

/// An image by its parts.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Image {
    /// When the kubelet fetches the image. Default: `IfNotPresent`.
    #[serde(default)]
    pub pull_policy: ImagePullPolicy,
    /// Registry and name of the image without its tag, for example `registry.example.org/slurm/worker`.
    pub repository: String,
    /// Tag of the image. Without one the repository is used as it is, so it may end in a digest.
    pub tag: Option<String>,
}

/// Of the volume sources that Kubernetes 1.36 knows at most one is set. A newer one is invisible to a rule; it is checked with the pod.
pub(crate) const ONE_VOLUME_SOURCE: Rule = rule(
    "[has(self.awsElasticBlockStore), has(self.azureDisk), has(self.azureFile), has(self.cephfs), has(self.cinder), \
     has(self.configMap), has(self.csi), has(self.downwardAPI), has(self.emptyDir), has(self.ephemeral), has(self.fc), \
     has(self.flexVolume), has(self.flocker), has(self.gcePersistentDisk), has(self.gitRepo), has(self.glusterfs), \
     has(self.hostPath), has(self.image), has(self.iscsi), has(self.nfs), has(self.persistentVolumeClaim), \
     has(self.photonPersistentDisk), has(self.portworxVolume), has(self.projected), has(self.quobyte), has(self.rbd), \
     has(self.scaleIO), has(self.secret), has(self.storageos), has(self.vsphereVolume)].filter(set, set).size() <= 1",
    "a volume has one source: keep one of emptyDir, persistentVolumeClaim, configMap and so on, and remove the others",
);

/// Whether `$resources` are enough for a worker.
macro_rules! has_cpu_and_memory {
    ($resources:literal) => {
        concat!(
            "['cpu', 'memory'].all(name, name in ",
            $resources,
            " && quantity(string(",
            $resources,
            "[name])).isGreaterThan(quantity('0')))"
        )
    };
}
pub(crate) use has_cpu_and_memory;

pub(crate) const NO_CPU_OR_MEMORY: &str =
    "resources must give cpu and memory, both more than zero: a worker needs them to run jobs";

/// Whether `$volume` is a volume source, given in its field `$source`, or a claim, and not both.
macro_rules! one_volume {
    ($volume:literal, $source:literal) => {
        concat!("has(", $volume, ".", $source, ") != has(", $volume, ".volumeClaimTemplateSpec)")
    };
}
pub(crate) use one_volume;

/// Whether no two of a list of mounts are volume sources under one name: a pod would have two volumes of that name. Claims of one
/// name are one claim.
macro_rules! own_names {
    ($mounts:literal, $source:literal) => {
        concat!(
            $mounts,
            ".all(mount, !has(mount.",
            $source,
            ") || ",
            $mounts,
            ".exists_one(other, has(other.",
            $source,
            ") && other.name == mount.name))"
        )
    };
}
pub(crate) use own_names;

/// The same over two lists, which become volumes of the same pods.
macro_rules! own_names_in_both {
    ($mounts:literal, $others:literal, $source:literal) => {
        concat!(
            "(!has(",
            $mounts,
            ") || !has(",
            $others,
            ") || ",
            $mounts,
            ".all(mount, !has(mount.",
            $source,
            ") || !",
            $others,
            ".exists(other, has(other.",
            $source,
            ") && other.name == mount.name)))"
        )
    };
}
pub(crate) use own_names_in_both;

pub(crate) const SAME_MOUNT_NAME: &str =
    "names of mounts must be unique: rename or remove the mount that has the name of another";
