//! Who wants to know what changed. Changes that come faster than they are heard of are added up: none is lost, and no
//! more is kept than there are nodes.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::Notify;

/// What is different from what was known before.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Changes {
    /// Nodes that are new, gone, or not as they were.
    pub nodes: BTreeSet<Box<str>>,
    pub partitions: bool,
    pub reservations: bool,
    /// Slurm has answered for the first time, stopped answering, or answers again.
    pub reachable: bool,
}

impl Changes {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn add(&mut self, more: &Self) {
        self.nodes.extend(more.nodes.iter().cloned());
        self.partitions |= more.partitions;
        self.reservations |= more.reservations;
        self.reachable |= more.reachable;
    }
}

#[derive(Debug, Default)]
pub(super) struct Subscribers(Mutex<Vec<Weak<Inbox>>>);

#[derive(Debug, Default)]
struct Inbox {
    changes: Mutex<Changes>,
    arrived: Notify,
    /// Nothing will arrive any more.
    ended: AtomicBool,
}

impl Subscribers {
    pub(super) fn subscribe(&self) -> Subscription {
        let inbox = Arc::new(Inbox::default());
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(&inbox));
        Subscription(inbox)
    }

    pub(super) fn tell(&self, changes: &Changes) {
        if changes.is_empty() {
            return;
        }
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|inbox| {
            let Some(inbox) = inbox.upgrade() else { return false };
            inbox.changes.lock().unwrap_or_else(PoisonError::into_inner).add(changes);
            inbox.arrived.notify_one();
            true
        });
    }
}

impl Drop for Subscribers {
    fn drop(&mut self) {
        let inboxes = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        for inbox in inboxes.iter().filter_map(Weak::upgrade) {
            inbox.ended.store(true, Ordering::Release);
            inbox.arrived.notify_one();
        }
    }
}

/// One who hears of changes.
#[derive(Debug)]
pub struct Subscription(Arc<Inbox>);

impl Subscription {
    /// Waits until something has changed, and takes all that has. None: the view has ended.
    pub async fn next(&mut self) -> Option<Changes> {
        loop {
            let ended = self.0.ended.load(Ordering::Acquire);
            let changes = std::mem::take(&mut *self.0.changes.lock().unwrap_or_else(PoisonError::into_inner));
            if !changes.is_empty() {
                return Some(changes);
            }
            if ended {
                return None;
            }
            self.0.arrived.notified().await;
        }
    }

    /// The same as a stream, such as the engine's external sources are.
    pub fn into_stream(self) -> impl futures::Stream<Item = Changes> {
        futures::stream::unfold(self, |mut this| async move {
            let changes = this.next().await?;
            Some((changes, this))
        })
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn nodes(names: &[&str]) -> Changes {
        Changes { nodes: names.iter().map(|name| Box::from(*name)).collect(), ..Changes::default() }
    }

    #[tokio::test]
    async fn changes_add_up_until_they_are_heard_of() {
        let subscribers = Subscribers::default();
        let (mut one, mut other) = (subscribers.subscribe(), subscribers.subscribe());
        subscribers.tell(&nodes(&["n1"]));
        assert_eq!(one.next().await, Some(nodes(&["n1"])));
        subscribers.tell(&nodes(&["n2"]));
        subscribers.tell(&Changes { reachable: true, ..nodes(&["n1"]) });
        let both = Changes { reachable: true, ..nodes(&["n1", "n2"]) };
        assert_eq!((one.next().await, other.next().await), (Some(both.clone()), Some(both)));
        subscribers.tell(&Changes::default());
        assert!(one.next().now_or_never().is_none(), "nothing is no change");
    }

    #[tokio::test]
    async fn a_subscription_ends_with_its_view_and_not_before_the_last_change() {
        let subscribers = Subscribers::default();
        let mut one = subscribers.subscribe();
        subscribers.tell(&nodes(&["n1"]));
        drop(subscribers);
        assert_eq!((one.next().await, one.next().await), (Some(nodes(&["n1"])), None));
    }

    #[tokio::test]
    async fn who_does_not_listen_any_more_is_forgotten() {
        let subscribers = Subscribers::default();
        drop(subscribers.subscribe());
        subscribers.tell(&nodes(&["n1"]));
        assert_eq!(subscribers.0.lock().unwrap().len(), 0);
    }
}
