//! The files of one node and the command that starts it.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::unistd::Pid;
use serde_json::json;

use super::images::PAUSE;
use super::state::State;
use crate::cache::{Cache, Part};
use crate::pki::Pki;
use crate::process::{bound_command, run};
use crate::sandbox::Sandbox;

const SCRIPT: &str = include_str!("../../../../testbed/cluster/node.sh");

pub(super) fn command(sandbox: &Sandbox, cache: &Cache, state: &State, number: usize) -> Result<Command> {
    let mut command = sandbox.command("bash");
    command.args(["-c", SCRIPT, "node", &number.to_string(), &cgroup(state, number)]);
    command.arg(cache.part(Part::ContainerdRoot)?);
    command.arg(cache.kubernetes("kubelet")?).arg(cache.kubernetes("kube-proxy")?).arg(state.path(""));
    Ok(command)
}

/// Imports an image archive into the node whose first process is `node`.
pub(super) async fn import(node: Pid, archive: &Path) -> Result<()> {
    let mut command = bound_command("nsenter");
    command.args(["--target", &node.to_string(), "--mount", "--pid", "--net", "--"]);
    // From standard input: the node sees other files than we do. The socket's path must be absolute, or ctr hangs.
    command.args([
        "ctr",
        "--address",
        "/run/containerd/containerd.sock",
        "--namespace",
        "k8s.io",
        "images",
        "import",
        "-",
    ]);
    command.stdin(File::open(archive).with_context(|| format!("open {}", archive.display()))?);
    run(command, Duration::from_secs(300)).await.context("import an image").map(|_| ())
}

fn cgroup(state: &State, number: usize) -> String {
    format!("{}/node{number}", state.cgroup())
}

/// Writes into the node's folder; `files` is that folder as seen from outside.
pub(super) fn write_files(
    cache: &Cache,
    pki: &Pki,
    state: &State,
    server: &str,
    number: usize,
    files: &Path,
) -> Result<()> {
    let home = format!("/srv/node{number}");
    let name = format!("node{number}");
    fs::create_dir_all(files.join("cni"))?;
    let kubelet = pki.issue(&format!("system:node:{name}"), Some("system:nodes"), &[], &[])?;
    let kubelet = pki.kubeconfig(server, &kubelet);
    let proxy = pki.kubeconfig(server, &pki.issue("system:kube-proxy", None, &[], &[])?);
    let write = |file: &str, content: String| {
        fs::write(files.join(file), content).with_context(|| format!("write {file} of {name}"))
    };
    write("kubelet.kubeconfig", kubelet.to_string())?;
    write("proxy.kubeconfig", proxy.to_string())?;
    write("resolv.conf", "nameserver 10.88.0.1\n".into())?;
    write("containerd.toml", containerd_toml(&home, &cache.part(Part::Runc)?.join("runc")))?;
    write("cni/10-bridge.conflist", network(number).to_string())?;
    let authority = pki.folder().join("ca.crt");
    write("kubelet.yaml", kubelet_configuration(&home, &cgroup(state, number), &authority).to_string())?;
    write("proxy.yaml", proxy_configuration(&home, &name).to_string())
}

fn containerd_toml(home: &str, runc: &Path) -> String {
    // restrict_oom_score_adj: the machine may lack the capability to lower it, and every pod would fail.
    format!(
        r#"version = 2
root = "{home}/containerd"
state = "/run/containerd"
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{home}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
      BinaryName = "{}"
"#,
        runc.display()
    )
}

fn network(number: usize) -> serde_json::Value {
    json!({
        "cniVersion": "1.0.0",
        "name": "slipway",
        "plugins": [
            {
                "type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false, "hairpinMode": true,
                "ipam": {
                    "type": "host-local",
                    "ranges": [[{ "subnet": format!("10.244.{number}.0/24") }]],
                    "routes": [{ "dst": "0.0.0.0/0" }],
                },
            },
            { "type": "portmap", "capabilities": { "portMappings": true } },
        ],
    })
}

fn kubelet_configuration(home: &str, cgroup: &str, authority: &Path) -> serde_json::Value {
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "failCgroupV1": false,
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": cgroup,
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "authentication": {
            "anonymous": { "enabled": false }, "webhook": { "enabled": true },
            "x509": { "clientCAFile": authority },
        },
        "authorization": { "mode": "Webhook" },
        "clusterDNS": ["10.96.0.10"],
        "clusterDomain": "cluster.local",
        "resolvConf": format!("{home}/resolv.conf"),
        "failSwapOn": false,
        "maxPods": 250,
        "evictionHard": { "memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%" },
        "imageGCHighThresholdPercent": 100,
        "serializeImagePulls": false,
        "kubeAPIQPS": 200,
        "kubeAPIBurst": 400,
        "registryPullQPS": 0,
        "syncFrequency": "10s",
        "fileCheckFrequency": "5s",
        "nodeStatusUpdateFrequency": "10s",
        "volumePluginDir": format!("{home}/volume-plugins"),
        // The default is shared by all kubelets of the machine, and each removes the others' logs.
        "podLogsDir": format!("{home}/pod-logs"),
    })
}

fn proxy_configuration(home: &str, name: &str) -> serde_json::Value {
    json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "clientConnection": { "kubeconfig": format!("{home}/proxy.kubeconfig") },
        "hostnameOverride": name,
        "clusterCIDR": "10.244.0.0/16",
        // These are sysctls of the whole machine; zero leaves them alone.
        "conntrack": { "maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s" },
    })
}
