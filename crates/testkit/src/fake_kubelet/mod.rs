//! Nodes without machines: Node and Pod status as a kubelet would set them.
//!
//! What a pod runs is a [`PodRuntime`]'s matter: nothing at all here, a real slurmd in `SlurmKubelet`.

mod objects;

use std::collections::{HashMap, HashSet};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use tokio::sync::{Mutex, Semaphore};
use tokio_util::sync::{CancellationToken, DropGuard};

/// On a pod: how it ends. `Succeeded`, `Failed`, or `Running` for one that goes on. Pods of Jobs succeed without it.
pub const OUTCOME: &str = "testkit.slipway.hpc/outcome";

/// Enough to keep an API server on two cores busy.
const CONCURRENCY: usize = 32;

/// What runs when a pod runs.
pub trait PodRuntime: Send + Sync + 'static {
    /// Starts the pod; an address makes it the pod's own, `None` leaves it to the kubelet. An error is
    /// followed by another try, as long as the pod is wanted.
    fn start<'a>(&'a self, pod: &'a Pod) -> BoxFuture<'a, Result<Option<Ipv4Addr>>>;

    /// Ends a pod that was started, within its grace period.
    fn stop<'a>(&'a self, pod: &'a Pod, grace: Duration) -> BoxFuture<'a, Result<()>>;
}

struct Nothing;

impl PodRuntime for Nothing {
    fn start<'a>(&'a self, _: &'a Pod) -> BoxFuture<'a, Result<Option<Ipv4Addr>>> {
        async { Ok(None) }.boxed()
    }

    fn stop<'a>(&'a self, _: &'a Pod, _: Duration) -> BoxFuture<'a, Result<()>> {
        async { Ok(()) }.boxed()
    }
}

/// Nodes and their pods, kept for as long as this lives.
#[derive(Debug)]
pub struct FakeKubelet {
    nodes: Vec<String>,
    _stop: DropGuard,
}

#[derive(Debug, Clone)]
pub struct Builder {
    prefix: String,
    count: usize,
    namespace: Option<String>,
    bind: bool,
    heartbeat: Option<Duration>,
}

impl FakeKubelet {
    /// `count` nodes named `PREFIX-0` and so on.
    pub fn nodes(prefix: &str, count: usize) -> Builder {
        Builder { prefix: prefix.to_owned(), count, namespace: None, bind: true, heartbeat: None }
    }

    pub fn node_names(&self) -> &[String] {
        &self.nodes
    }
}

impl Builder {
    /// Only pods of one namespace, so that tests that share a control plane stay apart.
    pub fn in_namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// A scheduler runs: pods are left to it.
    pub fn scheduled(mut self) -> Self {
        self.bind = false;
        self
    }

    /// Renews the nodes' leases, where a controller-manager watches over them.
    pub fn heartbeat(mut self, period: Duration) -> Self {
        self.heartbeat = Some(period);
        self
    }

    pub async fn start(self, client: Client) -> Result<FakeKubelet> {
        self.start_with(client, Arc::new(Nothing)).await
    }

    /// With something real in the pods.
    pub async fn start_with(self, client: Client, runtime: Arc<dyn PodRuntime>) -> Result<FakeKubelet> {
        let nodes: Vec<String> = (0..self.count).map(|index| format!("{}-{index}", self.prefix)).collect();
        let api: Api<Node> = Api::all(client.clone());
        futures::stream::iter(nodes.iter().enumerate().map(|(index, name)| create_node(&api, index, name)))
            .buffer_unordered(CONCURRENCY)
            .collect::<Vec<_>>()
            .await
            .into_iter()
            .collect::<Result<()>>()?;
        let stop = CancellationToken::new();
        if let Some(period) = self.heartbeat {
            tokio::spawn(stop.clone().run_until_cancelled_owned(heartbeat(
                client.clone(),
                nodes.clone(),
                period,
            )));
        }
        let kubelet = Kubelet {
            client,
            nodes: nodes.clone(),
            bind: self.bind,
            runtime,
            next: AtomicU32::new(0),
            slots: Semaphore::new(CONCURRENCY),
            stop: stop.clone(),
        };
        let pods = match &self.namespace {
            Some(namespace) => Api::namespaced(kubelet.client.clone(), namespace),
            None => Api::all(kubelet.client.clone()),
        };
        tokio::spawn(stop.clone().run_until_cancelled_owned(Arc::new(kubelet).keep(pods)));
        Ok(FakeKubelet { nodes, _stop: stop.drop_guard() })
    }
}

