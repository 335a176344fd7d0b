//! One by-hand cluster per shape, which the tests share. Whoever breaks something takes it for itself.

use std::time::Duration;

use anyhow::{Context, Result};
use e2e::Place;
use testkit::by_hand::{ByHand, Key, Shape, Ssh};
use testkit::cache::Cache;
use testkit::cluster::{Cluster, State};
use tokio::sync::{OnceCell, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// With the start of a cluster, and the wait for tests that have it for themselves.
pub(super) const DEADLINE: Duration = Duration::from_secs(600);
pub(super) const ALICE: &str = "alice";

struct Shared {
    ready: OnceCell<()>,
    in_use: RwLock<()>,
}

static SHARED: [Shared; 3] =
    [const { Shared { ready: OnceCell::const_new(), in_use: RwLock::const_new(()) } }; 3];

fn shared(shape: Shape) -> &'static Shared {
    match shape {
        Shape::Privileged => &SHARED[0],
        Shape::UserNamespaces => &SHARED[1],
        Shape::Slurm24_11 => &SHARED[2],
    }
}

/// A cluster with a user who is logged in.
pub(super) struct Site {
    pub(super) slurm: ByHand,
    pub(super) ssh: Ssh,
    pub(super) shape: Shape,
    _use: Use,
}

#[allow(dead_code, reason = "held, not read")]
enum Use {
    Shared(RwLockReadGuard<'static, ()>),
    Alone(RwLockWriteGuard<'static, ()>),
}

/// For tests that leave the cluster as it is.
pub(super) async fn site(shape: Shape) -> Result<Site> {
    let guard = Use::Shared(shared(shape).in_use.read().await);
    open(shape, guard).await
}

/// For tests that break something and mend it again.
pub(super) async fn site_alone(shape: Shape) -> Result<Site> {
    let guard = Use::Alone(shared(shape).in_use.write().await);
    open(shape, guard).await
}

async fn open(shape: Shape, in_use: Use) -> Result<Site> {
    let cache = Cache::locate()?;
    let cluster = Place::shared_cluster()?;
    let kubeconfig = State::require_kubeconfig(&cache, &cluster)?;
    let namespace = format!("by-hand-{}", shape.folder().replace('.', "-"));
    let slurm = ByHand::at(&cache, &kubeconfig, &namespace).await?;
    // In the cluster's folder, which goes with it.
    let folder = State::folder(&cache, &cluster).join(&namespace);
    let start = async || -> Result<()> {
        slurm.apply(&cache, shape).await?;
        slurm.ready(|_| ()).await?;
        slurm.workers_idle().await?;
        std::fs::create_dir_all(&folder)?;
        slurm.add_user(ALICE, 2001, &Key::in_folder(&folder).await?).await
    };
    shared(shape).ready.get_or_try_init(start).await.with_context(|| format!("start {shape}"))?;
    let key = Key::in_folder(&folder).await?;
    let ssh = Ssh::new(Cluster::forward(&cache, &cluster, slurm.login_address().await?)?, key, ALICE);
    Ok(Site { slurm, ssh, shape, _use: in_use })
}

impl Site {
    /// What Slurm itself says, from the controller's pod.
    pub(super) async fn controller(&self, command: &[&str]) -> Result<String> {
        self.slurm.exec("controller-0", "slurmctld", command).await
    }

    /// A script as root in the jail, where every pod sees what it does.
    pub(super) async fn in_jail(&self, script: &str) -> Result<String> {
        self.slurm.exec("login-0", "sshd", &["chroot", "/mnt/jail", "bash", "-euc", script]).await
    }
}
