//! Values of settings: text, numbers, yes and no, lists, options, times, and the words that stand on lines with several
//! keys; and whether a text is a value of its key.

use std::fmt;

use super::hosts::{self, HostExpr, HostExprError};
use super::keys::Kind;
use super::quote::Unwritable;
use crate::units::{Memory, TimeLimit, UnitError};

/// What is written after `Key=`.
#[derive(Clone, PartialEq, Eq)]
pub enum Value {
    Text(String),
    Number(i128),
    YesNo(bool),
    /// With commas between them.
    List(Vec<String>),
    Options(Options),
    Time(TimeLimit),
}

/// Not shown: it may be a password.
impl fmt::Debug for Value {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Value").finish_non_exhaustive()
    }
}

impl Value {
    /// The value as Slurm is to read it for a key of this kind.
    pub(super) fn text(&self, kind: Kind) -> Result<String, Unfit> {
        Ok(match self {
            Self::Text(text) => text.clone(),
            Self::Number(number) => number.to_string(),
            Self::YesNo(yes) => if *yes { "yes" } else { "no" }.to_owned(),
            Self::List(items) => {
                items.iter().try_for_each(|item| check_item(item))?;
                items.join(",")
            }
            Self::Options(options) => options.text()?,
            Self::Time(limit) => match (kind, limit) {
                (Kind::Time, limit) => limit.to_string(),
                (Kind::Seconds, TimeLimit::Seconds(seconds)) => seconds.to_string(),
                (Kind::Seconds, TimeLimit::Unlimited) => "INFINITE".to_owned(),
                _ => return Err(Unfit::NoTime),
            },
        })
    }

    /// Whether there is nothing to write.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Text(text) => text.is_empty(),
            Self::List(items) => items.is_empty(),
            Self::Options(options) => options.0.is_empty(),
            Self::Number(_) | Self::YesNo(_) | Self::Time(_) => false,
        }
    }
}

pub(super) fn check_item(item: &str) -> Result<(), Unfit> {
    match item {
        "" => Err(Unwritable::Empty.into()),
        _ if item.contains(',') => Err(Unwritable::Letter(',').into()),
        _ => Ok(()),
    }
}

/// Options in one value, such as those of SlurmctldParameters: `enable_configless,conmgr_threads=32`.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Options(Vec<(String, Option<String>)>);

/// Values are not shown: a password may be among them.
impl fmt::Debug for Options {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_set().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

impl Options {
    pub fn new() -> Self {
        Self::default()
    }

    /// An option without a value.
    #[must_use]
    pub fn flag(mut self, name: &str) -> Self {
        self.0.push((name.to_owned(), None));
        self
    }

    #[must_use]
    pub fn with(mut self, name: &str, value: impl fmt::Display) -> Self {
        self.0.push((name.to_owned(), Some(value.to_string())));
        self
    }

