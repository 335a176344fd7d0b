//! Node and job states: one base state and any number of flags, in the words that slurmrestd and `scontrol` use.
//!
//! A word that we do not know is kept. Of a node with one nobody can say that it is free.

use std::fmt;

macro_rules! words {
    (
        $(#[$base_doc:meta])* $base:ident { $($(#[$base_variant_doc:meta])* $base_variant:ident = $base_word:literal,)* }
        $(#[$flag_doc:meta])* $flag:ident { $($(#[$flag_variant_doc:meta])* $flag_variant:ident = $flag_word:literal,)* }
    ) => {
        $(#[$base_doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $base { $($(#[$base_variant_doc])* $base_variant,)* }

        impl $base {
            pub const ALL: &[Self] = &[$(Self::$base_variant,)*];

            #[must_use]
            pub fn word(self) -> &'static str {
                match self { $(Self::$base_variant => $base_word,)* }
            }
        }

        $(#[$flag_doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $flag { $($(#[$flag_variant_doc])* $flag_variant,)* }

        impl $flag {
            pub const ALL: &[Self] = &[$(Self::$flag_variant,)*];

            #[must_use]
            pub fn word(self) -> &'static str {
                match self { $(Self::$flag_variant => $flag_word,)* }
            }

            fn bit(self) -> u64 {
                1 << self as u32
            }
        }

        impl Vocabulary for ($base, $flag) {
            type Base = $base;
            type Flag = $flag;

            fn base(word: &str) -> Option<$base> {
                match word { $($base_word => Some($base::$base_variant),)* _ => None }
            }

            fn flag(word: &str) -> Option<$flag> {
                match word { $($flag_word => Some($flag::$flag_variant),)* _ => None }
            }
        }
    };
}

/// The words of one kind of state.
trait Vocabulary {
    type Base;
    type Flag;
    fn base(word: &str) -> Option<Self::Base>;
    fn flag(word: &str) -> Option<Self::Flag>;
}

words! {
    /// What a node is, flags apart.
    NodeBase {
        /// Not registered since slurmctld started.
        Unknown = "UNKNOWN",
        Down = "DOWN",
        Idle = "IDLE",
        Allocated = "ALLOCATED",
        Error = "ERROR",
        /// Partly allocated.
        Mixed = "MIXED",
        /// Defined, and to be filled in by a slurmd.
        Future = "FUTURE",
    }
    /// What else is so of a node.
    NodeFlag {
        External = "EXTERNAL",
        Reserved = "RESERVED",
        Undrain = "UNDRAIN",
        Cloud = "CLOUD",
        Resume = "RESUME",
        Drain = "DRAIN",
        /// Jobs are ending there.
        Completing = "COMPLETING",
        NotResponding = "NOT_RESPONDING",
        PoweredDown = "POWERED_DOWN",
        Fail = "FAIL",
        PoweringUp = "POWERING_UP",
        Maintenance = "MAINTENANCE",
        RebootRequested = "REBOOT_REQUESTED",
        RebootCanceled = "REBOOT_CANCELED",
        PoweringDown = "POWERING_DOWN",
        DynamicFuture = "DYNAMIC_FUTURE",
        RebootIssued = "REBOOT_ISSUED",
        Planned = "PLANNED",
        /// It registered with less than its definition says.
        InvalidReg = "INVALID_REG",
        PowerDown = "POWER_DOWN",
        PowerUp = "POWER_UP",
        PowerDrain = "POWER_DRAIN",
        PowerDownAsap = "POWER_DOWN_ASAP",
        PowerDownForce = "POWER_DOWN_FORCE",
        DynamicNorm = "DYNAMIC_NORM",
        /// By a job that has its whole topology block.
        Blocked = "BLOCKED",
        /// slurmrestd's word for what it cannot name.
        Invalid = "INVALID",
    }
}

words! {
    /// What a job is, flags apart.
    JobBase {
        Pending = "PENDING",
        Running = "RUNNING",
        Suspended = "SUSPENDED",
        Completed = "COMPLETED",
        Cancelled = "CANCELLED",
        Failed = "FAILED",
        Timeout = "TIMEOUT",
        NodeFail = "NODE_FAIL",
        Preempted = "PREEMPTED",
        BootFail = "BOOT_FAIL",
        Deadline = "DEADLINE",
        OutOfMemory = "OUT_OF_MEMORY",
    }
    /// What else is so of a job.
    JobFlag {
        LaunchFailed = "LAUNCH_FAILED",
        Requeued = "REQUEUED",
        RequeueHold = "REQUEUE_HOLD",
        SpecialExit = "SPECIAL_EXIT",
        Resizing = "RESIZING",
        /// Its nodes are booting.
        Configuring = "CONFIGURING",
        /// Its epilog runs, or some of its processes are still there.
        Completing = "COMPLETING",
        Stopped = "STOPPED",
        ReconfigFail = "RECONFIG_FAIL",
        PowerUpNode = "POWER_UP_NODE",
        Revoked = "REVOKED",
        RequeueFed = "REQUEUE_FED",
        ResvDelHold = "RESV_DEL_HOLD",
        Signaling = "SIGNALING",
        StageOut = "STAGE_OUT",
        Expediting = "EXPEDITING",
    }
}

/// A base state, flags, and words that are neither.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct State<B, F> {
    base: Option<B>,
    flags: u64,
    unknown: Box<[Box<str>]>,
    flag: std::marker::PhantomData<F>,
}

pub type NodeState = State<NodeBase, NodeFlag>;
pub type JobState = State<JobBase, JobFlag>;

macro_rules! state {
    ($base:ident, $flag:ident) => {
        impl State<$base, $flag> {
            /// From the words of an answer. Of several base states the first counts; the others are kept as unknown
            /// words.
            pub fn from_words<'a>(words: impl IntoIterator<Item = &'a str>) -> Self {
                let (mut base, mut flags, mut unknown) = (None, 0, Vec::new());
                for word in words {
                    match (<($base, $flag)>::base(word), <($base, $flag)>::flag(word)) {
                        (Some(found), _) if base.is_none() => base = Some(found),
                        (_, Some(flag)) => flags |= flag.bit(),
                        _ => unknown.push(word.into()),
                    }
                }
                Self { base, flags, unknown: unknown.into(), flag: std::marker::PhantomData }
            }

            #[must_use]
            pub fn has(&self, flag: $flag) -> bool {
                self.flags & flag.bit() != 0
            }

            pub fn flags(&self) -> impl Iterator<Item = $flag> + '_ {
                $flag::ALL.iter().copied().filter(|flag| self.has(*flag))
            }
        }

        /// As in `sinfo` and `squeue`: `IDLE+DRAIN`.
        impl fmt::Display for State<$base, $flag> {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(self.base.map_or("?", $base::word))?;
                self.flags().try_for_each(|flag| write!(out, "+{}", flag.word()))?;
                self.unknown().try_for_each(|word| write!(out, "+{word}"))
            }
        }
    };
}

