//! Amounts and times as Slurm writes them: [`Tres`] strings, [`Memory`], [`TimeLimit`].
//!
//! What is too large for Slurm is an error here. Slurm itself would wrap around or saturate, and tell nobody.

mod memory;
mod time;
mod tres;

pub use memory::Memory;
pub use time::TimeLimit;
pub use tres::{Amount, Tres, TresName};

use thiserror::Error;

/// A text that is not an amount or a time.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("read `{text}` as {what}: {problem}")]
pub struct UnitError {
    /// The beginning of the text.
    pub text: String,
    pub(crate) what: &'static str,
    pub(crate) problem: Problem,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum Problem {
    #[error("write {0}")]
    Form(&'static str),
    #[error("that is more than Slurm can count; the most is {0}")]
    TooLarge(&'static str),
    #[error("this name is listed twice")]
    Twice,
}

impl Problem {
    pub(crate) fn of(self, text: &str, what: &'static str) -> UnitError {
        UnitError { text: crate::hostlist::excerpt(text), what, problem: self }
    }
}

#[cfg(test)]
mod tests;