    fn text(&self) -> Result<String, Unfit> {
        let mut parts = Vec::with_capacity(self.0.len());
        for (name, value) in &self.0 {
            check_item(name)?;
            if name.contains('=') {
                return Err(Unwritable::Letter('=').into());
            }
            parts.push(match value {
                None => name.clone(),
                Some(value) => {
                    check_item(value)?;
                    format!("{name}={value}")
                }
            });
        }
        Ok(parts.join(","))
    }
}

macro_rules! from {
    ($($from:ty: |$value:ident| $into:expr;)*) => {
        $(impl From<$from> for Value {
            fn from($value: $from) -> Self {
                $into
            }
        })*
    };
}

from! {
    &str: |text| Self::Text(text.to_owned());
    String: |text| Self::Text(text);
    &String: |text| Self::Text(text.clone());
    bool: |yes| Self::YesNo(yes);
    u16: |number| Self::Number(number.into());
    u32: |number| Self::Number(number.into());
    u64: |number| Self::Number(number.into());
    i32: |number| Self::Number(number.into());
    i64: |number| Self::Number(number.into());
    Vec<String>: |items| Self::List(items);
    Options: |options| Self::Options(options);
    TimeLimit: |limit| Self::Time(limit);
    // Every key that takes an amount of memory takes a number of MiB.
    Memory: |memory| Self::Number(memory.mib().into());
    Word: |word| Self::Text(word.0);
    Feature: |feature| Self::Text(feature.0);
    HostExpr: |hosts| Self::Text(hosts.into());
}

impl<const N: usize> From<[&str; N]> for Value {
    fn from(items: [&str; N]) -> Self {
        Self::List(items.map(str::to_owned).to_vec())
    }
}

impl From<&[&str]> for Value {
    fn from(items: &[&str]) -> Self {
        Self::List(items.iter().map(ToString::to_string).collect())
    }
}

/// Why a value is not one of its key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    #[error(transparent)]
    Unwritable(#[from] Unwritable),
    #[error("is not a whole number from 0 to {0}")]
    Number(u64),
    #[error("is not a number")]
    Float,
    #[error("is neither yes nor no")]
    YesNo,
    #[error("is no time: {0}")]
    Time(UnitError),
    #[error("is neither a number of seconds nor INFINITE")]
    Seconds,
    #[error("is no state for a node to begin with: UNKNOWN, CLOUD, FUTURE, DOWN or DRAIN are some")]
    NodeState,
    #[error("is none of {}", .0.join(", "))]
    OneOf(&'static [&'static str]),
    #[error("is none of NO, EXCLUSIVE, YES, FORCE, and YES:n from 2 on and FORCE:n from 1 on, up to 32767")]
    Share,
    #[error("is none of OFF, CANCEL, REQUEUE, SUSPEND, alone or with one of GANG, WITHIN and PRIORITY")]
    Preempt,
    #[error("is no port from 1 to 65535, and no list of them")]
    Ports,
    #[error(
        "is longer than {SWITCH_NAME} bytes, and slurmctld starts with no switch of such a name: choose a shorter one"
    )]
    LongSwitch,
    #[error(
        "ends in a number that is too large for Slurm, which looks for another switch: put a letter behind it"
    )]
    SwitchNumber,
    #[error("is a time, which this key does not take: write the number in the unit of the key")]
    NoTime,
    #[error(transparent)]
    Hosts(#[from] HostExprError),
}

impl Kind {
    /// Whether Slurm takes this as a value; one that it does not take ends the daemon.
    pub(super) fn check(self, text: &str) -> Result<(), Unfit> {
        match self {
            Self::Text | Self::Each | Self::Line(_) => Ok(()),
            Self::Hosts => Ok(hosts::check_value(text)?),
            Self::HostsLine(_) => Ok(hosts::check(text)?),
            Self::SwitchLine(_) if text.len() > SWITCH_NAME => Err(Unfit::LongSwitch),
            Self::SwitchLine(_) => check_switch(text),
            Self::Time => TimeLimit::parse(text).map(drop).map_err(Unfit::Time),
            Self::Seconds => {
                let endless = ["INFINITE", "NONE", "-1"].iter().any(|word| word.eq_ignore_ascii_case(text));
                let digits = text.bytes().all(|byte| byte.is_ascii_digit());
                if endless || (digits && text.parse::<u32>().is_ok()) { Ok(()) } else { Err(Unfit::Seconds) }
            }
            Self::NodeState => {
                let found = NODE_STATES.iter().any(|word| word.eq_ignore_ascii_case(text));
                if found { Ok(()) } else { Err(Unfit::NodeState) }
            }
            Self::OneOf(words) => {
                let found = words.iter().any(|word| word.eq_ignore_ascii_case(text));
                if found { Ok(()) } else { Err(Unfit::OneOf(words)) }
            }
            Self::Share => {
                if is_share(text) {
                    Ok(())
                } else {
                    Err(Unfit::Share)
                }
            }
            Self::Preempt => {
                if is_preempt_mode(text) {
                    Ok(())
                } else {
                    Err(Unfit::Preempt)
                }
            }
            Self::Ports => {
                if are_ports(text) {
                    Ok(())
                } else {
                    Err(Unfit::Ports)
                }
            }
            Self::U16 => whole_number(text, u16::MAX.into(), false),
            Self::U32 => whole_number(text, u32::MAX.into(), true),
            Self::U64 => whole_number(text, u64::MAX, true),
            Self::Float => {
                let plain = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
                let number = plain && text.parse::<f32>().is_ok_and(f32::is_finite);
                if number || is_infinite(text) { Ok(()) } else { Err(Unfit::Float) }
            }
            Self::YesNo => {
                let known = ["yes", "up", "true", "1", "no", "down", "false", "0"];
                let found = known.iter().any(|word| word.eq_ignore_ascii_case(text));
                if found { Ok(()) } else { Err(Unfit::YesNo) }
            }
        }
    }
}

