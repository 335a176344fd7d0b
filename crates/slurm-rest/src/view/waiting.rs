//! The nodes that somebody waits on.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

#[derive(Debug, Clone, Default)]
pub(super) struct Waited(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// How many wait on each.
    nodes: Mutex<BTreeMap<Box<str>, usize>>,
    new: Notify,
}

/// Somebody waits on a node until this is dropped.
#[derive(Debug)]
pub struct Waiting {
    waited: Waited,
    node: Box<str>,
}

impl Waited {
    pub(super) fn add(&self, node: &str) -> Waiting {
        let mut nodes = self.0.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        let count = nodes.entry(node.into()).or_default();
        *count += 1;
        if *count == 1 {
            self.0.new.notify_one();
        }
        Waiting { waited: self.clone(), node: node.into() }
    }

    pub(super) fn names(&self) -> Vec<Box<str>> {
        self.0.nodes.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.nodes.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    pub(super) async fn until_someone_new_waits(&self) {
        self.0.new.notified().await;
    }

    pub(super) async fn until_someone_waits(&self) {
        while self.is_empty() {
            self.until_someone_new_waits().await;
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut nodes = self.waited.0.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = nodes.get_mut(&self.node) {
            *count -= 1;
            if *count == 0 {
                nodes.remove(&self.node);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_node_is_waited_on_until_the_last_has_gone() {
        let waited = Waited::default();
        assert!(waited.until_someone_waits().now_or_never().is_none());
        let (one, other) = (waited.add("n1"), waited.add("n1"));
        assert!(waited.until_someone_waits().now_or_never().is_some());
        drop(one);
        assert_eq!(waited.names(), [Box::from("n1")]);
        drop(other);
        assert!(waited.is_empty());
    }
}
