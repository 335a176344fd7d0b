//! What is wrong with a host list, and where.

use thiserror::Error;

/// A text that is no host list.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("read a host list: at byte {at}: {problem}")]
pub struct HostlistError {
    /// The byte of the text, or of the name, where the problem begins.
    pub at: usize,
    pub problem: Problem,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Problem {
    #[error("`[` without `]`")]
    Unclosed,
    #[error("`]` without `[`")]
    Unopened,
    #[error("`[` within brackets: write `a[1-2]b[3-4]` for several dimensions")]
    Nested,
    #[error("`{0}` is not a number or a range: write `3`, `008` or `1-5`")]
    NotARange(String),
    #[error("the range `{0}` goes backwards: write the smaller number first")]
    Backwards(String),
    #[error("the number `{0}` is too large: 19 digits is the most")]
    TooLarge(String),
    #[error("a name is longer than {} bytes", super::MAX_NAME)]
    TooLong,
    #[error("these are more than {} names and ranges", super::MOST_NUMBERS)]
    TooMany,
    #[error("functions in braces are expanded by slurmctld only: write the names")]
    Function,
    #[error("{0:?} is not part of a name")]
    NotInAName(char),
    #[error("a name is empty")]
    Empty,
}

/// A list stands for more than the caller, or Slurm, allows.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("expand a host list: it has more than {limit} {what}")]
pub struct TooMany {
    pub(crate) what: &'static str,
    pub limit: usize,
}

impl Problem {
    pub(super) fn at(self, at: usize) -> HostlistError {
        HostlistError { at, problem: self }
    }
}

/// The beginning of what a user wrote, short enough for a message.
pub(crate) fn excerpt(text: &str) -> String {
    const LONGEST: usize = 40;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
