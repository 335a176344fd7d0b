//! The machine itself: what a cluster could leave on it, and our own commands as a user calls them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use testkit::process::{Process, bound_command, run};

/// Folders of the machine in which Kubernetes programs like to leave something.
const FOLDERS: [&str; 9] = [
    "/etc",
    "/opt",
    "/run",
    "/run/netns",
    "/srv",
    "/var/lib",
    "/var/lib/cni",
    "/var/log",
    "/tmp/hostpath_pv",
];
const SETTINGS: [&str; 6] = [
    "/proc/sys/vm/max_map_count",
    "/proc/sys/vm/overcommit_memory",
    "/proc/sys/kernel/panic",
    "/proc/sys/kernel/panic_on_oops",
    "/proc/sys/net/ipv4/ip_forward",
    "/proc/sys/net/netfilter/nf_conntrack_max",
];

/// For one call of our own commands.
const LIMIT: Duration = Duration::from_secs(240);
const MARK: &str = "SLIPWAY_TEST_MARK";

/// Everything about the machine that a cluster must give back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine(BTreeSet<String>);

impl Machine {
    pub fn now() -> Self {
        let mut facts = BTreeSet::new();
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        // The first words are numbers of the mount, not the mount.
        facts.extend(
            mounts.lines().map(|line| {
                format!("mount {}", line.split_whitespace().skip(3).collect::<Vec<_>>().join(" "))
            }),
        );
        facts.extend(names("/sys/class/net").map(|name| format!("link {name}")));
        for folder in FOLDERS {
            facts.extend(names(folder).map(|name| format!("file {folder}/{name}")));
        }
        for setting in SETTINGS {
            facts.insert(format!(
                "setting {setting} {}",
                fs::read_to_string(setting).unwrap_or_default().trim()
            ));
        }
        cgroups(Path::new("/sys/fs/cgroup"), &mut facts);
        processes(&mut facts);
        Self(facts)
    }

    /// Waits until the machine is as it was; what is different is named.
    pub async fn is_back(&self) -> Result<()> {
        let end = Instant::now() + Duration::from_secs(20);
        loop {
            let now = Self::now();
            if now == *self {
                return Ok(());
            }
            if Instant::now() >= end {
                let left: Vec<_> = now.0.difference(&self.0).cloned().collect();
                let lost: Vec<_> = self.0.difference(&now.0).cloned().collect();
                bail!(
                    "the machine is not as it was\nleft behind:\n{}\nlost:\n{}",
                    left.join("\n"),
                    lost.join("\n")
                );
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// The facts that are there now and were not before.
    pub fn changes(&self) -> Vec<String> {
        Self::now().0.difference(&self.0).cloned().collect()
    }
}

fn names(folder: &str) -> impl Iterator<Item = String> {
    fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
}

fn cgroups(folder: &Path, facts: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            facts.insert(format!("cgroup {}", entry.path().display()));
            cgroups(&entry.path(), facts);
        }
    }
}

/// Processes of our commands, known by a mark that all inherit, and those that nobody looks after any more;
/// with the namespaces that they keep alive. Other people's processes come and go.
fn processes(facts: &mut BTreeSet<String>) {
    let mark = mark();
    let marked = |pid: i32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes())
    };
    for pid in names("/proc").filter_map(|name| name.parse::<i32>().ok()) {
        let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        // A kernel thread has no command line.
        if command.is_empty() || !(marked(pid) || parent(pid) == Some(1)) {
            continue;
        }
        facts.insert(format!("process {pid} {}", String::from_utf8_lossy(&command).replace('\0', " ")));
        for kind in ["cgroup", "ipc", "mnt", "net", "pid", "user", "uts"] {
            if let Ok(namespace) = fs::read_link(format!("/proc/{pid}/ns/{kind}")) {
                facts.insert(format!("namespace {}", namespace.display()));
            }
        }
    }
}

fn parent(pid: i32) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

/// The mark that every process of [`Xtask`] carries in its environment.
fn mark() -> String {
    format!("{MARK}={}", std::process::id())
}

/// `cargo xtask` as the suite built it.
#[derive(Debug)]
pub struct Xtask(PathBuf);

impl Xtask {
    pub fn find() -> Result<Self> {
        let path =
            std::env::var_os("SLIPWAY_XTASK").context("SLIPWAY_XTASK is not set: run `cargo xtask test`")?;
        Ok(Self(path.into()))
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = bound_command(&self.0);
        command.args(arguments).env(MARK, std::process::id().to_string());
        command
    }

    /// Runs to the end; gives standard output.
    pub async fn run(&self, arguments: &[&str]) -> Result<String> {
        Ok(run(self.command(arguments), LIMIT).await?.trim().to_owned())
    }

    pub fn start(&self, arguments: &[&str]) -> Result<Process> {
        Process::spawn("xtask", self.command(arguments), Path::new("/dev/null"))
    }

    /// `cluster up` with a name that no other test process uses.
    pub async fn up(&self, name: &str, size: &[&str]) -> Result<Up> {
        let up = self.cluster(name);
        self.run(&[&["cluster", "up", "--name", up.name()], size].concat()).await?;
        Ok(up)
    }

    /// The end of a cluster that a test is about to start.
    pub fn cluster(&self, name: &str) -> Up {
        Up { name: format!("{name}-{}", std::process::id()), down: Some(self.command(&["cluster", "down"])) }
    }
}

/// A cluster of a test; dropped, it is down, also when the test has failed.
#[derive(Debug)]
pub struct Up {
    name: String,
    down: Option<Command>,
}

impl Up {
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Ends the cluster and says how that went.
    pub async fn down(mut self) -> Result<()> {
        let Some(mut down) = self.down.take() else { return Ok(()) };
        down.args(["--name", &self.name]);
        run(down, LIMIT).await.map(|_| ())
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        if let Some(mut down) = self.down.take() {
            let _ = down.args(["--name", &self.name]).stdout(Stdio::null()).stderr(Stdio::null()).status();
        }
    }
}
