//! Cases for the kinds of Slinky.

use serde_json::{Value, json};

use super::{ACCOUNTING, CONTROLLER, Case, LOGIN_SET, REST_API, SLINKY_NODE_SET, TOKEN, case, change};

pub(super) fn all() -> Vec<Case> {
    [objects(), changes()].concat()
}

fn objects() -> Vec<Case> {
    let external = || json!({ "external": true, "slurmKeyRef": null, "jwtKeyRef": null });
    let at = |more: Value| {
        let mut spec = external();
        crate::server::merge(&mut spec, &more);
        spec
    };
    let outside = || at(json!({ "externalConfig": { "host": "slurm.example.org", "port": 6817 } }));
    let strategy = |value: Value| json!({ "updateStrategy": value });
    let rolling = |value: Value| json!({ "strategy": { "rollingUpdate": value } });
    let scheduled = |duration: &str| {
        strategy(json!({
            "type": "ScheduledUpdate",
            "scheduledUpdate": { "startTime": "2026-12-01T02:00:00Z", "duration": duration },
        }))
    };
    let mut cases = Vec::new();
    for sample in [CONTROLLER, ACCOUNTING] {
        cases.push(case(
            sample,
            "spec",
            "slurmKeyRef must be set",
            outside(),
            json!({ "slurmKeyRef": null }),
        ));
        let old = json!({ "jwtKeyRef": null, "jwtHs256KeyRef": { "name": "jwt", "key": "jwt.key" } });
        cases.push(case(
            sample,
            "spec",
            "jwtKeyRef or jwtHs256KeyRef must be set",
            old,
            json!({ "jwtKeyRef": null }),
        ));
        cases.push(case(sample, "spec", "externalConfig must be set", outside(), external()));
    }
    for sample in [SLINKY_NODE_SET, LOGIN_SET, REST_API] {
        cases.push(case(
            sample,
            "spec.controllerRef",
            "must not be empty",
            json!({ "controllerRef": { "name": "slurm" } }),
            json!({ "controllerRef": { "name": null } }),
        ));
    }
    cases.extend([
        case(
            CONTROLLER,
            "spec",
            "high availability",
            json!({ "ha": { "enabled": true }, "persistence": { "existingClaim": "state" } }),
            json!({ "ha": { "enabled": true } }),
        ),
        case(
            CONTROLLER,
            "spec",
            ".persistence",
            json!({ "persistence": { "enabled": false, "accessModes": null } }),
            json!({ "persistence": { "accessModes": null } }),
        ),
        case(CONTROLLER, "spec", ".persistence", json!({}), json!({ "persistence": null })),
        case(ACCOUNTING, "spec", ".storageConfig", outside(), json!({ "storageConfig": null })),
        case(
            ACCOUNTING,
            "spec",
            ".storageConfig",
            json!({}),
            json!({ "storageConfig": { "passwordKeyRef": { "name": "" } } }),
        ),
        case(
            SLINKY_NODE_SET,
            "spec.extraConf",
            "Key=Value",
            json!({ "extraConf": "Weight=10  Gres=gpu:8" }),
            json!({ "extraConf": "Weight=10 Gres" }),
        ),
        case(
            SLINKY_NODE_SET,
            "spec.template.spec.hostname",
            "the beginning of a host name",
            json!({ "template": { "spec": { "hostname": "gpu-a100-" } } }),
            json!({ "template": { "spec": { "hostname": "GPU-" } } }),
        ),
        case(
            SLINKY_NODE_SET,
            "spec.template.spec.hostname",
            "the beginning of a host name",
            json!({ "template": { "spec": { "hostname": "" } } }),
            json!({ "template": { "spec": { "hostname": "-gpu" } } }),
        ),
        case(
            SLINKY_NODE_SET,
            "spec.ssh",
            "when ssh is enabled",
            json!({ "ssh": { "sssdConfRef": { "key": "sssd.conf" } } }),
            json!({ "ssh": { "enabled": true, "sssdConfRef": { "key": "sssd.conf" } } }),
        ),
        case(
            SLINKY_NODE_SET,
            "spec.updateStrategy",
            "are required when type is ScheduledUpdate",
            scheduled("30m"),
            strategy(json!({ "type": "ScheduledUpdate" })),
        ),
        case(
            SLINKY_NODE_SET,
            "spec.updateStrategy",
            ".rollingUpdate.maxUnavailable",
            strategy(json!({ "rollingUpdate": { "maxUnavailable": "1%" } })),
            strategy(json!({ "rollingUpdate": { "maxUnavailable": "0%" } })),
        ),
        case(
            SLINKY_NODE_SET,
            "spec.updateStrategy",
            ".rollingUpdate.maxUnavailable",
            strategy(json!({ "type": "OnDelete", "rollingUpdate": { "maxUnavailable": 0 } })),
            strategy(json!({ "rollingUpdate": { "maxUnavailable": 0 } })),
        ),
        case(
            SLINKY_NODE_SET,
            "spec.updateStrategy",
            ".scheduledUpdate.duration",
            scheduled("60s"),
            scheduled("59s"),
        ),
        case(
            SLINKY_NODE_SET,
            "spec.updateStrategy.scheduledUpdate.duration",
            "a number with a unit",
            scheduled("1h30m"),
            scheduled("half an hour"),
        ),
        case(
            LOGIN_SET,
            "spec.sssdConfRef",
            "must not be empty",
            json!({}),
            json!({ "sssdConfRef": { "name": "" } }),
        ),
        case(
            LOGIN_SET,
            "spec.strategy",
            ".type",
            json!({ "strategy": { "type": "Recreate" } }),
            json!({ "strategy": { "type": "Never" } }),
        ),
        case(
            LOGIN_SET,
            "spec.strategy",
            "with type: Recreate",
            json!({ "strategy": { "rollingUpdate": { "maxSurge": 1 } } }),
            json!({ "strategy": { "type": "Recreate", "rollingUpdate": { "maxSurge": 1 } } }),
        ),
        case(
            LOGIN_SET,
            "spec.strategy",
            "a share such as",
            rolling(json!({ "maxSurge": "30%", "maxUnavailable": 0 })),
            rolling(json!({ "maxSurge": -1 })),
        ),
        case(
            LOGIN_SET,
            "spec.strategy",
            "a share such as",
            rolling(json!({ "maxUnavailable": 3 })),
            rolling(json!({ "maxUnavailable": "3" })),
        ),
        case(
            LOGIN_SET,
            "spec.strategy",
            "both be zero",
            rolling(json!({ "maxSurge": 0 })),
            rolling(json!({ "maxSurge": 0, "maxUnavailable": "0%" })),
        ),
        case(
            TOKEN,
            "spec",
            "must be set",
            json!({ "jwtKeyRef": null, "jwtHs256KeyRef": { "name": "jwt", "key": "jwt.key" } }),
            json!({ "jwtKeyRef": { "name": "" } }),
        ),
        case(
            TOKEN,
            "spec.lifetime",
            "a number with a unit",
            json!({ "lifetime": "24h" }),
            json!({ "lifetime": "1d" }),
        ),
    ]);
    cases
}

