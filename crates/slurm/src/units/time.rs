//! Time limits: `MaxTime`, `DefaultTime`, `--time` and what `squeue` says of them.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;
use std::time::Duration;

use super::{Problem, UnitError};

const WHAT: &str = "a time limit";
const FORMS: &str = "minutes, minutes:seconds, hours:minutes:seconds, days-hours, days-hours:minutes, \
                     days-hours:minutes:seconds, INFINITE or UNLIMITED";
/// Slurm reads seconds into 32 bits with a sign, and rounds up to minutes in there: the last minute for which that is safe.
const MOST_SECONDS: u64 = (i32::MAX as u64 / 60 - 1) * 60;
const MOST: &str = "24855-03:13:00";

/// How long something may take. Options that are plain seconds, such as `SlurmdTimeout`, are not of this kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TimeLimit {
    Seconds(u32),
    // The last: it is the longest.
    Unlimited,
}

impl TimeLimit {
    /// A part of a second counts as a whole one.
    pub fn from_duration(duration: Duration) -> Result<Self, UnitError> {
        let seconds = duration.as_secs().saturating_add(u64::from(duration.subsec_nanos() > 0));
        Self::from_seconds(seconds).ok_or_else(|| Problem::TooLarge(MOST).of(&format!("{duration:?}"), WHAT))
    }

    fn from_seconds(seconds: u64) -> Option<Self> {
        u32::try_from(seconds).ok().filter(|_| seconds <= MOST_SECONDS).map(Self::Seconds)
    }

    /// As Slurm keeps limits of jobs and partitions: whole minutes, begun ones count. `None` is unlimited.
    pub fn minutes(self) -> Option<u32> {
        match self {
            Self::Seconds(seconds) => Some(seconds.div_ceil(60)),
            Self::Unlimited => None,
        }
    }

    /// `None` is unlimited.
    pub fn duration(self) -> Option<Duration> {
        match self {
            Self::Seconds(seconds) => Some(Duration::from_secs(seconds.into())),
            Self::Unlimited => None,
        }
    }

    /// Reads a limit. A number alone is minutes. Hours may exceed a day, and minutes an hour, as Slurm has it.
    pub fn parse(text: &str) -> Result<Self, UnitError> {
        if ["INFINITE", "UNLIMITED", "-1"].iter().any(|word| text.eq_ignore_ascii_case(word)) {
            return Ok(Self::Unlimited);
        }
        let form = || Problem::Form(FORMS).of(text, WHAT);
        let too_large = || Problem::TooLarge(MOST).of(text, WHAT);
        let (days, rest) = match text.split_once('-') {
            Some((days, rest)) => (Some(days), rest),
            None => (None, text),
        };
        let mut fields = Vec::new();
        for field in days.into_iter().chain(rest.split(':')) {
            if field.is_empty() || !field.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(form());
            }
            // Below 2^32, sums of days in seconds fit.
            fields.push(u64::from(field.parse::<u32>().map_err(|_| too_large())?));
        }
        let seconds = match (days, &*fields) {
            (None, [minutes]) => minutes * 60,
            (None, [minutes, seconds]) => minutes * 60 + seconds,
            (None, [hours, minutes, seconds]) => hours * 3600 + minutes * 60 + seconds,
            (Some(_), [days, hours]) => days * 86_400 + hours * 3600,
            (Some(_), [days, hours, minutes]) => days * 86_400 + hours * 3600 + minutes * 60,
            (Some(_), [days, hours, minutes, seconds]) => {
                days * 86_400 + hours * 3600 + minutes * 60 + seconds
            }
            _ => return Err(form()),
        };
        Self::from_seconds(seconds).ok_or_else(too_large)
    }
}

impl FromStr for TimeLimit {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        Self::parse(text)
    }
}

/// `1-00:00:00`, `00:30:00` or `UNLIMITED`, as Slurm's programs print it.
impl Display for TimeLimit {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let Self::Seconds(all) = self else { return out.write_str("UNLIMITED") };
        let (days, hours, minutes, seconds) = (all / 86_400, all / 3600 % 24, all / 60 % 60, all % 60);
        if days > 0 {
            write!(out, "{days}-")?;
        }
        write!(out, "{hours:02}:{minutes:02}:{seconds:02}")
    }
}
