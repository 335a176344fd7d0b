//! Lines with several keys, as types: nodes, partitions, devices, switches.

use super::hosts::HostExpr;
use super::keys::{block, gres, job_container, slurm, tree};
use super::line::{ConfLine, Extra};
use super::problem::Reason;
use super::value::{Feature, Value, Word};
use crate::units::{Memory, TimeLimit};

/// The state that a node begins with. What becomes of it is a [`crate::state::NodeState`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InitialState {
    Cloud,
    Down,
    Drain,
    /// Since 25.05.
    External,
    Future,
    Unknown,
}

impl From<InitialState> for Value {
    fn from(state: InitialState) -> Self {
        Self::from(match state {
            InitialState::Cloud => "CLOUD",
            InitialState::Down => "DOWN",
            InitialState::Drain => "DRAIN",
            InitialState::External => "EXTERNAL",
            InitialState::Future => "FUTURE",
            InitialState::Unknown => "UNKNOWN",
        })
    }
}

/// `NodeName=`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeLine {
    pub names: HostExpr,
    pub state: Option<InitialState>,
    pub hostname: Option<HostExpr>,
    pub address: Option<HostExpr>,
    pub cpus: Option<u16>,
    pub real_memory: Option<Memory>,
    pub port: Option<u16>,
    pub features: Vec<Feature>,
    pub gres: Vec<String>,
    pub weight: Option<u32>,
    pub extra: Extra,
}

impl NodeLine {
    pub fn new(names: HostExpr) -> Self {
        Self {
            names,
            state: None,
            hostname: None,
            address: None,
            cpus: None,
            real_memory: None,
            port: None,
            features: Vec::new(),
            gres: Vec::new(),
            weight: None,
            extra: Extra::default(),
        }
    }
}

impl From<NodeLine> for ConfLine {
    fn from(node: NodeLine) -> Self {
        use slurm::node as key;
        let features: Vec<String> = node.features.iter().map(|feature| feature.as_str().to_owned()).collect();
        ConfLine::new(slurm::NodeName, node.names)
            .set(key::State, node.state)
            .set(key::NodeHostname, node.hostname)
            .set(key::NodeAddr, node.address)
            .set(key::CPUs, node.cpus)
            .set(key::RealMemory, node.real_memory)
            .set(key::Port, node.port)
            .set(key::Feature, Some(features))
            .set(key::Gres, Some(node.gres))
            .set(key::Weight, node.weight)
            .extra(node.extra)
    }
}

/// `NodeSet=`: a name for nodes in lines of partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeSetLine {
    pub name: Word,
    pub nodes: Option<HostExpr>,
    pub feature: Option<Feature>,
}

impl From<NodeSetLine> for ConfLine {
    fn from(set: NodeSetLine) -> Self {
        ConfLine::new(slurm::NodeSet, set.name)
            .set(slurm::node_set::Nodes, set.nodes)
            .set(slurm::node_set::Feature, set.feature)
    }
}

/// Whether jobs are put into a partition, and started there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartitionState {
    Up,
    Down,
    Drain,
    Inactive,
}

impl From<PartitionState> for Value {
    fn from(state: PartitionState) -> Self {
        Self::from(match state {
            PartitionState::Up => "UP",
            PartitionState::Down => "DOWN",
            PartitionState::Drain => "DRAIN",
            PartitionState::Inactive => "INACTIVE",
        })
    }
}

/// How jobs share the nodes of a partition, and how many of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverSubscribe {
    No,
    Exclusive,
    /// Those that ask for it. Without a number 4.
    Yes(Option<u16>),
    /// All of them. Without a number 4.
    Force(Option<u16>),
}

impl From<OverSubscribe> for Value {
    fn from(share: OverSubscribe) -> Self {
        Self::Text(match share {
            OverSubscribe::No => "NO".to_owned(),
            OverSubscribe::Exclusive => "EXCLUSIVE".to_owned(),
            OverSubscribe::Yes(None) => "YES".to_owned(),
            OverSubscribe::Yes(Some(jobs)) => format!("YES:{jobs}"),
            OverSubscribe::Force(None) => "FORCE".to_owned(),
            OverSubscribe::Force(Some(jobs)) => format!("FORCE:{jobs}"),
        })
    }
}

