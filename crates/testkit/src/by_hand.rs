//! The Slurm cluster of `deploy/by-hand` on a testbed cluster, as a user would bring it up: kubectl, manifests, ssh.

mod kubectl;
mod ssh;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use k8s_openapi::api::core::v1::{Namespace, Pod, Secret, Service};
use kube::api::{ListParams, ObjectMeta, PostParams};
use kube::{Api, Client, ResourceExt};

use crate::cache::{Cache, SlurmVersion};
use crate::cluster::is_pod_ready;
use crate::images::{REGISTRY, slurm_tag};
use crate::pki::client_from_file;
use crate::process::{bound_command, eventually, run};
use kubectl::Kubectl;
pub use ssh::{Key, Ssh};

/// From nothing to every pod Ready takes half a minute; a busy machine may take longer.
const READY: Duration = Duration::from_secs(300);
/// How often a wait says what it waits for.
const WORD: Duration = Duration::from_secs(10);
const LOGIN: &str = "demo-login-svc";
const JAIL: &str = "/mnt/jail";

/// A folder of `deploy/by-hand` that can be applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// As the Go operators do it, on the newest Slurm.
    Privileged,
    /// Login and workers without privileges.
    UserNamespaces,
    /// Privileged, on the older Slurm.
    Slurm24_11,
}

impl Shape {
    pub const ALL: [Self; 3] = [Self::Privileged, Self::UserNamespaces, Self::Slurm24_11];

    pub fn folder(self) -> &'static str {
        match self {
            Self::Privileged => "privileged",
            Self::UserNamespaces => "user-namespaces",
            Self::Slurm24_11 => "slurm-24.11",
        }
    }

    pub fn slurm(self) -> SlurmVersion {
        match self {
            Self::Privileged | Self::UserNamespaces => SlurmVersion::V26_05,
            Self::Slurm24_11 => SlurmVersion::V24_11,
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.folder())
    }
}

/// A by-hand cluster in a namespace.
#[derive(Clone)]
pub struct ByHand {
    kubectl: Kubectl,
    client: Client,
    namespace: String,
}

impl fmt::Debug for ByHand {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ByHand").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

impl ByHand {
    /// The cluster of a namespace, whether or not anything is there yet.
    pub async fn at(cache: &Cache, kubeconfig: &Path, namespace: &str) -> Result<Self> {
        Ok(Self {
            kubectl: Kubectl::new(cache, kubeconfig, namespace)?,
            client: client_from_file(kubeconfig).await?,
            namespace: namespace.to_owned(),
        })
    }

    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    pub fn client(&self) -> Client {
        self.client.clone()
    }

    fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = kube::core::NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Makes the namespace and its secrets, and applies the manifests of a shape.
    pub async fn apply(&self, cache: &Cache, shape: Shape) -> Result<()> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        if namespaces.get_opt(&self.namespace).await?.is_none() {
            let metadata = ObjectMeta { name: Some(self.namespace.clone()), ..ObjectMeta::default() };
            let object = Namespace { metadata, ..Namespace::default() };
            namespaces.create(&PostParams::default(), &object).await.context("make the namespace")?;
        }
        let folder = deploy_folder();
        let mut secrets = bound_command("bash");
        secrets.arg(folder.join("secrets.sh")).arg(&self.namespace);
        self.kubectl.environment(&mut secrets)?;
        run(secrets, Duration::from_secs(60)).await.context("make the secrets")?;

        let rendered =
            self.kubectl.run(&["kustomize", &folder.join(shape.folder()).display().to_string()]).await?;
        let manifest = tempfile::NamedTempFile::new()?;
        std::fs::write(&manifest, with_tag(&rendered, &slurm_tag(cache, shape.slurm())?))?;
        let path = manifest.path().display().to_string();
        self.kubectl.run(&["apply", "--server-side", "--force-conflicts", "--filename", &path]).await?;
        Ok(())
    }

