//! A cluster's folder in the cache: who holds it, its logs, certificates and kubeconfig.
//!
//! The holder keeps a lock on it, and so does every process it starts: a killed cluster is not over before the
//! last of them is gone. A folder that nobody holds is removed by whoever comes next.

use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::fcntl::{FcntlArg, FdFlag, Flock, FlockArg, fcntl};
use nix::unistd::Pid;

use super::{AUDIT_LOG, SERVES, cgroups};
use crate::api_calls::ApiCalls;
use crate::cache::{Cache, sha256};

const LOCK: &str = "lock";
const KUBECONFIG: &str = "kubeconfig";
const NODES: &str = "nodes";

#[derive(Debug)]
pub struct State {
    folder: PathBuf,
    _lock: Flock<File>,
}

impl State {
    /// Takes the name, after removing what a killed cluster of any name left.
    pub(super) fn claim(cache: &Cache, name: &str) -> Result<Self> {
        check_name(name)?;
        let _alone = lock_all(cache)?;
        // What another cluster cannot get rid of is no obstacle to this one.
        let _ = sweep(cache);
        let folder = Self::folder(cache, name);
        // Closed to others: it holds the key to everything in the cluster.
        fs::create_dir_all(cache.clusters())?;
        DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        fs::create_dir_all(folder.join("logs"))?;
        let Some(lock) = try_lock(&folder) else {
            bail!(
                "a cluster named {name} is already there: `cargo xtask cluster down --name {name}` ends it"
            );
        };
        fs::write(folder.join(LOCK), std::process::id().to_string())?;
        // Inherited by every process of the cluster.
        fcntl(&*lock, FcntlArg::F_SETFD(FdFlag::empty()))?;
        Ok(Self { folder, _lock: lock })
    }

    pub fn folder(cache: &Cache, name: &str) -> PathBuf {
        cache.clusters().join(name)
    }

    /// The kubeconfig of a cluster that is up.
    pub fn kubeconfig(cache: &Cache, name: &str) -> Option<PathBuf> {
        let path = Self::folder(cache, name).join(KUBECONFIG);
        (Self::holder(cache, name).is_some() && path.exists()).then_some(path)
    }

    /// The same for who cannot go on without.
    pub fn require_kubeconfig(cache: &Cache, name: &str) -> Result<PathBuf> {
        Self::kubeconfig(cache, name).with_context(|| {
            format!("no cluster named {name} is up: `cargo xtask cluster up --name {name}` starts one")
        })
    }

    /// The process that holds a cluster, if it is there.
    pub fn holder(cache: &Cache, name: &str) -> Option<Pid> {
        let folder = Self::folder(cache, name);
        if !folder.join(LOCK).exists() || try_lock(&folder).is_some() {
            return None;
        }
        written_holder(&folder).filter(|pid| is_alive(*pid))
    }

    /// Names of the clusters that are there.
    pub fn names(cache: &Cache) -> Vec<String> {
        let entries = fs::read_dir(cache.clusters()).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let names = names.filter(|name| check_name(name).is_ok());
        let mut names: Vec<_> = names.filter(|name| Self::holder(cache, name).is_some()).collect();
        names.sort();
        names
    }

