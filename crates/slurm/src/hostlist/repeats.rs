//! Names that stand in several lists, or in one of them twice.

use std::collections::BTreeMap;

use super::Hostlist;
use super::set::{self, Stem};

/// A name that is in two lists, which the caller has numbered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Repeat {
    pub(crate) name: String,
    pub(crate) first: usize,
    pub(crate) again: usize,
}

/// One name of each list that has one which is in a list before it, or in itself already. All lists are compared at
/// once, by one sort, and every range of them is looked at: the caller has counted them.
pub(crate) fn repeats<'a>(lists: impl IntoIterator<Item = (usize, &'a Hostlist)>) -> Vec<Repeat> {
    let mut all: Vec<(Stem, (u64, u64), usize)> = Vec::new();
    for (place, list) in lists {
        for run in list.runs() {
            set::intervals(&run, |stem, interval| all.push((stem, interval, place)));
        }
    }
    all.sort_unstable();

    let mut found = BTreeMap::new();
    // Of those before, the one that reaches farthest.
    let mut last: Option<&(Stem, (u64, u64), usize)> = None;
    for next in &all {
        let (stem, (lo, hi), place) = next;
        let Some((_, (_, reach), before)) = last.filter(|last| last.0 == *stem) else {
            last = Some(next);
            continue;
        };
        if lo <= reach {
            let (first, again) = (*place.min(before), *place.max(before));
            found.entry(again).or_insert_with(|| Repeat { name: stem.name(*lo), first, again });
        }
        if hi > reach {
            last = Some(next);
        }
    }
    found.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(lists: &[&str]) -> Vec<(String, usize, usize)> {
        let lists: Vec<Hostlist> = lists.iter().map(|list| Hostlist::parse(list).unwrap()).collect();
        let repeats = repeats(lists.iter().enumerate());
        repeats.into_iter().map(|repeat| (repeat.name, repeat.first, repeat.again)).collect()
    }

    #[test]
    fn a_name_is_found_however_it_is_written() {
        let one = |name: &str, first, again| vec![(name.to_owned(), first, again)];
        assert_eq!(found(&["n[1-10]", "m", "n[1-2]5,n7"]), one("n7", 0, 2));
        assert_eq!(found(&["n1[0-3]", "n[13-20]"]), one("n13", 0, 1));
        assert_eq!(found(&["a", "b,a,b"]), one("a", 0, 1));
        assert_eq!(found(&["a,b,a"]), one("a", 0, 0));
        assert_eq!(found(&["r[1-2]n[08-11]", "x", "r2n10"]), one("r2n10", 0, 2));
        assert_eq!(found(&["n[1-9]", "n3", "n[5-6]"]).len(), 2);
    }

    #[test]
    fn other_names_are_none() {
        for lists in [&["n1", "n01", "n", "m1"][..], &["n[1-9]", "n[10-19]", "n[001-019]"], &[], &["", ""]] {
            assert_eq!(found(lists), [], "{lists:?}");
        }
    }
}