/// Rules about changes: what is stored, a change that is fine, and one that is not.
fn changes() -> Vec<Case> {
    let jwt = |name: &str| json!({ "jwtKeyRef": { "name": name, "key": "jwt.key" } });
    let moved = || json!({ "jwtKeyRef": null, "jwtHs256KeyRef": { "name": "jwt", "key": "jwt.key" } });
    let mut cases = Vec::new();
    for sample in [CONTROLLER, ACCOUNTING, TOKEN] {
        cases.push(change(sample, "spec", "cannot change jwtKeyRef", [jwt("jwt"), moved(), jwt("other")]));
    }
    for sample in [SLINKY_NODE_SET, LOGIN_SET] {
        let other = json!({ "controllerRef": { "name": "other" } });
        let states = [json!({}), json!({ "replicas": 2 }), other];
        cases.push(change(sample, "spec.controllerRef", "cannot change controllerRef", states));
    }
    let persistence = |value: Value| json!({ "persistence": value });
    cases.extend([
        change(
            CONTROLLER,
            "spec.clusterName",
            "cannot change ClusterName",
            [json!({ "clusterName": "a" }), json!({ "extraConf": "x" }), json!({ "clusterName": "b" })],
        ),
        change(
            CONTROLLER,
            "spec.slurmKeyRef",
            "cannot change SlurmKeyRef",
            [
                json!({}),
                json!({ "slurmKeyRef": { "key": "another.key" } }),
                json!({ "slurmKeyRef": { "name": "other" } }),
            ],
        ),
        change(
            CONTROLLER,
            "spec",
            ".persistence.enabled",
            [json!({}), persistence(json!({ "enabled": true })), persistence(json!({ "enabled": false }))],
        ),
        // Without a word the state would be kept, which it was not.
        change(
            CONTROLLER,
            "spec",
            ".persistence.enabled",
            [persistence(json!({ "enabled": false })), json!({ "extraConf": "x" }), persistence(Value::Null)],
        ),
        change(
            CONTROLLER,
            "spec",
            ".persistence.existingClaim",
            [json!({}), json!({ "extraConf": "x" }), persistence(json!({ "existingClaim": "a" }))],
        ),
        change(
            CONTROLLER,
            "spec",
            ".persistence.existingClaim",
            [
                persistence(json!({ "existingClaim": "a" })),
                persistence(json!({ "storageClassName": "fast" })),
                persistence(json!({ "existingClaim": "b" })),
            ],
        ),
        change(
            SLINKY_NODE_SET,
            "spec",
            "cannot change volumeClaimTemplates",
            [
                json!({}),
                json!({ "volumeClaimTemplates": [] }),
                json!({ "volumeClaimTemplates": [{ "metadata": { "name": "data" } }] }),
            ],
        ),
    ]);
    cases
}
