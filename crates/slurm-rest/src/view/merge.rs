//! What an answer changes of what is known. Pure: the moment of the question is an argument.
//!
//! That moment is the age of the answer. A list can be on its way for seconds while single nodes are asked for, so
//! what is younger stays.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use slurm::facts::{self, Part};

use super::changes::Changes;
use crate::client::Listed;
use crate::error::RestError;
use crate::record::node::Node;

type Nodes = Part<BTreeMap<Box<str>, facts::Node>>;

/// A list of nodes. Also whether everything is known as this list has it: if not, what has changed since it is not all
/// that is different from it.
pub(super) fn nodes(nodes: &mut Nodes, listed: Listed<Node>, asked: Instant) -> (Changes, bool) {
    let before = standing(nodes);
    let mut changes = Changes::default();
    let (mut listed_names, mut all) = (BTreeSet::new(), listed.odd.is_none());
    for record in listed.records {
        listed_names.insert(record.name.0.clone());
        match take(nodes.latest_mut(), record, asked) {
            Taken::News(name) => drop(changes.nodes.insert(name)),
            Taken::NoNews => {}
            Taken::Not => all = false,
        }
    }
    match listed.odd {
        None => {
            nodes.latest_mut().retain(|name, node| {
                if listed_names.contains(name) {
                    return true;
                }
                let younger = node.seen_at > asked;
                if younger {
                    all = false;
                } else {
                    changes.nodes.insert(name.clone());
                }
                younger
            });
            nodes.confirm(asked);
        }
        // What is missing may be what could not be read.
        Some((count, why)) => nodes.fail(format!("{count} nodes cannot be understood: {why}"), asked),
    }
    changes.reachable = before != standing(nodes);
    (changes, all)
}

/// One node.
pub(super) fn node(nodes: &mut Nodes, record: Node, asked: Instant) -> Changes {
    let mut changes = Changes::default();
    if let Taken::News(name) = take(nodes.latest_mut(), record, asked) {
        changes.nodes.insert(name);
    }
    changes
}

/// What became of an answer about one node.
enum Taken {
    News(Box<str>),
    NoNews,
    /// What is known is younger, and says something else. Which of the two slurmctld said last nobody knows: the list was
    /// asked for first, and can have been made last.
    Not,
}

fn take(known: &mut BTreeMap<Box<str>, facts::Node>, record: Node, asked: Instant) -> Taken {
    let node = record.into_fact(asked);
    let Some(known) = known.get_mut(&node.name) else {
        let name = node.name.clone();
        known.insert(name.clone(), node);
        return Taken::News(name);
    };
    if known.seen_at > asked {
        return if known.clone().update(node) { Taken::Not } else { Taken::NoNews };
    }
    if known.update(node) { Taken::News(known.name.clone()) } else { Taken::NoNews }
}

/// Whether all nodes were ever seen, and whether the last look failed.
fn standing(nodes: &Nodes) -> (bool, bool) {
    (nodes.complete_at().is_some(), nodes.trouble().is_some())
}

/// Nothing has changed since the last list.
pub(super) fn unchanged(nodes: &mut Nodes, asked: Instant) -> Changes {
    let before = standing(nodes);
    nodes.confirm(asked);
    Changes { reachable: before != standing(nodes), ..Changes::default() }
}

/// No answer, or none that can be used.
pub(super) fn failed(nodes: &mut Nodes, error: &RestError, asked: Instant) -> Changes {
    let before = standing(nodes);
    nodes.fail(error.to_string(), asked);
    Changes { reachable: before != standing(nodes), ..Changes::default() }
}