    /// Removes what killed clusters left: their cgroups and folders.
    pub fn sweep(cache: &Cache) -> Result<()> {
        if cache.clusters().exists() {
            let _alone = lock_all(cache)?;
            sweep(cache)?;
        }
        Ok(())
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(super) fn log(&self, name: &str) -> PathBuf {
        self.folder.join("logs").join(format!("{name}.log"))
    }

    /// The cgroup of this cluster: no other cluster of the machine has it, whatever cache it uses.
    pub(super) fn cgroup(&self) -> String {
        format!("/slipway-{}", &sha256(self.folder.as_os_str().as_encoded_bytes())[..8])
    }

    /// Written last, and whole: who finds it finds a cluster that is up.
    pub(super) fn write_kubeconfig(&self, content: &[u8]) -> Result<PathBuf> {
        let (unfinished, path) = (self.path("kubeconfig.new"), self.path(KUBECONFIG));
        fs::write(&unfinished, content)?;
        fs::rename(&unfinished, &path).context("write the kubeconfig")?;
        Ok(path)
    }

    /// The first process of each node, by which others enter it.
    pub(super) fn write_nodes(&self, nodes: &[Pid]) -> Result<()> {
        let lines: Vec<_> = nodes.iter().map(ToString::to_string).collect();
        fs::write(self.path(NODES), lines.join("\n")).context("write down the nodes")
    }

    /// The nodes of a cluster that is up.
    pub(super) fn nodes(cache: &Cache, name: &str) -> Result<Vec<Pid>> {
        Self::require_kubeconfig(cache, name)?;
        let lines = fs::read_to_string(Self::folder(cache, name).join(NODES))?;
        let nodes: Vec<Pid> =
            lines.lines().map(|line| Ok(Pid::from_raw(line.parse()?))).collect::<Result<_>>()?;
        // A node that has ended may have left its number to somebody else.
        let of_a_cluster = |pid: &Pid| Path::new(&format!("/proc/{pid}/root{SERVES}")).exists();
        match nodes.iter().find(|pid| !of_a_cluster(pid)) {
            Some(pid) => bail!("the node with the process id {pid} has ended: start the cluster anew"),
            None => Ok(nodes),
        }
    }

    /// What the API server of a running cluster has logged.
    pub fn api_calls(cache: &Cache, name: &str) -> ApiCalls {
        ApiCalls::of(Self::folder(cache, name).join(AUDIT_LOG))
    }

    /// Removes cgroups and folder. As long as a cgroup is left the folder stays, since it is how they are found.
    pub(super) fn remove(&self) -> Result<()> {
        if !cgroups::remove(&self.cgroup(), Duration::from_secs(10)) {
            bail!("cgroup {} of {} is still in use: try `down` again", self.cgroup(), self.folder.display());
        }
        // Under another name first: this one is free at once, and whole or gone for whoever looks.
        let name = self.folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let aside = self.folder.with_file_name(format!(".{name}.{}", std::process::id()));
        fs::rename(&self.folder, &aside).with_context(|| format!("remove {}", self.folder.display()))?;
        fs::remove_dir_all(&aside).with_context(|| format!("remove {}", aside.display()))
    }
}

/// Claiming a name and removing what is abandoned exclude each other: a folder is abandoned until it is locked.
fn lock_all(cache: &Cache) -> Result<Flock<File>> {
    let path = cache.root().join("clusters.lock");
    let file = File::options().create(true).append(true).open(&path);
    let file = file.with_context(|| format!("open {}", path.display()))?;
    Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, error)| error).context("lock the clusters")
}

/// Tries all of them, and gives the last failure.
fn sweep(cache: &Cache) -> Result<()> {
    let mut result = Ok(());
    for entry in fs::read_dir(cache.clusters()).into_iter().flatten().flatten() {
        let folder = entry.path();
        if let Some(lock) = try_lock(&folder) {
            result = State { folder, _lock: lock }.remove().and(result);
        }
    }
    result
}

/// Takes the lock unless a living process has it. What a killed holder started ends within moments, and so does
/// somebody's look at the lock: that is waited for.
fn try_lock(folder: &Path) -> Option<Flock<File>> {
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        let file = File::options().create(true).append(true).open(folder.join(LOCK)).ok()?;
        if let Ok(lock) = Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            return Some(lock);
        }
        if Instant::now() >= end || written_holder(folder).is_some_and(is_alive) {
            return None;
        }
        pause();
    }
}

fn written_holder(folder: &Path) -> Option<Pid> {
    fs::read_to_string(folder.join(LOCK)).ok()?.trim().parse().ok().map(Pid::from_raw)
}

fn is_alive(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // After the name in parentheses comes the state; a zombie is no longer alive.
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['Z', 'X']))
}

/// The kernel offers nothing to wait for where the process is not a child.
#[allow(clippy::disallowed_methods, reason = "see above")]
pub(super) fn pause() {
    std::thread::sleep(Duration::from_millis(10));
}

/// Names become parts of paths.
pub fn check_name(name: &str) -> Result<()> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() || name.len() > 40 || !name.chars().all(plain) || name.starts_with('-') {
        bail!("`{name}` is no name for a cluster: use up to 40 lowercase letters, digits and dashes");
    }
    Ok(())
}

/// Waits until processes that were told to end are gone.
pub(super) fn wait_for_end(processes: &[Pid]) {
    let end = Instant::now() + Duration::from_secs(10);
    while processes.iter().any(|pid| is_alive(*pid)) && Instant::now() < end {
        pause();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_plain_word() {
        assert!(check_name("dev-2").is_ok());
        for bad in ["", "../up", "Dev", "-x", "a b", &"a".repeat(41)] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }
}
