//! A snapshot of a cluster, and how far it can be trusted.
//!
//! Each part says when it was last known to be all there is, and what went wrong since. A look that failed changes
//! nothing but that: what was known stays, gets older, and says so. Time is an argument, of the monotonic clock.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use crate::state::{Activity, JobState, NodeBase, NodeState};

/// Seconds since 1970, by the clock of slurmctld.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixTime(pub u64);

/// A short list of words, such as features, kept as one text with commas between them: none of Slurm's names has a
/// comma.
#[derive(Clone, PartialEq, Eq, Default, Hash)]
pub struct Words(Box<str>);

impl Words {
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.split(',').filter(|word| !word.is_empty())
    }

    #[must_use]
    pub fn has(&self, word: &str) -> bool {
        self.iter().any(|found| found == word)
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// From text with commas between the words.
impl From<Box<str>> for Words {
    fn from(text: Box<str>) -> Self {
        Self(text)
    }
}

impl<'a> FromIterator<&'a str> for Words {
    fn from_iter<I: IntoIterator<Item = &'a str>>(words: I) -> Self {
        Self(words.into_iter().collect::<Vec<_>>().join(",").into())
    }
}

impl fmt::Display for Words {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl fmt::Debug for Words {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(self.iter()).finish()
    }
}

/// What is known of a cluster.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    pub nodes: Part<BTreeMap<Box<str>, Node>>,
    pub partitions: Part<Vec<Partition>>,
    pub reservations: Part<Vec<Reservation>>,
}

/// One kind of fact, with its age.
#[derive(Debug, Clone)]
pub struct Part<T> {
    value: T,
    complete_at: Option<Instant>,
    trouble: Option<Trouble>,
}

/// Why the last look brought less than everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    pub since: Instant,
    pub what: Box<str>,
}

/// Something that is too old, or was never seen whole, to decide by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stale {
    /// None: it was never complete.
    pub age: Option<Duration>,
    pub why: Option<Box<str>>,
}

impl fmt::Display for Stale {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.age {
            None => out.write_str("Slurm has not been seen yet")?,
            Some(age) => write!(out, "what is known of Slurm is {} s old", age.as_secs())?,
        }
        self.why.iter().try_for_each(|why| write!(out, ": {why}"))
    }
}

impl std::error::Error for Stale {}

impl<T: Default> Default for Part<T> {
    fn default() -> Self {
        Self { value: T::default(), complete_at: None, trouble: None }
    }
}

impl<T> Part<T> {
    /// What is known, however old.
    pub fn latest(&self) -> &T {
        &self.value
    }

    /// What is known if it was complete no longer than `limit` ago.
    pub fn fresh(&self, now: Instant, limit: Duration) -> Result<&T, Stale> {
        match self.age(now) {
            Some(age) if age <= limit => Ok(&self.value),
            age => Err(Stale { age, why: self.trouble.as_ref().map(|trouble| trouble.what.clone()) }),
        }
    }

    /// When this was last known to be all there is.
    pub fn complete_at(&self) -> Option<Instant> {
        self.complete_at
    }

    /// How long ago this was known to be all there is.
    pub fn age(&self, now: Instant) -> Option<Duration> {
        self.complete_at.map(|at| now.saturating_duration_since(at))
    }

    pub fn trouble(&self) -> Option<&Trouble> {
        self.trouble.as_ref()
    }

    /// It was looked at whole at `at`: from the moment of the question, since the answer is no younger.
    pub fn replace(&mut self, value: T, at: Instant) {
        self.value = value;
        self.confirm(at);
    }

    /// Nothing has changed up to `at`.
    pub fn confirm(&mut self, at: Instant) {
        self.complete_at = Some(at);
        self.trouble = None;
    }

    /// A look failed, or was not whole.
    pub fn fail(&mut self, what: impl Into<Box<str>>, at: Instant) {
        let since = self.trouble.as_ref().map_or(at, |trouble| trouble.since);
        self.trouble = Some(Trouble { since, what: what.into() });
    }

