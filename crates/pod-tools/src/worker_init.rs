//! `slipway-node worker-init`: what a worker pod does before slurmd starts. It waits until every slurmctld answers,
//! waits until the topology knows this node, and tells slurmctld the address and the place of the node.
//!
//! It never waits in silence: whoever looks at the log of a pod that does not start reads there what is missing.

mod ping;
mod pod;
mod topology;
mod wait;

use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use clap::builder::{FalseyValueParser, NonEmptyStringValueParser};

use pod::{Effects, Pod};
use topology::{Place, Plugin};
use wait::{Probe, Wait, until};

/// How long an update that slurmctld refuses is tried again: a controller that has just started is busy.
const UPDATE_PATIENCE: Duration = Duration::from_secs(30);

/// What there is to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Step {
    /// Every slurmctld answers a ping
    WaitController,
    /// The topology has this node
    WaitTopology,
}

/// The variables are those that the operator sets on the init container.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// What to wait for before the node is announced
    #[arg(required = true, value_enum)]
    pub steps: Vec<Step>,
    /// With the poll interval, how long to wait for the controller: attempts times interval
    #[arg(long, env = "CONTROLLER_MAX_ATTEMPTS", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..))]
    pub controller_max_attempts: u32,
    /// The longest pause between two pings, in seconds; the first ones follow each other faster
    #[arg(long, env = "CONTROLLER_POLL_INTERVAL", default_value = "5", value_parser = seconds)]
    pub controller_poll_interval: Duration,
    /// Start after a random time of up to so many seconds, so that a thousand workers do not ask at once
    #[arg(long, env = "WORKER_INIT_RANDOM_DELAY_SECONDS", default_value = "0", value_parser = seconds_if_any)]
    pub random_delay: Duration,
    /// Nodes with GPUs are placed by the labels of their Kubernetes node, others under the unknown switch
    #[arg(
        long,
        env = "NODESET_GPU_ENABLED",
        default_value = "false",
        action = clap::ArgAction::Set,
        value_parser = FalseyValueParser::new()
    )]
    pub gpu: bool,
    /// Name of the Kubernetes node; the labels of GPU nodes are found by it
    #[arg(long, env = "K8S_NODE_NAME")]
    pub node_name: Option<String>,
    /// Name of this pod, which is the name of the Slurm node
    #[arg(long, env = "K8S_POD_NAME", value_parser = NonEmptyStringValueParser::new())]
    pub pod_name: String,
    #[arg(long, env = "K8S_POD_NAMESPACE", value_parser = NonEmptyStringValueParser::new())]
    pub pod_namespace: String,
    /// Headless service that gives the pod its DNS name
    #[arg(long, env = "K8S_SERVICE_NAME", value_parser = NonEmptyStringValueParser::new())]
    pub service_name: String,
    /// Directory with one file per Kubernetes node, which holds its topology labels
    #[arg(long, env = "TOPOLOGY_CONFIGMAP_PATH", default_value = "/tmp/slurm/topology-node-labels")]
    pub topology_labels: PathBuf,
    /// How long to wait for the topology, in seconds
    #[arg(long, env = "TOPOLOGY_WAIT_TIMEOUT", default_value = "180", value_parser = seconds)]
    pub topology_timeout: Duration,
    /// The longest pause between two looks at the topology, in seconds
    #[arg(long, env = "TOPOLOGY_POLL_INTERVAL", default_value = "5", value_parser = seconds)]
    pub topology_poll_interval: Duration,
    #[arg(long, env = "SLURM_TOPOLOGY_PLUGIN", default_value = "topology/tree")]
    pub topology_plugin: String,
    /// Root switch of the fabric that this node belongs to
    #[arg(long, env = "SLURM_TOPOLOGY_FABRIC", default_value = topology::ROOT)]
    pub topology_fabric: String,
    /// The file in which slurmctld finds the topology
    #[arg(long, default_value = "/etc/slurm/topology.conf")]
    pub topology_conf: PathBuf,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let number: f64 = text.trim().parse().map_err(|_| "not a number of seconds")?;
    // More than thirty years are a mistake, and would only overflow when times are added.
    let sane = Duration::try_from_secs_f64(number).ok().filter(|time| time.as_secs() < 1_000_000_000);
    sane.ok_or_else(|| "not a time that anybody waits".to_owned())
}

/// An empty variable is one that was not set.
fn seconds_if_any(text: &str) -> Result<Duration, String> {
    if text.trim().is_empty() { Ok(Duration::ZERO) } else { seconds(text) }
}

#[allow(clippy::needless_pass_by_value, reason = "what every tool of the program is given")]
pub fn run(args: Args) -> Result<()> {
    let delay = args.random_delay.mul_f64(random_fraction());
    prepare(&args, delay, &mut Pod::new()?)
}

/// Between 0 and 1. The standard library seeds its hashers from the system, and that is all that is needed here.
fn random_fraction() -> f64 {
    f64::from(u32::try_from(RandomState::new().build_hasher().finish() >> 32).unwrap_or(0))
        / f64::from(u32::MAX)
}

