//! The objects of one kind and their indexes: plain data, no clock, no network.
//!
//! A relist is compared in place: every object that comes is marked with the epoch of its list, and what lacks the mark
//! at the end has been deleted while nobody watched. There is never a second copy.

use std::collections::HashMap;
use std::sync::Arc;

use crate::meta::{Key, Version};
use crate::text::Text;
use crate::views::{Facet, View};

/// Something became different. Neither side is the other: `old` alone is a deletion, `new` alone an addition.
#[derive(Debug)]
pub struct Change<V> {
    pub old: Option<Arc<V>>,
    pub new: Option<Arc<V>>,
    /// Found by listing, not told by the watch: nobody is waiting for it.
    pub replay: bool,
}

impl<V> Change<V> {
    /// The object as it is, or as it last was.
    #[must_use]
    pub fn latest(&self) -> Option<&Arc<V>> {
        self.new.as_ref().or(self.old.as_ref())
    }
}

impl<V> Clone for Change<V> {
    fn clone(&self) -> Self {
        Self { old: self.old.clone(), new: self.new.clone(), replay: self.replay }
    }
}

/// One list, and the watch that follows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Epoch(u32);

#[derive(Debug)]
struct Entry<V> {
    view: Arc<V>,
    epoch: Epoch,
}

/// An object that could not be read.
#[derive(Debug, Clone)]
struct Unreadable {
    why: String,
    epoch: Epoch,
}

#[derive(Debug)]
pub(crate) struct Store<V> {
    /// Indexes hold places instead of keys: a quarter of the memory.
    slots: Vec<Option<Entry<V>>>,
    free: Vec<u32>,
    by_key: HashMap<Key, u32>,
    by_facet: HashMap<Facet, Vec<u32>>,
    unreadable: HashMap<Key, Unreadable>,
    indexed_labels: Box<[Text]>,
    epochs: u32,
    /// How far each watch has come since its list: what it delivered is at least this new.
    progress: HashMap<Option<Text>, Version>,
}

