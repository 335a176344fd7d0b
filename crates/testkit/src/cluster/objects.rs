//! What every testbed cluster has from the start: DNS and storage classes.

use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::{Api, Client, discovery};
use serde_json::{Value, json};

use crate::process::eventually;

/// The class for volumes of one pod, and the default.
pub const STORAGE_CLASS: &str = "standard";
/// The class for volumes that pods on several nodes share.
pub const SHARED_STORAGE_CLASS: &str = "shared";

pub(super) fn corefile(address: Ipv4Addr, kubeconfig: &Path) -> String {
    format!(
        ".:53 {{
  bind {address}
  errors
  kubernetes cluster.local in-addr.arpa {{
    kubeconfig {}
    pods insecure
    ttl 5
  }}
  cache 5
}}
",
        kubeconfig.display()
    )
}

pub(super) async fn apply(client: &Client) -> Result<()> {
    let objects =
        [kube_dns(), kube_dns_endpoints(), storage_class(STORAGE_CLASS), storage_class(SHARED_STORAGE_CLASS)];
    for object in objects {
        let object: DynamicObject = serde_json::from_value(object)?;
        // The API server is ready some moments before its service address allocator is.
        eventually("objects of the cluster", Duration::from_secs(20), async || {
            apply_one(client, &object).await.map(Some)
        })
        .await?;
    }
    Ok(())
}

async fn apply_one(client: &Client, object: &DynamicObject) -> Result<()> {
    let types = object.types.clone().unwrap_or_default();
    let gvk = kube::core::GroupVersionKind::try_from(&types)?;
    let (resource, _) = discovery::pinned_kind(client, &gvk).await?;
    let api: Api<DynamicObject> = match &object.metadata.namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let name = object.metadata.name.clone().unwrap_or_default();
    api.patch(&name, &PatchParams::apply("testbed").force(), &Patch::Apply(object)).await?;
    Ok(())
}

fn dns_ports() -> Value {
    json!([{ "name": "dns", "port": 53, "protocol": "UDP" }, { "name": "dns-tcp", "port": 53, "protocol": "TCP" }])
}

fn kube_dns() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": { "name": "kube-dns", "namespace": "kube-system" },
        "spec": { "clusterIP": "10.96.0.10", "ports": dns_ports() },
    })
}

fn kube_dns_endpoints() -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": { "name": "kube-dns", "namespace": "kube-system", "labels": { "kubernetes.io/service-name": "kube-dns" } },
        "addressType": "IPv4",
        "ports": dns_ports(),
        "endpoints": [{ "addresses": ["10.88.0.1"], "conditions": { "ready": true } }],
    })
}

/// Every node sees the same memory behind host paths, so one provisioner serves both classes.
fn storage_class(name: &str) -> Value {
    let default = (name == STORAGE_CLASS).to_string();
    json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
        "metadata": { "name": name, "annotations": { "storageclass.kubernetes.io/is-default-class": default } },
        "provisioner": "kubernetes.io/host-path",
    })
}
