//! A namespace of one test on the cluster that all pod tests share.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use k8s_openapi::api::core::v1::{Namespace, Pod, ServiceAccount};
use kube::api::{
    AttachParams, DeleteParams, DynamicObject, LogParams, ObjectMeta, Patch, PatchParams, PostParams,
};
use kube::core::GroupVersionKind;
use kube::{Api, Client, discovery};
use serde_json::Value;
use testkit::cluster::is_pod_ready;
use testkit::pki::client_from_file;
use testkit::process::eventually;
use tokio::io::AsyncReadExt;

const KUBECONFIG: &str = "SLIPWAY_TEST_KUBECONFIG";

/// A client and a namespace.
#[derive(Clone)]
pub struct Place {
    client: Client,
    namespace: String,
}

impl std::fmt::Debug for Place {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Place").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

impl Place {
    /// On the cluster that pod tests share.
    pub async fn new(prefix: &str) -> Result<Self> {
        Self::on(&shared_kubeconfig()?, prefix).await
    }

    /// On the cluster of a kubeconfig.
    pub async fn on(kubeconfig: &Path, prefix: &str) -> Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let client = client_from_file(kubeconfig).await?;
        let namespace = format!("{prefix}-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let object = Namespace {
            metadata: ObjectMeta { name: Some(namespace.clone()), ..ObjectMeta::default() },
            ..Namespace::default()
        };
        Api::all(client.clone()).create(&PostParams::default(), &object).await?;
        let place = Self { client, namespace };
        // Pods are refused until the namespace has its service account.
        let accounts: Api<ServiceAccount> = place.api();
        eventually("service account", Duration::from_secs(20), async || {
            Ok(accounts.get_opt("default").await?)
        })
        .await?;
        Ok(place)
    }

    /// The name of the cluster that pod tests share: that of its folder.
    pub fn shared_cluster() -> Result<String> {
        let path = shared_kubeconfig()?;
        let folder = path.parent().and_then(Path::file_name).context("the kubeconfig is in no folder")?;
        Ok(folder.to_string_lossy().into_owned())
    }

    pub fn client(&self) -> Client {
        self.client.clone()
    }

    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    pub fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = kube::core::NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Applies a manifest of one or more documents.
    pub async fn apply(&self, manifest: &str) -> Result<()> {
        let objects: Vec<Value> = serde_saphyr::from_multiple(manifest).context("read the manifest")?;
        for object in objects {
            let object: DynamicObject = serde_json::from_value(object)?;
            let types = object.types.clone().context("an object without a kind")?;
            let (resource, _) =
                discovery::pinned_kind(&self.client, &GroupVersionKind::try_from(&types)?).await?;
            let api: Api<DynamicObject> =
                Api::namespaced_with(self.client.clone(), &self.namespace, &resource);
            let name = object.metadata.name.clone().context("an object without a name")?;
            api.patch(&name, &PatchParams::apply("e2e").force(), &Patch::Apply(&object))
                .await
                .with_context(|| format!("apply {} {name}", types.kind))?;
        }
        Ok(())
    }

    /// Waits until a pod is Ready; a failure says what the kubelet said.
    pub async fn ready(&self, pod: &str) -> Result<Pod> {
        let pods: Api<Pod> = self.api();
        let result = eventually(&format!("pod {pod} Ready"), Duration::from_secs(60), async || {
            Ok(pods.get_opt(pod).await?.filter(is_pod_ready))
        })
        .await;
        match result {
            Ok(pod) => Ok(pod),
            Err(error) => {
                let status = pods.get_opt(pod).await?.and_then(|pod| pod.status);
                Err(error.context(serde_json::to_string(&status)?))
            }
        }
    }

    /// Runs a command in a pod and gives what it printed.
    pub async fn exec(&self, pod: &str, command: &[&str]) -> Result<String> {
        let params = AttachParams::default().stdout(true).stderr(true);
        let mut process = self.api::<Pod>().exec(pod, command.iter().copied(), &params).await?;
        let mut stdout = process.stdout().context("no output stream")?;
        let mut stderr = process.stderr().context("no error stream")?;
        let status = process.take_status().context("no status")?;
        let (mut printed, mut complaint) = (String::new(), String::new());
        tokio::try_join!(stdout.read_to_string(&mut printed), stderr.read_to_string(&mut complaint))?;
        match status.await.and_then(|status| status.status).as_deref() {
            Some("Success") => Ok(printed),
            _ => bail!("{command:?} in {pod}: {printed}{complaint}"),
        }
    }

    pub async fn logs(&self, pod: &str) -> Result<String> {
        Ok(self.api::<Pod>().logs(pod, &LogParams::default()).await?)
    }

    /// Removes the namespace without waiting for its end.
    pub async fn leave(self) -> Result<()> {
        let namespaces: Api<Namespace> = Api::all(self.client);
        namespaces.delete(&self.namespace, &DeleteParams::default()).await?;
        Ok(())
    }
}

fn shared_kubeconfig() -> Result<PathBuf> {
    std::env::var_os(KUBECONFIG)
        .map(PathBuf::from)
        .with_context(|| format!("{KUBECONFIG} is not set: run `cargo xtask test --suite pods`"))
}
