//! A real Kubernetes cluster on this machine: control plane and nodes with kubelet, containerd and kube-proxy.
//!
//! The control plane, DNS and every node live in one [`Sandbox`]; the API server is reached from outside
//! through a port on 127.0.0.1. Only the cluster's folder and its cgroups have a name outside.

mod cgroups;
pub mod images;
mod node;
mod objects;
pub use objects::{SHARED_STORAGE_CLASS, STORAGE_CLASS};
mod state;

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::ListParams;
use kube::{Api, Client};
use nix::sys::signal::Signal;

use crate::api_calls::ApiCalls;
use crate::cache::{Cache, Part};
use crate::control_plane;
use crate::control_plane::programs::{self, Place};
use crate::fake_kubelet::FakeKubelet;
use crate::forward::Forward;
use crate::pki::{MASTERS, Pki, client_from};
use crate::process::{Process, eventually, run, while_running};
use crate::sandbox::Sandbox;
pub use state::{State, check_name};

const NETWORK: &str = include_str!("../../../../testbed/cluster/network.sh");
/// In the sandbox: the sign that nodes wait for.
const SERVES: &str = "/srv/api-server-serves";
/// In the cluster's folder.
const AUDIT_LOG: &str = "logs/audit.log";
const CONTROL_PLANE: Ipv4Addr = Ipv4Addr::new(10, 88, 0, 1);
/// Ranges of ids and addresses are cut for this many.
const MOST_NODES: usize = 50;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Real nodes.
    pub nodes: usize,
    /// Nodes kept by `FakeKubelet`.
    pub fake: usize,
}

/// How far a start has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The API server serves.
    ApiServer,
    /// Every node is Ready.
    Nodes,
}

impl std::fmt::Display for Step {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::ApiServer => "API server serves",
            Self::Nodes => "nodes are Ready",
        })
    }
}

/// A running cluster. Dropped, it is gone, with its folder and cgroups.
#[derive(Debug)]
pub struct Cluster {
    size: Size,
    fake: Option<FakeKubelet>,
    nodes: Vec<Process>,
    control_plane: Vec<Process>,
    forward: Forward,
    pki: Pki,
    sandbox: Sandbox,
    state: State,
}

impl Cluster {
    /// Starts a cluster and waits until every node is Ready. `reached` hears of each step.
    pub async fn start(cache: &Cache, name: &str, size: Size, reached: impl Fn(Step)) -> Result<Self> {
        if size.nodes > MOST_NODES {
            bail!("{} nodes are too many for one machine: at most {MOST_NODES}", size.nodes);
        }
        let state = State::claim(cache, name)?;
        let sandbox = Sandbox::start(cache, &state.log("sandbox")).await?;
        let mut network = sandbox.command("bash");
        network.args(["-c", NETWORK, "network", &size.nodes.to_string()]);
        run(network, Duration::from_secs(60)).await.context("set up the network")?;
        let pki = Pki::create(
            &state.path("pki"),
            &[Ipv4Addr::LOCALHOST.into(), CONTROL_PLANE.into(), Ipv4Addr::new(10, 96, 0, 1).into()],
        )?;
        let forward = sandbox.forward(SocketAddr::from((CONTROL_PLANE, 6443)))?;
        let mut cluster = Self {
            size,
            fake: None,
            nodes: Vec::new(),
            control_plane: Vec::new(),
            forward,
            pki,
            sandbox,
            state,
        };
        cluster.start_api_server(cache)?;
        for number in 1..=size.nodes {
            let node = cluster.start_node(cache, number)?;
            cluster.nodes.push(node);
        }
        let client = cluster.client("testbed").await?;
        while_running(&mut cluster.control_plane, control_plane::serves(&client)).await?;
        fs::write(cluster.sandbox.path(SERVES), "")?;
        reached(Step::ApiServer);
        cluster.start_controllers(cache)?;
        objects::apply(&client).await?;
        if size.fake > 0 {
            let fake = FakeKubelet::nodes("fake", size.fake).scheduled().heartbeat(Duration::from_secs(10));
            cluster.fake = Some(fake.start(client.clone()).await?);
        }
        cluster.nodes_ready(&client).await?;
        reached(Step::Nodes);
        cluster.dns_listens().await?;
        cluster.state.write_nodes(&cluster.nodes.iter().flat_map(Process::children).collect::<Vec<_>>())?;
        Ok(cluster)
    }

    /// Lets others find the cluster: writes its kubeconfig and gives its path.
    pub fn publish(&self) -> Result<PathBuf> {
        let admin = self.pki.client("admin", MASTERS)?;
        let kubeconfig = self.pki.kubeconfig(&self.server(), &admin);
        self.state.write_kubeconfig(&serde_json::to_vec_pretty(&kubeconfig)?)
    }

    /// Imports an image archive into every real node of a running cluster; gives their number.
    pub async fn load(cache: &Cache, name: &str, archive: &Path) -> Result<usize> {
        let nodes = State::nodes(cache, name)?;
        let imports = nodes.iter().map(|node| node::import(*node, archive));
        futures::future::try_join_all(imports).await.map(|done| done.len())
    }

    /// A port on this machine's 127.0.0.1 that leads to an address in the network of a running cluster, as its first
    /// node sees it: services too.
    pub fn forward(cache: &Cache, name: &str, to: SocketAddr) -> Result<Forward> {
        let nodes = State::nodes(cache, name)?;
        let node = nodes.first().with_context(|| format!("cluster {name} has no real node"))?;
        Forward::into_namespace(Path::new(&format!("/proc/{node}/ns/net")), to)
    }

