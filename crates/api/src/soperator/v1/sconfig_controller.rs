//! The program that writes configuration into the jail.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::{NodeContainer, SlurmNode};
use crate::scalar::GoDuration;

/// The program that copies ConfigMaps into the jail, as JailedConfigs say, and tells Slurm to read its configuration again.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SConfigController {
    /// The container of the program.
    pub container: Option<NodeContainer>,
    /// Whether the pods share the user namespace of the host, where `node.hostUsers` is not given.
    pub host_users: Option<bool>,
    /// Where and how often the program runs.
    pub node: Option<SlurmNode>,
    /// How often it looks whether all daemons have read a new configuration, for example `20s`. Default: `20s`.
    #[serde(default = "poll_interval")]
    pub reconfigure_poll_interval: GoDuration,
    /// How long it waits for that, for example `5m`. More than `reconfigurePollInterval`. Default: `5m` (1.x: `1m`).
    pub reconfigure_wait_timeout: Option<GoDuration>,
    /// Group that owns the files in the jail. Default: 1001, the one of the image.
    pub run_as_gid: Option<i64>,
    /// User that owns the files in the jail. Default: 1001, the one of the image.
    pub run_as_uid: Option<i64>,
    /// Service account of the pods. Required but in a 1.x object, for which one is made.
    #[schemars(length(min = 1))]
    pub service_account_name: Option<String>,
}

fn poll_interval() -> GoDuration {
    "20s".to_owned()
}
