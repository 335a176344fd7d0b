//! `cargo xtask demo`: from nothing to a job that has run, on real nodes with real Slurm, and how to go on from there.

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Subcommand;
use testkit::by_hand::{ByHand, Key, Shape, Ssh};
use testkit::cache::Cache;
use testkit::cluster::{Cluster, State, check_name};

use crate::{block_on, cluster, images, say, setup, tell};

const NODES: usize = 3;
const NAMESPACE: &str = "slurm";
const USER: (&str, u32) = ("alice", 2001);
/// In the cluster's folder: which shape was brought up.
const SHAPE: &str = "demo-shape";

/// A job on both workers, written and submitted as a user would.
const FIRST_JOB: &str = r#"
set -eu
cat > first-job.sh <<'JOB'
#!/bin/bash
#SBATCH --job-name=first-job --nodes=2 --output=first-job.out
srun --label bash -c 'echo "$(hostname) runs this as $(id -un) on $(. /etc/os-release; echo "$PRETTY_NAME")"'
JOB
job=$(sbatch --parsable first-job.sh)
# Asked of the database, which hears of the end of a job last.
state=
for _ in $(seq 300); do
  state=$(sacct --noheader --parsable2 --allocations --jobs "$job" --format state)
  case $state in '' | PENDING | RUNNING | COMPLETING) sleep 0.2 ;; *) break ;; esac
done
echo "job $job printed:"
cat first-job.out
echo "and accounting says:"
sacct --jobs "$job" --format jobid,jobname,user,nodelist%14,state,exitcode
[ "$state" = COMPLETED ]
"#;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Remove the demo
    #[arg(long)]
    down: bool,
    /// How login and worker pods run
    #[arg(long, value_name = "SHAPE", default_value = "privileged", value_parser = parse_shape)]
    shape: Shape,
    /// Name of the demo's cluster
    #[arg(long, global = true, default_value = "demo", value_parser = |name: &str| check_name(name).map(|()| name.to_owned()))]
    name: String,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a command on the login node as the demo's user, or a shell
    Ssh {
        #[arg(last = true, value_name = "CMD")]
        words: Vec<String>,
    },
}

fn parse_shape(text: &str) -> Result<Shape> {
    match Shape::ALL.into_iter().find(|shape| shape.folder() == text) {
        Some(shape) => Ok(shape),
        None => bail!("use one of {}", Shape::ALL.map(Shape::folder).join(", ")),
    }
}

pub(crate) fn command(args: &Args) -> Result<ExitCode> {
    if args.down {
        return cluster::down(&args.name).map(|()| ExitCode::SUCCESS);
    }
    match &args.command {
        Some(Command::Ssh { words }) => ssh(&args.name, words),
        None => up(&args.name, args.shape).map(|()| ExitCode::SUCCESS),
    }
}

fn up(name: &str, shape: Shape) -> Result<()> {
    testkit::require_root("clusters")?;
    let started = Instant::now();
    let step = |what: &str| tell(&format!("demo: {what} ({:.1} s)", started.elapsed().as_secs_f64()));
    let cache = setup::ensure(&cluster::PARTS)?;
    let shape_file = State::folder(&cache, name).join(SHAPE);
    if let Some(other) = other_shape(&cache, name, shape, &shape_file) {
        bail!("the demo is up in the shape {other}: remove it with `{} --down` first", xtask_demo(name));
    }
    let archive = images::for_nodes(&cache)?;
    step("images are built");
    let kubeconfig = cluster::keep_up(&cache, name, NODES)?;
    fs::write(&shape_file, shape.folder())?;
    block_on(async {
        Cluster::load(&cache, name, &archive).await?;
        step("images are on the nodes");
        let demo = ByHand::at(&cache, &kubeconfig, NAMESPACE).await?;
        demo.apply(&cache, shape).await?;
        step("manifests are applied");
        demo.ready(step).await?;
        demo.workers_idle().await?;
        step("both workers are idle");
        let key = Key::in_folder(&State::folder(&cache, name)).await?;
        demo.add_user(USER.0, USER.1, &key).await?;
        let ssh = login(&cache, name, &demo, key).await?;
        step(&format!("{} submits a job over ssh", USER.0));
        let printed = ssh.run(FIRST_JOB).await.context("the first job")?;
        step("the job is done");
        say(printed.trim_end());
        Ok(())
    })?;
    explain(name, &kubeconfig);
    Ok(())
}

fn other_shape(cache: &Cache, name: &str, wanted: Shape, file: &Path) -> Option<String> {
    State::holder(cache, name)?;
    fs::read_to_string(file).ok().filter(|shape| shape != wanted.folder())
}

async fn login(cache: &Cache, name: &str, demo: &ByHand, key: Key) -> Result<Ssh> {
    let forward = Cluster::forward(cache, name, demo.login_address().await?)?;
    Ok(Ssh::new(forward, key, USER.0))
}

fn xtask_demo(name: &str) -> String {
    if name == "demo" { "cargo xtask demo".to_owned() } else { format!("cargo xtask demo --name {name}") }
}

fn explain(name: &str, kubeconfig: &Path) {
    let demo = xtask_demo(name);
    say("");
    say(&format!("log in:            {demo} ssh"));
    say(&format!("run one command:   {demo} ssh -- srun -N2 hostname"));
    say(&format!(
        "look at the pods:  export KUBECONFIG={}; kubectl -n {NAMESPACE} get pods -o wide",
        kubeconfig.display()
    ));
    say(&format!("remove all of it:  {demo} --down"));
}

fn ssh(name: &str, words: &[String]) -> Result<ExitCode> {
    let cache = Cache::locate()?;
    let kubeconfig = State::kubeconfig(&cache, name)
        .with_context(|| format!("the demo is not up: `{}` starts it", xtask_demo(name)))?;
    let ssh = block_on(async {
        let demo = ByHand::at(&cache, &kubeconfig, NAMESPACE).await?;
        let key = Key::in_folder(&State::folder(&cache, name)).await?;
        login(&cache, name, &demo, key).await
    })?;
    let status = ssh.command(words).status().context("start ssh")?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
}
