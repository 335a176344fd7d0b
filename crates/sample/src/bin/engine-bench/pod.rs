//! A Slurm worker pod as a cluster has them by the thousand: two containers and one that runs first, each with 20
//! variables and 12 mounts, 12 volumes; more than 15 KB of JSON with both managers' field lists.

use serde_json::{Value, json};

use crate::node::{self, time, unique, uuid};

pub(crate) const NAMESPACES: usize = 10;
/// Owners in each namespace.
pub(crate) const GROUPS: usize = 20;
/// Pods on a node.
const ON_A_NODE: usize = 4;

pub(crate) fn namespace(index: usize) -> String {
    format!("cluster-{}", index % NAMESPACES)
}

pub(crate) fn group(index: usize) -> usize {
    index / NAMESPACES % GROUPS
}

pub(crate) fn owner(group: usize) -> String {
    format!("workers-{group}")
}

fn ordinal(index: usize) -> usize {
    index / NAMESPACES / GROUPS
}

pub(crate) fn name(index: usize) -> String {
    format!("{}-{}", owner(group(index)), ordinal(index))
}

fn node_of(index: usize) -> usize {
    index / ON_A_NODE
}

pub(crate) fn manifest(index: usize, owner_uid: &str) -> Value {
    let (name, group, ordinal) = (name(index), group(index), ordinal(index));
    let containers: Vec<Value> = [("slurmd", "worker"), ("munge", "munge")]
        .iter()
        .map(|(name, image)| container(index, name, image))
        .collect();
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": namespace(index),
            "labels": {
                "app.kubernetes.io/name": "slurm-worker", "app.kubernetes.io/instance": namespace(index),
                "app.kubernetes.io/component": "worker", "app.kubernetes.io/managed-by": "slurm-operator",
                "app.kubernetes.io/part-of": "slurm", "app.kubernetes.io/version": format!("26.5.{}", group % 3),
                "apps.kubernetes.io/pod-index": ordinal.to_string(),
                "statefulset.kubernetes.io/pod-name": name,
                "controller-revision-hash": format!("{}-{:x}", owner(group), 0x7d9f_4c6b_u32.wrapping_add(group as u32)),
                "slurm.example.com/node-set": owner(group),
            },
            "annotations": {
                "kubectl.kubernetes.io/default-container": "slurmd",
                "slurm.example.com/config-hash": format!("{:032x}", unique(group, 9)),
                "cni.projectcalico.org/podIP": format!("{}/32", address(index)),
                "cni.projectcalico.org/containerID": format!("{:032x}{:032x}", unique(index, 4), unique(index, 5)),
            },
            "ownerReferences": [{ "apiVersion": "v1", "kind": "ConfigMap", "name": owner(group), "uid": owner_uid,
                "controller": true, "blockOwnerDeletion": true }],
        },
        "spec": {
            "nodeName": node::name(node_of(index)), "hostname": name, "subdomain": owner(group),
            "initContainers": [container(index, "prepare", "populate")], "containers": containers,
            "volumes": volumes(index),
            "tolerations": [{ "key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule" }],
            "terminationGracePeriodSeconds": 600,
        },
    })
}

fn container(index: usize, name: &str, image: &str) -> Value {
    json!({
        "name": name, "image": format!("registry.example.com/slurm/{image}:26.05.{}", group(index) % 3),
        "command": ["/usr/bin/entrypoint", name, "--config", "/etc/slurm/slurm.conf"],
        "env": variables(index), "volumeMounts": mounts(),
        "resources": { "limits": { "cpu": "16", "memory": "64Gi" }, "requests": { "cpu": "8", "memory": "64Gi" } },
        "ports": [{ "name": name, "containerPort": 6818, "protocol": "TCP" }],
    })
}

fn variables(index: usize) -> Vec<Value> {
    let mut variables = vec![
        json!({ "name": "POD_NAME", "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } }),
        json!({ "name": "POD_IP", "valueFrom": { "fieldRef": { "fieldPath": "status.podIP" } } }),
        json!({ "name": "SLURM_JWT", "valueFrom": { "secretKeyRef": { "name": "slurm-jwt", "key": "jwt.key" } } }),
        json!({ "name": "SLURM_CLUSTER", "valueFrom": { "configMapKeyRef": { "name": "slurm-settings", "key": "cluster" } } }),
    ];
    let plain = (variables.len()..20).map(|number| {
        json!({ "name": format!("SLURM_{number:02}"), "value": format!("/opt/setting/{number}/{}", group(index)) })
    });
    variables.extend(plain);
    variables
}

const VOLUMES: [&str; 12] = [
    "slurm-configs",
    "slurm-scripts",
    "slurm-jwt",
    "munge-key",
    "jail",
    "jail-home",
    "scratch",
    "run",
    "spool",
    "shm",
    "cgroup",
    "ssh-keys",
];

fn mounts() -> Vec<Value> {
    VOLUMES.iter().map(|volume| json!({ "name": volume, "mountPath": format!("/mnt/{volume}") })).collect()
}

fn volumes(index: usize) -> Vec<Value> {
    VOLUMES
        .iter()
        .enumerate()
        .map(|(number, volume)| {
            let mut source = match number {
                0 | 1 => json!({ "configMap": { "name": volume, "defaultMode": 420 } }),
                2 | 3 | 11 => json!({ "secret": { "secretName": volume, "defaultMode": 256 } }),
                4 | 5 => json!({ "persistentVolumeClaim": { "claimName": volume } }),
                6 => json!({ "persistentVolumeClaim": { "claimName": format!("scratch-{}", name(index)) } }),
                10 => json!({ "hostPath": { "path": "/sys/fs/cgroup", "type": "Directory" } }),
                _ => json!({ "emptyDir": { "medium": "Memory", "sizeLimit": "1Gi" } }),
            };
            source["name"] = (*volume).into();
            source
        })
        .collect()
}

fn address(index: usize) -> String {
    format!("10.{}.{}.{}", 128 + index / 65_536, index / 256 % 256, index % 256)
}

pub(crate) fn status(index: usize) -> Value {
    let conditions = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"]
        .map(|kind| json!({ "type": kind, "status": "True", "lastProbeTime": null, "lastTransitionTime": time(index) }));
    let ran = |name: &str, image: &str, state: Value| {
        let image = format!("registry.example.com/slurm/{image}");
        json!({
            "name": name, "image": format!("{image}:26.05.{}", group(index) % 3),
            "imageID": format!("{image}@sha256:{:064x}", unique(group(index), 6)),
            "containerID": format!("containerd://{:032x}{:032x}", unique(index, 7), unique(index, name.len() as u128)),
            "ready": true, "started": true, "restartCount": index % 3, "lastState": {}, "state": state,
        })
    };
    let running = json!({ "running": { "startedAt": time(index) } });
    let ended = json!({ "terminated": { "exitCode": 0, "reason": "Completed", "startedAt": time(index),
        "finishedAt": time(index + 7), "containerID": format!("containerd://{}", uuid(index, 8)) } });
    json!({ "status": {
        "phase": "Running", "hostIP": node::address(node_of(index)), "hostIPs": [{ "ip": node::address(node_of(index)) }],
        "podIP": address(index), "podIPs": [{ "ip": address(index) }], "startTime": time(index), "conditions": conditions,
        "containerStatuses": [ran("slurmd", "worker", running.clone()), ran("munge", "munge", running)],
        "initContainerStatuses": [ran("prepare", "populate", ended)],
    } })
}
