//! The names of a list as a set. A name is looked at as text: `n1[0-3]` and `n[10-13]` are the same names here, though
//! Slurm keeps them apart.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::run::{Range, Run, digits, number};
use super::{Hostlist, TooMany, natural};

/// As many digits as any number of ours has.
const MOST_DIGITS: usize = 19;

#[derive(Debug, Default, Clone)]
pub(crate) struct NameSet {
    names: BTreeMap<Stem, Intervals>,
}

/// Names with the same text in front and the same number of digits at the end, zeros in front counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stem {
    prefix: String,
    digits: usize,
}

/// Ascending, with a gap between each two.
type Intervals = Vec<(u64, u64)>;

impl Ord for Stem {
    fn cmp(&self, other: &Self) -> Ordering {
        natural::compare(&self.prefix, &other.prefix)
            .then_with(|| self.prefix.cmp(&other.prefix))
            .then(self.digits.cmp(&other.digits))
    }
}

impl Stem {
    /// The name with this number.
    pub(super) fn name(&self, number: u64) -> String {
        match self.digits {
            0 => self.prefix.clone(),
            digits => format!("{}{number:0digits$}", self.prefix),
        }
    }
}

impl PartialOrd for Stem {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl NameSet {
    pub(crate) fn of(list: &Hostlist, limit: usize) -> Result<Self, TooMany> {
        list.check_runs(limit)?;
        Ok(Self::of_all([list]))
    }

    /// The names of several lists. Every range of them is looked at: the caller has counted them.
    pub(crate) fn of_all<'a>(lists: impl IntoIterator<Item = &'a Hostlist>) -> Self {
        let mut set = Self::default();
        for run in lists.into_iter().flat_map(Hostlist::runs) {
            set.add(&run);
        }
        set.names.values_mut().for_each(tidy);
        set
    }

    fn add(&mut self, run: &Run<'_>) {
        intervals(run, |stem, interval| self.names.entry(stem).or_default().push(interval));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.names.values().all(Vec::is_empty)
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        let mut found = false;
        intervals(&Run::of_name(name), |stem, (number, _)| {
            found = self.names.get(&stem).is_some_and(|intervals| {
                let next = intervals.partition_point(|&(_, hi)| hi < number);
                intervals.get(next).is_some_and(|&(lo, _)| lo <= number)
            });
        });
        found
    }

    pub(super) fn union(mut self, other: Self) -> Self {
        for (stem, intervals) in other.names {
            let own = self.names.entry(stem).or_default();
            own.extend(intervals);
            tidy(own);
        }
        self
    }

    pub(crate) fn difference(mut self, other: &Self) -> Self {
        for (stem, intervals) in &mut self.names {
            if let Some(taken) = other.names.get(stem) {
                *intervals = without(intervals, taken);
            }
        }
        self
    }

    pub(crate) fn into_list(self) -> Hostlist {
        let mut list = Hostlist::default();
        for (Stem { prefix, digits }, intervals) in self.names {
            for (lo, hi) in intervals {
                let range = (digits > 0).then(|| Range::new(lo, hi, digits));
                list.push_run(Run { prefix: Cow::Owned(prefix.clone()), range });
            }
        }
        list
    }
}

/// The names of a run, by what is in front of their numbers.
pub(super) fn intervals(run: &Run<'_>, mut found: impl FnMut(Stem, (u64, u64))) {
    // Digits at the end of the prefix belong to the numbers.
    let mut numbered = |lo: &str, hi: &str| {
        let (lo, hi) = (format!("{}{lo}", run.prefix), format!("{}{hi}", run.prefix));
        let digits = lo.bytes().rev().take(MOST_DIGITS).take_while(u8::is_ascii_digit).count();
        let (stem, lo) = lo.split_at(lo.len() - digits);
        let hi = hi.get(stem.len()..).unwrap_or_default();
        found(Stem { prefix: stem.to_owned(), digits }, (number(lo).unwrap_or(0), number(hi).unwrap_or(0)));
    };
    let Some(range) = run.range else {
        // `n[1-2]5` gives single names that end in digits.
        return numbered("", "");
    };
    let mut lo = range.lo;
    while lo <= range.hi {
        // Up to the last number that is written with as many digits.
        let written = range.width.max(digits(lo));
        let hi = u32::try_from(written).ok().and_then(|written| 10_u64.checked_pow(written));
        let hi = hi.map_or(range.hi, |next| range.hi.min(next - 1));
        numbered(&format!("{lo:0written$}"), &format!("{hi:0written$}"));
        lo = hi + 1;
    }
}

fn tidy(intervals: &mut Intervals) {
    intervals.sort_unstable();
    intervals.dedup_by(|next, last| {
        let touches = next.0 <= last.1 + 1;
        if touches {
            last.1 = last.1.max(next.1);
        }
        touches
    });
}

fn without(intervals: &Intervals, taken: &Intervals) -> Intervals {
    let mut left = Intervals::new();
    let Some(&(lowest, _)) = intervals.first() else { return left };
    // Of many only those are looked at that may matter.
    let first = taken.partition_point(|&(_, to)| to < lowest);
    let mut taken = taken.iter().skip(first).peekable();
    for &(mut lo, hi) in intervals {
        while let Some(&&(from, to)) = taken.peek() {
            if from > hi {
                break;
            }
            if lo < from {
                left.push((lo, from - 1));
            }
            lo = lo.max(to + 1);
            if to > hi {
                // It may also be in the next interval.
                break;
            }
            taken.next();
        }
        if lo <= hi {
            left.push((lo, hi));
        }
    }
    left
}
