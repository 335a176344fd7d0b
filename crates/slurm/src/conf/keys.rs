//! The keys of every file, by the release that reads them.
//!
//! One that a daemon does not know ends the daemon, so nothing is written and no user's line is let through that is
//! not in these tables. The tests run them against the daemons of both releases, key by key.

use super::release::Support;

/// Makes a constant of each key, under Slurm's own spelling, and a table of all of them.
macro_rules! keys {
    ($($name:ident: $kind:expr $(=> $support:ident($($release:ident)?))?;)*) => {
        $(
            #[allow(non_upper_case_globals, reason = "as Slurm spells it, so that a search finds it")]
            pub const $name: Key = Key {
                name: stringify!($name),
                kind: $kind,
                support: keys!(@ $($support($($release)?))?),
            };
        )*
        pub const ALL: &[Key] = &[$($name),*];
    };
    (@) => { crate::conf::release::Support::ALWAYS };
    (@ never()) => { crate::conf::release::Support::NEVER };
    (@ $support:ident($release:ident)) => { crate::conf::release::Support::$support($release) };
}

pub mod block;
pub mod cgroup;
pub mod gres;
pub mod job_container;
pub mod mpi;
mod rules;
mod siblings;
pub mod slurm;
pub mod slurmdbd;
pub mod tree;

pub(super) use rules::refusal;
pub use rules::{VALUE_RULES, ValueRule, Values};
pub(super) use siblings::and_siblings;

/// A key of a file, or of a line of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// As Slurm spells it. Any case is read.
    pub name: &'static str,
    pub kind: Kind,
    pub support: Support,
}

/// What Slurm reads as the value of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Anything; what it means is looked at later. The last of several counts.
    Text,
    U16,
    U32,
    U64,
    Float,
    YesNo,
    /// A time limit, with days and hours, of which a number alone is minutes.
    Time,
    /// Seconds, or INFINITE. Of anything else, `UNLIMITED` and `1:00` among it, Slurm takes the digits in front: of
    /// most words a zero.
    Seconds,
    /// The state that a node begins with.
    NodeState,
    /// One of these words, in any case.
    OneOf(&'static [&'static str]),
    /// How jobs share nodes: `NO`, `EXCLUSIVE`, or `YES` and `FORCE` with how many of them, `FORCE:2`, or without.
    Share,
    /// What becomes of jobs that are preempted: one word of several, with `GANG`, `WITHIN` or `PRIORITY`.
    Preempt,
    /// A port for all nodes of a line, or one for each: `7000`, `7000-7003`.
    Ports,
    /// Nodes: a host list, `ALL`, names of sets. Functions in braces are not looked into.
    Hosts,
    /// Text that may be there several times, each of which counts: `Prolog`.
    Each,
    /// A line of its own, with these keys after the first. Each of several counts: `PartitionName`.
    Line(&'static [Key]),
    /// The same, for the nodes of a host list: `NodeName`.
    HostsLine(&'static [Key]),
    /// The same, for a switch of topology.conf.
    SwitchLine(&'static [Key]),
}

impl Kind {
    /// Whether a second one adds to the first and does not replace it.
    pub fn adds(self) -> bool {
        self == Self::Each || self.line().is_some()
    }

    /// The keys that may follow on the line, if this is a key of lines with several.
    pub fn line(self) -> Option<&'static [Key]> {
        match self {
            Self::Line(keys) | Self::HostsLine(keys) | Self::SwitchLine(keys) => Some(keys),
            _ => None,
        }
    }
}

impl Key {
    /// Whether a line `Key=name` says what is not said on the lines after it. Any case counts: of a partition that is
    /// called `default` Slurm makes none.
    pub(super) fn is_defaults(&self, name: &str) -> bool {
        ["NodeName", "PartitionName"].contains(&self.name) && name.eq_ignore_ascii_case("DEFAULT")
    }

    /// Whether no node and no set of nodes can be called this in slurm.conf, since it stands for all nodes.
    pub(super) fn is_reserved(&self, file: FileKind, name: &str) -> bool {
        file == FileKind::Slurm
            && ["NodeName", "NodeSet"].contains(&self.name)
            && name.eq_ignore_ascii_case("ALL")
    }

    /// Whether this cannot stand on a line of defaults: each node has its own.
    pub(super) fn is_of_one_node(&self) -> bool {
        ["BcastAddr", "NodeAddr", "NodeHostname"].contains(&self.name)
    }
}

/// A file that is lines of `Key=Value`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileKind {
    Slurm,
    Slurmdbd,
    Cgroup,
    Gres,
    Mpi,
    /// `topology.conf` of topology/tree.
    Tree,
    /// `topology.conf` of topology/block.
    Block,
    JobContainer,
}

