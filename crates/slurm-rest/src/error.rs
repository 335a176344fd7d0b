//! What can go wrong with a call, told apart by what the caller can do about it.

use std::time::Duration;

use crate::decode::SlurmError;
use crate::token::TokenError;

/// A call that brought no success. The name of the call is part of every message.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RestError {
    /// This release of Slurm has no such call. Trying again does not help; an upgrade does.
    #[error("{call}: slurmrestd does not serve this: {why}")]
    NotServed { call: &'static str, why: String },
    /// Slurm answered, and knows no such thing.
    #[error("{call}: Slurm knows no {what}")]
    NotFound { call: &'static str, what: String },
    /// The token is not accepted, a new one neither.
    #[error(
        "{call}: the token is refused ({why}): the key differs from slurmctld's, the clocks differ, or slurmrestd and slurmctld are of \
         releases that do not understand each other"
    )]
    Refused { call: &'static str, why: String },
    #[error("{call}: no token: {source}")]
    Token { call: &'static str, source: TokenError },
    /// Nobody answered: slurmrestd, slurmctld or slurmdbd.
    #[error("{call}: no answer: {why}")]
    NoAnswer { call: &'static str, why: String },
    #[error("{call}: no answer within {} ms", after.as_millis())]
    TimedOut { call: &'static str, after: Duration },
    /// The answer was cut off.
    #[error("{call}: the answer is not whole: {why}")]
    Cut { call: &'static str, why: String },
    /// The answer means nothing to us.
    #[error("{call}: the answer cannot be understood: {why}")]
    Garbage { call: &'static str, why: String },
    /// Slurm said no.
    #[error("{call}: Slurm says: {}", told(errors, *status))]
    Slurm { call: &'static str, status: u16, errors: Vec<SlurmError> },
    /// What was asked for makes no sense; nothing was sent.
    #[error("{call}: {why}")]
    Invalid { call: &'static str, why: String },
}

fn told(errors: &[SlurmError], status: u16) -> String {
    if errors.is_empty() {
        return format!("HTTP {status} and no reason");
    }
    let one = |error: &SlurmError| {
        let mut parts: Vec<&str> = vec![&error.error, &error.description];
        parts.retain(|part| !part.is_empty());
        parts.dedup();
        format!("{} (error {})", parts.join(": "), error.number)
    };
    errors.iter().map(one).collect::<Vec<_>>().join("; ")
}

impl RestError {
    /// A word for metrics.
    #[must_use]
    pub fn class(&self) -> &'static str {
        match self {
            Self::NotServed { .. } => "not_served",
            Self::NotFound { .. } => "not_found",
            Self::Refused { .. } | Self::Token { .. } => "auth",
            Self::NoAnswer { .. } => "no_answer",
            Self::TimedOut { .. } => "timeout",
            Self::Cut { .. } => "cut",
            Self::Garbage { .. } => "garbage",
            Self::Slurm { .. } => "slurm",
            Self::Invalid { .. } => "invalid",
        }
    }

    /// Slurm did not say no, it said nothing that can be trusted; asking again may help.
    #[must_use]
    pub fn is_no_answer(&self) -> bool {
        matches!(
            self,
            Self::NoAnswer { .. } | Self::TimedOut { .. } | Self::Cut { .. } | Self::Garbage { .. }
        )
    }

    /// What Slurm said, without the name of the call.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::Slurm { status, errors, .. } => told(errors, *status),
            other => other.to_string(),
        }
    }

    /// The number of Slurm's first error.
    #[must_use]
    pub fn number(&self) -> Option<i64> {
        match self {
            Self::Slurm { errors, .. } => errors.first().map(|error| error.number),
            _ => None,
        }
    }
}

/// Slurm's error numbers that mean something to us.
pub(crate) mod numbers {
    pub(crate) const AUTHENTICATION: i64 = 1007;
    pub(crate) const INVALID_PARTITION: i64 = 2000;
    pub(crate) const INVALID_JOB: i64 = 2017;
    pub(crate) const INVALID_NODE: i64 = 2018;
    pub(crate) const INVALID_RESERVATION: i64 = 2053;
    pub(crate) const NO_CHANGE: i64 = 1900;
    pub(crate) const ALREADY_DONE: i64 = 2021;
    pub(crate) const NO_DATABASE: i64 = 7000;

    /// Of one thing that is not there slurmrestd says "no error", or that the query is wrong; ours are not.
    pub(crate) fn says_nothing_of_that_name(error: &crate::decode::SlurmError) -> bool {
        matches!(error.number, 0 | 9000)
    }

    /// slurmctld or slurmdbd did not answer slurmrestd.
    pub(crate) fn is_no_answer(number: i64) -> bool {
        match number {
            // The system's: a connection that broke, was refused, or led nowhere.
            32 | 101 | 103 | 104 | 107 | 110..=113 => true,
            // The same in Slurm's own words.
            1000..=1004 | 1013..=1023 | 1800..=1805 | 5000..=5005 => true,
            // A controller in standby, and slurmdbd without its database.
            2027 | NO_DATABASE => true,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slurm_is_quoted() {
        let error = SlurmError {
            number: 2016,
            error: crate::wire::Text("Requested nodes are busy".into()),
            description: crate::wire::Text("Failure to delete node n1".into()),
            ..SlurmError::default()
        };
        let error = RestError::Slurm { call: "delete_node", status: 500, errors: vec![error] };
        assert_eq!(
            error.to_string(),
            "delete_node: Slurm says: Requested nodes are busy: Failure to delete node n1 (error 2016)"
        );
        assert_eq!((error.number(), error.class()), (Some(2016), "slurm"));
        let silent = RestError::Slurm { call: "diag", status: 500, errors: vec![] };
        assert_eq!(silent.to_string(), "diag: Slurm says: HTTP 500 and no reason");
    }
}
