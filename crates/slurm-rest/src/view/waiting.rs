//! The nodes that somebody waits on, and who has not had an answer yet.
//!
//! Who begins to wait is told of the first answer that was asked for after that, also if it is no news: what was too
//! old to decide by may have become young, and nothing else would say so.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::Notify;

#[derive(Debug, Clone, Default)]
pub(super) struct Waited(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    nodes: Mutex<BTreeMap<Box<str>, Waiters>>,
    /// For those who wait for someone, and for someone new.
    some: Notify,
    new: Notify,
}

/// Those who wait on one node.
#[derive(Debug)]
struct Waiters {
    count: usize,
    /// Whether the node was asked for since the last of them began.
    asked: bool,
    /// When the first and the last of those began who were not told of an answer yet.
    untold: Option<(Instant, Instant)>,
}

/// Somebody waits on a node until this is dropped.
#[derive(Debug)]
pub struct Waiting {
    waited: Waited,
    node: Box<str>,
}

impl Waited {
    pub(super) fn add(&self, node: &str, now: Instant) -> Waiting {
        let mut nodes = self.nodes();
        let before = nodes.get(node);
        let count = before.map_or(0, |waiters| waiters.count) + 1;
        let first = before.and_then(|waiters| waiters.untold).map_or(now, |(first, _)| first);
        nodes.insert(node.into(), Waiters { count, asked: false, untold: Some((first, now)) });
        self.0.some.notify_one();
        self.0.new.notify_one();
        Waiting { waited: self.clone(), node: node.into() }
    }

    /// All that are to be asked for.
    pub(super) fn all(&self) -> Vec<Box<str>> {
        self.to_ask(|_| true)
    }

    /// Those that were not asked for since somebody began to wait on them.
    pub(super) fn new_ones(&self) -> Vec<Box<str>> {
        self.to_ask(|waiters| !waiters.asked)
    }

    fn to_ask(&self, which: impl Fn(&Waiters) -> bool) -> Vec<Box<str>> {
        let mut nodes = self.nodes();
        let asked = nodes.iter_mut().filter(|(_, waiters)| which(waiters));
        asked
            .map(|(name, waiters)| {
                waiters.asked = true;
                name.clone()
            })
            .collect()
    }

    /// There is an answer for a node, asked for at `asked`. True if this is to be told, whatever it says.
    pub(super) fn answered(&self, node: &str, asked: Instant) -> bool {
        self.nodes().get_mut(node).is_some_and(|waiters| waiters.answered(asked))
    }

    /// There is an answer for every node. Those of which this is to be told.
    pub(super) fn all_answered(&self, asked: Instant) -> Vec<Box<str>> {
        let mut nodes = self.nodes();
        let told = nodes.iter_mut().filter_map(|(name, waiters)| waiters.answered(asked).then_some(name));
        told.cloned().collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.nodes().is_empty()
    }

    pub(super) async fn until_someone_new_waits(&self) {
        self.0.new.notified().await;
    }

    pub(super) async fn until_someone_waits(&self) {
        while self.is_empty() {
            self.0.some.notified().await;
        }
    }

    fn nodes(&self) -> MutexGuard<'_, BTreeMap<Box<str>, Waiters>> {
        self.0.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiters {
    fn answered(&mut self, asked: Instant) -> bool {
        let Some((first, last)) = self.untold.filter(|(first, _)| asked >= *first) else { return false };
        // Who began after the question waits on; when exactly matters only to the last of them.
        self.untold = (asked < last).then_some((asked.max(first), last));
        true
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut nodes = self.waited.nodes();
        if let Some(waiters) = nodes.get_mut(&self.node) {
            waiters.count -= 1;
            if waiters.count == 0 {
                nodes.remove(&self.node);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::FutureExt;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test]
    async fn a_node_is_waited_on_until_the_last_has_gone() {
        let (waited, now) = (Waited::default(), Instant::now());
        assert!(waited.until_someone_waits().now_or_never().is_none());
        let (one, other) = (waited.add("n1", now), waited.add("n1", now));
        assert!(waited.until_someone_waits().now_or_never().is_some());
        drop(one);
        assert_eq!(waited.all(), [Box::from("n1")]);
        drop(other);
        assert!(waited.is_empty());
    }

    #[test]
    fn who_begins_to_wait_is_asked_for_once_before_the_others_turn() {
        let (waited, now) = (Waited::default(), Instant::now());
        let _one = waited.add("n1", now);
        assert_eq!(waited.new_ones(), [Box::from("n1")]);
        let _other = waited.add("n2", now);
        assert_eq!(waited.new_ones(), [Box::from("n2")]);
        assert_eq!(waited.new_ones(), [], "nobody is new any more");
        let _again = waited.add("n1", now);
        assert_eq!(waited.new_ones(), [Box::from("n1")], "somebody new waits on it");
        assert_eq!(waited.all().len(), 2);
    }

    #[test]
    fn who_comes_all_the_time_keeps_nobody_from_hearing() {
        let (waited, begin) = (Waited::default(), Instant::now());
        let mut guards = vec![waited.add("n1", begin)];
        let mut told = 0;
        for second in 1..=10 {
            guards.push(waited.add("n1", begin + second * SECOND));
            // Answers arrive two seconds after they were asked for.
            let asked = (begin + second * SECOND).checked_sub(2 * SECOND).unwrap();
            told += u32::from(waited.answered("n1", asked));
        }
        assert_eq!(told, 9, "of every answer that is younger than somebody's begin");
        assert!(waited.answered("n1", begin + 10 * SECOND), "the last of them");
        assert!(!waited.answered("n1", begin + 11 * SECOND));
    }

    #[test]
    fn the_first_answer_to_who_begins_to_wait_is_told_and_no_other() {
        let (waited, begin) = (Waited::default(), Instant::now());
        let _one = waited.add("n1", begin);
        let _other = waited.add("n2", begin + 3 * SECOND);
        assert!(!waited.answered("n1", begin - SECOND), "it was asked for before");
        assert!(waited.answered("n1", begin + SECOND));
        assert!(!waited.answered("n1", begin + 2 * SECOND));
        assert!(!waited.answered("n3", begin + 2 * SECOND), "nobody waits on it");
        let _again = waited.add("n1", begin + 4 * SECOND);
        assert_eq!(waited.all_answered(begin + 3 * SECOND), [Box::from("n2")]);
        assert_eq!(waited.all_answered(begin + 5 * SECOND), [Box::from("n1")]);
    }
}