impl FileKind {
    pub const ALL: [Self; 8] = [
        Self::Slurm,
        Self::Slurmdbd,
        Self::Cgroup,
        Self::Gres,
        Self::Mpi,
        Self::Tree,
        Self::Block,
        Self::JobContainer,
    ];

    pub fn file_name(self) -> &'static str {
        match self {
            Self::Slurm => "slurm.conf",
            Self::Slurmdbd => "slurmdbd.conf",
            Self::Cgroup => "cgroup.conf",
            Self::Gres => "gres.conf",
            Self::Mpi => "mpi.conf",
            Self::Tree | Self::Block => "topology.conf",
            Self::JobContainer => "job_container.conf",
        }
    }

    pub fn keys(self) -> &'static [Key] {
        match self {
            Self::Slurm => slurm::ALL,
            Self::Slurmdbd => slurmdbd::ALL,
            Self::Cgroup => cgroup::ALL,
            Self::Gres => gres::ALL,
            Self::Mpi => mpi::ALL,
            Self::Tree => tree::ALL,
            Self::Block => block::ALL,
            Self::JobContainer => job_container::ALL,
        }
    }

    pub fn key(self, name: &str) -> Option<&'static Key> {
        find(self.keys(), name)
    }
}

/// The key of this name, in any case.
pub fn find<'a>(keys: &'a [Key], name: &str) -> Option<&'a Key> {
    keys.iter().find(|key| key.name.eq_ignore_ascii_case(name))
}

/// The key that was probably meant: at most two edits away, and not more than a third of the name.
pub(super) fn nearest<'a>(keys: &'a [Key], name: &str) -> Option<&'a str> {
    let limit = 2.min(name.len() / 3);
    keys.iter()
        // Each letter more or less is an edit. This keeps long names, and most of the work, away.
        .filter(|key| key.name.len().abs_diff(name.len()) <= limit)
        .map(|key| (distance(key.name, name), key.name))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// How many letters must be put in, taken out or changed.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<u8> = other.bytes().map(|byte| byte.to_ascii_lowercase()).collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (line, letter) in one.bytes().map(|byte| byte.to_ascii_lowercase()).enumerate() {
        let mut diagonal = line;
        let mut left = line + 1;
        for (cell, &wanted) in row.iter_mut().skip(1).zip(&other) {
            let above = *cell;
            let changed = diagonal + usize::from(letter != wanted);
            left = changed.min(above + 1).min(left + 1);
            diagonal = above;
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = line + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conf::release::Release;

    #[test]
    fn keys_are_found_in_any_case() {
        assert_eq!(FileKind::Slurm.key("clustername"), Some(&slurm::ClusterName));
        assert_eq!(FileKind::Slurm.key("StoragePass"), None);
    }

    #[test]
    fn each_table_has_each_key_once() {
        for file in FileKind::ALL {
            for key in file.keys() {
                let same = file.keys().iter().filter(|other| other.name.eq_ignore_ascii_case(key.name));
                assert_eq!(same.count(), 1, "{} of {}", key.name, file.file_name());
            }
        }
    }

    #[test]
    fn releases_differ_as_slurm_does() {
        let known = |key: Key, release| key.support.is_known_in(release);
        assert!(!known(slurm::MetricsType, Release::V25_05) && known(slurm::MetricsType, Release::V25_11));
        assert!(!known(slurm::PowerAction, Release::V25_11) && known(slurm::PowerAction, Release::V26_05));
        assert!(Release::ALL.into_iter().all(|release| !known(slurm::node::AutoResume, release)));
        let flat = |release| refusal(FileKind::Slurm, "topologyplugin", "topology/flat", release);
        assert!(flat(Release::V24_11).is_some() && flat(Release::V25_05).is_none());
    }

    #[test]
    fn a_misspelt_key_finds_the_one_that_was_meant() {
        let nearest = |name| nearest(slurm::ALL, name);
        assert_eq!(nearest("MaxJobCuont"), Some("MaxJobCount"));
        assert_eq!(nearest("SlurmctldParameter"), Some("SlurmctldParameters"));
        assert_eq!(nearest("Banana"), None);
        assert_eq!(nearest(&"x".repeat(1 << 20)), None);
    }

    #[test]
    fn the_distance_is_that_of_levenshtein() {
        for (one, other, expected) in
            [("", "abc", 3), ("abc", "", 3), ("kitten", "sitting", 3), ("AbC", "abc", 0)]
        {
            assert_eq!(distance(one, other), expected, "{one} {other}");
        }
    }
}