state!(NodeBase, NodeFlag);
state!(JobBase, JobFlag);

impl<B: Copy, F> State<B, F> {
    /// None if the answer had no base state that we know.
    #[must_use]
    pub fn base(&self) -> Option<B> {
        self.base
    }

    /// Words that this version does not know.
    pub fn unknown(&self) -> impl Iterator<Item = &str> {
        self.unknown.iter().map(AsRef::as_ref)
    }
}

impl<B, F> fmt::Debug for State<B, F>
where
    Self: fmt::Display,
{
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

/// Whether jobs hold something of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// Slurm says so in words that we know.
    Free,
    Busy,
    /// Nobody can say: the node has not registered, is in error, or has a state that we do not know.
    Unclear,
}

impl NodeState {
    /// What the state alone says. Allocations that are counted beside it can only make a node busier.
    #[must_use]
    pub fn activity(&self) -> Activity {
        if self.has(NodeFlag::Completing) {
            return Activity::Busy;
        }
        match self.base {
            Some(NodeBase::Allocated | NodeBase::Mixed) => Activity::Busy,
            _ if !self.unknown.is_empty() || self.has(NodeFlag::Invalid) => Activity::Unclear,
            Some(NodeBase::Idle | NodeBase::Down | NodeBase::Future) => Activity::Free,
            Some(NodeBase::Unknown | NodeBase::Error) | None => Activity::Unclear,
        }
    }

    /// Slurm starts nothing there because somebody said so.
    #[must_use]
    pub fn is_drained_or_draining(&self) -> bool {
        self.has(NodeFlag::Drain)
    }

    /// Power saving has something to do with it, or is about to.
    #[must_use]
    pub fn is_power_managed(&self) -> bool {
        use NodeFlag::{PowerDown, PowerDrain, PowerUp, PoweredDown, PoweringDown, PoweringUp};
        [PowerDown, PowerDrain, PoweredDown, PoweringDown, PoweringUp, PowerUp]
            .iter()
            .any(|flag| self.has(*flag))
    }
}

