//! A real Slurm cluster for one test: every daemon a process in namespaces of its own, with its own address.
//!
//! All of it lives in one [`Sandbox`], so clusters do not see each other, and the end of the test, however it
//! comes, is the end of the cluster. Nodes are dynamic: they register themselves, as pods do.

mod config;
mod daemons;
mod kubelet;
mod nodes;
mod pod;
mod rest;
pub mod token;

use std::collections::BTreeMap;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use http::Method;
use nix::unistd::Pid;
use serde_json::Value;

pub use config::Auth;
pub use kubelet::{SLURMD_CONF, SlurmKubelet};
pub use rest::RestAnswer;

use crate::Sandbox;
use crate::cache::{Cache, SlurmVersion};
use crate::scratch::Scratch;
use config::{Config, RESTD};
use daemons::{Daemons, Keys};
use pod::{Pod, Site};
use rest::Rest;

const CONTROLLER_POD: &str = "slurmctld";
const CONTROLLER_PORT: u16 = 6817;
const RESTD_PORT: u16 = 6820;
const NODE_CONF: &str = "CPUs=2 RealMemory=1000 Feature=dyn";
/// A pod gets a small table of connections of its own: else a look into /proc/net/tcp walks that of the machine,
/// which takes 10 ms. Kernels before 6.1 cannot do that.
const BRIDGE: &str = "
echo 1024 > /proc/sys/net/ipv4/tcp_child_ehash_entries || true
ip link add br0 type bridge
ip addr add 10.77.0.1/16 dev br0
ip link set br0 up";

/// What a cluster will be.
#[derive(Debug, Clone)]
pub struct SlurmClusterBuilder {
    config: Config,
    nodes: u32,
}

impl SlurmClusterBuilder {
    /// How many nodes, `n1` and so on, are idle when the cluster has started.
    #[must_use]
    pub fn nodes(mut self, nodes: u32) -> Self {
        self.nodes = nodes;
        self
    }

    /// With MariaDB and slurmdbd.
    #[must_use]
    pub fn accounting(mut self) -> Self {
        self.config.accounting = true;
        self
    }

    #[must_use]
    pub fn auth(mut self, auth: Auth) -> Self {
        self.config.auth = auth;
        self
    }

    /// Lines at the end of slurm.conf.
    #[must_use]
    pub fn extra_conf(mut self, lines: &str) -> Self {
        self.config.extra_conf += lines;
        self.config.extra_conf += "\n";
        self
    }

    pub async fn start(self) -> Result<SlurmCluster> {
        let version = self.config.version;
        Box::pin(self.start_daemons()).await.with_context(|| format!("start Slurm {}", version.as_str()))
    }

    async fn start_daemons(self) -> Result<SlurmCluster> {
        let Self { config, nodes } = self;
        let version = config.version;
        let cache = Cache::locate()?;
        let rootfs = cache.slurm_rootfs(version)?;
        let daemons = Daemons { config, keys: Keys::generate()? };

        let logs = Scratch::new("slurm")?;
        let sandbox = Sandbox::start(&cache, &logs.join("sandbox.log")).await?;
        sandbox.shell(BRIDGE).await?;
        fs::write(sandbox.path("/srv/hosts"), config::hosts())?;
        let rest = Rest::new(sandbox.forward(SocketAddr::from((RESTD, RESTD_PORT)))?);
        let site = Site { sandbox, rootfs, logs };

        // slurmrestd does not ask for slurmctld before it gets a request.
        let (restd, mut pods) =
            tokio::try_join!(start_restd(&site, &daemons), start_controller(&site, &daemons))?;
        pods.push(restd);
        let pods = pods.into_iter().map(|pod| (pod.name().to_owned(), pod)).collect();
        let mut cluster = SlurmCluster { rest, pods, nodes_made: 0, daemons, site };
        for number in 1..=nodes {
            cluster.add_node(&format!("n{number}"), NODE_CONF).await?;
        }
        cluster.wait_idle(nodes).await?;
        Ok(cluster)
    }
}

async fn start_restd(site: &Site, daemons: &Daemons) -> Result<Pod> {
    let restd = Pod::create(site, &daemons.slurmrestd()).await?;
    restd.wait_listening(RESTD_PORT).await?;
    Ok(restd)
}

/// slurmctld and what it waits for: at its first start it answers nobody before slurmdbd has answered it.
async fn start_controller(site: &Site, daemons: &Daemons) -> Result<Vec<Pod>> {
    let mut pods = Vec::new();
    if daemons.config.accounting {
        let database = Pod::create(site, &daemons.mariadb()).await?;
        database.wait_listening(3306).await?;
        let dbd = Pod::create(site, &daemons.slurmdbd()).await?;
        dbd.wait_listening(6819).await?;
        pods.extend([database, dbd]);
    }
    let controller = Pod::create(site, &daemons.slurmctld()).await?;
    controller.wait_listening(CONTROLLER_PORT).await?;
    pods.push(controller);
    Ok(pods)
}

