//! Cases for the kinds of Soperator.

use serde_json::{Value, json};

use super::{CHECK, CLUSTER, CONFIGURATOR, Case, JAILED, NODE_SET, OLD_CLUSTER, POWER, accounting, case};

pub(super) fn all() -> Vec<Case> {
    [cluster_names(), cluster(), cluster_volumes(), around_the_cluster()].concat()
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
    let claim = || json!({ "volumeClaimTemplateSpec": { "accessModes": ["ReadWriteOnce"] }, "volumeSourceName": null });
    let named = |name: &str| json!({ "volumeSourceName": name, "volumeClaimTemplateSpec": null });
    let both = || json!({ "volumeSourceName": "jail", "volumeClaimTemplateSpec": { "accessModes": ["ReadWriteOnce"] } });
    let neither = || json!({ "volumeSourceName": null, "volumeClaimTemplateSpec": null });
    let mount = |volume: Value| {
        let mut mount = json!({ "name": "data", "mountPath": "/data" });
        crate::server::merge(&mut mount, &volume);
        mount
    };
    let twice = |volume: Value| {
        let other = json!({ "name": "other", "mountPath": "/other", "volumeSourceName": "jail" });
        json!([mount(volume.clone()), other, mount(volume)])
    };
    let volumes = |part: &str, volumes: Value| json!({ "slurmNodes": { part: { "volumes": volumes } } });
    let of_login = |size: i32, volumes: Value| json!({ "slurmNodes": { "login": { "size": size, "volumes": volumes } } });
    let in_both =
        |volume: Value| json!({ "customMounts": [mount(volume.clone())], "jailSubMounts": [mount(volume)] });
    let mut cases = vec![
        case(
            CLUSTER,
            "spec",
            ".populateJail.jailSnapshotVolume",
            json!({ "populateJail": { "jailSnapshotVolume": named("jail") } }),
            json!({ "populateJail": { "jailSnapshotVolume": named("missing") } }),
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
        case(
            OLD_CLUSTER,
            "spec.slurmNodes.worker.volumes",
            "must be unique",
            volumes("worker", in_both(claim())),
            volumes("worker", in_both(named("jail"))),
        ),
        // Login nodes that there are none of may have any volumes.
        case(
            CLUSTER,
            "spec",
            ".slurmNodes.login.volumes.jail",
            of_login(0, json!({ "jail": named("missing") })),
            of_login(1, json!({ "jail": named("missing") })),
        ),
    ];
    for wrong in [
        json!({ "jail": both() }),
        json!({ "jail": neither() }),
        json!({ "customMounts": [mount(both())] }),
        json!({ "jailSubMounts": [mount(neither())] }),
    ] {
        let (accepted, refused) = (of_login(0, wrong.clone()), of_login(1, wrong));
        cases.push(case(CLUSTER, "spec.slurmNodes.login", "exactly one", accepted, refused));
    }
    for wrong in [
        json!({ "customMounts": twice(named("jail")) }),
        json!({ "jailSubMounts": twice(named("jail")) }),
        in_both(named("jail")),
    ] {
        let (accepted, refused) = (of_login(0, wrong.clone()), of_login(1, wrong));
        cases.push(case(CLUSTER, "spec.slurmNodes.login", "must be unique", accepted, refused));
    }
    for right in [json!({ "customMounts": twice(claim()) }), in_both(claim())] {
        let refused = of_login(1, json!({ "customMounts": twice(named("jail")) }));
        cases.push(case(CLUSTER, "spec.slurmNodes.login", "must be unique", of_login(1, right), refused));
    }
    for (sample, part, name) in [
        (CLUSTER, "controller", "spool"),
        (CLUSTER, "controller", "jail"),
        (OLD_CLUSTER, "worker", "spool"),
        (OLD_CLUSTER, "worker", "jail"),
    ] {
        let field = format!(".slurmNodes.{part}.volumes.{name}");
        let path = format!("spec{field}");
        let volume = |value: Value| volumes(part, json!({ name: value }));
        for unknown in ["missing", ""] {
            cases.push(case(sample, "spec", &field, volume(named("jail")), volume(named(unknown))));
        }
        for wrong in [both(), neither()] {
            cases.push(case(sample, &path, "exactly one", volume(claim()), volume(wrong)));
        }
    }
    for (sample, part, name) in [
        (CLUSTER, "controller", "customMounts"),
        (CLUSTER, "login", "customMounts"),
        (CLUSTER, "login", "jailSubMounts"),
        (OLD_CLUSTER, "worker", "customMounts"),
        (OLD_CLUSTER, "worker", "jailSubMounts"),
    ] {
        let field = format!(".slurmNodes.{part}.volumes.{name}");
        let path = format!("spec{field}");
        let mounts = |value: Value| volumes(part, json!({ name: value }));
        let known = mounts(json!([mount(named("jail"))]));
        cases.push(case(sample, "spec", &field, known, mounts(json!([mount(named("missing"))]))));
        if part == "login" {
            continue;
        }
        for wrong in [both(), neither()] {
            let (right, wrong) = (mounts(json!([mount(claim())])), mounts(json!([mount(wrong)])));
            cases.push(case(sample, format!("{path}[]"), "exactly one", right, wrong));
        }
        let (claims, sources) = (mounts(twice(claim())), mounts(twice(named("jail"))));
        cases.push(case(sample, path, "must be unique", claims, sources));
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