/// What becomes of jobs of a partition that others preempt. `GANG` is of the whole cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PreemptMode {
    Off,
    Cancel,
    Requeue,
    Suspend,
}

impl From<PreemptMode> for Value {
    fn from(mode: PreemptMode) -> Self {
        Self::from(match mode {
            PreemptMode::Off => "OFF",
            PreemptMode::Cancel => "CANCEL",
            PreemptMode::Requeue => "REQUEUE",
            PreemptMode::Suspend => "SUSPEND",
        })
    }
}

/// Which nodes a partition has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartitionNodes {
    All,
    /// `Nodes=""`.
    None,
    /// What is called `all` is refused here, since it would be all nodes.
    Some(HostExpr),
}

/// `PartitionName=`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionLine {
    pub name: Word,
    pub nodes: Option<PartitionNodes>,
    pub default: Option<bool>,
    pub priority_tier: Option<u16>,
    pub preempt_mode: Option<PreemptMode>,
    pub hidden: Option<bool>,
    pub max_time: Option<TimeLimit>,
    pub default_time: Option<TimeLimit>,
    pub state: Option<PartitionState>,
    pub over_subscribe: Option<OverSubscribe>,
    pub extra: Extra,
}

impl PartitionLine {
    pub fn new(name: Word) -> Self {
        Self {
            name,
            nodes: None,
            default: None,
            priority_tier: None,
            preempt_mode: None,
            hidden: None,
            max_time: None,
            default_time: None,
            state: None,
            over_subscribe: None,
            extra: Extra::default(),
        }
    }
}

impl From<PartitionLine> for ConfLine {
    fn from(partition: PartitionLine) -> Self {
        use slurm::partition as key;
        let line = ConfLine::new(slurm::PartitionName, partition.name);
        let line = match partition.nodes {
            None => line,
            Some(PartitionNodes::All) => line.require(key::Nodes, "ALL"),
            Some(PartitionNodes::Some(nodes)) if nodes.is_all() => line.refuse(key::Nodes, Reason::AllNodes),
            Some(PartitionNodes::Some(nodes)) => line.require(key::Nodes, nodes),
            Some(PartitionNodes::None) => line.empty(key::Nodes),
        };
        line.set(key::Default, partition.default)
            .set(key::PriorityTier, partition.priority_tier)
            .set(key::PreemptMode, partition.preempt_mode)
            .set(key::Hidden, partition.hidden)
            .set(key::MaxTime, partition.max_time)
            .set(key::DefaultTime, partition.default_time)
            .set(key::State, partition.state)
            .set(key::OverSubscribe, partition.over_subscribe)
            .extra(partition.extra)
    }
}

/// `DownNodes=`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DownNodesLine {
    pub nodes: HostExpr,
    pub state: Option<InitialState>,
    pub reason: Option<String>,
}

impl From<DownNodesLine> for ConfLine {
    fn from(down: DownNodesLine) -> Self {
        ConfLine::new(slurm::DownNodes, down.nodes)
            .set(slurm::down_nodes::State, down.state)
            .set(slurm::down_nodes::Reason, down.reason)
    }
}

/// Where the program of a [`PowerActionLine`] runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Location {
    Slurmctld,
    Slurmd,
}

/// `PowerAction=`. A daemon that should run a program which is not there does not start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PowerActionLine {
    pub name: Word,
    pub location: Location,
    pub program: String,
}

impl From<PowerActionLine> for ConfLine {
    fn from(action: PowerActionLine) -> Self {
        let location = match action.location {
            Location::Slurmctld => "slurmctld",
            Location::Slurmd => "slurmd",
        };
        ConfLine::new(slurm::PowerAction, action.name)
            .require(slurm::power_action::Location, location)
            .require(slurm::power_action::Program, action.program)
    }
}

