//! What keeps a file from being written.

use std::fmt;

use super::document::Fault;
use super::per_node::Uneven;
use super::quote::Unwritable;
use super::release::{Release, Support};
use super::value::Unfit;

/// One thing that cannot be written. Holds no values but names of nodes and the like: another may be a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {reason}")]
pub struct Problem {
    /// The key, the line or the file that it is about.
    pub place: String,
    pub reason: Reason,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    #[error("the value {0}")]
    Value(#[from] Unfit),
    #[error("{file} has no such key")]
    UnknownKey { file: &'static str },
    #[error("{support}, and Slurm {release} would not start with it")]
    Refused { release: Release, support: Support },
    #[error("it is a line with keys of its own: write it as a line")]
    IsLine,
    #[error("the comment {0}")]
    Comment(Unwritable),
    #[error("the path of the included file {0}")]
    Include(Unwritable),
    #[error("this text is for {0}")]
    OtherFile(&'static str),
    #[error("line {line} of the text: {fault}")]
    Text { line: usize, fault: Fault },
    #[error("Slurm {0} has no such file")]
    NoSuchFile(Release),
    #[error("the line is longer than the {0} bytes that Slurm reads of one")]
    Long(usize),
    #[error("it is the first key of the line already")]
    Twice,
    #[error("Slurm would take this name for the defaults of all lines after it: choose another")]
    Defaults,
    #[error(
        "this name stands for all nodes in Slurm, which starts with no node of that name and makes no set of it: choose \
         another"
    )]
    Reserved,
    #[error("Slurm would take this name for all nodes: choose another, or say that all are meant")]
    AllNodes,
    #[error(transparent)]
    Uneven(#[from] Uneven),
    #[error("slurmctld does not start with it among the defaults of nodes: set it on the lines of the nodes")]
    OfOneNode,
    #[error(
        "the text has its own line for {nodes}, see line {line}, and not for the others, and slurmctld does not start \
         where two lines name a node: name all of these nodes in the text, or none"
    )]
    SomeNodes { nodes: String, line: usize },
    #[error(
        "up to line {line} the text has nodes in more than {limit} ranges, which Slurm does not read: name fewer"
    )]
    TooManyNodes { line: usize, limit: usize },
    #[error(
        "line {line} of the text takes options of the operator away, without which Slurm no longer knows it: remove the \
         line"
    )]
    OursLost { line: usize },
    #[error(
        "{name} is the name of a node and of a set of nodes, one of which is on line {line} of the text, and no daemon and \
         no command of Slurm starts with that: choose another name for the set"
    )]
    NodeAndSetOfText { name: String, line: usize },
    #[error(
        "{0} is the name of a node and of a set of nodes, and no daemon and no command of Slurm starts with that: choose \
         another name for the set"
    )]
    NodeAndSet(String),
    #[error("there is none, and Slurm needs one")]
    Missing,
}

impl From<Unwritable> for Reason {
    fn from(unwritable: Unwritable) -> Self {
        Self::Value(unwritable.into())
    }
}

/// Everything that keeps a file from being written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems {
    pub file: &'static str,
    pub problems: Vec<Problem>,
}

impl fmt::Display for Problems {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "write {}: ", self.file)?;
        for (number, problem) in self.problems.iter().enumerate() {
            let gap = if number == 0 { "" } else { "; " };
            write!(out, "{gap}{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}
