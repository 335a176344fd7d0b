//! `cargo xtask cluster`: a real Kubernetes cluster on this machine.
//!
//! `up` starts a process of its own that holds the cluster (`serve`). Whatever ends that process ends the
//! cluster; the next `up` or `down` removes what a SIGKILL left.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::process::{Command as Program, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Subcommand;
use k8s_openapi::api::core::v1::Node;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use nix::sys::prctl;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use testkit::cache::{Cache, Part};
use testkit::cluster::{Cluster, Size, State, is_ready};
use testkit::pki::client_from_file;
use tokio::signal::unix::{SignalKind, signal};

use crate::{block_on, say, setup, tell};

/// What nodes need beside the control plane; without nodes the images are not.
pub(crate) const PARTS: [Part; 6] =
    [Part::Debian, Part::Kubernetes, Part::CoreDns, Part::Runc, Part::Images, Part::ContainerdRoot];

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start a cluster and wait until its nodes are Ready
    Up(Up),
    /// End a cluster, and remove what a killed one left
    Down(Name),
    /// Show the nodes
    Status(Name),
    /// Print the path of the kubeconfig
    Kubeconfig(Name),
    /// Import an image archive into every node
    Load {
        /// An OCI or Docker archive
        image: PathBuf,
        #[command(flatten)]
        name: Name,
    },
    /// Hold a cluster; what `up` starts
    #[command(hide = true)]
    Serve(Up),
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Name {
    /// Name of the cluster
    #[arg(long, default_value = "dev")]
    name: String,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Up {
    /// Real nodes; 0 is the control plane alone
    #[arg(long, default_value_t = 3)]
    nodes: usize,
    /// Nodes that only pretend to run their pods
    #[arg(long, default_value_t = 0)]
    fake: usize,
    #[command(flatten)]
    name: Name,
}

pub(crate) fn command(command: Command) -> Result<ExitCode> {
    match command {
        Command::Up(up) => start(&up).map(|()| ExitCode::SUCCESS),
        Command::Down(Name { name }) => down(&name).map(|()| ExitCode::SUCCESS),
        Command::Status(Name { name }) => status(&name),
        Command::Kubeconfig(Name { name }) => {
            say(&kubeconfig(&Cache::locate()?, &name)?.display().to_string());
            Ok(ExitCode::SUCCESS)
        }
        Command::Load { image, name } => {
            block_on(Cluster::load(&Cache::locate()?, &name.name, &image))?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Serve(up) => block_on(serve(&up)).map(|()| ExitCode::SUCCESS),
    }
}

fn kubeconfig(cache: &Cache, name: &str) -> Result<PathBuf> {
    State::kubeconfig(cache, name).with_context(|| {
        format!("no cluster named {name} is up: `cargo xtask cluster up --name {name}` starts one")
    })
}

fn start(up: &Up) -> Result<()> {
    let started = Instant::now();
    testkit::require_root("clusters")?;
    let cache = setup::ensure(if up.nodes > 0 { &PARTS } else { &PARTS[..3] })?;
    let name = &up.name.name;
    if State::holder(&cache, name).is_some() {
        bail!("a cluster named {name} is already there: `cargo xtask cluster down --name {name}` ends it");
    }
    fs::create_dir_all(cache.clusters())?;
    let log = cache.root().join("log").join(format!("cluster-{name}.log"));
    fs::create_dir_all(cache.root().join("log"))?;
    let output = File::create(&log)?;
    let mut command = Program::new("setsid");
    command.arg(std::env::current_exe()?).args(["cluster", "serve", "--name", name]);
    command.args(["--nodes", &up.nodes.to_string(), "--fake", &up.fake.to_string()]);
    command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
    let mut server = command.spawn().context("start the cluster's process")?;
    let told = Tail::of(&log)?;
    let result = block_on(async {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        tokio::select! {
            result = until_up(&cache, name, &mut server, told) => result,
            _ = interrupt.recv() => bail!("interrupted"),
            _ = terminate.recv() => bail!("terminated"),
        }
    });
    if let Err(error) = result {
        end(&cache, name, Pid::from_raw(server.id().cast_signed()))?;
        let _ = server.wait();
        return Err(error.context(format!("start cluster {name} (log: {})", log.display())));
    }
    tell(&format!("cluster {name} is up after {:.1} s", started.elapsed().as_secs_f64()));
    tell(&format!("export KUBECONFIG={}", kubeconfig(&cache, name)?.display()));
    tell(&format!("kubectl is {}", cache.debian_program("kubectl")?.display()));
    Ok(())
}

async fn until_up(cache: &Cache, name: &str, server: &mut std::process::Child, mut told: Tail) -> Result<()> {
    loop {
        let ended = server.try_wait()?;
        for line in told.new_lines()? {
            tell(&line);
        }
        if let Some(status) = ended {
            bail!("the cluster's process ended with {status}");
        }
        if State::kubeconfig(cache, name).is_some() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Lines as they are appended to a file.
struct Tail {
    file: File,
    read: u64,
}

impl Tail {
    fn of(path: &std::path::Path) -> Result<Self> {
        Ok(Self { file: File::open(path)?, read: 0 })
    }

    fn new_lines(&mut self) -> Result<Vec<String>> {
        let mut text = String::new();
        self.file.seek(SeekFrom::Start(self.read))?;
        self.file.read_to_string(&mut text)?;
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        self.read += whole as u64;
        Ok(text[..whole].lines().map(str::to_owned).collect())
    }
}

/// Holds the cluster until told to end. Until it is up, it ends with the `up` that started it.
async fn serve(up: &Up) -> Result<()> {
    let started = Instant::now();
    prctl::set_pdeathsig(Signal::SIGTERM)?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let cache = Cache::locate()?;
    let size = Size { nodes: up.nodes, fake: up.fake };
    let name = &up.name.name;
    let report =
        |step: &str| tell(&format!("cluster {name}: {step} after {:.1} s", started.elapsed().as_secs_f64()));
    let hold = async {
        let mut cluster = Cluster::start(&cache, name, size, report).await?;
        prctl::set_pdeathsig(None)?;
        cluster.watch_over().await
    };
    tokio::select! {
        result = hold => result,
        _ = terminate.recv() => Ok(()),
        _ = interrupt.recv() => Ok(()),
    }
}

fn down(name: &str) -> Result<()> {
    testkit::require_root("clusters")?;
    let cache = Cache::locate()?;
    let there = State::holder(&cache, name);
    match there {
        Some(holder) => {
            end(&cache, name, holder)?;
            tell(&format!("cluster {name} is down"));
        }
        None => tell(&format!("no cluster named {name} is up")),
    }
    State::sweep(&cache)
}

/// Asks the holder to end, insists, and removes what is then left.
fn end(cache: &Cache, name: &str, holder: Pid) -> Result<()> {
    let _ = kill(holder, Signal::SIGTERM);
    let asked = Instant::now();
    let mut insisted = false;
    while State::holder(cache, name).is_some() {
        if asked.elapsed() > Duration::from_secs(60) {
            bail!("the process {holder} of cluster {name} does not end");
        }
        if asked.elapsed() > Duration::from_secs(30) && !insisted {
            let _ = kill(holder, Signal::SIGKILL);
            insisted = true;
        }
        #[allow(clippy::disallowed_methods, reason = "not our child: there is nothing to wait for")]
        std::thread::sleep(Duration::from_millis(20));
    }
    State::sweep(cache)
}

fn status(name: &str) -> Result<ExitCode> {
    let cache = Cache::locate()?;
    let Some(path) = State::kubeconfig(&cache, name) else {
        say(&format!("no cluster named {name} is up"));
        for other in State::names(&cache) {
            say(&format!("there is one named {other}"));
        }
        return Ok(ExitCode::FAILURE);
    };
    block_on(async {
        let nodes: Api<Node> = Api::all(client_from_file(&path).await?);
        let nodes = nodes.list(&ListParams::default()).await?;
        say(&format!("cluster {name} is up, kubeconfig {}", path.display()));
        for node in &nodes {
            say(&format!("  {:<12} {}", node.name_any(), if is_ready(node) { "Ready" } else { "NotReady" }));
        }
        Ok(ExitCode::SUCCESS)
    })
}