impl JobState {
    /// It holds nothing and will not run again. A job that is requeued is pending again; one that we cannot read, or
    /// not all of it, is not over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        use JobFlag::{Completing, RequeueFed, RequeueHold, Requeued, SpecialExit, StageOut};
        let goes_on = [Completing, Requeued, RequeueHold, RequeueFed, SpecialExit, StageOut];
        let ended =
            !matches!(self.base, None | Some(JobBase::Pending | JobBase::Running | JobBase::Suspended));
        ended && self.unknown.is_empty() && !goes_on.iter().any(|flag| self.has(*flag))
    }

    /// It has nodes, also while it is suspended or ends, or may have some: of what we cannot read nobody can say that
    /// it has none.
    #[must_use]
    pub fn holds_nodes(&self) -> bool {
        let unclear = self.base.is_none() || !self.unknown.is_empty();
        let has = matches!(self.base, Some(JobBase::Running | JobBase::Suspended));
        has || unclear || self.has(JobFlag::Completing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(words: &str) -> NodeState {
        NodeState::from_words(words.split('+').filter(|word| !word.is_empty()))
    }

    fn job(words: &str) -> JobState {
        JobState::from_words(words.split('+').filter(|word| !word.is_empty()))
    }

    #[test]
    fn every_word_is_read_and_written_alike() {
        for base in NodeBase::ALL {
            assert_eq!(
                (node(base.word()).base(), node(base.word()).to_string()),
                (Some(*base), base.word().into())
            );
        }
        for flag in NodeFlag::ALL {
            let state = node(&format!("IDLE+{}", flag.word()));
            assert!(state.has(*flag) && state.flags().eq([*flag]), "{state}");
            assert_eq!(state.to_string(), format!("IDLE+{}", flag.word()));
        }
        for base in JobBase::ALL {
            assert_eq!(job(base.word()).base(), Some(*base));
        }
        for flag in JobFlag::ALL {
            assert_eq!(
                job(&format!("RUNNING+{}", flag.word())).to_string(),
                format!("RUNNING+{}", flag.word())
            );
        }
    }

    #[test]
    fn a_word_from_the_future_is_kept_and_makes_a_node_unclear() {
        let state = node("IDLE+DRAIN+LEVITATING");
        assert_eq!((state.base(), state.has(NodeFlag::Drain)), (Some(NodeBase::Idle), true));
        assert_eq!(state.unknown().collect::<Vec<_>>(), ["LEVITATING"]);
        assert_eq!(state.to_string(), "IDLE+DRAIN+LEVITATING");
        assert_eq!(state.activity(), Activity::Unclear);
        assert_eq!(node("").activity(), Activity::Unclear);
        assert_eq!(node("").to_string(), "?");
    }

    #[test]
    fn a_node_is_free_only_where_slurm_says_so() {
        for free in
            ["IDLE", "IDLE+DRAIN+CLOUD", "DOWN+NOT_RESPONDING", "FUTURE", "IDLE+PLANNED", "IDLE+RESERVED"]
        {
            assert_eq!(node(free).activity(), Activity::Free, "{free}");
        }
        for busy in
            ["ALLOCATED", "MIXED+PLANNED", "IDLE+COMPLETING", "DOWN+COMPLETING", "ALLOCATED+LEVITATING"]
        {
            assert_eq!(node(busy).activity(), Activity::Busy, "{busy}");
        }
        // After a restart of slurmctld a node is UNKNOWN until it registers, with or without jobs.
        for unclear in ["UNKNOWN+NOT_RESPONDING", "ERROR", "DRAIN", "IDLE+INVALID", "IDLE+DOWN"] {
            assert_eq!(node(unclear).activity(), Activity::Unclear, "{unclear}");
        }
    }

    #[test]
    fn a_job_is_over_when_nothing_of_it_comes_back() {
        for over in ["COMPLETED", "CANCELLED", "FAILED+LAUNCH_FAILED", "NODE_FAIL", "OUT_OF_MEMORY"] {
            assert!(job(over).is_over(), "{over}");
        }
        for on in
            ["PENDING", "RUNNING", "SUSPENDED", "COMPLETED+COMPLETING", "NODE_FAIL+REQUEUED", "LEVITATING"]
        {
            assert!(!job(on).is_over(), "{on}");
        }
    }

    #[test]
    fn a_job_that_cannot_be_read_is_not_over_and_may_hold_nodes() {
        for unclear in ["", "LEVITATING", "COMPLETED+LEVITATING", "PENDING+LEVITATING", "COMPLETED+FAILED"] {
            assert!(job(unclear).holds_nodes() && !job(unclear).is_over(), "{unclear:?}");
        }
        for holds in ["RUNNING", "SUSPENDED", "COMPLETED+COMPLETING", "CANCELLED+COMPLETING"] {
            assert!(job(holds).holds_nodes(), "{holds}");
        }
        for free in ["PENDING", "COMPLETED", "FAILED+LAUNCH_FAILED"] {
            assert!(!job(free).holds_nodes(), "{free}");
        }
    }
}
