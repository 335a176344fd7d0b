//! What must hold for any bytes that are read as a host list. The fuzz target and the tests call it.

use std::collections::BTreeSet;

use super::{Hostlist, NameSet};

/// Lists of more names are checked without writing them out.
const NAMES: usize = 2_000;

/// Panics if a promise of [`Hostlist`] is broken.
#[doc(hidden)]
pub fn check_invariants(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let list = match Hostlist::parse(text) {
        Ok(list) => list,
        Err(error) => {
            assert!(error.at <= text.len(), "{text:?}: {error}");
            assert!(error.to_string().len() < 200, "{text:?}: {error}");
            return;
        }
    };
    let written = list.to_string();
    let again = read(&written);
    assert_eq!(again.count(), list.count(), "{text:?} was written as {written:?}");
    // A name such as that of `n[1-2]5` gets its number only when it is read as a name.
    let settled = again.to_string();
    assert_eq!(read(&settled).to_string(), settled, "{text:?}");

    let Ok(names) = list.expand(NAMES) else {
        assert!(list.count() > NAMES as u64, "{text:?}");
        for name in list.iter().take(20) {
            assert!(list.contains(&name), "{name} is not in {text:?}");
        }
        return;
    };
    check_names(text, &list, &names);
    assert!(again.iter().eq(names.iter().cloned()), "{text:?} was written as {written:?}");
}

fn check_names(text: &str, list: &Hostlist, names: &[String]) {
    assert_eq!(names.len() as u64, list.count(), "{text:?}");
    assert_eq!(list.is_empty(), names.is_empty(), "{text:?}");
    let set: BTreeSet<&String> = names.iter().collect();
    let all = NameSet::of(list, NAMES).ok();
    for name in set.iter().take(50) {
        assert!(list.contains(name), "{name} is not in {text:?}");
        let shorter = name.char_indices().last().and_then(|(at, _)| name.get(..at)).unwrap_or_default();
        for near in [format!("{name}0"), format!("0{name}"), format!("{name}-"), shorter.to_owned()] {
            assert_eq!(list.contains(&near), set.contains(&near), "{near} in {text:?}");
            let known = all.as_ref().is_none_or(|all| all.contains(&near) == set.contains(&near));
            assert!(known, "{near} in the set of {text:?}");
        }
    }

    let mut expected: Vec<&String> = names.iter().collect();
    expected.sort_unstable();
    if let Ok(sorted) = list.sorted(NAMES) {
        let mut found: Vec<String> = sorted.iter().collect();
        found.sort_unstable();
        assert!(found.iter().eq(expected), "{text:?} was sorted to {sorted}");
    }
    if let Ok(unique) = list.unique(NAMES) {
        let found: Vec<String> = unique.iter().collect();
        assert_eq!(found.len(), set.len(), "{text:?} became {unique}");
        assert!(found.iter().all(|name| set.contains(name)), "{text:?} became {unique}");
        let backwards = Hostlist::from_names(names.iter().rev()).map(|list| read(&list.to_string()));
        let again = backwards.map(|list| list.unique(NAMES).map(|list| list.to_string()));
        assert_eq!(again, Ok(Ok(unique.to_string())), "{text:?}");
        let rest = list.difference(&unique, NAMES).map(|list| list.is_empty());
        assert_eq!(rest, Ok(true), "{text:?}");
        let both = unique.union(list, NAMES).map(|list| list.to_string());
        assert_eq!(both, Ok(unique.to_string()), "{text:?}");
    }
}

#[expect(clippy::panic, reason = "a broken promise")]
fn read(text: &str) -> Hostlist {
    Hostlist::parse(text).unwrap_or_else(|error| panic!("we cannot read what we wrote, {text:?}: {error}"))
}
