//! The Job that fills the jail.

use k8s_openapi::api::core::v1 as core;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::NodeVolume;
use crate::Open;
use crate::soperator::common::{AppArmorProfile, ImagePullPolicy};

/// How the jail gets its root file system.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PopulateJail {
    /// AppArmor profile of the Job's container: `unconfined`, `localhost/NAME` or a bare name. Default: `unconfined`.
    #[serde(default)]
    pub app_armor_profile: AppArmorProfile,
    /// Whether the Job's pod shares the user namespace of the host. Default: what Kubernetes chooses.
    pub host_users: Option<bool>,
    /// Image that carries the root file system and copies it into the jail.
    pub image: String,
    /// When the kubelet fetches the image. Default: `IfNotPresent`.
    #[serde(default)]
    pub image_pull_policy: ImagePullPolicy,
    /// Secrets with which the image is fetched.
    pub image_pull_secrets: Option<Vec<Open<core::LocalObjectReference>>>,
    /// A volume whose content is copied into the jail in place of the image's: a snapshot of an earlier jail. Only
    /// `volumeSourceName` is of use here.
    pub jail_snapshot_volume: Option<NodeVolume>,
    /// Name of the entry of `k8sNodeFilters` that says where the Job runs.
    pub k8s_node_filter_name: String,
    /// Whether a jail that has content already is written over: what the new root does not have is removed, but
    /// `/home` is left alone. Default: `false`.
    #[serde(default)]
    pub overwrite: bool,
    /// Priority class of the Job's pod. Default: the one of the Kubernetes cluster.
    pub priority_class: Option<String>,
}