/// A running cluster; dropped, all of it is gone.
#[derive(Debug)]
pub struct SlurmCluster {
    // Fields are dropped from first to last: the sandbox ends when nothing runs in it any more.
    rest: Rest,
    pods: BTreeMap<String, Pod>,
    nodes_made: u32,
    daemons: Daemons,
    site: Site,
}

impl SlurmCluster {
    /// Two nodes, auth/slurm, no accounting, unless told otherwise.
    pub fn builder(version: SlurmVersion) -> SlurmClusterBuilder {
        let config = Config { version, auth: Auth::Slurm, accounting: false, extra_conf: String::new() };
        SlurmClusterBuilder { config, nodes: 2 }
    }

    pub async fn start(version: SlurmVersion) -> Result<Self> {
        Self::builder(version).start().await
    }

    pub fn version(&self) -> SlurmVersion {
        self.daemons.config.version
    }

    pub fn sandbox(&self) -> &Sandbox {
        &self.site.sandbox
    }

    fn pod(&self, name: &str) -> Result<&Pod> {
        self.pods.get(name).with_context(|| format!("there is no pod {name}"))
    }

    /// The output of a pod's daemon, on this machine; it is there also when the pod is not.
    pub fn log(&self, pod: &str) -> PathBuf {
        self.site.log(pod)
    }

    /// A path in a running pod, as seen from outside.
    pub fn path(&self, pod: &str, inside: &str) -> Result<PathBuf> {
        Ok(self.pod(pod)?.path(inside))
    }

    /// Every process in a pod, by its number outside.
    pub fn processes(&self, pod: &str) -> Result<Vec<Pid>> {
        Ok(self.pod(pod)?.processes())
    }

    /// The names of all pods: `slurmctld`, `slurmrestd`, `slurmdbd`, `mariadb` and the nodes.
    pub fn pods(&self) -> impl Iterator<Item = &str> {
        self.pods.keys().map(String::as_str)
    }

    /// Runs a program in a pod as root and gives its output.
    pub async fn exec(&self, pod: &str, args: &[&str]) -> Result<String> {
        self.pod(pod)?.exec(args).await
    }

    /// Runs a program as `user` where slurmctld runs, in `/tmp`, which every node has.
    pub async fn exec_as(&self, user: &str, args: &[&str]) -> Result<String> {
        let identity = ["setpriv", "--reuid", user, "--regid", user, "--init-groups", "--reset-env"];
        self.exec(CONTROLLER_POD, &[&identity[..], &["env", "-C", "/tmp"], args].concat()).await
    }

    /// Restarts slurmctld with the state it had, under its old address.
    pub async fn restart_controller(&mut self) -> Result<()> {
        self.stop_controller().await?;
        self.start_controller().await
    }

    /// Ends slurmctld and leaves its state; slurmrestd lives on.
    pub async fn stop_controller(&mut self) -> Result<()> {
        let mut controller = self.pods.remove(CONTROLLER_POD).context("slurmctld is not running")?;
        controller.stop(Duration::from_secs(20)).await
    }

    /// Starts slurmctld on the state that was left, under its old address.
    pub async fn start_controller(&mut self) -> Result<()> {
        let controller = Pod::start(&self.site, &self.daemons.slurmctld()).await?;
        controller.wait_listening(CONTROLLER_PORT).await?;
        self.pods.insert(CONTROLLER_POD.to_owned(), controller);
        Ok(())
    }

    /// Where slurmrestd is, on this machine.
    pub fn rest_url(&self) -> String {
        self.rest.url()
    }

    /// The path of something in the newest API of this version: `slurm_path("nodes/")`.
    pub fn slurm_path(&self, rest: &str) -> String {
        format!("/slurm/{}/{rest}", self.version().newest_api())
    }

    /// The same for accounting.
    pub fn slurmdb_path(&self, rest: &str) -> String {
        format!("/slurmdb/{}/{rest}", self.version().newest_api())
    }

    /// Asks slurmrestd. Any status is an answer.
    pub async fn rest(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        token: Option<&str>,
    ) -> Result<RestAnswer> {
        self.rest.send(method, path, body, token).await
    }

    /// The key that signs tokens, as slurmctld has it.
    pub fn jwt_key(&self) -> &[u8] {
        &self.daemons.keys.jwt
    }

    pub fn token(&self, user: &str, ttl: Duration) -> Result<String> {
        token::sign(self.jwt_key(), user, ttl)
    }

    pub fn expired_token(&self, user: &str) -> Result<String> {
        token::sign_expired(self.jwt_key(), user)
    }

    pub fn node_address(&self, name: &str) -> Result<Ipv4Addr> {
        Ok(self.pod(name)?.address())
    }
}
