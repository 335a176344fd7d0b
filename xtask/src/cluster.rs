//! `cargo xtask cluster`: a real Kubernetes cluster on this machine.
//!
//! `up` starts a process of its own that holds the cluster (`serve`). Whatever ends that process ends the
//! cluster; the next `up` or `down` removes what a SIGKILL left.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Program, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Subcommand;
use k8s_openapi::api::core::v1::Node;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use nix::sys::prctl;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getppid};
use testkit::cache::{Cache, Part};
use testkit::cluster::{Cluster, Size, State, check_name, is_ready};
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
    Serve(Serve),
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Name {
    /// Name of the cluster
    #[arg(long, default_value = "dev", value_parser = |name: &str| check_name(name).map(|()| name.to_owned()))]
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

#[derive(Debug, clap::Args)]
pub(crate) struct Serve {
    #[command(flatten)]
    up: Up,
    /// Process id of the `up` that started this
    #[arg(long)]
    parent: i32,
    /// Do not outlive it
    #[arg(long)]
    end_with_parent: bool,
}

/// How long a cluster lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    OfItsOwn,
    OfItsParent,
}

/// How long something that was asked to end may take.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn command(command: Command) -> Result<ExitCode> {
    match command {
        Command::Up(up) => start(&up, Life::OfItsOwn).map(|_| ())?,
        Command::Down(Name { name }) => down(&name)?,
        Command::Status(Name { name }) => return status(&name),
        Command::Kubeconfig(Name { name }) => {
            say(&State::require_kubeconfig(&Cache::locate()?, &name)?.display().to_string());
        }
        Command::Load { image, name } => load(&image, &name.name)?,
        Command::Serve(serve) => block_on(hold(&serve))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// A cluster that ends with this process, however that ends.
#[derive(Debug)]
pub(crate) struct Borrowed {
    server: Child,
    kubeconfig: PathBuf,
}

impl Borrowed {
    pub(crate) fn start(name: &str, nodes: usize) -> Result<Self> {
        let up = Up { nodes, fake: 0, name: Name { name: name.to_owned() } };
        let server = start(&up, Life::OfItsParent)?;
        Ok(Self { server, kubeconfig: State::require_kubeconfig(&Cache::locate()?, name)? })
    }

    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        end_child(&mut self.server);
    }
}

/// A cluster that outlives this process; one that is already up is taken as it is.
pub(crate) fn keep_up(cache: &Cache, name: &str, nodes: usize) -> Result<PathBuf> {
    if State::kubeconfig(cache, name).is_none() {
        let up = Up { nodes, fake: 0, name: Name { name: name.to_owned() } };
        start(&up, Life::OfItsOwn)?;
    }
    State::require_kubeconfig(cache, name)
}

fn start(up: &Up, life: Life) -> Result<Child> {
    let started = Instant::now();
    let cache = setup::ensure(if up.nodes > 0 { &PARTS } else { &PARTS[..3] })?;
    let name = &up.name.name;
    if State::holder(&cache, name).is_some() {
        bail!("a cluster named {name} is already there: `cargo xtask cluster down --name {name}` ends it");
    }
    // What the cluster's process says while it starts: shown here, and kept nowhere.
    let (output, path) = tempfile::NamedTempFile::new()?.into_parts();
    let told = Tail::of(&path)?;
    drop(path);
    let mut command = Program::new("setsid");
    command.arg(std::env::current_exe()?).args(["cluster", "serve", "--name", name]);
    command.args(["--nodes", &up.nodes.to_string(), "--fake", &up.fake.to_string()]);
    command.args(["--parent", &std::process::id().to_string()]);
    if life == Life::OfItsParent {
        command.arg("--end-with-parent");
    }
    command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
    let mut server = command.spawn().context("start the cluster's process")?;
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
        end_child(&mut server);
        State::sweep(&cache)?;
        return Err(error.context(format!("start cluster {name}")));
    }
    tell(&format!("cluster {name} is up after {:.1} s", started.elapsed().as_secs_f64()));
    tell(&format!("export KUBECONFIG={}", State::require_kubeconfig(&cache, name)?.display()));
    tell(&format!("kubectl is {}", cache.debian_program("kubectl")?.display()));
    Ok(server)
}

