//! Host lists: `gpu-[0-3,008],r[0-1]n[00-15],login`, read and written as Slurm does.
//!
//! A list stands for names in an order, some perhaps twice, and may stand for more of them than there is memory:
//! what is kept is never larger than a multiple of the text, and whatever would write names out takes a limit.
//!
//! The forms are those of `scontrol show hostlist`, `show hostnames` and `show hostlistsorted`, which answer alike in
//! 24.11 and 26.05; `tests/slurm/hostlist.rs` compares. What Slurm takes and does not mean is refused here: that list,
//! each with what Slurm makes of it, is in the same file.

mod check;
mod error;
mod natural;
mod parse;
mod product;
mod repeats;
mod run;
mod set;
mod sorted;
mod write;

use std::str::FromStr;

#[doc(hidden)]
pub use check::check_invariants;
pub(crate) use error::excerpt;
pub use error::{HostlistError, Problem, TooMany};
use product::{Product, Unfold};
pub(crate) use repeats::repeats;
use run::{Run, RunNames, merges};
pub(crate) use set::NameSet;

/// Longer names are refused. No DNS name is longer, and a name is at most 64 bytes where Slurm puts it into a fixed
/// buffer.
pub const MAX_NAME: usize = 255;

/// The most numbers in one range, and the most ranges after brackets are taken apart, that Slurm reads.
const MOST_NUMBERS: u64 = 65_536;

/// Names in an order, as one expression.
///
/// There is no `==`: one list can be written in several ways. Compare [`Hostlist::unique`] as text to ask for the
/// same names.
#[derive(Debug, Clone, Default)]
pub struct Hostlist {
    items: Vec<Item>,
}

#[derive(Debug, Clone)]
enum Item {
    Run(Run<'static>),
    Product(Product),
}

impl Hostlist {
    /// Reads an expression. Names are separated by commas, spaces, tabs or line ends; an empty text is an empty list.
    /// One with more names and ranges than Slurm can have nodes is refused, before a short text takes much memory.
    pub fn parse(text: &str) -> Result<Self, HostlistError> {
        parse::parse(text)
    }

    /// The list of these names, in their order. A name stands for itself: commas and brackets are refused.
    pub fn from_names<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> Result<Self, HostlistError> {
        let mut list = Self::default();
        for name in names {
            list.push(name.as_ref())?;
        }
        Ok(list)
    }

    /// Adds one name at the end.
    pub fn push(&mut self, name: &str) -> Result<(), HostlistError> {
        parse::check_name(name)?;
        self.push_run(Run::of_name(name).into_owned());
        Ok(())
    }

    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// How many names there are, each as often as it is listed; `u64::MAX` if it is that or more.
    pub fn count(&self) -> u64 {
        self.items.iter().map(Item::count).fold(0, u64::saturating_add)
    }

    /// Whether `name` is listed, exactly as written: `n1` is not in `n[01-03]`. Nothing is expanded.
    pub fn contains(&self, name: &str) -> bool {
        self.items.iter().any(|item| match item {
            Item::Run(run) => run.contains(name),
            Item::Product(product) => product.contains(name),
        })
    }

    /// The names in the order of `scontrol show hostnames`, made one by one.
    pub fn iter(&self) -> Names<'_> {
        Names { items: self.items.iter(), product: None, run: None }
    }

    /// All names, or an error if there are more than `limit`.
    pub fn expand(&self, limit: usize) -> Result<Vec<String>, TooMany> {
        let count = self.count();
        if count > limit as u64 {
            return Err(TooMany { what: "names", limit });
        }
        Ok(self.iter().collect())
    }

    /// Slurm reads none of a list with a range of more numbers than this, or with more combinations of all brackets
    /// but the last. Neighbours count as one range, since that is how Slurm writes them to its other daemons.
    pub fn check_slurms_limits(&self) -> Result<(), TooMany> {
        let too_many = |what| Err(TooMany { what, limit: MOST_NUMBERS as usize });
        if self.items.iter().any(|item| item.longest_range() > MOST_NUMBERS) {
            return too_many("numbers in one range");
        }
        if self.run_count() > MOST_NUMBERS {
            return too_many("ranges");
        }
        Ok(())
    }

