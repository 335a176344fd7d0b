//! For each rule something that it lets through and something that it refuses, as changes to the spec of a sample.

#[path = "rule_cases/slinky.rs"]
mod slinky;
#[path = "rule_cases/soperator.rs"]
mod soperator;

use serde_json::{Value, json};

#[derive(Clone)]
pub(crate) struct Case {
    /// The sample, below `deploy/samples`.
    pub(crate) sample: &'static str,
    /// Where the rule stands in the schema.
    pub(crate) path: String,
    /// The field that the rule names, or words of its message.
    pub(crate) rule: String,
    /// What is stored before the change, for rules about changes.
    pub(crate) before: Option<Value>,
    pub(crate) accepted: Value,
    pub(crate) refused: Value,
}

fn case(
    sample: &'static str,
    path: impl Into<String>,
    rule: impl Into<String>,
    accepted: Value,
    refused: Value,
) -> Case {
    Case { sample, path: path.into(), rule: rule.into(), before: None, accepted, refused }
}

fn change(sample: &'static str, path: &str, rule: &str, states: [Value; 3]) -> Case {
    let [before, accepted, refused] = states;
    Case { before: Some(before), ..case(sample, path, rule, accepted, refused) }
}

const CLUSTER: &str = "slurm.nebius.ai/slurmcluster-minimal";
const OLD_CLUSTER: &str = "slurm.nebius.ai/slurmcluster-1.x";
const NODE_SET: &str = "slurm.nebius.ai/nodeset-minimal";
const POWER: &str = "slurm.nebius.ai/nodesetpowerstate-minimal";
const CONFIGURATOR: &str = "slurm.nebius.ai/nodeconfigurator-minimal";
const JAILED: &str = "slurm.nebius.ai/jailedconfig-minimal";
const CHECK: &str = "slurm.nebius.ai/activecheck-minimal";
const CONTROLLER: &str = "slinky.slurm.net/controller-minimal";
const SLINKY_NODE_SET: &str = "slinky.slurm.net/nodeset-minimal";
const LOGIN_SET: &str = "slinky.slurm.net/loginset-minimal";
const ACCOUNTING: &str = "slinky.slurm.net/accounting-minimal";
const REST_API: &str = "slinky.slurm.net/restapi-minimal";
const TOKEN: &str = "slinky.slurm.net/token-minimal";

pub(crate) fn all() -> Vec<Case> {
    [soperator::all(), slinky::all()].concat()
}

/// Changes to samples that look wrong and yet work with the original, so that no rule may refuse them.
pub(crate) fn odd_but_working() -> Vec<(&'static str, Value)> {
    let parts = |value: Value| json!({ "slurmNodes": value });
    vec![
        // Runs wherever it may.
        (CLUSTER, parts(json!({ "exporter": { "enabled": true, "k8sNodeFilterName": "nowhere" } }))),
        // The first one is used.
        (
            CLUSTER,
            json!({ "volumeSources": [{ "name": "jail", "emptyDir": {} }, { "name": "jail", "emptyDir": {} }] }),
        ),
        // Nothing is made of a Job, a database or workers that are off.
        (
            CLUSTER,
            json!({
                "maintenance": "downscaleAndDeletePopulateJail",
                "populateJail": { "k8sNodeFilterName": "nowhere", "jailSnapshotVolume": { "volumeSourceName": "nothing" } },
            }),
        ),
        (CLUSTER, parts(json!({ "accounting": { "externalDB": { "enabled": true } } }))),
        (
            OLD_CLUSTER,
            parts(
                json!({ "worker": { "size": 0, "k8sNodeFilterName": "nowhere", "volumes": { "jail": { "volumeSourceName": "nothing" } } } }),
            ),
        ),
        // Client certificates need no password.
        (CLUSTER, {
            let mut spec = accounting();
            spec["slurmNodes"]["accounting"]["externalDB"] = json!({ "enabled": true, "host": "db" });
            spec
        }),
        // Resources of zero say as little as none.
        (
            CLUSTER,
            parts(json!({ "login": {
            "sshd": { "resources": { "memory": "0" } },
            "userIsolation": { "enabled": true, "memoryMax": "1Gi" },
        } })),
        ),
        // The source is used.
        (NODE_SET, json!({ "slurmd": { "volumes": { "spool": { "emptyDir": {} } } } })),
        // 5.x knows only the first of them.
        (
            CONFIGURATOR,
            json!({
                "rebooter": { "enabled": false },
                "customContainer": { "enabled": true }, "nodeConfigurator": { "enabled": false },
            }),
        ),
        (
            CONTROLLER,
            json!({
                "external": true, "externalConfig": { "host": "slurm", "port": 6817 },
                "persistence": null,
            }),
        ),
        (NODE_SET, json!({ "slurmd": { "volumes": { "spool": { "volumeClaimTemplateSpec": null } } } })),
        (CHECK, json!({ "failureReactions": { "drainSlurmNode": true, "commentSlurmNode": false } })),
        (SLINKY_NODE_SET, json!({ "extraConf": "" })),
    ]
}

/// Accounting that is on, with all that it needs.
fn accounting() -> Value {
    let image = json!({ "image": "slurm" });
    json!({ "slurmNodes": { "accounting": { "enabled": true, "slurmdbd": image, "munge": image } } })
}
