//! Nodes and pod status as a kubelet writes them.

use std::net::Ipv4Addr;

use anyhow::Result;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, Node, Pod};
use serde_json::{Value, json};

use crate::cache::KUBERNETES_VERSION;

/// The status of a pod in which everything runs.
pub(super) fn runs(pod: &Pod, address: Ipv4Addr) -> Value {
    let now = Timestamp::now();
    let spec = pod.spec.clone().unwrap_or_default();
    let condition = |kind: &str| json!({ "type": kind, "status": "True", "lastTransitionTime": now });
    let container = |one: &Container, state: Value| {
        json!({
            "name": one.name, "image": one.image, "imageID": "", "containerID": format!("fake://{}", one.name),
            "ready": true, "started": true, "restartCount": 0, "state": state,
        })
    };
    let at_work = || json!({ "running": { "startedAt": now } });
    let done = || json!({ "terminated": { "exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now } });
    let conditions = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"]
        .map(condition);
    // A native sidecar goes on.
    let sidecar = |one: &Container| one.restart_policy.as_deref() == Some("Always");
    let init = spec.init_containers.iter().flatten();
    let init = init.map(|one| container(one, if sidecar(one) { at_work() } else { done() }));
    let main = spec.containers.iter().map(|one| container(one, at_work()));
    json!({
        "phase": "Running",
        "startTime": now,
        "podIP": address.to_string(),
        "podIPs": [{ "ip": address.to_string() }],
        "hostIP": "10.88.0.1",
        "conditions": conditions,
        "initContainerStatuses": init.collect::<Vec<_>>(),
        "containerStatuses": main.collect::<Vec<_>>(),
    })
}

/// The status of a pod whose containers have ended.
pub(super) fn ended(pod: &Pod, succeeded: bool) -> Value {
    let now = Timestamp::now();
    let (phase, code, reason) =
        if succeeded { ("Succeeded", 0, "Completed") } else { ("Failed", 1, "Error") };
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let not_ready = |kind: &str| json!({ "type": kind, "status": "False", "reason": "PodCompleted", "lastTransitionTime": now });
    json!({
        "phase": phase,
        "conditions": [not_ready("Ready"), not_ready("ContainersReady")],
        "containerStatuses": containers.map(|one| json!({
            "name": one.name, "image": one.image, "imageID": "", "ready": false, "started": false, "restartCount": 0,
            "state": { "terminated": { "exitCode": code, "reason": reason, "startedAt": now, "finishedAt": now } },
        })).collect::<Vec<_>>(),
    })
}

/// A Node that is Ready and has room.
pub(super) fn node(index: usize, name: &str) -> Result<Node> {
    let now = Timestamp::now();
    let [_, b, c, d] = (u32::try_from(index)? + 1).to_be_bytes();
    let address = Ipv4Addr::new(10, 64 | b, c, d).to_string();
    let size = json!({ "cpu": "64", "memory": "256Gi", "pods": "1000", "ephemeral-storage": "1Ti" });
    let condition = |kind: &str, status: &str, reason: &str| json!({ "type": kind, "status": status, "reason": reason, "message": "", "lastHeartbeatTime": now, "lastTransitionTime": now });
    Ok(serde_json::from_value(json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": { "name": name, "labels": {
            "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64" } },
        "status": {
            "capacity": size,
            "allocatable": size,
            "addresses": [{ "type": "InternalIP", "address": address }, { "type": "Hostname", "address": name }],
            "conditions": [
                condition("Ready", "True", "KubeletReady"),
                condition("MemoryPressure", "False", "KubeletHasSufficientMemory"),
                condition("DiskPressure", "False", "KubeletHasNoDiskPressure"),
                condition("PIDPressure", "False", "KubeletHasSufficientPID"),
            ],
            "nodeInfo": {
                "architecture": "amd64", "operatingSystem": "linux", "osImage": "none", "kernelVersion": "6.1.0",
                "kubeletVersion": format!("v{KUBERNETES_VERSION}"), "kubeProxyVersion": "", "containerRuntimeVersion": "fake://1",
                "machineID": name, "systemUUID": name, "bootID": name,
            },
        },
    }))?)
}
