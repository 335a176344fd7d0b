//! The names of a list as a set. A name is looked at as text: `n1[0-3]` and `n[10-13]` are the same names here, though
//! Slurm keeps them apart.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::run::{Range, Run, digits, number};
use super::{Hostlist, TooMany, natural};

/// As many digits as any number of ours has.
const MOST_DIGITS: usize = 19;

#[derive(Debug, Default)]
pub(super) struct NameSet {
    names: BTreeMap<Stem, Intervals>,
}

/// Names with the same text in front and the same number of digits at the end, zeros in front counted.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stem {
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

impl PartialOrd for Stem {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl NameSet {
    pub(super) fn of(list: &Hostlist, limit: usize) -> Result<Self, TooMany> {
        let mut set = Self::default();
        for run in list.runs_within(limit)? {
            set.add(&run);
        }
        set.names.values_mut().for_each(tidy);
        Ok(set)
    }

    fn add(&mut self, run: &Run<'_>) {
        let Some(range) = run.range else {
            // `n[1-2]5` gives single names that end in digits.
            return self.add_numbered(&run.prefix, "", "");
        };
        let mut lo = range.lo;
        while lo <= range.hi {
            // Up to the last number that is written with as many digits.
            let written = range.width.max(digits(lo));
            let hi = u32::try_from(written).ok().and_then(|written| 10_u64.checked_pow(written));
            let hi = hi.map_or(range.hi, |next| range.hi.min(next - 1));
            self.add_numbered(&run.prefix, &format!("{lo:0written$}"), &format!("{hi:0written$}"));
            lo = hi + 1;
        }
    }

    /// Digits at the end of the prefix belong to the numbers.
    fn add_numbered(&mut self, prefix: &str, lo: &str, hi: &str) {
        let (lo, hi) = (format!("{prefix}{lo}"), format!("{prefix}{hi}"));
        let digits = lo.bytes().rev().take(MOST_DIGITS).take_while(u8::is_ascii_digit).count();
        let (stem, lo) = lo.split_at(lo.len() - digits);
        let hi = hi.get(stem.len()..).unwrap_or_default();
        let interval = (number(lo).unwrap_or(0), number(hi).unwrap_or(0));
        self.names.entry(Stem { prefix: stem.to_owned(), digits }).or_default().push(interval);
    }

    pub(super) fn union(mut self, other: Self) -> Self {
        for (stem, intervals) in other.names {
            let own = self.names.entry(stem).or_default();
            own.extend(intervals);
            tidy(own);
        }
        self
    }

    pub(super) fn difference(mut self, other: &Self) -> Self {
        for (stem, intervals) in &mut self.names {
            if let Some(taken) = other.names.get(stem) {
                *intervals = without(intervals, taken);
            }
        }
        self
    }

    pub(super) fn into_list(self) -> Hostlist {
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
    let mut taken = taken.iter().peekable();
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
