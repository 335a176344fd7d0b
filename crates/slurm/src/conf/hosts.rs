//! Host lists in files: nodes, their addresses, and the devices that are named in the same way.

use super::quote::Unwritable;
use super::value::check_word;
use crate::hostlist::{Hostlist, HostlistError, Problem, TooMany};

/// Hosts as Slurm names many of them: `worker-[0-3],login`; also paths, `/dev/nvidia[0-7]`. Kept as it was written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostExpr(String);

/// Why a text cannot stand for hosts in a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostExprError {
    #[error(transparent)]
    Unwritable(#[from] Unwritable),
    #[error("is no host list: at byte {}: {}", .0.at, .0.problem)]
    Hostlist(#[from] HostlistError),
    #[error("is a host list that Slurm refuses, with more than {} {}", .0.limit, .0.what)]
    TooMany(#[from] TooMany),
}

impl HostExpr {
    /// Takes what Slurm's parser takes as a host list, and understands as it is meant.
    pub fn new(text: &str) -> Result<Self, HostExprError> {
        check_word(text)?;
        check(text)?;
        Ok(Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this stands for all nodes where Slurm looks for nodes and sets of them.
    pub(super) fn is_all(&self) -> bool {
        self.0.eq_ignore_ascii_case("ALL")
    }
}

impl From<HostExpr> for String {
    fn from(hosts: HostExpr) -> Self {
        hosts.0
    }
}

/// Fails for a list that is empty, or larger than Slurm reads.
impl TryFrom<&Hostlist> for HostExpr {
    type Error = HostExprError;

    fn try_from(list: &Hostlist) -> Result<Self, HostExprError> {
        // Before it is written: one that is too large may have a long text.
        list.check_slurms_limits()?;
        Self::new(&list.to_string())
    }
}

pub(super) fn check(text: &str) -> Result<(), HostExprError> {
    Ok(Hostlist::parse(text)?.check_slurms_limits()?)
}

/// The same for a user's value, which may be empty, `Nodes=""`, or have functions in braces, `switch{s1}`, which only
/// slurmctld can expand.
pub(super) fn check_value(text: &str) -> Result<(), HostExprError> {
    match check(text) {
        Err(HostExprError::Hostlist(HostlistError { problem: Problem::Function, .. })) => Ok(()),
        checked => checked,
    }
}

/// Ports as Slurm takes them apart: with brackets around them or, where they are several, without.
pub(super) fn ports(text: &str) -> Result<Hostlist, HostlistError> {
    if !text.starts_with('[') && text.contains(['-', ',']) {
        Hostlist::parse(&format!("[{text}]"))
    } else {
        Hostlist::parse(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        HostExpr::new(text).unwrap_err().to_string()
    }

    #[test]
    fn hosts_are_what_slurm_reads_as_a_host_list() {
        for good in
            ["worker-[0-3,7],login", "r[1-2]n[00-15]-ib", "ALL", "a_set", "/dev/nvidia[0-7]", "n[0-65535]"]
        {
            assert_eq!(HostExpr::new(good).unwrap().as_str(), good);
        }
        assert_eq!(refusal("n[1-"), "is no host list: at byte 1: `[` without `]`");
        assert!(refusal("n[5-3]").contains("goes backwards"));
        assert!(refusal("switch{s1}").contains("write the names"));
        assert!(refusal("").contains("is empty"));
        for injected in ["a State=DOWN", "a\nNodeName=b", "a#", "a\\", "a\"b", "a\tb"] {
            assert!(matches!(HostExpr::new(injected), Err(HostExprError::Unwritable(_))), "{injected:?}");
        }
    }

    #[test]
    fn lists_that_are_too_large_for_slurm_are_refused() {
        for text in ["n[0-65536]", "n[0-40000],n[40001-70000]", "x[0-65536]-ib"] {
            let expected = "is a host list that Slurm refuses, with more than 65536 numbers in one range";
            assert_eq!(refusal(text), expected, "{text}");
        }
        assert!(refusal("n[0-32767,0-32767,0]x[1-2]").ends_with("more than 65536 ranges"));
    }

    #[test]
    fn a_host_list_becomes_hosts_unless_nothing_is_in_it() {
        let hosts = |text: &str| HostExpr::try_from(&Hostlist::parse(text).unwrap());
        assert_eq!(hosts("n2,n3,login").unwrap().as_str(), "n[2-3],login");
        assert_eq!(hosts(""), Err(Unwritable::Empty.into()));
        assert!(matches!(hosts("n[0-9000000000]m[0-9000000000]"), Err(HostExprError::TooMany(_))));
    }

    #[test]
    fn a_users_value_may_say_more() {
        for good in ["", "switch{s1}", "n1 n2", "n[1-5]:2"] {
            assert_eq!(check_value(good), Ok(()), "{good}");
        }
        assert!(check_value("n[1-").is_err());
    }
}
