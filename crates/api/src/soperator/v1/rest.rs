//! slurmrestd.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::{NodeContainer, SlurmNode};

/// slurmrestd, the REST API.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rest {
    /// Whether users get a REST API. Default: `false`.
    #[serde(default)]
    pub enabled: bool,
    /// How many connections slurmrestd serves at a time, at least 2. Default: 10.
    #[serde(default = "max_connections")]
    #[schemars(range(min = 2))]
    pub max_connections: i32,
    #[serde(flatten)]
    pub node: SlurmNode,
    /// The container with slurmrestd.
    pub rest: Option<NodeContainer>,
    /// How many threads slurmrestd has, from 2 to 1024. Default: 3.
    #[serde(default = "thread_count")]
    #[schemars(range(min = 2, max = 1024))]
    pub thread_count: i32,
}

fn max_connections() -> i32 {
    10
}

fn thread_count() -> i32 {
    3
}