struct Kubelet {
    client: Client,
    nodes: Vec<String>,
    bind: bool,
    runtime: Arc<dyn PodRuntime>,
    next: AtomicU32,
    slots: Semaphore,
    stop: CancellationToken,
}

/// What has been begun for one pod.
#[derive(Default)]
struct Progress {
    bound: AtomicBool,
    started: AtomicBool,
    stopping: AtomicBool,
    /// The address of a pod that runs. Its lock keeps steps apart.
    running: Mutex<Option<Ipv4Addr>>,
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Bind,
    Start,
    Stop,
    /// The end of a pod that is no longer in the API.
    CleanUp,
}

impl Kubelet {
    async fn keep(self: Arc<Self>, pods: Api<Pod>) {
        let mut known: HashMap<String, (Pod, Arc<Progress>)> = HashMap::new();
        let mut listed = HashSet::new();
        let mut events = watcher(pods, watcher::Config::default()).boxed();
        while let Some(event) = events.next().await {
            match event {
                Ok(watcher::Event::Apply(pod) | watcher::Event::InitApply(pod)) => {
                    let uid = pod.uid().unwrap_or_default();
                    listed.insert(uid.clone());
                    let (last, progress) = known.entry(uid).or_insert_with(|| (pod.clone(), Arc::default()));
                    last.clone_from(&pod);
                    let progress = progress.clone();
                    self.advance(pod, progress);
                }
                Ok(watcher::Event::Delete(pod)) => {
                    if let Some((_, progress)) = known.remove(&pod.uid().unwrap_or_default()) {
                        self.clean_up(pod, progress);
                    }
                }
                Ok(watcher::Event::Init) => listed.clear(),
                // Deleted while the watch was broken: there is no event for these.
                Ok(watcher::Event::InitDone) => {
                    for (_, (pod, progress)) in known.extract_if(|uid, _| !listed.contains(uid)) {
                        self.clean_up(pod, progress);
                    }
                }
                // The watcher itself starts anew, at once: an API server that is away must not cost a core.
                Err(error) => {
                    tracing::debug!(%error, "watch pods");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    /// A pod that was deleted by force was never seen to end: what runs in it still has to.
    fn clean_up(self: &Arc<Self>, pod: Pod, progress: Arc<Progress>) {
        if progress.started.load(Ordering::Relaxed) && begin(&progress.stopping) {
            self.spawn(Step::CleanUp, pod, progress);
        }
    }

    /// Begins the next step of a pod, once.
    fn advance(self: &Arc<Self>, pod: Pod, progress: Arc<Progress>) {
        let spec = pod.spec.as_ref();
        let node = spec.and_then(|spec| spec.node_name.as_ref());
        let gated =
            spec.and_then(|spec| spec.scheduling_gates.as_ref()).is_some_and(|gates| !gates.is_empty());
        let ours = node.is_some_and(|name| self.nodes.contains(name));
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("Pending");
        // A pod that was never placed is removed by the API server itself.
        let step = if pod.metadata.deletion_timestamp.is_some() {
            (ours && begin(&progress.stopping)).then_some(Step::Stop)
        } else if node.is_none() {
            (self.bind && !gated && begin(&progress.bound)).then_some(Step::Bind)
        } else {
            (ours && phase == "Pending" && begin(&progress.started)).then_some(Step::Start)
        };
        if let Some(step) = step {
            self.spawn(step, pod, progress);
        }
    }

    fn spawn(self: &Arc<Self>, step: Step, pod: Pod, progress: Arc<Progress>) {
        let step = self.clone().carry_out(step, pod, progress);
        tokio::spawn(self.stop.clone().run_until_cancelled_owned(step));
    }

    /// Carries a step out, again and again if need be: the API server may be away for a while.
    async fn carry_out(self: Arc<Self>, step: Step, pod: Pod, progress: Arc<Progress>) {
        let mut running = progress.running.lock().await;
        loop {
            // Tasks overtake each other: what comes too late would start a pod that has ended.
            if matches!(step, Step::Bind | Step::Start) && progress.stopping.load(Ordering::Relaxed) {
                return;
            }
            let result = match step {
                Step::Bind => self.bind(&pod).await,
                Step::Start => self.start(&pod, &mut running).await,
                Step::Stop => self.stop_and_remove(&pod, &mut running).await,
                Step::CleanUp => self.stop(&pod, &mut running).await,
            };
            let Err(error) = result else { return };
            tracing::warn!(?step, pod = pod.name_any(), error = format!("{error:#}"), "pod step");
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
    }

    fn pods_of(&self, pod: &Pod) -> Api<Pod> {
        Api::namespaced(self.client.clone(), &pod.namespace().unwrap_or_default())
    }

    async fn bind(&self, pod: &Pod) -> Result<()> {
        let _slot = self.slots.acquire().await?;
        let turn = self.next.fetch_add(1, Ordering::Relaxed) as usize;
        let node = self.nodes.get(turn % self.nodes.len().max(1)).context("there is no node")?;
        let binding = json!({
            "apiVersion": "v1", "kind": "Binding",
            "metadata": { "name": pod.name_any(), "uid": pod.uid() },
            "target": { "apiVersion": "v1", "kind": "Node", "name": node },
        });
        let pods = self.pods_of(pod);
        let (name, params) = (pod.name_any(), PostParams::default());
        unless_gone::<Value>(pods.create_subresource("binding", &name, &params, &binding).await)
    }

    async fn start(&self, pod: &Pod, running: &mut Option<Ipv4Addr>) -> Result<()> {
        let address = match *running {
            Some(address) => address,
            None => self.runtime.start(pod).await?.unwrap_or_else(|| self.next_address()),
        };
        *running = Some(address);
        let _slot = self.slots.acquire().await?;
        let pods = self.pods_of(pod);
        patch_status(&pods, pod, &objects::runs(pod, address)).await?;
        if let Some(succeeded) = outcome(pod) {
            patch_status(&pods, pod, &objects::ended(pod, succeeded)).await?;
        }
        Ok(())
    }

    fn next_address(&self) -> Ipv4Addr {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let [_, b, c, d] = (number + 1).to_be_bytes();
        Ipv4Addr::new(10, 128 | b, c, d)
    }

    async fn stop(&self, pod: &Pod, running: &mut Option<Ipv4Addr>) -> Result<()> {
        if running.is_some() {
            let seconds = pod.metadata.deletion_grace_period_seconds.unwrap_or(30);
            self.runtime.stop(pod, Duration::from_secs(seconds.unsigned_abs())).await?;
            *running = None;
        }
        Ok(())
    }

    async fn stop_and_remove(&self, pod: &Pod, running: &mut Option<Ipv4Addr>) -> Result<()> {
        self.stop(pod, running).await?;
        let _slot = self.slots.acquire().await?;
        let only_this = Preconditions { uid: pod.uid(), resource_version: None };
        let params = DeleteParams::default().grace_period(0).preconditions(only_this);
        unless_gone(self.pods_of(pod).delete(&pod.name_any(), &params).await)
    }
}

/// True for the first who asks.
fn begin(flag: &AtomicBool) -> bool {
    !flag.swap(true, Ordering::Relaxed)
}

/// There is nothing left to do for a pod that is no longer there, or whose name another one has by now.
fn unless_gone<T>(answer: kube::Result<T>) -> Result<()> {
    match answer {
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
        other => Ok(other.map(drop)?),
    }
}

async fn patch_status(pods: &Api<Pod>, pod: &Pod, status: &Value) -> Result<()> {
    let patch = json!({ "metadata": { "uid": pod.uid() }, "status": status });
    unless_gone(pods.patch_status(&pod.name_any(), &PatchParams::default(), &Patch::Strategic(patch)).await)
}

/// `Some` for a pod that ends: whether it succeeds.
fn outcome(pod: &Pod) -> Option<bool> {
    let of_a_job = pod.owner_references().iter().any(|owner| owner.kind == "Job");
    match pod.annotations().get(OUTCOME).map(String::as_str) {
        Some("Failed") => Some(false),
        Some("Succeeded") => Some(true),
        Some(_) => None,
        None => of_a_job.then_some(true),
    }
}

async fn create_node(api: &Api<Node>, index: usize, name: &str) -> Result<()> {
    match api.create(&PostParams::default(), &objects::node(index, name)?).await {
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        other => other.map(|_| ()).with_context(|| format!("create node {name}")),
    }
}

/// Renews each node's lease, as kubelets do.
async fn heartbeat(client: Client, nodes: Vec<String>, period: Duration) {
    let leases: Api<Lease> = Api::namespaced(client, "kube-node-lease");
    let mut ticks = tokio::time::interval(period);
    loop {
        ticks.tick().await;
        for name in &nodes {
            let lease = json!({
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": name },
                "spec": { "holderIdentity": name, "leaseDurationSeconds": 40,
                    "renewTime": format!("{:.6}", Timestamp::now()) },
            });
            let params = PatchParams::apply("fake-kubelet").force();
            if let Err(error) = leases.patch(name, &params, &Patch::Apply(lease)).await {
                tracing::warn!(%error, node = name, "renew a lease");
            }
        }
    }
}
