//! A GPU node as its kubelet and a cloud describe it: about 10 KB of JSON, nearly half of it images.

use serde_json::{Map, Value, json};

const IMAGES: usize = 25;
const RACKS: usize = 80;

pub(crate) fn name(index: usize) -> String {
    format!("gpu-node-{index:05}")
}

pub(crate) fn address(index: usize) -> String {
    format!("10.{}.{}.{}", 64 + index / 65_536, index / 256 % 256, index % 256)
}

pub(crate) fn manifest(index: usize) -> Value {
    let (name, zone, rack) = (name(index), index % 3, index % RACKS);
    let gpu = if index.is_multiple_of(4) { "NVIDIA-H200" } else { "NVIDIA-H100-80GB-HBM3" };
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "beta.kubernetes.io/arch": "amd64", "beta.kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "kubernetes.io/hostname": name,
                "node.kubernetes.io/instance-type": if index.is_multiple_of(4) { "gpu-h200-sxm" } else { "gpu-h100-sxm" },
                "topology.kubernetes.io/region": "eu-north1",
                "topology.kubernetes.io/zone": format!("eu-north1-{zone}"),
                "topology.kubernetes.io/rack": format!("rack-{rack}"),
                "topology.example.com/tier-1": format!("leaf-{}", index / 16),
                "topology.example.com/tier-2": format!("spine-{}", index / 256),
                "topology.example.com/tier-3": format!("core-{}", index / 2048),
                "example.com/node-group": format!("group-{}", index % 12),
                "nvidia.com/gpu.present": "true", "nvidia.com/gpu.count": "8", "nvidia.com/gpu.product": gpu,
                "nvidia.com/cuda.driver.major": "580", "nvidia.com/mig.capable": "true",
                "slurm.example.com/partition": if index.is_multiple_of(5) { "interactive" } else { "main" },
                "network.example.com/infiniband": "true",
            },
            "annotations": {
                "node.alpha.kubernetes.io/ttl": "0",
                "volumes.kubernetes.io/controller-managed-attach-detach": "true",
                "csi.volume.kubernetes.io/nodeid": format!("{{\"disk.csi.example.com\":\"computeinstance-{index:08x}\",\"fs.csi.example.com\":\"{name}\"}}"),
                "network.cilium.io/ipv4-pod-cidr": format!("10.{}.{}.0/24", 128 + index / 256, index % 256),
                "network.cilium.io/ipv4-cilium-host": format!("10.{}.{}.17", 128 + index / 256, index % 256),
                "cluster.x-k8s.io/machine": format!("machine-{index:08x}"),
                "nfd.node.kubernetes.io/feature-labels": "cpu-model.vendor_id,kernel-version.full,pci-10de.present,storage-nonrotationaldisk",
            },
        },
        "spec": { "providerID": format!("cloud:///eu-north1/computeinstance-{index:08x}") },
        "status": status(index),
    })
}

fn status(index: usize) -> Value {
    let mut conditions: Vec<Value> = [
        ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ("GpuUnhealthy", "GpuHealthy", "all GPUs answer"),
        ("InfinibandDown", "InfinibandUp", "all links are up"),
    ]
    .map(|(kind, reason, message)| condition(index, kind, "False", reason, message))
    .into();
    conditions.push(condition(index, "Ready", "True", "KubeletReady", "kubelet is posting ready status"));
    let images: Vec<Value> = (0..IMAGES)
        .map(|image| {
            let repository = format!("registry.example.com/platform/component-{image}");
            let digest = format!(
                "{:064x}",
                (image as u128 + 1) * 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c834 % (1 << 124)
            );
            json!({ "names": [format!("{repository}@sha256:{digest}"), format!("{repository}:1.{image}.3")],
                "sizeBytes": 40_000_000 + 1_234_567 * image })
        })
        .collect();
    let resources = |processors: &str, memory: &str| {
        json!({ "cpu": processors, "memory": memory, "ephemeral-storage": "1056889268Ki", "hugepages-1Gi": "0",
            "hugepages-2Mi": "0", "pods": "110", "nvidia.com/gpu": "8", "rdma/hca": "8" })
    };
    json!({
        "capacity": resources("128", "1651204592Ki"), "allocatable": resources("127800m", "1644913136Ki"),
        "conditions": conditions,
        "addresses": [{ "type": "InternalIP", "address": address(index) }, { "type": "Hostname", "address": name(index) }],
        "daemonEndpoints": { "kubeletEndpoint": { "Port": 10250 } },
        "nodeInfo": {
            "machineID": format!("{:032x}", unique(index, 1)), "systemUUID": uuid(index, 2), "bootID": uuid(index, 3),
            "kernelVersion": "6.8.0-1021-nvidia", "osImage": "Ubuntu 24.04.2 LTS",
            "containerRuntimeVersion": "containerd://2.1.4", "kubeletVersion": "v1.36.4", "kubeProxyVersion": "",
            "operatingSystem": "linux", "architecture": "amd64",
        },
        "images": images,
    })
}

fn condition(index: usize, kind: &str, status: &str, reason: &str, message: &str) -> Value {
    let mut condition = Map::new();
    condition.insert("type".into(), kind.into());
    condition.insert("status".into(), status.into());
    condition.insert("reason".into(), reason.into());
    condition.insert("message".into(), message.into());
    // Far in the future: the controller-manager must not take the node for one that has stopped talking.
    condition.insert("lastHeartbeatTime".into(), "2036-01-02T03:04:05Z".into());
    condition.insert("lastTransitionTime".into(), time(index).into());
    Value::Object(condition)
}

/// A time that differs between objects.
pub(crate) fn time(index: usize) -> String {
    format!(
        "2026-11-{:02}T{:02}:{:02}:{:02}Z",
        1 + index / 86_400 % 17,
        index / 3600 % 24,
        index / 60 % 60,
        index % 60
    )
}

/// A number that looks random and is the same in each run.
pub(crate) fn unique(index: usize, salt: u128) -> u128 {
    let mixed =
        (index as u128 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835).wrapping_add(salt << 64);
    mixed ^ (mixed >> 61)
}

pub(crate) fn uuid(index: usize, salt: u128) -> String {
    let hex = format!("{:032x}", unique(index, salt));
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}