    /// As `scontrol show hostlistsorted`: sorted, repeats kept. The result has at most `limit` ranges.
    pub fn sorted(&self, limit: usize) -> Result<Self, TooMany> {
        sorted::sorted(self, limit)
    }

    /// Each name once, sorted. Lists of the same names become the same text, however they were written.
    /// At most `limit` ranges are looked at.
    pub fn unique(&self, limit: usize) -> Result<Self, TooMany> {
        Ok(set::NameSet::of(self, limit)?.into_list())
    }

    /// The names that are in either list, sorted, each once.
    pub fn union(&self, other: &Self, limit: usize) -> Result<Self, TooMany> {
        Ok(set::NameSet::of(self, limit)?.union(set::NameSet::of(other, limit)?).into_list())
    }

    /// The names that are in this list and not in `other`, sorted, each once.
    pub fn difference(&self, other: &Self, limit: usize) -> Result<Self, TooMany> {
        Ok(set::NameSet::of(self, limit)?.difference(&set::NameSet::of(other, limit)?).into_list())
    }

    /// What follows the last range and continues it joins it, as in Slurm.
    fn push_run(&mut self, run: Run<'static>) {
        if let Some(Item::Run(last)) = self.items.last_mut()
            && merges(last, &run)
        {
            last.extend_to(&run);
            return;
        }
        self.items.push(Item::Run(run));
    }

    /// Every range as Slurm would store it, before neighbours are joined.
    fn runs(&self) -> impl Iterator<Item = Run<'_>> {
        self.items.iter().flat_map(|item| match item {
            Item::Run(run) => Runs::One(Some(run.borrowed())),
            Item::Product(product) => Runs::Many(product.unfold()),
        })
    }

    /// As [`Self::runs`], if there are at most `limit`.
    fn runs_within(&self, limit: usize) -> Result<impl Iterator<Item = Run<'_>>, TooMany> {
        self.check_runs(limit)?;
        Ok(self.runs())
    }

    fn check_runs(&self, limit: usize) -> Result<(), TooMany> {
        if self.run_count() > limit as u64 { Err(TooMany { what: "ranges", limit }) } else { Ok(()) }
    }

    pub(crate) fn run_count(&self) -> u64 {
        let count = |item: &Item| match item {
            Item::Run(_) => 1,
            Item::Product(product) => product.run_count(),
        };
        self.items.iter().map(count).fold(0, u64::saturating_add)
    }
}

impl Item {
    fn count(&self) -> u64 {
        match self {
            Self::Run(run) => run.count(),
            Self::Product(product) => product.count(),
        }
    }

    /// How many numbers the longest of its ranges has.
    fn longest_range(&self) -> u64 {
        match self {
            Self::Run(run) => run.count(),
            Self::Product(product) => product.longest_range(),
        }
    }
}

impl FromStr for Hostlist {
    type Err = HostlistError;

    fn from_str(text: &str) -> Result<Self, HostlistError> {
        Self::parse(text)
    }
}

impl<'a> IntoIterator for &'a Hostlist {
    type Item = String;
    type IntoIter = Names<'a>;

    fn into_iter(self) -> Names<'a> {
        self.iter()
    }
}

enum Runs<'a> {
    One(Option<Run<'a>>),
    Many(Unfold<'a>),
}

impl<'a> Iterator for Runs<'a> {
    type Item = Run<'a>;

    fn next(&mut self) -> Option<Run<'a>> {
        match self {
            Self::One(run) => run.take(),
            Self::Many(unfold) => unfold.next(),
        }
    }
}

/// The names of a list, one by one.
#[derive(Debug)]
pub struct Names<'a> {
    items: std::slice::Iter<'a, Item>,
    product: Option<Unfold<'a>>,
    run: Option<RunNames<'a>>,
}

impl Iterator for Names<'_> {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        loop {
            if let Some(name) = self.run.as_mut().and_then(Iterator::next) {
                return Some(name);
            }
            if let Some(run) = self.product.as_mut().and_then(Iterator::next) {
                self.run = Some(run.into_names());
                continue;
            }
            match self.items.next()? {
                Item::Run(run) => self.run = Some(run.borrowed().into_names()),
                Item::Product(product) => self.product = Some(product.unfold()),
            }
        }
    }
}

#[cfg(test)]
mod tests;
