//! The order of `scontrol show hostlistsorted`: by prefix, then by padding, then by number, and repeats stay.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::run::{Range, joined};
use super::{Hostlist, Item, Run, TooMany, natural};

pub(super) fn sorted(list: &Hostlist, limit: usize) -> Result<Hostlist, TooMany> {
    let mut runs: Vec<Run<'_>> = joined(list.runs_within(limit)?).collect();
    runs.sort_by(order);
    let mut out = Sorted { list: Hostlist::default(), limit };
    for runs in runs.chunk_by(go_together) {
        out.add(runs)?;
    }
    Ok(out.list)
}

fn order(a: &Run<'_>, b: &Run<'_>) -> Ordering {
    let of_range = |run: &Run<'_>| run.range.map(|range| (range.width, range.lo));
    natural::compare(&a.prefix, &b.prefix).then_with(|| of_range(a).cmp(&of_range(b)))
}

fn go_together(a: &Run<'_>, b: &Run<'_>) -> bool {
    let same_padding = a.range.zip(b.range).is_some_and(|(a, b)| a.same_padding(b));
    same_padding && a.prefix == b.prefix
}

struct Sorted {
    list: Hostlist,
    limit: usize,
}

impl Sorted {
    /// Runs of one prefix and padding become the longest ranges in which each number is one more than the last.
    fn add(&mut self, runs: &[Run<'_>]) -> Result<(), TooMany> {
        let ranges: Vec<Range> = runs.iter().filter_map(|run| run.range).collect();
        let (Some(run), Some(width)) = (runs.first(), ranges.first().map(|range| range.width)) else {
            return runs.iter().try_for_each(|run| self.push(run.clone().into_owned()));
        };
        let mut push = |lo, hi| {
            self.push(Run { prefix: run.prefix.to_string().into(), range: Some(Range::new(lo, hi, width)) })
        };
        let mut open: Option<(u64, u64)> = None;
        for (lo, hi, times) in stretches(&ranges) {
            let mut from = lo;
            match open {
                Some((first, last)) if last + 1 == lo => from = first,
                Some((first, last)) => push(first, last)?,
                None => {}
            }
            if times > 1 {
                for number in lo..=hi {
                    push(from, number)?;
                    (2..times).try_for_each(|_| push(number, number))?;
                    from = number;
                }
            }
            open = Some((from, hi));
        }
        open.map_or(Ok(()), |(first, last)| push(first, last))
    }

    fn push(&mut self, run: Run<'static>) -> Result<(), TooMany> {
        if self.list.items.len() >= self.limit {
            return Err(TooMany { what: "ranges", limit: self.limit });
        }
        self.list.items.push(Item::Run(run));
        Ok(())
    }
}

/// Stretches of numbers, ascending, and how many of the ranges have them.
fn stretches(ranges: &[Range]) -> impl Iterator<Item = (u64, u64, u64)> {
    let mut changes: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for range in ranges {
        changes.entry(range.lo).or_default().0 += 1;
        changes.entry(range.hi + 1).or_default().1 += 1;
    }
    let mut times = 0;
    let mut changes = changes.into_iter().peekable();
    std::iter::from_fn(move || {
        loop {
            let (lo, (begin, end)) = changes.next()?;
            times = times + begin - end;
            let (next, _) = changes.peek()?;
            if times > 0 {
                return Some((lo, next - 1, times));
            }
        }
    })
}