fn prepare(args: &Args, delay: Duration, effects: &mut impl Effects) -> Result<()> {
    let wants_topology = args.steps.contains(&Step::WaitTopology);
    let plugin = Plugin::of(&args.topology_plugin);
    // Said at once, and not after five minutes of waiting for the controller.
    let labels = if wants_topology && plugin != Plugin::Other { labels_file(args)? } else { None };

    wait_out(delay, effects)?;
    if args.steps.contains(&Step::WaitController) {
        wait_for_controller(args, effects)?;
    }
    let place = match plugin {
        _ if !wants_topology => None,
        Plugin::Other => {
            let name = &args.topology_plugin;
            effects.say(&format!("topology plugin '{name}' has no switches or blocks: nothing to wait for"));
            None
        }
        Plugin::Tree | Plugin::Block => {
            let place = wait_for_topology(args, labels.as_deref(), effects)?;
            // slurmctld has the block of a node from topology.conf; a path of switches is an error there.
            (plugin == Plugin::Tree).then(|| place.path(&args.topology_fabric))
        }
    };
    announce(args, place, effects)
}

/// The file with the labels of the node, if this node is placed by labels.
fn labels_file(args: &Args) -> Result<Option<PathBuf>> {
    if !args.gpu {
        return Ok(None);
    }
    match args.node_name.as_deref() {
        Some(name) if Path::new(name).file_name().is_some_and(|file| file == name) => {
            Ok(Some(args.topology_labels.join(name)))
        }
        name => bail!(
            "K8S_NODE_NAME is {name:?}, and the topology of a GPU node is found by the name of its Kubernetes node"
        ),
    }
}

fn wait_out(delay: Duration, effects: &mut impl Effects) -> Result<()> {
    let end = effects.now() + delay;
    while let Some(left) = end.checked_sub(effects.now()).filter(|left| !left.is_zero()) {
        effects.say(&format!("starting in {:.1} s, so that not all workers ask at once", left.as_secs_f64()));
        effects.pause(left.min(wait::SAY_EVERY))?;
    }
    Ok(())
}

fn wait_for_controller(args: &Args, effects: &mut impl Effects) -> Result<()> {
    let interval = args.controller_poll_interval;
    let patience = interval.saturating_mul(args.controller_max_attempts);
    let wait = Wait::new("every slurmctld to answer", patience, interval);
    let look_at = "look at the pod of slurmctld and its log, at SlurmctldHost in slurm.conf, and whether munge runs \
                   here with the key of the cluster";
    until(effects, wait, look_at, |effects| Ok(ping::read(&effects.scontrol(&["ping", "--json"])?)))
}

fn wait_for_topology(args: &Args, labels: Option<&Path>, effects: &mut impl Effects) -> Result<Place> {
    let end = effects.now() + args.topology_timeout;
    let wait =
        |what: String, now: Duration| Wait::new(what, end.saturating_sub(now), args.topology_poll_interval);
    let place = match labels {
        None => Place::Unknown,
        Some(file) => {
            let wait = wait(format!("the topology labels of this node in {}", file.display()), effects.now());
            let look_at = "look whether the Kubernetes node has the tier labels, and whether the ConfigMap \
                           topology-node-labels of this namespace has a key for it";
            until(effects, wait, look_at, |_| topology::read_labels(file))?
        }
    };
    if let Place::Unplaceable(why) = &place {
        effects.say(&format!("this node goes under the unknown switch: {why}"));
    }
    let wait = wait(format!("{} in {}", args.pod_name, args.topology_conf.display()), effects.now());
    let look_at = "look at the ConfigMap and JailedConfig of the topology and at the log of the operator";
    until(effects, wait, look_at, |_| Ok(topology::look_for(&args.pod_name, &args.topology_conf)))?;
    Ok(place)
}

fn announce(args: &Args, topology: Option<String>, effects: &mut impl Effects) -> Result<()> {
    let pod = &args.pod_name;
    let mut update = vec![
        "update".to_owned(),
        format!("nodename={pod}"),
        format!("nodeaddr={pod}.{}.{}.svc", args.service_name, args.pod_namespace),
    ];
    update.extend(topology.map(|path| format!("topology={path}")));
    let update: Vec<&str> = update.iter().map(String::as_str).collect();
    effects.say(&format!("scontrol {}", update.join(" ")));

    let wait = Wait::new(
        "slurmctld to take the address of this node",
        UPDATE_PATIENCE,
        args.controller_poll_interval,
    );
    let known = until(effects, wait, "look at the log of slurmctld", |effects| {
        let ran = effects.scontrol(&update)?;
        Ok(match ran {
            ran if ran.ok => Probe::Ready(true),
            // Not an error: slurmctld meets a dynamic node for the first time when its slurmd registers.
            ran if ran.mentions("Invalid node name") => Probe::Ready(false),
            ran => Probe::NotYet(ran.complaint()),
        })
    })
    .with_context(|| format!("announce node {pod} to slurmctld"))?;
    if !known {
        effects.say(&format!("slurmctld does not know node {pod} yet: it will when slurmd registers"));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
