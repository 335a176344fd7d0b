//! TRES strings, amounts of trackable resources: `cpu=16,mem=191356M,gres/gpu:a100=8,node=1,billing=32,license/x=2`.

use std::collections::HashSet;
use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use super::{Memory, Problem, UnitError};

const WHAT: &str = "a TRES string";
const FORMS: &str =
    "TYPE=AMOUNT or TYPE/NAME=AMOUNT, separated by commas, such as `cpu=4,mem=16G,gres/gpu:a100=8`";
const WHAT_NAME: &str = "the name of a TRES";
const NAME_FORMS: &str = "TYPE or TYPE/NAME, such as `cpu` or `gres/gpu:a100`";
const COUNT_FORMS: &str = "a whole number, or one with K, M, G, T or P (times 1024 each)";
const MOST_COUNT: &str = "18446744073709551612";

/// `cpu`, `mem`, `gres/gpu:a100`, `license/x`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TresName(String);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Amount {
    Count(u64),
    /// Of `mem`, burst buffers and the memory of GPUs.
    Memory(Memory),
}

/// Amounts in the order in which they were written, each name once.
///
/// This is what jobs, nodes and limits have. What sacct reports as usage has times and bytes in it and is another form.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tres {
    entries: Vec<(TresName, Amount)>,
}

impl TresName {
    pub fn parse(text: &str) -> Result<Self, UnitError> {
        let (kind, name) = text.split_once('/').unwrap_or((text, "none"));
        let ends_a_name = |letter: char| {
            matches!(letter, ',' | '=' | '+' | '"' | '#') || letter.is_whitespace() || letter.is_control()
        };
        if kind.is_empty() || name.is_empty() || text.contains(ends_a_name) {
            return Err(Problem::Form(NAME_FORMS).of(text, WHAT_NAME));
        }
        Ok(Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// `gres` of `gres/gpu`.
    pub fn kind(&self) -> &str {
        self.0.split_once('/').map_or(&*self.0, |(kind, _)| kind)
    }

    /// `gpu` of `gres/gpu`.
    pub fn name(&self) -> Option<&str> {
        self.0.split_once('/').map(|(_, name)| name)
    }

    fn is_memory(&self) -> bool {
        let is = |text: &str, word: &str| text.eq_ignore_ascii_case(word);
        is(self.kind(), "mem") || is(self.kind(), "bb") || self.name().is_some_and(|name| is(name, "gpumem"))
    }
}

impl Display for TresName {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl Tres {
    pub fn parse(text: &str) -> Result<Self, UnitError> {
        let mut tres = Self::default();
        let mut names = HashSet::new();
        if text.is_empty() {
            return Ok(tres);
        }
        for entry in text.split(',') {
            let Some((name, amount)) = entry.split_once('=') else {
                return Err(Problem::Form(FORMS).of(entry, WHAT));
            };
            let name = TresName::parse(name)?;
            if !names.insert(name.as_str().to_ascii_lowercase()) {
                return Err(Problem::Twice.of(name.as_str(), WHAT));
            }
            let amount = if name.is_memory() {
                Amount::Memory(amount.parse()?)
            } else {
                Amount::Count(count(amount)?)
            };
            tres.entries.push((name, amount));
        }
        Ok(tres)
    }

    /// Slurm does not care about upper and lower case in names.
    pub fn get(&self, name: &str) -> Option<Amount> {
        self.entries.iter().find(|(own, _)| own.0.eq_ignore_ascii_case(name)).map(|(_, amount)| *amount)
    }

    /// Replaces an amount where it is, or adds it at the end. What Slurm counts as memory is taken as MiB, and the
    /// other way round, so that an amount always fits its name.
    pub fn set(&mut self, name: TresName, amount: Amount) {
        let amount = match amount {
            Amount::Count(count) if name.is_memory() => Amount::Memory(Memory::from_mib(count)),
            Amount::Memory(memory) if !name.is_memory() => Amount::Count(memory.mib()),
            fitting => fitting,
        };
        match self.entries.iter_mut().find(|(own, _)| own.0.eq_ignore_ascii_case(&name.0)) {
            Some((_, own)) => *own = amount,
            None => self.entries.push((name, amount)),
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (&TresName, Amount)> {
        self.entries.iter().map(|(name, amount)| (name, *amount))
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// A count, zero if it is not listed.
    pub fn count(&self, name: &str) -> u64 {
        match self.get(name) {
            Some(Amount::Count(count)) => count,
            Some(Amount::Memory(memory)) => memory.mib(),
            None => 0,
        }
    }

    pub fn memory(&self) -> Option<Memory> {
        match self.get("mem")? {
            Amount::Memory(memory) => Some(memory),
            Amount::Count(mib) => Some(Memory::from_mib(mib)),
        }
    }
}

fn count(text: &str) -> Result<u64, UnitError> {
    let (number, unit) = match text.find(|letter: char| !letter.is_ascii_digit()) {
        Some(at) => text.split_at(at),
        None => (text, ""),
    };
    let steps = match unit {
        "" => 0,
        "K" | "k" => 1,
        "M" | "m" => 2,
        "G" | "g" => 3,
        "T" | "t" => 4,
        "P" | "p" => 5,
        _ => return Err(Problem::Form(COUNT_FORMS).of(text, WHAT)),
    };
    if number.is_empty() {
        return Err(Problem::Form(COUNT_FORMS).of(text, WHAT));
    }
    // The three largest numbers mean other things to Slurm, such as no value at all.
    let count = number.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << (10 * steps)));
    count.filter(|count| *count < u64::MAX - 2).ok_or_else(|| Problem::TooLarge(MOST_COUNT).of(text, WHAT))
}

impl FromStr for Tres {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        Self::parse(text)
    }
}

impl Display for Amount {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(out, "{count}"),
            Self::Memory(memory) => write!(out, "{memory}"),
        }
    }
}

impl Display for Tres {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        for (at, (name, amount)) in self.entries.iter().enumerate() {
            write!(out, "{}{name}={amount}", if at == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}