impl<V: View> Store<V> {
    pub(crate) fn new(indexed_labels: &[&str]) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            by_key: HashMap::new(),
            by_facet: HashMap::new(),
            unreadable: HashMap::new(),
            indexed_labels: indexed_labels.iter().map(|label| Text::new(label)).collect(),
            epochs: 0,
            progress: HashMap::new(),
        }
    }

    /// More labels to look up by. Only while the store is empty.
    pub(crate) fn index_labels(&mut self, labels: &[&str]) {
        let known = self.indexed_labels.iter().cloned();
        let mut all: Vec<Text> = known.chain(labels.iter().map(|label| Text::new(label))).collect();
        all.sort_unstable();
        all.dedup();
        self.indexed_labels = all.into();
    }

    /// A list begins. It may come from a server that lags behind, so what was known to be seen counts no more.
    pub(crate) fn begin(&mut self, namespace: Option<&Text>) -> Epoch {
        self.epochs += 1;
        self.progress.remove(&namespace.cloned());
        Epoch(self.epochs)
    }

    /// An object as it is now.
    pub(crate) fn apply(
        &mut self,
        view: Arc<V>,
        epoch: Epoch,
        replay: bool,
        emit: &mut impl FnMut(Change<V>),
    ) {
        let key = &view.meta().key;
        self.unreadable.remove(key);
        let Some(place) = self.by_key.get(key).copied() else {
            self.insert(Arc::clone(&view), epoch);
            emit(Change { old: None, new: Some(view), replay });
            return;
        };
        let Some(entry) = &mut self.slots[place as usize] else { return };
        entry.epoch = epoch;
        if *entry.view == *view {
            // Same facts, newer version.
            entry.view = view;
            return;
        }
        if entry.view.meta().uid != view.meta().uid {
            // Deleted and made again while nobody watched: two events, as they would have been.
            if let Some(old) = self.take(place) {
                emit(Change { old: Some(old), new: None, replay });
            }
            self.insert(Arc::clone(&view), epoch);
            emit(Change { old: None, new: Some(view), replay });
            return;
        }
        let old = std::mem::replace(&mut entry.view, Arc::clone(&view));
        self.reindex(place, &old, &view);
        emit(Change { old: Some(old), new: Some(view), replay });
    }

    /// An object that is there but cannot be read. What was known of it stays: to forget it would look like a deletion.
    /// True if this is news.
    pub(crate) fn skip(&mut self, key: Key, why: String, epoch: Epoch) -> bool {
        if let Some(place) = self.by_key.get(&key)
            && let Some(entry) = &mut self.slots[*place as usize]
        {
            entry.epoch = epoch;
        }
        let news = self.unreadable.get(&key).is_none_or(|known| known.why != why);
        self.unreadable.insert(key, Unreadable { why, epoch });
        news
    }

    /// An object is gone.
    pub(crate) fn remove(&mut self, key: &Key, emit: &mut impl FnMut(Change<V>)) {
        self.unreadable.remove(key);
        let Some(place) = self.by_key.get(key).copied() else { return };
        if let Some(old) = self.take(place) {
            emit(Change { old: Some(old), new: None, replay: false });
        }
    }

    /// A list is complete: what is in its namespace and was not in the list is gone.
    pub(crate) fn sweep(&mut self, namespace: Option<&str>, epoch: Epoch, emit: &mut impl FnMut(Change<V>)) {
        let inside = |key: &Key| namespace.is_none_or(|namespace| key.namespace == namespace);
        self.unreadable.retain(|key, object| object.epoch == epoch || !inside(key));
        for place in 0..self.slots.len() {
            let gone = self.slots[place]
                .as_ref()
                .is_some_and(|entry| entry.epoch != epoch && inside(&entry.view.meta().key));
            if gone && let Some(old) = self.take(place as u32) {
                emit(Change { old: Some(old), new: None, replay: true });
            }
        }
        self.by_facet.shrink_to_fit();
    }

    /// A watch has delivered this.
    pub(crate) fn advance(&mut self, namespace: Option<&Text>, version: Version) {
        let progress = self.progress.entry(namespace.cloned()).or_default();
        *progress = version.max(*progress);
    }

    /// Everything up to here has been delivered for a namespace.
    pub(crate) fn progress(&self, namespace: &Text) -> Version {
        let of = |scope: Option<Text>| self.progress.get(&scope).copied().unwrap_or_default();
        of(None).max(of(Some(namespace.clone())))
    }

    pub(crate) fn get(&self, key: &Key) -> Option<&Arc<V>> {
        self.slots[*self.by_key.get(key)? as usize].as_ref().map(|entry| &entry.view)
    }

    pub(crate) fn len(&self) -> usize {
        self.by_key.len()
    }

    /// All objects, in the order of their keys.
    pub(crate) fn all(&self) -> Vec<Arc<V>> {
        in_order(self.slots.iter().flatten().map(|entry| Arc::clone(&entry.view)).collect())
    }

    /// Those with a facet, in the order of their keys.
    pub(crate) fn with(&self, facet: &Facet) -> Vec<Arc<V>> {
        let places = self.by_facet.get(facet).map_or(&[][..], Vec::as_slice);
        let entries = places.iter().filter_map(|place| self.slots[*place as usize].as_ref());
        in_order(entries.map(|entry| Arc::clone(&entry.view)).collect())
    }

    /// The objects that cannot be read, with the reasons.
    pub(crate) fn unreadable(&self) -> impl Iterator<Item = (&Key, &str)> {
        self.unreadable.iter().map(|(key, object)| (key, object.why.as_str()))
    }

    fn insert(&mut self, view: Arc<V>, epoch: Epoch) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            (self.slots.len() - 1) as u32
        });
        self.by_key.insert(view.meta().key.clone(), place);
        for facet in self.facets(&view) {
            self.by_facet.entry(facet).or_default().push(place);
        }
        self.slots[place as usize] = Some(Entry { view, epoch });
    }

    fn take(&mut self, place: u32) -> Option<Arc<V>> {
        let Entry { view, .. } = self.slots[place as usize].take()?;
        self.free.push(place);
        self.by_key.remove(&view.meta().key);
        for facet in self.facets(&view) {
            self.unindex(&facet, place);
        }
        Some(view)
    }

    fn reindex(&mut self, place: u32, old: &V, new: &V) {
        let (before, after) = (self.facets(old), self.facets(new));
        for facet in before.iter().filter(|facet| !after.contains(facet)) {
            self.unindex(facet, place);
        }
        for facet in after.into_iter().filter(|facet| !before.contains(facet)) {
            self.by_facet.entry(facet).or_default().push(place);
        }
    }

    fn unindex(&mut self, facet: &Facet, place: u32) {
        if let Some(places) = self.by_facet.get_mut(facet) {
            places.retain(|known| *known != place);
            if places.is_empty() {
                self.by_facet.remove(facet);
            }
        }
    }

    /// Each facet once.
    fn facets(&self, view: &V) -> Vec<Facet> {
        let meta = view.meta();
        let mut facets: Vec<Facet> =
            meta.owners.iter().map(|owner| Facet::Owner(owner.uid.clone())).collect();
        for label in &self.indexed_labels {
            if let Some(value) = meta.labels.get(label) {
                facets.push(Facet::Label(label.clone(), value.clone()));
            }
        }
        view.facets(&mut |facet| {
            if !facets.contains(&facet) {
                facets.push(facet);
            }
        });
        facets
    }
}

fn in_order<V: View>(mut views: Vec<Arc<V>>) -> Vec<Arc<V>> {
    views.sort_unstable_by(|one, other| one.meta().key.cmp(&other.meta().key));
    views
}

#[cfg(test)]
mod tests;
