//! Worker pods with a real slurmd in them; all other pods as `FakeKubelet` keeps them.
//!
//! Deleting a worker pod ends its whole process tree after the grace period. A job that ran there is really
//! lost, so a test can tell an operator that drains from one that does not.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use futures::FutureExt;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Pod;
use kube::{Client, ResourceExt};
use tokio::sync::{RwLock, RwLockReadGuard};

use super::{NODE_CONF, SlurmCluster};
use crate::fake_kubelet::{Builder, FakeKubelet, PodRuntime};

/// On a worker pod: what its slurmd says of itself, such as `CPUs=4 RealMemory=2000 Feature=gpu`.
pub const SLURMD_CONF: &str = "testkit.slipway.hpc/slurmd-conf";
const SLURMD_PORT: u16 = 6818;
/// slurmd asks a slurmctld that does not answer again every 10 s.
const READY: Duration = Duration::from_secs(60);

pub struct SlurmKubelet {
    // Before the cluster: no pod is started in one that is going away.
    _kubelet: FakeKubelet,
    slurm: Arc<RwLock<SlurmCluster>>,
}

impl std::fmt::Debug for SlurmKubelet {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("SlurmKubelet").finish_non_exhaustive()
    }
}

impl SlurmKubelet {
    /// Keeps the pods of `nodes`; those that are `worker`s become nodes of `slurm` under the pod's name.
    pub async fn start(
        nodes: Builder,
        client: Client,
        slurm: SlurmCluster,
        worker: impl Fn(&Pod) -> bool + Send + Sync + 'static,
    ) -> Result<Self> {
        let slurm = Arc::new(RwLock::new(slurm));
        let workers = Workers { slurm: slurm.clone(), is_worker: Box::new(worker) };
        Ok(Self { _kubelet: nodes.start_with(client, Arc::new(workers)).await?, slurm })
    }

    /// The cluster, to submit jobs and to ask. Pods start and stop in between, so do not hold it for long.
    pub async fn slurm(&self) -> RwLockReadGuard<'_, SlurmCluster> {
        self.slurm.read().await
    }
}

struct Workers {
    slurm: Arc<RwLock<SlurmCluster>>,
    is_worker: Box<dyn Fn(&Pod) -> bool + Send + Sync>,
}

impl Workers {
    /// As a readiness probe would. The lock is taken for each look: others need it while slurmd starts.
    async fn until_listening(&self, name: &str) -> Result<Ipv4Addr> {
        let end = Instant::now() + READY;
        loop {
            let slurm = self.slurm.read().await;
            let node = slurm.pod(name)?;
            node.check_running()?;
            if node.is_listening(SLURMD_PORT) {
                return Ok(node.address());
            }
            if Instant::now() >= end {
                bail!("slurmd of pod {name} does not listen after {READY:?}; {}", node.log_tail());
            }
            drop(slurm);
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
    }

    async fn end(&self, name: &str, grace: Duration) -> Result<()> {
        let mut node = self.slurm.write().await.take_node(name)?;
        // Not under the lock: a grace period is long, and the test goes on.
        node.stop(grace).await?;
        node.remove(&self.slurm.read().await.site).await
    }
}

impl PodRuntime for Workers {
    fn start<'a>(&'a self, pod: &'a Pod) -> BoxFuture<'a, Result<Option<Ipv4Addr>>> {
        async move {
            if !(self.is_worker)(pod) {
                return Ok(None);
            }
            let name = pod.name_any();
            let conf = pod.annotations().get(SLURMD_CONF).map_or(NODE_CONF, String::as_str);
            self.slurm.write().await.add_node(&name, conf).await?;
            let listening = self.until_listening(&name).await;
            if listening.is_err() {
                // A failed start leaves nothing: it is tried again, or never stopped.
                self.end(&name, Duration::ZERO).await?;
            }
            listening.map(Some)
        }
        .boxed()
    }

    fn stop<'a>(&'a self, pod: &'a Pod, grace: Duration) -> BoxFuture<'a, Result<()>> {
        async move {
            if !(self.is_worker)(pod) {
                return Ok(());
            }
            self.end(&pod.name_any(), grace).await
        }
        .boxed()
    }
}