/// The value of `SlurmctldHost`: a host name, and where to reach it if that is not its address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlurmctldHost {
    pub name: Word,
    pub address: Option<Word>,
}

impl From<SlurmctldHost> for Value {
    fn from(host: SlurmctldHost) -> Self {
        let name = host.name.as_str();
        Self::Text(match &host.address {
            Some(address) => format!("{name}({})", address.as_str()),
            None => name.to_owned(),
        })
    }
}

/// A line of gres.conf: devices of nodes, or of every node.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GresLine {
    pub nodes: Option<HostExpr>,
    pub name: Option<Word>,
    pub kind: Option<Word>,
    /// A number, with a unit or without.
    pub count: Option<Word>,
    /// Paths as host expressions: `/dev/nvidia[0-7]`.
    pub file: Option<HostExpr>,
    /// Numbers and ranges: `0-7`.
    pub cores: Vec<Word>,
    pub auto_detect: Option<Word>,
    pub flags: Vec<Word>,
    pub extra: Extra,
}

/// Without nodes the line starts with the name of the resource; with neither it stays empty and is refused.
impl From<GresLine> for ConfLine {
    fn from(gres: GresLine) -> Self {
        use gres::line as key;
        let (line, name) = match (gres.nodes, gres.name) {
            (Some(nodes), name) => (ConfLine::new(gres::NodeName, nodes), name),
            (None, Some(name)) => (ConfLine::new(gres::Name, name), None),
            (None, None) => (ConfLine::new(gres::Name, ""), None),
        };
        line.set(key::Name, name)
            .set(key::Type, gres.kind)
            .set(key::Count, gres.count)
            .set(key::File, gres.file)
            .set(key::Cores, Some(words(&gres.cores)))
            .set(key::AutoDetect, gres.auto_detect)
            .set(key::Flags, Some(words(&gres.flags)))
            .extra(gres.extra)
    }
}

/// What hangs below a switch. Both at once is an error to Slurm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Below {
    Switches(HostExpr),
    Nodes(HostExpr),
    Nothing,
}

/// `SwitchName=` of topology.conf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwitchLine {
    pub name: Word,
    pub below: Below,
    pub link_speed: Option<u32>,
}

impl From<SwitchLine> for ConfLine {
    fn from(switch: SwitchLine) -> Self {
        let line = ConfLine::new(tree::SwitchName, switch.name);
        let line = match switch.below {
            Below::Switches(switches) => line.set(tree::switch::Switches, Some(switches)),
            Below::Nodes(nodes) => line.set(tree::switch::Nodes, Some(nodes)),
            Below::Nothing => line,
        };
        line.set(tree::switch::LinkSpeed, switch.link_speed)
    }
}

/// `BlockName=` of topology.conf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockLine {
    pub name: Word,
    pub nodes: HostExpr,
}

impl From<BlockLine> for ConfLine {
    fn from(line: BlockLine) -> Self {
        ConfLine::new(block::BlockName, line.name).set(block::line::Nodes, Some(line.nodes))
    }
}

/// A line of job_container.conf, of some nodes or of all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobContainerLine {
    pub nodes: Option<HostExpr>,
    /// `none` switches the plugin off.
    pub base_path: String,
    pub auto_base_path: Option<bool>,
    pub dirs: Vec<String>,
    pub shared: Option<bool>,
    pub init_script: Option<String>,
    pub extra: Extra,
}

impl From<JobContainerLine> for ConfLine {
    fn from(container: JobContainerLine) -> Self {
        use job_container::line as key;
        let line = match container.nodes {
            None => ConfLine::new(job_container::BasePath, container.base_path),
            Some(nodes) => {
                ConfLine::new(job_container::NodeName, nodes).require(key::BasePath, container.base_path)
            }
        };
        line.set(key::AutoBasePath, container.auto_base_path)
            .set(key::Dirs, Some(container.dirs))
            .set(key::Shared, container.shared)
            .set(key::InitScript, container.init_script)
            .extra(container.extra)
    }
}

fn words(words: &[Word]) -> Vec<String> {
    words.iter().map(|word| word.as_str().to_owned()).collect()
}