/// The cluster's process ends by itself when it cannot go on: each of its steps has a deadline.
async fn until_up(cache: &Cache, name: &str, server: &mut Child, mut told: Tail) -> Result<()> {
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

/// Asks our child to end, and insists after a while.
fn end_child(server: &mut Child) {
    let asked = Instant::now();
    let mut next = Signal::SIGTERM;
    // Only a child that has not been reaped still has its number.
    while let Ok(None) = server.try_wait() {
        let _ = kill(Pid::from_raw(server.id().cast_signed()), next);
        if asked.elapsed() > PATIENCE {
            next = Signal::SIGKILL;
        }
        pause();
    }
}

/// Lines as they are appended to a file.
struct Tail {
    file: File,
    read: u64,
}

impl Tail {
    fn of(path: &Path) -> Result<Self> {
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
async fn hold(serve: &Serve) -> Result<()> {
    let started = Instant::now();
    prctl::set_pdeathsig(Signal::SIGTERM)?;
    if getppid().as_raw() != serve.parent {
        bail!("the process that started this one has ended");
    }
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let cache = Cache::locate()?;
    let Up { nodes, fake, name: Name { name } } = &serve.up;
    let size = Size { nodes: *nodes, fake: *fake };
    let report =
        |step| tell(&format!("cluster {name}: {step} after {:.1} s", started.elapsed().as_secs_f64()));
    let held = async {
        let mut cluster = Cluster::start(&cache, name, size, report).await?;
        // Before others can find it: who started us may end as soon as it is found.
        if !serve.end_with_parent {
            prctl::set_pdeathsig(None)?;
        }
        cluster.publish()?;
        cluster.watch_over().await
    };
    tokio::select! {
        result = held => result,
        _ = terminate.recv() => Ok(()),
        _ = interrupt.recv() => Ok(()),
    }
}

pub(crate) fn down(name: &str) -> Result<()> {
    testkit::require_root("clusters")?;
    let cache = Cache::locate()?;
    match State::holder(&cache, name) {
        Some(holder) => {
            end(&cache, name, holder)?;
            tell(&format!("cluster {name} is down"));
        }
        None => tell(&format!("no cluster named {name} is up")),
    }
    State::sweep(&cache)
}

/// Asks the holder to end, and insists after a while.
fn end(cache: &Cache, name: &str, holder: Pid) -> Result<()> {
    let asked = Instant::now();
    let mut next = Signal::SIGTERM;
    while State::holder(cache, name) == Some(holder) {
        let _ = kill(holder, next);
        if asked.elapsed() > 2 * PATIENCE {
            bail!("the process {holder} of cluster {name} does not end");
        }
        if asked.elapsed() > PATIENCE {
            next = Signal::SIGKILL;
        }
        pause();
    }
    Ok(())
}

#[allow(
    clippy::disallowed_methods,
    reason = "the end of a process that is not our child cannot be waited for"
)]
fn pause() {
    std::thread::sleep(Duration::from_millis(20));
}

fn load(image: &Path, name: &str) -> Result<()> {
    testkit::require_root("clusters")?;
    File::open(image).with_context(|| format!("open {}", image.display()))?;
    match block_on(Cluster::load(&Cache::locate()?, name, image))? {
        0 => bail!("cluster {name} has no real nodes to load an image into"),
        nodes => tell(&format!("{} is on {nodes} nodes of cluster {name}", image.display())),
    }
    Ok(())
}

fn status(name: &str) -> Result<ExitCode> {
    let cache = Cache::locate()?;
    let Some(path) = State::kubeconfig(&cache, name) else {
        let others = State::names(&cache);
        if others.iter().any(|other| other == name) {
            say(&format!("cluster {name} is starting"));
        } else {
            let others = if others.is_empty() { "none at all".to_owned() } else { others.join(", ") };
            say(&format!("no cluster named {name} is up; up are: {others}"));
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