    /// For what is known better of single items; says nothing about the others.
    pub fn latest_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

/// One node as slurmctld has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    pub name: Box<str>,
    pub state: NodeState,
    pub reason: Box<str>,
    /// Who gave the reason.
    pub reason_by: Box<str>,
    pub reason_at: Option<UnixTime>,
    pub address: Box<str>,
    pub partitions: Words,
    pub features: Words,
    pub active_features: Words,
    pub cpus: u32,
    /// None: the answer did not say.
    pub allocated_cpus: Option<u32>,
    pub memory_mib: u64,
    pub allocated_memory_mib: Option<u64>,
    /// What running jobs have: `cpu=4,gres/gpu=2`.
    pub allocated_tres: Box<str>,
    pub boot_time: Option<UnixTime>,
    pub slurmd_start_time: Option<UnixTime>,
    pub last_busy: Option<UnixTime>,
    pub comment: Box<str>,
    pub extra: Box<str>,
    pub topology: Box<str>,
    /// Of slurmd.
    pub version: Box<str>,
    /// As configured: `gpu:h100:8(S:0-1)`.
    pub gres: Box<str>,
    pub reservation: Box<str>,
    /// What the cloud or the node itself says that it is.
    pub instance_id: Box<str>,
    /// When slurmctld said this.
    pub seen_at: Instant,
}

impl Node {
    /// Whether jobs hold something of this node. What they hold is counted too, since the state of a node whose only
    /// job is suspended is IDLE. Where memory is no consumable resource (`CR_Core`) not even that shows: before a node is
    /// taken away for good, jobs have to be asked for. Slurm itself forgets such a node when told to.
    ///
    /// An answer that leaves the counts out is no proof of rest.
    #[must_use]
    pub fn activity(&self) -> Activity {
        let holds = self.allocated_cpus.is_some_and(|cpus| cpus > 0)
            || self.allocated_memory_mib.is_some_and(|memory| memory > 0)
            || !self.allocated_tres.is_empty();
        match self.state.activity() {
            Activity::Busy => Activity::Busy,
            // Slurm keeps the counts of a node that went down until its jobs are cleaned up.
            _ if holds => Activity::Busy,
            Activity::Free if self.allocated_cpus.is_none() || self.allocated_memory_mib.is_none() => {
                Activity::Unclear
            }
            other => other,
        }
    }

    /// As far as Slurm decides it, a job could start there now.
    #[must_use]
    pub fn takes_jobs(&self) -> bool {
        use crate::state::NodeFlag::{
            Drain, Fail, InvalidReg, Maintenance, NotResponding, PowerDown, PowerDrain, PoweredDown,
            PoweringDown, RebootIssued, RebootRequested,
        };
        let keeps_out = [
            Drain,
            Fail,
            InvalidReg,
            Maintenance,
            NotResponding,
            PowerDown,
            PowerDrain,
            PoweredDown,
            PoweringDown,
            RebootIssued,
            RebootRequested,
        ];
        matches!(self.state.base(), Some(NodeBase::Idle | NodeBase::Mixed | NodeBase::Allocated))
            && !keeps_out.iter().any(|flag| self.state.has(*flag))
    }

    /// Takes what was seen later; true if it says something new. When a node was last busy is no news.
    pub fn update(&mut self, later: Self) -> bool {
        (self.seen_at, self.last_busy) = (later.seen_at, later.last_busy);
        let news = *self != later;
        if news {
            *self = later;
        }
        news
    }
}

/// One partition.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Partition {
    pub name: Box<str>,
    /// `UP`, `DOWN`, `DRAIN`, `INACTIVE`.
    pub state: Words,
    /// As configured: a host list, or `ALL`, or names of node sets.
    pub nodes: Box<str>,
    pub total_nodes: u32,
}

/// One reservation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reservation {
    pub name: Box<str>,
    /// A host list.
    pub nodes: Box<str>,
    pub start: Option<UnixTime>,
    /// None: it has no end.
    pub end: Option<UnixTime>,
    pub flags: Words,
    pub users: Words,
    pub accounts: Words,
}

