//! Values that end a daemon although it knows their key.

use super::FileKind;
use crate::conf::release::{Release, Support};

/// Values that some release refuses although it knows the key.
#[derive(Debug, Clone, Copy)]
pub struct ValueRule {
    pub key: &'static str,
    pub values: Values,
    pub support: Support,
    /// What to do about it.
    pub instead: &'static str,
}

/// Which values of a key a rule is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Values {
    Is(&'static str),
    /// This one, and others beside it with commas between them.
    Has(&'static str),
    /// The key is read only to say that it is gone.
    Any,
    AllBut(&'static str),
}

/// Values of slurm.conf that end slurmctld of the releases outside `support`, as seen on real daemons.
pub const VALUE_RULES: &[ValueRule] = &[
    rule("AccountingStorageEnforce", Values::Is("none"), Support::NEVER, "remove it"),
    rule("AccountingStorageLoc", Values::Any, Support::NEVER, "remove it"),
    rule(
        "AccountingStorageType",
        Values::Is("accounting_storage/mysql"),
        Support::NEVER,
        "set accounting_storage/slurmdbd",
    ),
    rule(
        "AccountingStoreJobComment",
        Values::Any,
        Support::NEVER,
        "set AccountingStoreFlags=job_comment instead",
    ),
    rule(
        "FastSchedule",
        Values::AllBut("1"),
        Support::NEVER,
        "remove it, and for FastSchedule=2 set SlurmdParameters=config_overrides instead",
    ),
    rule("FirstJobId", Values::Is("0"), Support::NEVER, "set 1 or more"),
    rule("PreemptMode", Values::Has("PRIORITY"), Support::since(Release::V25_05), "choose another"),
    rule(
        "SallocDefaultCommand",
        Values::Any,
        Support::NEVER,
        "set LaunchParameters=use_interactive_step instead",
    ),
    // Of nodes. To partitions no release gives this state.
    rule("State", Values::Is("EXTERNAL"), Support::since(Release::V25_05), "choose another"),
    rule("TopologyPlugin", Values::Is("topology/flat"), Support::since(Release::V25_05), "choose another"),
    rule("TopologyPlugin", Values::Is("topology/ring"), Support::since(Release::V26_05), "choose another"),
    rule("TopologyPlugin", Values::Is("topology/torus3d"), Support::since(Release::V26_05), "choose another"),
];

const fn rule(key: &'static str, values: Values, support: Support, instead: &'static str) -> ValueRule {
    ValueRule { key, values, support, instead }
}

impl Values {
    fn has(self, value: &str) -> bool {
        match self {
            Self::Is(one) => one.eq_ignore_ascii_case(value),
            Self::Has(one) => value.split(',').any(|word| one.eq_ignore_ascii_case(word)),
            Self::Any => true,
            Self::AllBut(one) => !one.eq_ignore_ascii_case(value),
        }
    }
}

/// The rule by which the release does not start with this value of a key that it knows.
pub(in crate::conf) fn refusal(
    file: FileKind,
    key: &str,
    value: &str,
    release: Release,
) -> Option<&'static ValueRule> {
    VALUE_RULES
        .iter()
        .filter(|_| file == FileKind::Slurm)
        .filter(|rule| !rule.support.is_known_in(release))
        .find(|rule| rule.key.eq_ignore_ascii_case(key) && rule.values.has(value))
}
