//! Why one try brought nothing, whether another one may, and what is told of it.

use http::StatusCode;

use crate::call::{Call, Safety};
use crate::decode::{DecodeError, SlurmError};
use crate::error::{RestError, numbers};
use crate::served::Family;

/// Why one try brought nothing.
#[derive(Debug)]
pub(super) enum Trouble {
    /// It cannot be asked.
    Invalid(String),
    Unsent(String),
    Lost(String),
    Cut(String),
    Garbage(String),
    /// It answers, and this path is not among what it serves.
    NoSuchPath,
    /// 304.
    Unchanged,
    Refused(String),
    Said {
        status: StatusCode,
        errors: Vec<SlurmError>,
    },
}

impl From<DecodeError> for Trouble {
    fn from(error: DecodeError) -> Self {
        match error {
            DecodeError::Cut { .. } => Self::Cut(error.to_string()),
            DecodeError::Garbage { .. } | DecodeError::TooLarge { .. } => Self::Garbage(error.to_string()),
        }
    }
}

impl Trouble {
    /// An answer with errors, or with a status that is one.
    pub(super) fn said(status: StatusCode, errors: Vec<SlurmError>) -> Self {
        let refused = errors.iter().find(|error| error.number == numbers::AUTHENTICATION);
        match (status, refused) {
            (_, Some(error)) => Self::Refused(error.error.to_string()),
            (StatusCode::UNAUTHORIZED | StatusCode::NETWORK_AUTHENTICATION_REQUIRED, None) => {
                Self::Refused(format!("HTTP {}", status.as_u16()))
            }
            // Some releases say so with an error in place of a 304.
            _ if errors.iter().any(|error| error.number == numbers::NO_CHANGE) => Self::Unchanged,
            _ => Self::Said { status, errors },
        }
    }

    fn is_no_answer(&self) -> bool {
        match self {
            Self::Unsent(_) | Self::Lost(_) | Self::Cut(_) => true,
            Self::Said { status, errors } if errors.is_empty() => {
                status.is_server_error() || *status == StatusCode::TOO_MANY_REQUESTS
            }
            Self::Said { errors, .. } => errors.iter().any(|error| numbers::is_no_answer(error.number)),
            Self::Invalid(_) | Self::Garbage(_) | Self::NoSuchPath | Self::Unchanged | Self::Refused(_) => {
                false
            }
        }
    }

    pub(super) fn may_be_tried_again(&self, call: &Call) -> bool {
        match call.safety {
            Safety::Read => self.is_no_answer(),
            Safety::Write => matches!(self, Self::Unsent(_)),
        }
    }

    /// slurmdbd's side of slurmrestd says of a bad token that there is no connection to the database.
    pub(super) fn may_be_the_token(&self, call: &Call) -> bool {
        match self {
            Self::Refused(_) => true,
            Self::Said { errors, .. } => {
                call.family == Family::Slurmdb
                    && errors.iter().any(|error| error.number == numbers::NO_DATABASE)
            }
            _ => false,
        }
    }

    pub(super) fn into_error(self, call: &Call) -> RestError {
        let no_answer = self.is_no_answer();
        let call_name = call.name;
        match self {
            Self::Invalid(why) => RestError::Invalid { call: call_name, why },
            Self::Unsent(why) | Self::Lost(why) => RestError::NoAnswer { call: call_name, why },
            Self::Cut(why) => RestError::Cut { call: call_name, why },
            Self::Garbage(why) => RestError::Garbage { call: call_name, why },
            Self::Refused(why) => RestError::Refused { call: call_name, why },
            // It has just said that it serves this: somebody else answered, as a proxy does while slurmrestd is away.
            Self::NoSuchPath => {
                RestError::NoAnswer { call: call_name, why: "HTTP 404, and not from slurmrestd".to_owned() }
            }
            Self::Unchanged => RestError::Garbage {
                call: call_name,
                why: "it says 304 and was not asked for changes".to_owned(),
            },
            Self::Said { status, errors } => {
                let slurm = RestError::Slurm { call: call_name, status: status.as_u16(), errors };
                let RestError::Slurm { errors, .. } = &slurm else { return slurm };
                let missing =
                    call.missing.is_some_and(|missing| errors.iter().any(|error| error.number == missing))
                        || (call.one
                            && call.safety == Safety::Read
                            && !errors.is_empty()
                            && errors.iter().all(numbers::says_nothing_of_that_name));
                match (no_answer, missing, &call.what) {
                    (true, ..) => RestError::NoAnswer { call: call_name, why: slurm.reason() },
                    (false, true, Some(what)) => RestError::NotFound { call: call_name, what: what.clone() },
                    _ => slurm,
                }
            }
        }
    }
}