/// A job, as far as it explains why a node is not free. Jobs are not kept: they are asked for when a wait has to be
/// explained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    pub id: u32,
    pub name: Box<str>,
    pub user: Box<str>,
    pub state: JobState,
    /// A host list.
    pub nodes: Box<str>,
    pub start: Option<UnixTime>,
    /// By its time limit, while it runs; none if it has no limit.
    pub end: Option<UnixTime>,
}

/// What can be said of a node's name.
#[derive(Debug, Clone, PartialEq)]
pub enum Lookup<'a> {
    /// Seen no longer ago than was asked for.
    Known(&'a Node),
    /// All nodes were seen, no longer ago than was asked for, and it is not among them.
    Absent,
    Unclear(Stale),
}

impl Facts {
    /// What slurmctld said of a node no longer than `limit` ago.
    #[must_use]
    pub fn node(&self, name: &str, now: Instant, limit: Duration) -> Lookup<'_> {
        if let Some(node) = self.nodes.latest().get(name) {
            // Whatever is here was part of the last whole look, also if that only said that nothing has changed.
            let seen = self.nodes.complete_at.map_or(node.seen_at, |at| at.max(node.seen_at));
            let age = now.saturating_duration_since(seen);
            if age <= limit {
                return Lookup::Known(node);
            }
            let why = self.nodes.trouble().map(|trouble| trouble.what.clone());
            return Lookup::Unclear(Stale { age: Some(age), why });
        }
        match self.nodes.fresh(now, limit) {
            Ok(_) => Lookup::Absent,
            Err(stale) => Lookup::Unclear(stale),
        }
    }

    /// Whether a node can be taken away without taking it from a job: only what was seen lately counts, and a node
    /// that Slurm does not know has none.
    #[must_use]
    pub fn activity(&self, name: &str, now: Instant, limit: Duration) -> Activity {
        match self.node(name, now, limit) {
            Lookup::Known(node) => node.activity(),
            Lookup::Absent => Activity::Free,
            Lookup::Unclear(_) => Activity::Unclear,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(5);
    const SECOND: Duration = Duration::from_secs(1);

    fn node(name: &str, state: &str, seen_at: Instant) -> Node {
        Node {
            name: name.into(),
            state: NodeState::from_words(state.split('+')),
            reason: "".into(),
            reason_by: "".into(),
            reason_at: None,
            address: "".into(),
            partitions: Words::default(),
            features: Words::default(),
            active_features: Words::default(),
            cpus: 4,
            allocated_cpus: Some(0),
            memory_mib: 1000,
            allocated_memory_mib: Some(0),
            allocated_tres: "".into(),
            boot_time: None,
            slurmd_start_time: None,
            last_busy: None,
            comment: "".into(),
            extra: "".into(),
            topology: "".into(),
            version: "".into(),
            gres: "".into(),
            reservation: "".into(),
            instance_id: "".into(),
            seen_at,
        }
    }

    fn facts(nodes: Vec<Node>, at: Instant) -> Facts {
        let mut facts = Facts::default();
        facts.nodes.replace(nodes.into_iter().map(|node| (node.name.clone(), node)).collect(), at);
        facts
    }

    #[test]
    fn nothing_is_free_before_slurm_was_seen() {
        let (facts, now) = (Facts::default(), Instant::now());
        assert_eq!(facts.activity("n1", now, LIMIT), Activity::Unclear);
        let Lookup::Unclear(stale) = facts.node("n1", now, LIMIT) else { panic!("it was never seen") };
        assert_eq!(stale.to_string(), "Slurm has not been seen yet");
    }

    #[test]
    fn a_failed_look_is_not_an_empty_cluster() {
        let begin = Instant::now();
        let mut facts = facts(vec![node("n1", "IDLE", begin)], begin);
        assert_eq!(facts.activity("n1", begin, LIMIT), Activity::Free);
        assert_eq!(facts.activity("n2", begin, LIMIT), Activity::Free, "Slurm does not know it");

        facts.nodes.fail("no answer from slurmctld", begin + SECOND);
        facts.nodes.fail("connection refused", begin + 2 * SECOND);
        let trouble = facts.nodes.trouble().unwrap();
        assert_eq!((trouble.since, &*trouble.what), (begin + SECOND, "connection refused"));
        assert_eq!(facts.nodes.latest().len(), 1, "what was known stays");
        let late = begin + 6 * SECOND;
        for name in ["n1", "n2"] {
            assert_eq!(facts.activity(name, late, LIMIT), Activity::Unclear, "{name}");
            let Lookup::Unclear(stale) = facts.node(name, late, LIMIT) else { panic!("{name} is too old") };
            assert_eq!(stale.to_string(), "what is known of Slurm is 6 s old: connection refused");
        }
        facts.nodes.confirm(late);
        assert_eq!(facts.nodes.age(late), Some(Duration::ZERO));
        assert_eq!(facts.nodes.trouble(), None);
    }

    #[test]
    fn a_single_look_makes_one_node_young() {
        let begin = Instant::now();
        let mut facts = facts(vec![node("n1", "IDLE", begin), node("n2", "IDLE", begin)], begin);
        let late = begin + 10 * SECOND;
        facts.nodes.latest_mut().insert("n1".into(), node("n1", "ALLOCATED", late));
        assert_eq!(facts.activity("n1", late, LIMIT), Activity::Busy);
        assert_eq!(facts.activity("n2", late, LIMIT), Activity::Unclear);
        assert_eq!(facts.activity("n3", late, LIMIT), Activity::Unclear, "absence needs a whole list");
    }

    #[test]
    fn nothing_changed_makes_all_nodes_young() {
        let begin = Instant::now();
        let mut facts = facts(vec![node("n1", "IDLE", begin)], begin);
        let late = begin + 10 * SECOND;
        assert_eq!(facts.activity("n1", late, LIMIT), Activity::Unclear);
        facts.nodes.confirm(late);
        assert_eq!(facts.activity("n1", late, LIMIT), Activity::Free);
    }

    #[test]
    fn what_jobs_hold_counts_beside_the_state() {
        let now = Instant::now();
        let idle = node("n1", "IDLE", now);
        assert_eq!(idle.activity(), Activity::Free);
        assert_eq!(Node { allocated_cpus: Some(1), ..idle.clone() }.activity(), Activity::Busy);
        assert_eq!(Node { allocated_memory_mib: Some(1), ..idle.clone() }.activity(), Activity::Busy);
        assert_eq!(Node { allocated_tres: "gres/gpu=1".into(), ..idle.clone() }.activity(), Activity::Busy);
        assert_eq!(Node { allocated_cpus: None, ..idle.clone() }.activity(), Activity::Unclear);
        assert_eq!(Node { allocated_memory_mib: None, ..idle }.activity(), Activity::Unclear);
    }

    #[test]
    fn a_drained_node_takes_no_jobs() {
        let now = Instant::now();
        assert!(node("n1", "IDLE+CLOUD", now).takes_jobs() && node("n1", "MIXED", now).takes_jobs());
        for state in
            ["IDLE+DRAIN", "DOWN", "IDLE+NOT_RESPONDING", "IDLE+MAINTENANCE", "ALLOCATED+REBOOT_REQUESTED"]
        {
            assert!(!node("n1", state, now).takes_jobs(), "{state}");
        }
    }

    #[test]
    fn only_what_changed_is_a_change() {
        let now = Instant::now();
        let mut one = node("n1", "IDLE", now);
        let again = Node { seen_at: now + SECOND, last_busy: Some(UnixTime(7)), ..one.clone() };
        assert!(!one.update(again.clone()));
        assert_eq!(one, again, "its age is known all the same");
        assert!(one.update(node("n1", "IDLE+DRAIN", now)));
        assert!(!one.takes_jobs());
    }
}