/// Slurm looks only at how the words begin that are no base state, so that it takes `CLOUDY` for `CLOUD`.
const NODE_STATES: [&str; 13] = [
    "UNKNOWN",
    "CLOUD",
    "FUTURE",
    "DOWN",
    "IDLE",
    "DRAIN",
    "DRAINED",
    "DRAINING",
    "FAIL",
    "FAILING",
    "EXTERNAL",
    "ALLOCATED",
    "MIXED",
];

/// Of a number of jobs that is too small Slurm makes `NO`, and of one that is too large another.
fn is_share(text: &str) -> bool {
    let (word, jobs) = text.split_once(':').map_or((text, None), |(word, jobs)| (word, Some(jobs)));
    let is = |other: &str| word.eq_ignore_ascii_case(other);
    let Some(jobs) = jobs else { return ["NO", "EXCLUSIVE", "YES", "FORCE"].into_iter().any(is) };
    let digits = jobs.bytes().all(|byte| byte.is_ascii_digit());
    let jobs = jobs.parse::<u16>().ok().filter(|jobs| digits && *jobs <= 0x7fff);
    jobs.is_some_and(|jobs| (is("YES") && jobs > 1) || (is("FORCE") && jobs > 0))
}

/// Longer ones only topology.yaml may have.
const SWITCH_NAME: usize = 64;

/// Switches are named in host lists, for which the digits at the end are a number.
pub(super) fn check_switch(name: &str) -> Result<(), Unfit> {
    let text = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
    let digits = name.get(text.len()..).unwrap_or_default();
    if digits.is_empty() || digits.parse::<u64>().is_ok() { Ok(()) } else { Err(Unfit::SwitchNumber) }
}

fn are_ports(text: &str) -> bool {
    let is_port = |port: &str| {
        port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|port| port > 0)
    };
    let list = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let mut ranges = list.split([',', ' ', '\t']).filter(|range| !range.is_empty());
    // Not expanded: a short text can stand for all ports, and a file can have many of them.
    hosts::ports(text).is_ok()
        && ranges.all(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            is_port(first) && is_port(last)
        })
}

fn is_preempt_mode(text: &str) -> bool {
    let has = |words: &[&str]| {
        let named = |word: &&str| words.iter().any(|other| other.eq_ignore_ascii_case(word));
        text.split(',').filter(named).count()
    };
    let modes = has(&["OFF", "CLUSTER", "CANCEL", "REQUEUE", "ON", "SUSPEND"]);
    let more = has(&["GANG", "WITHIN", "PRIORITY"]);
    let alone = has(&["GANG"]) == 0 || has(&["WITHIN", "PRIORITY"]) == 0;
    // Slurm steps over what is empty between commas.
    let empty = has(&[""]);
    modes <= 1 && alone && modes + more + empty == text.split(',').count()
}

fn is_infinite(text: &str) -> bool {
    text.eq_ignore_ascii_case("UNLIMITED") || text.eq_ignore_ascii_case("INFINITE")
}

/// As Slurm reads one: with `0x` in sixteens, with a leading 0 in eights, and larger ones with a K for 1024 of them.
fn whole_number(text: &str, greatest: u64, thousands: bool) -> Result<(), Unfit> {
    let unfit = Unfit::Number(greatest);
    if is_infinite(text) {
        return Ok(());
    }
    let digits = text.strip_suffix(['k', 'K']).filter(|_| thousands).unwrap_or(text);
    let unit = if digits.len() < text.len() { 1024 } else { 1 };
    let (digits, radix) = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(rest) => (rest, 16),
        None if digits.len() > 1 && digits.starts_with('0') => (digits, 8),
        None => (digits, 10),
    };
    if digits.starts_with(['+', '-']) {
        return Err(unfit);
    }
    let number = u64::from_str_radix(digits, radix).ok().and_then(|number| number.checked_mul(unit));
    if number.is_some_and(|number| number <= greatest) { Ok(()) } else { Err(unfit) }
}

/// A name on a line with several keys: of a partition, a switch, a feature.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Word(String);