    fn place(&self) -> Place {
        Place {
            pki: self.pki.folder().to_owned(),
            data: PathBuf::from("/srv/control-plane"),
            address: CONTROL_PLANE.into(),
            api_port: 6443,
            etcd_port: 2379,
            etcd_peer_port: 2380,
            audit_log: self.audit_log(),
            audit_policy: self.state.path("audit-policy.json"),
            audit_log_megabytes: 256,
        }
    }

    fn start_api_server(&mut self, cache: &Cache) -> Result<()> {
        fs::write(self.state.path("audit-policy.json"), programs::AUDIT_POLICY)?;
        let place = self.place();
        self.spawn("etcd", &cache.etcd()?, |command| programs::etcd(command, &place))?;
        let program = cache.kubernetes("kube-apiserver")?;
        self.spawn("kube-apiserver", &program, |command| programs::api_server(command, &place))
    }

    /// What gives up when the API server is not there within seconds.
    fn start_controllers(&mut self, cache: &Cache) -> Result<()> {
        let place = self.place();
        let manager = self.kubeconfig_for("system:kube-controller-manager", "controller-manager")?;
        let program = cache.kubernetes("kube-controller-manager")?;
        self.spawn("kube-controller-manager", &program, |command| {
            programs::controller_manager(command, &place, &manager);
            command.arg("--enable-hostpath-provisioner=true");
        })?;
        let scheduler = self.kubeconfig_for("system:kube-scheduler", "scheduler")?;
        let program = cache.kubernetes("kube-scheduler")?;
        self.spawn("kube-scheduler", &program, |command| programs::scheduler(command, &scheduler))?;
        let corefile = self.state.path("Corefile");
        fs::write(&corefile, objects::corefile(CONTROL_PLANE, &self.kubeconfig_for("coredns", "coredns")?))?;
        let program = cache.part(Part::CoreDns)?.join("coredns");
        self.spawn("coredns", &program, |command| {
            command.arg("-conf").arg(&corefile);
        })
    }

    /// A kubeconfig for a program inside the cluster's network.
    fn kubeconfig_for(&self, user: &str, file: &str) -> Result<PathBuf> {
        let identity = self.pki.client(user, MASTERS)?;
        self.pki.write_kubeconfig(&format!("{file}.kubeconfig"), &inside_url(), &identity)
    }

    fn spawn(&mut self, name: &str, program: &Path, arguments: impl FnOnce(&mut Command)) -> Result<()> {
        let mut command = self.sandbox.command(program);
        arguments(&mut command);
        self.control_plane.push(Process::spawn(name, command, &self.state.log(name))?);
        Ok(())
    }

    fn start_node(&self, cache: &Cache, number: usize) -> Result<Process> {
        let files = self.sandbox.path(&format!("/srv/node{number}"));
        node::write_files(cache, &self.pki, &self.state, &inside_url(), number, &files)?;
        let command = node::command(&self.sandbox, cache, &self.state, number)?;
        Process::spawn(format!("node{number}"), command, &self.state.log(&format!("node{number}")))
    }

    async fn nodes_ready(&mut self, client: &Client) -> Result<()> {
        let nodes: Api<Node> = Api::all(client.clone());
        let wanted = self.size.nodes + self.size.fake;
        let what = format!("{wanted} nodes Ready");
        let ready = eventually(&what, Duration::from_secs(120), async || {
            let ready =
                nodes.list(&ListParams::default()).await?.items.iter().filter(|node| is_ready(node)).count();
            Ok((ready == wanted).then_some(()))
        });
        while_running(self.control_plane.iter_mut().chain(&mut self.nodes), ready).await
    }

    async fn dns_listens(&mut self) -> Result<()> {
        let answers = eventually("cluster DNS", Duration::from_secs(30), async || {
            self.sandbox.shell(&format!("exec 3<>/dev/tcp/{CONTROL_PLANE}/53")).await.map(Some)
        });
        while_running(&mut self.control_plane, answers).await.map(|_| ())
    }

    /// The API server's address on this machine.
    pub fn server(&self) -> String {
        format!("https://{}", self.forward.address())
    }

    /// A client that may do everything, known to the server (and to `ApiCalls`) as `name`.
    pub async fn client(&self, name: &str) -> Result<Client> {
        client_from(self.pki.kubeconfig(&self.server(), &self.pki.client(name, MASTERS)?)).await
    }

    fn audit_log(&self) -> PathBuf {
        self.state.path(AUDIT_LOG)
    }

    pub fn api_calls(&self) -> ApiCalls {
        ApiCalls::of(self.audit_log())
    }

    /// Returns only when a part of the control plane has ended by itself.
    pub async fn watch_over(&mut self) -> Result<()> {
        while_running(&mut self.control_plane, std::future::pending()).await
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // All at once, then wait: the nodes' namespaces are taken down side by side.
        let init: Vec<_> = self.nodes.iter().flat_map(Process::children).collect();
        for process in self.nodes.iter().chain(&self.control_plane) {
            process.signal(Signal::SIGKILL);
        }
        self.nodes.clear();
        self.control_plane.clear();
        state::wait_for_end(&init);
        // A failure leaves the folder, and with it the next sweep's chance to say why.
        let _ = self.state.remove();
    }
}

/// The API server's address inside the cluster's network.
fn inside_url() -> String {
    format!("https://{CONTROL_PLANE}:6443")
}

/// Whether a pod is said to be Ready.
pub fn is_pod_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// Whether a node says that it is Ready.
pub fn is_ready(node: &Node) -> bool {
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}