    /// Waits until every pod is Ready or done. `told` hears of each, and from time to time of those that are not.
    pub async fn ready(&self, told: impl Fn(&str)) -> Result<()> {
        let started = Instant::now();
        let mut known: Vec<String> = Vec::new();
        let mut next_word = WORD;
        loop {
            let pods = self.api::<Pod>().list(&ListParams::default()).await?.items;
            let (failed, waiting): (Vec<_>, Vec<_>) =
                pods.iter().filter(|pod| !is_settled(pod)).partition(|pod| phase(pod) == Some("Failed"));
            for pod in pods.iter().filter(|pod| is_settled(pod)) {
                let name = pod.name_any();
                if !known.contains(&name) {
                    told(&format!("pod {name} is {}", if is_done(pod) { "done" } else { "Ready" }));
                    known.push(name);
                }
            }
            let complete = ["controller-0", "login-0", "worker-0", "worker-1"];
            if waiting.is_empty() && complete.iter().all(|name| known.iter().any(|other| other == name)) {
                return Ok(());
            }
            let waited = started.elapsed();
            if waited >= READY {
                let pods = [failed, waiting].concat();
                bail!("pods are not Ready after {} s:\n{}", READY.as_secs(), self.explain(&pods).await);
            }
            if waited >= next_word {
                let names: Vec<_> = waiting.iter().map(|pod| describe(pod)).collect();
                told(&format!("waiting since {} s for {}", waited.as_secs(), names.join(", ")));
                next_word = waited + WORD;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// What a person would look at: states, and the last lines of logs.
    async fn explain(&self, pods: &[&Pod]) -> String {
        let mut text = String::new();
        for pod in pods {
            let name = pod.name_any();
            text += &format!("{}\n", describe(pod));
            let logs = ["logs", &name, "--all-containers", "--tail=8", "--prefix"];
            text += &self.kubectl.run(&logs).await.unwrap_or_else(|error| format!("{error:#}\n"));
        }
        text
    }

    /// Waits until slurmctld says that both workers are idle.
    pub async fn workers_idle(&self) -> Result<()> {
        eventually("both workers idle", Duration::from_secs(120), async || {
            let states = self
                .exec("controller-0", "slurmctld", &["sinfo", "-h", "-N", "-p", "main", "-o", "%t"])
                .await?;
            let states: Vec<_> = states.lines().collect();
            if states == ["idle", "idle"] { Ok(Some(())) } else { bail!("states are {states:?}") }
        })
        .await
    }

    /// Runs a command in a container and gives what it printed.
    pub async fn exec(&self, pod: &str, container: &str, command: &[&str]) -> Result<String> {
        self.kubectl.run(&[&["exec", pod, "-c", container, "--"], command].concat()).await
    }

    pub async fn logs(&self, pod: &str, container: &str) -> Result<String> {
        self.kubectl.run(&["logs", pod, "-c", container]).await
    }

    /// Any other command of kubectl, in the namespace.
    pub async fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        self.kubectl.run(arguments).await
    }

    /// One entry of a Secret.
    pub async fn secret(&self, name: &str, key: &str) -> Result<Vec<u8>> {
        let secret = self.api::<Secret>().get(name).await?;
        let bytes = secret.data.and_then(|mut data| data.remove(key));
        Ok(bytes.with_context(|| format!("no {key} in the secret {name}"))?.0)
    }

    /// Adds a user to the jail, unless it is there, with a key to log in with.
    pub async fn add_user(&self, name: &str, uid: u32, key: &Key) -> Result<()> {
        let script = r#"
            id "$1" > /dev/null 2>&1 || useradd --create-home --uid "$2" --shell /bin/bash "$1"
            install -d -m 700 -o "$1" -g "$1" "/home/$1/.ssh"
            printf '%s\n' "$3" > "/home/$1/.ssh/authorized_keys"
            chown "$1:$1" "/home/$1/.ssh/authorized_keys""#;
        let (uid, public) = (uid.to_string(), key.public()?);
        let command = ["chroot", JAIL, "bash", "-euc", script, "add-user", name, &uid, &public];
        self.exec("login-0", "sshd", &command).await.context("add a user to the jail").map(|_| ())
    }

    /// The address of the login service inside the cluster's network.
    pub async fn login_address(&self) -> Result<std::net::SocketAddr> {
        let service = self.api::<Service>().get(LOGIN).await?;
        let address =
            service.spec.and_then(|spec| spec.cluster_ip).context("the login service has no address")?;
        Ok((address.parse::<std::net::IpAddr>()?, 22).into())
    }
}

/// The manifests, in the workspace that this was built from.
fn deploy_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/by-hand")
}

/// The manifests name a release of Slurm; what Debian has at the moment may be a newer one.
fn with_tag(manifest: &str, tag: &str) -> String {
    let prefix = format!("image: {REGISTRY}/");
    let line = |line: &str| match line.rsplit_once(':') {
        Some((image, _)) if line.contains(&prefix) => format!("{image}:{tag}\n"),
        _ => format!("{line}\n"),
    };
    manifest.lines().map(line).collect()
}

fn is_settled(pod: &Pod) -> bool {
    is_done(pod) || (is_pod_ready(pod) && pod.metadata.deletion_timestamp.is_none())
}

/// `Failed` is a pod that a Job has replaced by another.
fn phase(pod: &Pod) -> Option<&str> {
    pod.status.as_ref()?.phase.as_deref()
}

fn is_done(pod: &Pod) -> bool {
    phase(pod) == Some("Succeeded")
}

/// `worker-0 (worker-init runs)`, or what its containers wait for.
fn describe(pod: &Pod) -> String {
    let status = pod.status.clone().unwrap_or_default();
    let containers = status.init_container_statuses.into_iter().chain(status.container_statuses).flatten();
    let what = containers.filter(|container| !container.ready).find_map(|container| {
        let state = container.state?;
        if let Some(waiting) = state.waiting {
            return Some(format!("{}: {}", container.name, waiting.reason.unwrap_or_default()));
        }
        state.running.map(|_| format!("{} runs", container.name))
    });
    let phase = status.phase.unwrap_or_default();
    format!("{} ({})", pod.name_any(), what.unwrap_or(phase))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Everything that gives a pod more than a pod has by itself.
    fn is_privilege(line: &str) -> bool {
        let name = line.trim().trim_start_matches("- ").split_whitespace().next().unwrap_or_default();
        let capability = name.len() > 3 && name.chars().all(|c| c.is_ascii_uppercase() || c == '_');
        let given = ["privileged: true", "procMount:", "Unconfined", "hostPath", "hostNetwork", "hostPID"];
        capability || given.iter().any(|word| line.contains(word))
    }

    #[test]
    fn every_privilege_in_the_manifests_has_its_reason() {
        let mut privileges = 0;
        let mut folders = vec![deploy_folder()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "yaml") {
                    for line in
                        std::fs::read_to_string(&path).unwrap().lines().filter(|line| is_privilege(line))
                    {
                        privileges += 1;
                        assert!(line.contains(" # "), "{}: no reason for `{}`", path.display(), line.trim());
                    }
                }
            }
        }
        assert!(privileges > 20, "only {privileges} found");
    }

    #[test]
    fn only_our_images_get_the_tag() {
        let manifest =
            "      - image: slipway.hpc/munge:0.1.0-slurm26.05.5\n        image: other.example/x:2\n";
        assert_eq!(
            with_tag(manifest, "0.1.0-slurm26.05.9"),
            "      - image: slipway.hpc/munge:0.1.0-slurm26.05.9\n        image: other.example/x:2\n"
        );
    }
}