impl Word {
    /// Refuses what would end the name, or start another key or a comment; also a comma, since a name is one of a list,
    /// and brackets, in which Slurm has addresses, counts and ranges.
    pub fn new(text: &str) -> Result<Self, Unwritable> {
        check_letters(text, &['=', ',', '(', ')', '[', ']'])?;
        Ok(Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What nodes have and jobs ask for: a [`Word`] that may have a `=`, as in `arch=x86`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Feature(String);

impl Feature {
    pub fn new(text: &str) -> Result<Self, Unwritable> {
        check_letters(text, &[',', '(', ')', '[', ']'])?;
        Ok(Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<Word> for Feature {
    fn from(word: Word) -> Self {
        Self(word.0)
    }
}

pub(super) fn check_word(text: &str) -> Result<(), Unwritable> {
    check_letters(text, &['='])
}

/// Whether the text stays one value, and has none of these letters.
fn check_letters(text: &str, others: &[char]) -> Result<(), Unwritable> {
    if text.is_empty() {
        return Err(Unwritable::Empty);
    }
    if text.chars().any(char::is_control) {
        return Err(Unwritable::Control);
    }
    let bad = |letter: &char| {
        letter.is_whitespace() || ['#', '"', '\'', '\\'].contains(letter) || others.contains(letter)
    };
    text.chars().find(bad).map_or(Ok(()), |letter| Err(Unwritable::Letter(letter)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_that_slurm_reads() {
        for good in ["0", "65535", "0x10", "010", "INFINITE", "unlimited"] {
            assert_eq!(Kind::U16.check(good), Ok(()), "{good}");
        }
        for bad in ["", "-1", "+1", "65536", "08", "1k", "1.5", "ten", "0x", "k", " 1"] {
            assert_eq!(Kind::U16.check(bad), Err(Unfit::Number(65535)), "{bad:?}");
        }
        assert_eq!(Kind::U32.check("4k"), Ok(()));
        assert_eq!(Kind::U64.check("18446744073709551615"), Ok(()));
        assert!(Kind::U64.check("18446744073709551615k").is_err());
    }

    #[test]
    fn yes_no_and_shares_are_those_that_slurm_reads() {
        for good in ["YES", "no", "Up", "0"] {
            assert_eq!(Kind::YesNo.check(good), Ok(()), "{good}");
        }
        assert_eq!(Kind::YesNo.check("on"), Err(Unfit::YesNo));
        for good in ["95.5", "100", "INFINITE"] {
            assert_eq!(Kind::Float.check(good), Ok(()), "{good}");
        }
        for bad in ["", "x", "nan", "95%"] {
            assert_eq!(Kind::Float.check(bad), Err(Unfit::Float), "{bad}");
        }
    }

    #[test]
    fn names_of_switches_are_those_that_slurm_finds() {
        let switch = |name: &str| Kind::SwitchLine(&[]).check(name);
        let long = "s".repeat(65);
        for good in ["root", "", &long[1..], "s18446744073709551615", &format!("s{}", "0".repeat(30))] {
            assert_eq!(switch(good), Ok(()), "{good}");
        }
        assert_eq!((switch(&long), check_switch(&long)), (Err(Unfit::LongSwitch), Ok(())));
        for bad in ["s18446744073709551616", "99999999999999999999"] {
            assert_eq!(
                (switch(bad), check_switch(bad)),
                (Err(Unfit::SwitchNumber), Err(Unfit::SwitchNumber))
            );
        }
        assert_eq!(switch("s99999999999999999999_"), Ok(()));
    }

    #[test]
    fn ports_are_those_that_slurm_reads() {
        for good in ["", "1", "65535", "7000-7003", "7000,7002", "[7000-7003]", "7000 7002"] {
            assert_eq!(Kind::Ports.check(good), Ok(()), "{good}");
        }
        for bad in ["0", "abc", "65536", "0x10", "7000x", "7003-7000", "65530-65540", "[7000"] {
            assert_eq!(Kind::Ports.check(bad), Err(Unfit::Ports), "{bad}");
        }
    }

    #[test]
    fn words_of_partitions_are_those_that_slurm_reads() {
        for good in ["no", "EXCLUSIVE", "Yes", "YES:2", "force:1", "FORCE:32767"] {
            assert_eq!(Kind::Share.check(good), Ok(()), "{good}");
        }
        for bad in ["", "TRUE", "YES:1", "YES:", "FORCE:0", "FORCE:+2", "FORCE:32768", "NO:2", "YES,NO"] {
            assert_eq!(Kind::Share.check(bad), Err(Unfit::Share), "{bad}");
        }
        for good in ["off", "SUSPEND,GANG", "gang,suspend", "REQUEUE,WITHIN", "PRIORITY,CANCEL,", "GANG"] {
            assert_eq!(Kind::Preempt.check(good), Ok(()), "{good}");
        }
        for bad in ["ENABLED", "OFF,CANCEL", "SUSPEND,GANG,WITHIN", "PRIORITY,GANG", "SUSPEND GANG"] {
            assert_eq!(Kind::Preempt.check(bad), Err(Unfit::Preempt), "{bad}");
        }
        let state = Kind::OneOf(&["UP", "DOWN"]);
        assert_eq!((state.check("down"), state.check("UPP")), (Ok(()), Err(Unfit::OneOf(&["UP", "DOWN"]))));
        assert_eq!(Unfit::OneOf(&["UP", "DOWN"]).to_string(), "is none of UP, DOWN");
    }

    #[test]
    fn an_option_cannot_bring_another_one_along() {
        let text = |options: Options| Value::from(options).text(Kind::Text);
        let good = Options::new().flag("enable_configless").with("conmgr_threads", 32);
        assert_eq!(text(good).unwrap(), "enable_configless,conmgr_threads=32");
        assert!(text(Options::new().with("jwt_key", "/a,disable=1")).is_err());
        assert!(text(Options::new().flag("a=b")).is_err());
        assert!(text(Options::new().with("jwt_key", "")).is_err());
        assert!(Value::from(["a,b"]).text(Kind::Text).is_err());
    }

    #[test]
    fn nothing_that_is_printed_to_debug_shows_a_value() {
        let options = Options::new().with("SSL_KEY", "geheim").flag("x");
        let values = [Value::from("geheim"), Value::from(["geheim"]), options.clone().into()];
        assert_eq!(format!("{options:?} {:?}", values[0]), "{\"SSL_KEY\", \"x\"} Value { .. }");
        assert!(!format!("{values:?}").contains("geheim"));
    }

    #[test]
    fn a_time_is_written_as_its_key_takes_it() {
        let half_an_hour = Value::from(TimeLimit::parse("30").unwrap());
        assert_eq!(half_an_hour.text(Kind::Time).unwrap(), "00:30:00");
        assert_eq!(half_an_hour.text(Kind::Seconds).unwrap(), "1800");
        // Minutes, seconds and other units are in keys of this kind, and 0 is what Slurm would read of many a time.
        for kind in [Kind::U16, Kind::Text] {
            assert_eq!(half_an_hour.text(kind), Err(Unfit::NoTime), "{kind:?}");
        }
        let endless = Value::from(TimeLimit::Unlimited);
        assert_eq!(endless.text(Kind::Time).unwrap(), "UNLIMITED");
        assert_eq!(endless.text(Kind::Seconds).unwrap(), "INFINITE");
    }

    #[test]
    fn times_and_seconds_are_those_that_slurm_reads() {
        for good in ["30", "1-12", "2-03:04:05", "INFINITE", "unlimited", "-1"] {
            assert_eq!(Kind::Time.check(good), Ok(()), "{good}");
        }
        for bad in ["", "30m", "1-2-3", "NONE"] {
            assert!(matches!(Kind::Time.check(bad), Err(Unfit::Time(_))), "{bad}");
        }
        for good in ["30", "INFINITE", "none", "-1", "1000000000"] {
            assert_eq!(Kind::Seconds.check(good), Ok(()), "{good}");
        }
        for bad in ["", "UNLIMITED", "1:00", "0-00:10:00", "10m", "4294967296", "+1"] {
            assert_eq!(Kind::Seconds.check(bad), Err(Unfit::Seconds), "{bad}");
        }
    }

    #[test]
    fn a_word_cannot_start_another_key() {
        for bad in ["", "a b", "a=b", "a#b", "a\"b", "a\nb", "a\\", "a,b", "a(10.0.0.1", "a[1-2]"] {
            assert!(Word::new(bad).is_err(), "{bad:?}");
            assert_eq!(Feature::new(bad).is_ok(), bad == "a=b", "{bad:?}");
        }
    }
}
