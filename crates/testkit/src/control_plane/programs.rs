//! How etcd and the Kubernetes control plane are called, on loopback or inside a cluster's network.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Everything is logged once, with who asked; that is what `ApiCalls` reads.
pub(crate) const AUDIT_POLICY: &str = r#"{
  "apiVersion": "audit.k8s.io/v1",
  "kind": "Policy",
  "omitStages": ["RequestReceived"],
  "rules": [{ "level": "Metadata" }]
}"#;

/// Where the pieces of one control plane are.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// Folder of certificates and kubeconfigs.
    pub pki: PathBuf,
    /// Folder for data; etcd's is below it.
    pub data: PathBuf,
    pub address: IpAddr,
    pub api_port: u16,
    pub etcd_port: u16,
    pub etcd_peer_port: u16,
    pub audit_log: PathBuf,
    pub audit_policy: PathBuf,
    /// The log is rotated at this size; a reader keeps its place until then.
    pub audit_log_megabytes: u32,
}

pub(crate) fn etcd(command: &mut Command, place: &Place) {
    let client = format!("http://127.0.0.1:{}", place.etcd_port);
    let peer = format!("http://127.0.0.1:{}", place.etcd_peer_port);
    command
        .arg(format!("--data-dir={}", place.data.join("etcd").display()))
        // Throw-away data, and in memory anyway.
        .args(["--unsafe-no-fsync", "--log-level=warn"])
        .arg(format!("--listen-client-urls={client}"))
        .arg(format!("--advertise-client-urls={client}"))
        .arg(format!("--listen-peer-urls={peer}"))
        .arg(format!("--initial-advertise-peer-urls={peer}"))
        .arg(format!("--initial-cluster=default={peer}"));
}

pub(crate) fn api_server(command: &mut Command, place: &Place) {
    let pki = |file: &str| place.pki.join(file).display().to_string();
    command
        .arg(format!("--etcd-servers=http://127.0.0.1:{}", place.etcd_port))
        .arg(format!("--bind-address={}", place.address))
        .arg(format!("--secure-port={}", place.api_port))
        .arg(format!("--cert-dir={}", place.data.display()))
        .arg(format!("--tls-cert-file={}", pki("apiserver.crt")))
        .arg(format!("--tls-private-key-file={}", pki("apiserver.key")))
        .arg(format!("--client-ca-file={}", pki("ca.crt")))
        .arg("--service-account-issuer=https://kubernetes.default.svc.cluster.local")
        .arg(format!("--service-account-key-file={}", pki("sa.pub")))
        .arg(format!("--service-account-signing-key-file={}", pki("sa.key")))
        .args(["--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction"])
        .args(["--allow-privileged=true", "--service-cluster-ip-range=10.96.0.0/16"])
        .arg("--shutdown-delay-duration=0s")
        .arg(format!("--kubelet-client-certificate={}", pki("apiserver-kubelet-client.crt")))
        .arg(format!("--kubelet-client-key={}", pki("apiserver-kubelet-client.key")))
        // Node names do not resolve.
        .arg("--kubelet-preferred-address-types=InternalIP")
        // A webhook behind a Service is dialled at its endpoint: no kube-proxy runs beside the API server.
        .arg("--enable-aggregator-routing=true")
        .arg(format!("--audit-policy-file={}", place.audit_policy.display()))
        .arg(format!("--audit-log-path={}", place.audit_log.display()))
        .arg(format!("--audit-log-maxsize={}", place.audit_log_megabytes))
        .arg("--audit-log-maxbackup=1");
    if !place.address.is_loopback() {
        command.arg(format!("--advertise-address={}", place.address));
    }
}

pub(crate) fn controller_manager(command: &mut Command, place: &Place, kubeconfig: &Path) {
    let pki = |file: &str| place.pki.join(file).display().to_string();
    command
        .arg(format!("--kubeconfig={}", kubeconfig.display()))
        .args(["--leader-elect=false", "--secure-port=0"])
        // One identity for all controllers: the other way makes a service account for each first, 4 s later.
        .arg("--use-service-account-credentials=false")
        .arg(format!("--service-account-private-key-file={}", pki("sa.key")))
        .arg(format!("--root-ca-file={}", pki("ca.crt")))
        .arg(format!("--cluster-signing-cert-file={}", pki("ca.crt")))
        .arg(format!("--cluster-signing-key-file={}", pki("ca.key")))
        // The default of 20 requests a second throttles a StatefulSet of 200 pods.
        .args(["--kube-api-qps=1000", "--kube-api-burst=2000"]);
}

pub(crate) fn scheduler(command: &mut Command, kubeconfig: &Path) {
    command.arg(format!("--kubeconfig={}", kubeconfig.display())).args([
        "--leader-elect=false",
        "--secure-port=0",
        "--kube-api-qps=1000",
        "--kube-api-burst=2000",
    ]);
}