/// A list that is taken as a whole; true if it is the first, or another one than before.
pub(super) fn all<R, T: PartialEq>(
    part: &mut Part<Vec<T>>,
    answer: Result<Listed<R>, RestError>,
    into_fact: impl Fn(R) -> T,
    asked: Instant,
) -> bool {
    match answer {
        Ok(Listed { records, odd: None, .. }) => {
            let new: Vec<T> = records.into_iter().map(into_fact).collect();
            let changed = *part.latest() != new || part.complete_at().is_none();
            part.replace(new, asked);
            changed
        }
        Ok(Listed { odd: Some((count, why)), .. }) => {
            part.fail(format!("{count} records cannot be understood: {why}"), asked);
            false
        }
        Err(error) => {
            part.fail(error.to_string(), asked);
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use slurm::state::Activity;

    use super::*;
    use crate::record::Record;

    const SECOND: Duration = Duration::from_secs(1);

    fn record(name: &str, state: &str) -> Node {
        let text = format!(
            r#"{{"name":"{name}","state":["{state}"],"cpus":4,"alloc_cpus":0,"real_memory":1000,"alloc_memory":0,"tres_used":""}}"#
        );
        Node::read(text.as_bytes(), 0).unwrap().0
    }

    fn list(nodes: &[(&str, &str)]) -> Listed<Node> {
        let records = nodes.iter().map(|(name, state)| record(name, state)).collect();
        Listed { records, last_update: Some(7), release: None, odd: None }
    }

    fn names(changes: &Changes) -> Vec<&str> {
        changes.nodes.iter().map(AsRef::as_ref).collect()
    }

    fn state(nodes: &Nodes, name: &str) -> Option<String> {
        nodes.latest().get(name).map(|node| node.state.to_string())
    }

    #[test]
    fn a_list_tells_what_is_new_different_and_gone() {
        let (mut known, begin) = (Nodes::default(), Instant::now());
        let (changes, all) = nodes(&mut known, list(&[("n1", "IDLE"), ("n2", "IDLE")]), begin);
        assert_eq!((names(&changes), changes.reachable, all), (vec!["n1", "n2"], true, true));
        let (changes, _) = nodes(&mut known, list(&[("n1", "IDLE"), ("n2", "IDLE")]), begin + SECOND);
        assert!(changes.is_empty());
        let (changes, _) = nodes(&mut known, list(&[("n2", "DOWN"), ("n3", "IDLE")]), begin + 2 * SECOND);
        assert_eq!(names(&changes), ["n1", "n2", "n3"]);
        assert_eq!(known.latest().len(), 2);
        assert_eq!(known.age(begin + 3 * SECOND), Some(SECOND));
    }

    #[test]
    fn a_list_does_not_undo_what_was_seen_after_it_was_asked_for() {
        let (mut known, begin) = (Nodes::default(), Instant::now());
        nodes(&mut known, list(&[("n1", "IDLE")]), begin);
        assert_eq!(names(&node(&mut known, record("n1", "ALLOCATED"), begin + 2 * SECOND)), ["n1"]);
        node(&mut known, record("new", "IDLE"), begin + 2 * SECOND);
        let (changes, all) = nodes(&mut known, list(&[("n1", "IDLE")]), begin + SECOND);
        assert!(changes.is_empty(), "{changes:?}");
        assert!(!all, "the list may be the last word of slurmctld all the same");
        assert_eq!(state(&known, "n1").as_deref(), Some("ALLOCATED"));
        assert!(known.latest().contains_key("new"));
        nodes(&mut known, list(&[("n1", "IDLE")]), begin + 3 * SECOND);
        assert_eq!((state(&known, "n1").as_deref(), state(&known, "new")), (Some("IDLE"), None));
    }

    #[test]
    fn a_list_that_says_the_same_as_what_is_younger_is_known_whole() {
        let (mut known, begin) = (Nodes::default(), Instant::now());
        node(&mut known, record("n1", "IDLE"), begin + SECOND);
        let (changes, all) = nodes(&mut known, list(&[("n1", "IDLE"), ("n2", "IDLE")]), begin);
        assert_eq!((names(&changes), all), (vec!["n2"], true));
        node(&mut known, record("n2", "IDLE"), begin + SECOND);
        let (_, all) = nodes(&mut known, list(&[("n1", "IDLE")]), begin);
        assert!(!all, "n2 is younger than the list, and not in it");
    }

    #[test]
    fn the_first_list_is_told_also_if_it_is_empty() {
        let mut known = Nodes::default();
        assert!(nodes(&mut known, list(&[]), Instant::now()).0.reachable);
        assert!(nodes(&mut known, list(&[]), Instant::now()).0.is_empty());
    }

    #[test]
    fn a_failure_takes_nothing_away_and_is_told_once() {
        let (mut known, begin) = (Nodes::default(), Instant::now());
        nodes(&mut known, list(&[("n1", "IDLE")]), begin);
        let error = RestError::NoAnswer { call: "nodes", why: "slurmctld is away".into() };
        assert!(failed(&mut known, &error, begin + SECOND).reachable);
        assert!(failed(&mut known, &error, begin + 2 * SECOND).is_empty());
        assert_eq!(known.latest().len(), 1);
        let stale = known.fresh(begin + 3 * SECOND, 2 * SECOND).unwrap_err();
        assert_eq!(
            stale.to_string(),
            "what is known of Slurm is 3 s old: nodes: no answer: slurmctld is away"
        );
        assert!(unchanged(&mut known, begin + 4 * SECOND).reachable);
        assert!(known.fresh(begin + 5 * SECOND, 2 * SECOND).is_ok());
    }

    #[test]
    fn a_list_with_an_odd_record_removes_nobody_and_is_not_whole() {
        let (mut known, begin) = (Nodes::default(), Instant::now());
        nodes(&mut known, list(&[("n1", "IDLE"), ("n2", "IDLE")]), begin);
        let odd = Listed { odd: Some((1, "alloc_cpus: nonsense".into())), ..list(&[("n1", "ALLOCATED")]) };
        let (changes, all) = nodes(&mut known, odd, begin + 10 * SECOND);
        assert_eq!((names(&changes), changes.reachable, all), (vec!["n1"], true, false));
        let facts = facts::Facts { nodes: known, ..facts::Facts::default() };
        let (now, limit) = (begin + 10 * SECOND, 5 * SECOND);
        assert_eq!(facts.activity("n1", now, limit), Activity::Busy);
        assert_eq!(facts.activity("n2", now, limit), Activity::Unclear);
        assert_eq!(facts.activity("n3", now, limit), Activity::Unclear);
    }
}
