//! For each rule something that it lets through and something that it refuses, as changes to the spec of a sample.

use serde_json::{Value, json};

pub(crate) struct Case {
    /// The sample, below `deploy/samples`.
    pub(crate) sample: &'static str,
    /// Where the rule stands in the schema.
    pub(crate) path: &'static str,
    /// The field that the rule names, or words of its message.
    pub(crate) rule: &'static str,
    /// What is stored before the change, for rules about changes.
    pub(crate) before: Option<Value>,
    pub(crate) accepted: Value,
    pub(crate) refused: Value,
}

fn case(
    sample: &'static str,
    path: &'static str,
    rule: &'static str,
    accepted: Value,
    refused: Value,
) -> Case {
    Case { sample, path, rule, before: None, accepted, refused }
}

fn change(sample: &'static str, path: &'static str, rule: &'static str, states: [Value; 3]) -> Case {
    let [before, accepted, refused] = states;
    Case { sample, path, rule, before: Some(before), accepted, refused }
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
    [cluster_names(), cluster(), cluster_volumes(), around_the_cluster(), slinky(), slinky_changes()]
        .into_iter()
        .flatten()
        .collect()
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

/// Names that parts of a cluster refer to. What is not rendered may refer to nothing.
fn cluster_names() -> Vec<Case> {
    let none = || json!({ "k8sNodeFilterName": "nowhere" });
    let part = |name: &str, value: Value| json!({ "slurmNodes": { name: value } });
    let of = |mut value: Value, more: Value| {
        crate::server::merge(&mut value, &more);
        value
    };
    vec![
        case(
            CLUSTER,
            "spec",
            ".populateJail.k8sNodeFilterName",
            json!({ "maintenance": "skipPopulateJail", "populateJail": none() }),
            json!({ "populateJail": none() }),
        ),
        case(
            CLUSTER,
            "spec",
            ".slurmNodes.controller.k8sNodeFilterName",
            json!({}),
            part("controller", none()),
        ),
        case(
            CLUSTER,
            "spec",
            ".slurmNodes.login.k8sNodeFilterName",
            part("login", of(none(), json!({ "size": 0 }))),
            part("login", none()),
        ),
        case(
            CLUSTER,
            "spec",
            ".slurmNodes.accounting.k8sNodeFilterName",
            part("accounting", none()),
            part("accounting", of(none(), json!({ "enabled": true }))),
        ),
        case(
            CLUSTER,
            "spec",
            ".slurmNodes.rest.k8sNodeFilterName",
            part("rest", of(none(), json!({ "enabled": true }))),
            json!({ "slurmNodes": {
                "accounting": { "enabled": true },
                "rest": { "enabled": true, "k8sNodeFilterName": "nowhere" },
            } }),
        ),
        case(
            OLD_CLUSTER,
            "spec",
            ".slurmNodes.worker.k8sNodeFilterName",
            part("worker", of(none(), json!({ "size": 0 }))),
            part("worker", of(none(), json!({ "size": 1 }))),
        ),
        case(
            CLUSTER,
            "spec",
            ".sConfigController.node.k8sNodeFilterName",
            json!({ "sConfigController": { "node": null } }),
            json!({ "sConfigController": { "node": none() } }),
        ),
        case(
            CLUSTER,
            "spec.k8sNodeFilters",
            "must be unique",
            json!({ "k8sNodeFilters": [{ "name": "anywhere" }, { "name": "gpu" }] }),
            json!({ "k8sNodeFilters": [{ "name": "anywhere" }, { "name": "gpu" }, { "name": "gpu" }] }),
        ),
    ]
}

fn cluster() -> Vec<Case> {
    let isolation = |memory: Value, limits: Value| {
        let mut limits = limits;
        crate::server::merge(&mut limits, &json!({ "enabled": true }));
        json!({ "slurmNodes": { "login": {
            "sshd": { "image": "sshd", "resources": { "memory": memory } },
            "userIsolation": limits,
        } } })
    };
    let database = |more: Value| {
        let password = json!({ "name": "db", "key": "password" });
        let mut database = json!({ "enabled": true, "passwordSecretKeyRef": password });
        crate::server::merge(&mut database, &more);
        let mut accounting = accounting();
        accounting["slurmNodes"]["accounting"]["externalDB"] = database;
        accounting
    };
    let partitions = |kind: &str, more: Value| {
        let mut configuration = json!({ "configType": kind });
        crate::server::merge(&mut configuration, &more);
        json!({ "partitionConfiguration": configuration })
    };
    vec![
        case(
            CLUSTER,
            "spec",
            ".sConfigController.serviceAccountName",
            json!({ "crVersion": "1.22.2", "sConfigController": { "serviceAccountName": null } }),
            json!({ "crVersion": "5.0.0", "sConfigController": { "serviceAccountName": null } }),
        ),
        case(
            CLUSTER,
            "spec",
            ".sConfigController.serviceAccountName",
            json!({ "clusterType": "cpu", "sConfigController": { "serviceAccountName": null } }),
            json!({ "sConfigController": { "serviceAccountName": null } }),
        ),
        // The timeout that is not given is 5m here, and 1m in the next.
        case(
            CLUSTER,
            "spec",
            ".sConfigController.reconfigureWaitTimeout",
            json!({ "sConfigController": { "reconfigurePollInterval": "4m59s" } }),
            json!({ "sConfigController": { "reconfigurePollInterval": "5m" } }),
        ),
        case(
            OLD_CLUSTER,
            "spec",
            ".sConfigController.reconfigureWaitTimeout",
            json!({ "sConfigController": { "reconfigurePollInterval": "59s", "reconfigureWaitTimeout": null } }),
            json!({ "sConfigController": { "reconfigurePollInterval": "2m", "reconfigureWaitTimeout": null } }),
        ),
        case(
            OLD_CLUSTER,
            "spec",
            ".slurmNodes.worker.size",
            partitions("structured", json!({ "partitions": [{ "name": "main", "isAll": true }] })),
            partitions("structured", json!({ "partitions": [{ "name": "main", "nodeSetRefs": ["gpu"] }] })),
        ),
        case(
            OLD_CLUSTER,
            "spec.slurmNodes.worker",
            ".slurmd.resources",
            json!({ "slurmNodes": { "worker": { "size": 0, "slurmd": { "resources": null } } } }),
            json!({ "slurmNodes": { "worker": { "slurmd": { "resources": null } } } }),
        ),
        case(
            OLD_CLUSTER,
            "spec.slurmNodes.worker",
            ".slurmd.resources",
            json!({ "slurmNodes": { "worker": { "slurmd": { "resources": { "cpu": 1, "memory": "1Gi" } } } } }),
            json!({ "slurmNodes": { "worker": { "slurmd": { "resources": { "memory": "0" } } } } }),
        ),
        case(
            CLUSTER,
            "spec.partitionConfiguration",
            "Structured",
            partitions("structured", json!({ "partitions": [{ "name": "main" }] })),
            partitions("structured", json!({})),
        ),
        case(
            CLUSTER,
            "spec.partitionConfiguration",
            "Structured",
            partitions("default", json!({ "partitions": [] })),
            partitions("structured", json!({ "partitions": [] })),
        ),
        case(
            CLUSTER,
            "spec.partitionConfiguration",
            ".rawConfig",
            partitions(
                "custom",
                json!({ "rawConfig": ["  PartitionName=main Nodes=ALL", "PartitionName=b"] }),
            ),
            partitions("custom", json!({ "rawConfig": ["PartitionName=main Nodes=ALL", "MaxStepCount=1"] })),
        ),
        case(
            CLUSTER,
            "spec.slurmNodes.accounting",
            "needs the containers",
            accounting(),
            json!({ "slurmNodes": { "accounting": { "enabled": true, "slurmdbd": { "image": "slurm" } } } }),
        ),
        case(
            CLUSTER,
            "spec.slurmNodes.accounting",
            ".externalDB",
            database(json!({ "host": "db", "user": "slurm" })),
            database(json!({ "host": "db" })),
        ),
        case(
            CLUSTER,
            "spec.slurmNodes.accounting",
            ".externalDB",
            database(json!({ "enabled": false })),
            database(json!({ "host": "db", "user": "slurm", "passwordSecretKeyRef": { "key": null } })),
        ),
        case(
            CLUSTER,
            "spec.slurmNodes.exporter.accountingJobsLookback",
            "greater than zero",
            json!({ "slurmNodes": { "exporter": { "accountingJobsLookback": "10m" } } }),
            json!({ "slurmNodes": { "exporter": { "accountingJobsLookback": "0h0m" } } }),
        ),
        case(
            CLUSTER,
            "spec.slurmNodes.login",
            ".sshdServiceNodePort",
            json!({ "slurmNodes": { "login": { "sshdServiceNodePort": 32768 } } }),
            json!({ "slurmNodes": { "login": { "sshdServiceNodePort": 32769 } } }),
        ),
        case(
            CLUSTER,
            "spec.slurmNodes.login",
            ".sshdServiceNodePort",
            json!({ "slurmNodes": { "login": { "sshdServiceType": "LoadBalancer", "sshdServiceNodePort": null } } }),
            json!({ "slurmNodes": { "login": { "sshdServiceNodePort": null } } }),
        ),
        case(
            CLUSTER,
            "spec.slurmNodes.login",
            "less than the memory",
            isolation("8Gi".into(), json!({ "memoryHigh": "4Gi", "memoryMax": "6Gi" })),
            isolation("8Gi".into(), json!({ "memoryHigh": "4Gi", "memoryMax": "8Gi" })),
        ),
        case(
            CLUSTER,
            "spec.slurmNodes.login",
            "set both",
            isolation("10Gi".into(), json!({ "memoryHigh": "9Gi" })),
            isolation("10Gi".into(), json!({ "memoryMax": "7Gi" })),
        ),
        case(
            CLUSTER,
            "spec.slurmNodes.login.userIsolation",
            "memoryHigh must not exceed memoryMax",
            isolation("8Gi".into(), json!({ "memoryHigh": 1000, "memoryMax": "1k" })),
            isolation("8Gi".into(), json!({ "memoryHigh": "2Gi", "memoryMax": "1Gi" })),
        ),
        case(
            CLUSTER,
            "spec.slurmNodes.login.userIsolation",
            "more than zero",
            json!({ "slurmNodes": { "login": { "userIsolation": { "memoryMax": "0" } } } }),
            json!({ "slurmNodes": { "login": { "userIsolation": { "enabled": true, "memoryMax": 0 } } } }),
        ),
    ]
}

fn cluster_volumes() -> Vec<Case> {
    let claim = || json!({ "accessModes": ["ReadWriteOnce"] });
    let named = |name: &str| json!({ "volumeSourceName": name, "volumeClaimTemplateSpec": null });
    let mount = |more: Value| {
        let mut mount = json!({ "name": "data", "mountPath": "/data" });
        crate::server::merge(&mut mount, &more);
        json!([mount])
    };
    let twice = |more: Value| {
        let first = mount(more);
        json!([first[0], { "name": "other", "mountPath": "/other", "volumeSourceName": "jail" }, first[0]])
    };
    let volume = |part: &str, name: &str, value: Value| json!({ "slurmNodes": { part: { "volumes": { name: value } } } });
    let both = || json!({ "volumeSourceName": "jail", "volumeClaimTemplateSpec": { "accessModes": ["ReadWriteOnce"] } });
    let mut cases = vec![
        case(
            CLUSTER,
            "spec",
            ".populateJail.jailSnapshotVolume",
            json!({ "populateJail": { "jailSnapshotVolume": { "volumeSourceName": "jail" } } }),
            json!({ "populateJail": { "jailSnapshotVolume": { "volumeSourceName": "missing" } } }),
        ),
        case(
            CLUSTER,
            "spec",
            ".populateJail.jailSnapshotVolume",
            json!({}),
            json!({ "populateJail": { "jailSnapshotVolume": {} } }),
        ),
        case(
            CLUSTER,
            "spec",
            ".slurmNodes.controller.volumes.jail",
            json!({}),
            volume("controller", "jail", named("")),
        ),
        case(
            CLUSTER,
            "spec",
            "an entry named jail",
            json!({ "volumeSources": [{ "name": "data", "emptyDir": {} }, { "name": "jail", "emptyDir": {} }] }),
            json!({ "volumeSources": [{ "name": "data", "emptyDir": {} }] }),
        ),
        case(
            CLUSTER,
            "spec.volumeSources[]",
            "one source",
            json!({ "volumeSources": [{ "name": "jail", "hostPath": { "path": "/" } }] }),
            json!({ "volumeSources": [{ "name": "jail", "hostPath": { "path": "/" }, "emptyDir": {} }] }),
        ),
    ];
    let single = [
        (
            "controller",
            "spool",
            ".slurmNodes.controller.volumes.spool",
            "spec.slurmNodes.controller.volumes.spool",
        ),
        (
            "controller",
            "jail",
            ".slurmNodes.controller.volumes.jail",
            "spec.slurmNodes.controller.volumes.jail",
        ),
    ];
    for (part, name, field, path) in single {
        let accepted = || volume(part, name, named("jail"));
        cases.push(case(CLUSTER, "spec", field, accepted(), volume(part, name, named("missing"))));
        cases.push(case(CLUSTER, path, "exactly one", accepted(), volume(part, name, both())));
    }
    let login = |size: i32, jail: Value| json!({ "slurmNodes": { "login": { "size": size, "volumes": { "jail": jail } } } });
    cases.extend([
        case(
            CLUSTER,
            "spec",
            ".slurmNodes.login.volumes.jail",
            login(0, named("missing")),
            login(1, named("missing")),
        ),
        case(CLUSTER, "spec.slurmNodes.login", ".volumes.jail", login(0, both()), login(1, both())),
    ]);
    for (name, field, path) in [
        ("spool", ".slurmNodes.worker.volumes.spool", "spec.slurmNodes.worker.volumes.spool"),
        ("jail", ".slurmNodes.worker.volumes.jail", "spec.slurmNodes.worker.volumes.jail"),
    ] {
        let known = volume("worker", name, named("jail"));
        cases.push(case(OLD_CLUSTER, "spec", field, known, volume("worker", name, named("missing"))));
        let neither = json!({ "volumeSourceName": null, "volumeClaimTemplateSpec": null });
        let accepted = volume("worker", name, named("jail"));
        cases.push(case(OLD_CLUSTER, path, "exactly one", accepted, volume("worker", name, neither)));
    }
    let mounts = [
        (
            "controller",
            "customMounts",
            ".slurmNodes.controller.volumes.customMounts",
            "spec.slurmNodes.controller.volumes.customMounts[]",
        ),
        (
            "login",
            "customMounts",
            ".slurmNodes.login.volumes.customMounts",
            "spec.slurmNodes.login.volumes.customMounts[]",
        ),
        (
            "login",
            "jailSubMounts",
            ".slurmNodes.login.volumes.jailSubMounts",
            "spec.slurmNodes.login.volumes.jailSubMounts[]",
        ),
    ];
    for (part, name, field, path) in mounts {
        let accepted = volume(part, name, mount(json!({ "volumeSourceName": "jail" })));
        let unknown = volume(part, name, mount(json!({ "volumeSourceName": "missing" })));
        cases.push(case(CLUSTER, "spec", field, accepted, unknown));
        let accepted = volume(part, name, mount(json!({ "volumeClaimTemplateSpec": claim() })));
        cases.push(case(CLUSTER, path, "exactly one", accepted, volume(part, name, mount(both()))));
        cases.push(case(
            CLUSTER,
            path.trim_end_matches("[]"),
            "must be unique",
            volume(part, name, twice(json!({ "volumeClaimTemplateSpec": claim() }))),
            volume(part, name, twice(json!({ "volumeSourceName": "jail" }))),
        ));
    }
    for (name, field, path) in [
        (
            "customMounts",
            ".slurmNodes.worker.volumes.customMounts",
            "spec.slurmNodes.worker.volumes.customMounts[]",
        ),
        (
            "jailSubMounts",
            ".slurmNodes.worker.volumes.jailSubMounts",
            "spec.slurmNodes.worker.volumes.jailSubMounts[]",
        ),
    ] {
        let known = volume("worker", name, mount(json!({ "volumeSourceName": "jail" })));
        let unknown = volume("worker", name, mount(json!({ "volumeSourceName": "missing" })));
        cases.push(case(OLD_CLUSTER, "spec", field, known, unknown));
        let accepted = volume("worker", name, mount(json!({ "volumeClaimTemplateSpec": claim() })));
        cases.push(case(
            OLD_CLUSTER,
            path,
            "exactly one",
            accepted,
            volume("worker", name, mount(json!({}))),
        ));
        cases.push(case(
            OLD_CLUSTER,
            path.trim_end_matches("[]"),
            "must be unique",
            volume("worker", name, twice(json!({ "volumeClaimTemplateSpec": claim() }))),
            volume("worker", name, twice(json!({ "volumeSourceName": "jail" }))),
        ));
    }
    for (sample, part, path) in [
        (CLUSTER, "login", "spec.slurmNodes.login.volumes"),
        (OLD_CLUSTER, "worker", "spec.slurmNodes.worker.volumes"),
    ] {
        let in_both = |more: Value| {
            let mut both = volume(part, "customMounts", mount(more.clone()));
            crate::server::merge(&mut both, &volume(part, "jailSubMounts", mount(more)));
            both
        };
        let (claims, sources) =
            (json!({ "volumeClaimTemplateSpec": claim() }), json!({ "volumeSourceName": "jail" }));
        cases.push(case(sample, path, "must be unique", in_both(claims), in_both(sources)));
    }
    cases
}

fn around_the_cluster() -> Vec<Case> {
    let slurmd = |value: Value| json!({ "slurmd": value });
    let volumes = |name: &str, value: Value| json!({ "slurmd": { "volumes": { name: value } } });
    let mount = |name: &str, more: Value| {
        let mut mount = json!({ "name": "data", "mountPath": "/data" });
        crate::server::merge(&mut mount, &more);
        volumes(name, json!([mount]))
    };
    let two = || json!({ "emptyDir": {}, "hostPath": { "path": "/" } });
    let in_both = |volume: Value| {
        let mut both = mount("customVolumeMounts", volume.clone());
        crate::server::merge(&mut both, &mount("jailSubMounts", volume));
        both
    };
    let mut cases = vec![
        case(
            NODE_SET,
            "spec",
            "maxUnavailable",
            json!({ "replicas": 500, "maxUnavailable": "100%" }),
            json!({ "replicas": 600, "maxUnavailable": "100%" }),
        ),
        case(
            NODE_SET,
            "spec",
            ".slurmd.security.procMount",
            slurmd(json!({ "security": { "procMount": "Unmasked" } })),
            json!({ "enableHostUserNamespace": true, "slurmd": { "security": { "procMount": "Unmasked" } } }),
        ),
        case(
            NODE_SET,
            "spec.slurmd",
            ".resources",
            slurmd(json!({ "resources": { "cpu": 1, "memory": "1Gi" } })),
            slurmd(json!({ "resources": { "cpu": "0", "memory": "1Gi" } })),
        ),
        case(
            NODE_SET,
            "spec.slurmd",
            ".resources",
            slurmd(json!({ "resources": { "cpu": "100m" } })),
            slurmd(json!({ "resources": { "memory": null } })),
        ),
        case(
            NODE_SET,
            "spec.slurmd",
            ".customEnv",
            slurmd(json!({ "customEnv": [{ "name": "A", "value": "B" }] })),
            slurmd(json!({ "customEnv": [{ "name": "SOPERATOR_NODE_REAL_MEMORY_BYTES", "value": "1" }] })),
        ),
        case(
            NODE_SET,
            "spec.slurmd.volumes.jail",
            "one source",
            volumes("jail", json!({ "persistentVolumeClaim": null, "emptyDir": {} })),
            volumes("jail", two()),
        ),
        // An empty spool is an emptyDir.
        case(
            NODE_SET,
            "spec.slurmd.volumes.spool",
            "one source",
            volumes("spool", json!({ "volumeClaimTemplateSpec": null })),
            volumes("spool", two()),
        ),
        case(
            NODE_SET,
            "spec.slurmd.volumes",
            "must be unique",
            in_both(json!({ "volumeClaimTemplateSpec": { "accessModes": ["ReadWriteOnce"] } })),
            in_both(json!({ "volumeSource": { "emptyDir": {} } })),
        ),
        case(
            POWER,
            "spec.activeNodes",
            "from 0 on",
            json!({ "activeNodes": [0, 3] }),
            json!({ "activeNodes": [0, -1] }),
        ),
        case(
            CONFIGURATOR,
            "spec",
            "but not both",
            json!({ "nodeConfigurator": { "enabled": false } }),
            json!({ "nodeConfigurator": { "enabled": true } }),
        ),
        case(JAILED, "spec", ".items", json!({}), json!({ "items": [] })),
        case(JAILED, "spec", ".items", json!({}), json!({ "items": null })),
        case(
            CHECK,
            "spec",
            ".k8sJobSpec",
            json!({ "k8sJobSpec": null, "podTemplateNameRef": "pod" }),
            json!({ "k8sJobSpec": null }),
        ),
        case(
            CHECK,
            "spec",
            ".slurmJobSpec",
            json!({ "checkType": "slurmJob", "slurmJobSpec": { "sbatchScript": "#!/bin/sh" } }),
            json!({ "checkType": "slurmJob" }),
        ),
        case(CHECK, "spec.name", "a container", json!({ "name": "a-1" }), json!({ "name": "A_1" })),
        case(CHECK, "spec", ".name", json!({ "name": "x".repeat(51) }), json!({ "name": "x".repeat(52) })),
        case(
            CHECK,
            "spec",
            ".name",
            json!({ "name": "x".repeat(63), "runAfterCreation": false }),
            json!({ "name": "x".repeat(63) }),
        ),
        case(
            CHECK,
            "spec.schedule",
            "cron",
            json!({ "schedule": "*/5  * * * MON-FRI" }),
            json!({ "schedule": "every hour" }),
        ),
        case(
            CHECK,
            "spec.schedule",
            "cron",
            json!({ "schedule": "@every 1h" }),
            json!({ "schedule": "* * * *" }),
        ),
    ];
    for path in ["/etc/../x", "etc/motd", "/.", "/a/./b", "/a/.."] {
        cases.push(case(
            JAILED,
            "spec.items[]",
            ".path",
            json!({ "items": [{ "key": "a", "path": "/etc/..motd.d/.a" }] }),
            json!({ "items": [{ "key": "a", "path": path }] }),
        ));
    }
    for value in [json!(0), json!(501), json!("0%"), json!("20")] {
        cases.push(case(
            NODE_SET,
            "spec",
            "maxUnavailable",
            json!({ "maxUnavailable": 500 }),
            json!({ "maxUnavailable": value }),
        ));
    }
    for (name, one, inner) in [
        (
            "customVolumeMounts",
            "spec.slurmd.volumes.customVolumeMounts[]",
            "spec.slurmd.volumes.customVolumeMounts[].volumeSource",
        ),
        (
            "jailSubMounts",
            "spec.slurmd.volumes.jailSubMounts[]",
            "spec.slurmd.volumes.jailSubMounts[].volumeSource",
        ),
    ] {
        let accepted = || mount(name, json!({ "volumeSource": { "emptyDir": {} } }));
        cases.push(case(NODE_SET, one, "exactly one", accepted(), mount(name, json!({}))));
        cases.push(case(
            NODE_SET,
            inner,
            "one source",
            accepted(),
            mount(name, json!({ "volumeSource": two() })),
        ));
        let twice = |volume: Value| {
            let mut mounts = mount(name, volume);
            let list = &mut mounts["slurmd"]["volumes"][name];
            *list = json!([list[0], list[0]]);
            mounts
        };
        cases.push(case(
            NODE_SET,
            one.trim_end_matches("[]"),
            "must be unique",
            twice(json!({ "volumeClaimTemplateSpec": { "accessModes": ["ReadWriteOnce"] } })),
            twice(json!({ "volumeSource": { "emptyDir": {} } })),
        ));
    }
    cases
}

fn slinky() -> Vec<Case> {
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
fn slinky_changes() -> Vec<Case> {
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
