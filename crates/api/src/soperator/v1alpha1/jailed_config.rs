//! JailedConfig: files that go from a ConfigMap into the jail.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::condition::{Condition, Conditions};
use crate::schema::rule::{Rule, rule};

const SPEC_RULES: &[Rule] = &[rule(
    "has(self.items) && self.items.size() > 0",
    "items must name at least one key of the ConfigMap and the absolute path of its file in the jail",
)
.at(".items")];

const ITEM_RULES: &[Rule] = &[rule(
    "self.path.startsWith('/') && !self.path.matches('(^|/)[.][.]?(/|$)')",
    "path must be absolute, from the root of the jail, without . and .. in it: /etc/motd",
)
.at(".path")];

/// Which files go where.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "slurm.nebius.ai",
    version = "v1alpha1",
    kind = "JailedConfig",
    namespaced,
    status = "JailedConfigStatus",
    schema = "disabled",
    derive = "PartialEq",
    shortname = "jailcfg",
    category = "slurm",
    printcolumn(
        json_path = ".status.conditions[?(@.type=='FilesWritten')].reason",
        name = "Files Written",
        type_ = "string"
    ),
    printcolumn(
        json_path = ".status.conditions[?(@.type=='UpdateActionsCompleted')].reason",
        name = "Reconfiguration Status",
        type_ = "string"
    ),
    printcolumn(json_path = ".spec.items[0].path", name = "Jailed Path", type_ = "string"),
    printcolumn(json_path = ".metadata.creationTimestamp", name = "Age", type_ = "date")
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = SPEC_RULES))]
pub struct JailedConfigSpec {
    /// The ConfigMap with the files' content, in the same namespace.
    pub config_map: ConfigMapReference,
    /// Permissions of the files, as a decimal number: 420 is 0644. Default: 0644.
    pub default_mode: Option<i32>,
    /// Which key of the ConfigMap becomes which file. At least one.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"), length(max = 1024))]
    pub items: Option<Vec<JailedFile>>,
    /// What is done after the files were written. Default: nothing.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub update_actions: Option<Vec<UpdateAction>>,
}

/// A ConfigMap by its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigMapReference {
    /// Name of the ConfigMap.
    pub name: String,
}

/// One file.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = ITEM_RULES))]
pub struct JailedFile {
    /// Key of the ConfigMap that holds the content.
    pub key: String,
    /// Permissions of this file, as a decimal number: 384 is 0600. Default: `defaultMode`.
    pub mode: Option<i32>,
    /// Path of the file inside the jail, for example `/etc/motd`. Absolute, without `.` and `..`.
    #[schemars(length(max = 4096))]
    pub path: String,
}

/// What is done after files were written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum UpdateAction {
    /// Slurm's daemons read their configuration again.
    Reconfigure,
}

/// What has been written.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JailedConfigStatus {
    /// Whether the files are written and Slurm has read them.
    #[schemars(with = "Option<Conditions>")]
    pub conditions: Option<Vec<Condition>>,
    /// The `metadata.generation` that this status speaks of; older than the object's own: not yet looked at.
    pub observed_generation: Option<i64>,
}
