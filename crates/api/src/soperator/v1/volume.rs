//! Volumes of the parts of a cluster.

use k8s_openapi::api::core::v1 as core;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::Open;
use crate::schema::kubernetes;
use crate::soperator::common::ONE_VOLUME_SOURCE;

/// A volume that parts of the cluster mount by its name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("minProperties" = 2, "x-kubernetes-validations" = [ONE_VOLUME_SOURCE]))]
pub struct VolumeSource {
    /// Name by which parts of the cluster refer to the volume, in `volumeSourceName`.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// What the volume is: one of the volume sources of Kubernetes.
    #[serde(flatten)]
    pub source: Open<kubernetes::VolumeSource>,
}

/// A volume: one of the cluster's `volumeSources`, or a claim of each pod's own.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeVolume {
    /// A claim that is made for each pod, as in a StatefulSet. Use this or `volumeSourceName`.
    pub volume_claim_template_spec: Option<Open<core::PersistentVolumeClaimSpec>>,
    /// Name of one of the cluster's `volumeSources`. Use this or `volumeClaimTemplateSpec`.
    pub volume_source_name: Option<String>,
}

/// A volume and where it is mounted.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeVolumeMount {
    /// Where the volume is mounted: for a sub-mount of the jail a path inside the jail, else one in the container.
    pub mount_path: String,
    /// Name of the volume in the pod. Mounts have different names, unless they are of one claim.
    #[schemars(length(max = 63))]
    pub name: String,
    /// Whether the volume is mounted read-only. Default: `false`.
    #[serde(default)]
    pub read_only: bool,
    /// Directory inside the volume that is mounted in place of its root. Default: the root.
    #[serde(default)]
    pub sub_path: String,
    /// A claim that is made for each pod, as in a StatefulSet. Use this or `volumeSourceName`.
    pub volume_claim_template_spec: Option<Open<core::PersistentVolumeClaimSpec>>,
    /// Name of one of the cluster's `volumeSources`. Use this or `volumeClaimTemplateSpec`.
    pub volume_source_name: Option<String>,
}
