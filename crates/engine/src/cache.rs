//! What the cluster looks like, kept by watching: one watch per kind and namespace in the process, lean views, indexes.
//!
//! A [`Cache`] is a handle on one kind. Listeners are called by the watch itself, after the store has changed and outside
//! its lock: nothing is queued in between, so nothing can be lost or pile up.

mod decoded;
mod metrics;
mod observed;
mod store;
mod watch;

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use kube::Client;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::error;

use crate::meta::{Key, Version};
use crate::namespaces::Namespaces;
use crate::text::Text;
use crate::views::{CrdView, Facet, Kind, View};

pub(crate) use metrics::CacheCollector;
pub use observed::Observed;
pub(crate) use observed::Written;
pub use store::Change;
use store::Store;
pub use watch::WatchState;

/// On objects that are created once and never again, such as generated secrets: they are not removed as unwanted.
pub const CREATED_ONCE: &str = "slipway.hpc/created-once";

/// On every child: the controller that made it. Two controllers of one object leave each other's children alone.
pub const CONTROLLER: &str = "slipway.hpc/controller";

/// How a kind is watched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Watch {
    /// Only objects with these labels; what is not wanted costs nothing.
    pub labels: Option<&'static str>,
    pub fields: Option<String>,
    /// Label keys by which objects are looked up.
    pub index: &'static [&'static str],
    /// It can be done without: where it may not be read, nothing is known and nobody waits.
    pub optional: bool,
}

/// All caches of a process; clones share them.
#[derive(Clone)]
pub struct Caches {
    shared: Arc<Shared>,
}

struct Shared {
    namespaces: Namespaces,
    kinds: RwLock<BTreeMap<Kind, Registered>>,
    watches: Watches,
    /// Set when the server turned out not to stream lists.
    paged: AtomicBool,
}

/// The same cache, by its type and without it.
#[derive(Clone)]
struct Registered {
    typed: Arc<dyn Any + Send + Sync>,
    erased: Arc<dyn AnyCache>,
    view: TypeId,
}

/// The state of every watch, and the news that one has changed.
struct Watches {
    states: RwLock<BTreeMap<(Kind, Option<Text>), WatchState>>,
    changed: tokio::sync::watch::Sender<()>,
}

impl Caches {
    #[must_use]
    pub fn new(namespaces: Namespaces) -> Self {
        let watches = Watches { states: RwLock::default(), changed: tokio::sync::watch::Sender::new(()) };
        let kinds = RwLock::default();
        Self { shared: Arc::new(Shared { namespaces, kinds, watches, paged: AtomicBool::new(false) }) }
    }

    /// The cache of a kind, of which there is one view in a process; the second caller gets the one that is there, widened to
    /// what both want.
    /// To be called before [`Caches::start`].
    pub fn watch<V: View>(&self, watch: Watch) -> Cache<V> {
        let mut kinds = self.shared.kinds.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kinds.get(&V::kind())
            && known.view == TypeId::of::<V>()
            && let Ok(inner) = Arc::clone(&known.typed).downcast::<Inner<V>>()
        {
            inner.widen(&watch);
            return Cache { inner };
        }
        let inner = Arc::new(Inner::<V>::new(watch));
        let registered = Registered { typed: inner.clone(), erased: inner.clone(), view: TypeId::of::<V>() };
        kinds.insert(V::kind(), registered);
        // From now on this is waited for: a probe that comes before the watch must not find everything in order.
        for scope in self.scopes(V::kind()) {
            self.set_state(V::kind(), scope.as_ref(), WatchState::Starting);
        }
        Cache { inner }
    }

    /// Starts all watches; they end with `stop`.
    pub fn start(&self, client: &Client, stop: &CancellationToken) -> TaskTracker {
        let tracker = TaskTracker::new();
        for registered in self.kinds().values() {
            Arc::clone(&registered.erased).start(self, client, stop, &tracker);
        }
        tracker.close();
        tracker
    }

    /// Waits until every watch of these kinds has either delivered its list or said why it cannot.
    pub async fn settled(&self, kinds: &[Kind]) {
        let mut changed = self.shared.watches.changed.subscribe();
        let unsettled = |((kind, _), state): (&(Kind, Option<Text>), &WatchState)| {
            kinds.contains(kind) && *state == WatchState::Starting
        };
        while self.states().iter().any(unsettled) {
            // The sender lives as long as we do.
            let _ = changed.changed().await;
        }
    }

    /// What a probe has to know: `Err` names the watches that keep everything from working.
    pub fn ready(&self) -> Result<(), String> {
        let states = self.states();
        let serious = |state: &WatchState, namespace: &Option<Text>| match state {
            WatchState::Synced { .. } | WatchState::Absent | WatchState::Withheld(_) => false,
            // One namespace without permission leaves the others alone.
            WatchState::Forbidden(_) => namespace.is_none(),
            WatchState::Starting | WatchState::Failing(_) => true,
        };
        let bad: Vec<String> = states
            .iter()
            .filter(|((_, namespace), state)| serious(state, namespace))
            .map(|((kind, namespace), state)| watch::describe(kind, namespace.as_deref(), state))
            .collect();
        if bad.is_empty() { Ok(()) } else { Err(bad.join("; ")) }
    }

    /// Whether the objects of these kinds are known in a namespace; else what is waited for.
    pub fn known(&self, kinds: &[Kind], namespace: &Text) -> Result<(), String> {
        let states = self.states();
        for kind in kinds {
            // An object without a namespace may have children in all of them.
            let scopes =
                if namespace.is_empty() { self.scopes(*kind) } else { vec![None, Some(namespace.clone())] };
            for scope in scopes {
                match states.get(&(*kind, scope.clone())) {
                    None | Some(WatchState::Synced { .. } | WatchState::Absent | WatchState::Withheld(_)) => {
                    }
                    Some(state) => return Err(watch::describe(kind, scope.as_deref(), state)),
                }
            }
        }
        Ok(())
    }

    /// Whether the server serves a kind that is watched. False while nobody knows.
    #[must_use]
    pub fn available(&self, kind: Kind) -> bool {
        let states = self.states();
        states.iter().any(|((of, _), state)| *of == kind && matches!(state, WatchState::Synced { .. }))
    }

    /// Calls `listener` when a kind begins or ceases to be served.
    pub(crate) fn on_availability(&self, kind: Kind, listener: impl Fn() + Send + Sync + 'static) {
        if let Some(registered) = self.kinds().get(&kind) {
            registered.erased.on_availability(Box::new(listener));
        }
    }

    /// What is known of one object, whatever its kind; `None` also for kinds that are not watched.
    #[must_use]
    pub fn observed(&self, kind: Kind, key: &Key) -> Option<Observed> {
        self.kinds().get(&kind)?.erased.observed(key)
    }

    /// The objects of a kind that have this owner as their controller.
    #[must_use]
    pub fn controlled_by(&self, kind: Kind, uid: &Text) -> Vec<Observed> {
        self.kinds().get(&kind).map_or_else(Vec::new, |registered| registered.erased.controlled_by(uid))
    }

    #[must_use]
    pub fn watched(&self, kind: Kind) -> bool {
        self.kinds().contains_key(&kind)
    }

    /// Waits until the cache has seen a write of ours; false if it has not by the deadline.
    pub(crate) async fn seen(&self, written: &Written, limit: Duration) -> bool {
        let Some(cache) = self.kinds().get(&written.kind).map(|registered| Arc::clone(&registered.erased))
        else {
            return true;
        };
        let mut changed = cache.changed();
        let wait = async {
            while !written
                .is_seen(cache.observed(&written.key).as_ref(), cache.progress(&written.key.namespace))
            {
                if changed.changed().await.is_err() {
                    return;
                }
            }
        };
        tokio::time::timeout(limit, wait).await.is_ok()
    }

    fn scopes(&self, kind: Kind) -> Vec<Option<Text>> {
        if kind.namespaced { self.shared.namespaces.scopes() } else { vec![None] }
    }

    fn kinds(&self) -> RwLockReadGuard<'_, BTreeMap<Kind, Registered>> {
        self.shared.kinds.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn states(&self) -> RwLockReadGuard<'_, BTreeMap<(Kind, Option<Text>), WatchState>> {
        self.shared.watches.states.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if this is a change.
    fn set_state(&self, kind: Kind, namespace: Option<&Text>, state: WatchState) -> bool {
        let mut states = self.shared.watches.states.write().unwrap_or_else(PoisonError::into_inner);
        let place = (kind, namespace.cloned());
        if states.get(&place) == Some(&state) {
            return false;
        }
        states.insert(place, state);
        drop(states);
        self.shared.watches.changed.send_replace(());
        true
    }

    /// Whether a custom resource definition is there; `None` if nobody watches them, or may.
    fn defined(&self, kind: Kind) -> Option<bool> {
        if !self.available(CrdView::kind()) {
            return None;
        }
        let typed = Arc::clone(&self.kinds().get(&CrdView::kind())?.typed);
        let crds = Cache { inner: typed.downcast::<Inner<CrdView>>().ok()? };
        let definition = crds.get(&Key::new("", &format!("{}.{}", kind.plural, kind.group)));
        Some(definition.is_some_and(|definition| definition.serves(kind.version)))
    }

    fn crds_changed(&self) -> Option<tokio::sync::watch::Receiver<()>> {
        Some(self.kinds().get(&CrdView::kind())?.erased.changed())
    }
}

impl std::fmt::Debug for Caches {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_map().entries(self.states().iter()).finish()
    }
}

/// A handle on the cache of one kind; clones share it.
#[derive(Debug)]
pub struct Cache<V> {
    inner: Arc<Inner<V>>,
}

impl<V> Clone for Cache<V> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<V: View> Cache<V> {
    #[must_use]
    pub fn get(&self, key: &Key) -> Option<Arc<V>> {
        self.inner.store().get(key).cloned()
    }

    /// All objects, in the order of their keys; so are the answers below.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<V>> {
        self.inner.store().all()
    }

    #[must_use]
    pub fn owned_by(&self, uid: &Text) -> Vec<Arc<V>> {
        self.inner.store().with(&Facet::Owner(uid.clone()))
    }

    /// Those in a namespace with a label whose key the watch indexes.
    #[must_use]
    pub fn labelled(&self, namespace: &str, key: &str, value: &str) -> Vec<Arc<V>> {
        self.within(namespace, &Facet::Label(Text::new(key), Text::new(value)))
    }

    #[must_use]
    pub fn on_node(&self, node: &str) -> Vec<Arc<V>> {
        self.inner.store().with(&Facet::Node(Text::new(node)))
    }

    /// Those in a namespace that name an object of a kind.
    #[must_use]
    pub fn referring_to(&self, kind: &'static str, namespace: &str, name: &str) -> Vec<Arc<V>> {
        self.within(namespace, &Facet::Reference(kind, Text::new(name)))
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.inner.store().len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Calls `listener` for every change, on the task of the watch: it must be quick and must not block.
    /// To be called before [`Caches::start`].
    pub fn on_change(&self, listener: impl Fn(&Change<V>) + Send + Sync + 'static) {
        self.inner.listeners.write().unwrap_or_else(PoisonError::into_inner).push(Box::new(listener));
    }

    fn within(&self, namespace: &str, facet: &Facet) -> Vec<Arc<V>> {
        let mut found = self.inner.store().with(facet);
        found.retain(|view| *view.meta().namespace() == *namespace);
        found
    }
}

type Listener<V> = Box<dyn Fn(&Change<V>) + Send + Sync>;

struct Inner<V> {
    store: RwLock<Store<V>>,
    watch: Mutex<Watch>,
    listeners: RwLock<Vec<Listener<V>>>,
    availability: Mutex<Vec<Box<dyn Fn() + Send + Sync>>>,
    changed: tokio::sync::watch::Sender<()>,
}

impl<V> std::fmt::Debug for Inner<V> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Cache").field("watch", &self.watch).finish_non_exhaustive()
    }
}

impl<V: View> Inner<V> {
    fn new(watch: Watch) -> Self {
        Self {
            store: RwLock::new(Store::new(watch.index)),
            watch: Mutex::new(watch),
            listeners: RwLock::default(),
            availability: Mutex::default(),
            changed: tokio::sync::watch::Sender::new(()),
        }
    }

    /// What two ask for differently is watched without a selector; what one needs is needed.
    fn widen(&self, other: &Watch) {
        let mut watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        if watch.labels != other.labels {
            watch.labels = None;
        }
        if watch.fields != other.fields {
            watch.fields = None;
        }
        watch.optional &= other.optional;
        self.store.write().unwrap_or_else(PoisonError::into_inner).index_labels(other.index);
    }

    fn store(&self) -> RwLockReadGuard<'_, Store<V>> {
        self.store.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the store, then tells those who listen.
    fn update<R>(&self, update: impl FnOnce(&mut Store<V>, &mut Vec<Change<V>>) -> R) -> R {
        let mut changes = Vec::new();
        let result = update(&mut self.store.write().unwrap_or_else(PoisonError::into_inner), &mut changes);
        let listeners = self.listeners.read().unwrap_or_else(PoisonError::into_inner);
        for change in &changes {
            for listener in listeners.iter() {
                // A route that panics must not end the watch that everybody else lives on.
                if catch_unwind(AssertUnwindSafe(|| listener(change))).is_err() {
                    error!(kind = V::kind().kind, "a route panicked: a change was not told");
                }
            }
        }
        self.changed.send_replace(());
        result
    }
}

/// A cache without its type.
trait AnyCache: Send + Sync {
    fn observed(&self, key: &Key) -> Option<Observed>;
    fn controlled_by(&self, uid: &Text) -> Vec<Observed>;
    fn progress(&self, namespace: &Text) -> Version;
    fn len(&self) -> usize;
    fn unreadable(&self) -> Vec<Key>;
    fn changed(&self) -> tokio::sync::watch::Receiver<()>;
    fn on_availability(&self, listener: Box<dyn Fn() + Send + Sync>);
    fn start(
        self: Arc<Self>,
        caches: &Caches,
        client: &Client,
        stop: &CancellationToken,
        tasks: &TaskTracker,
    );
}

impl<V: View> AnyCache for Inner<V> {
    fn observed(&self, key: &Key) -> Option<Observed> {
        self.store().get(key).map(|view| Observed::of(view.meta()))
    }

    fn controlled_by(&self, uid: &Text) -> Vec<Observed> {
        let owned = self.store().with(&Facet::Owner(uid.clone()));
        let observed = owned.iter().map(|view| Observed::of(view.meta()));
        observed.filter(|object| object.owner.as_ref() == Some(uid)).collect()
    }

    fn progress(&self, namespace: &Text) -> Version {
        self.store().progress(namespace)
    }

    fn len(&self) -> usize {
        self.store().len()
    }

    fn unreadable(&self) -> Vec<Key> {
        self.store().unreadable().map(|(key, _)| key.clone()).collect()
    }

    fn changed(&self) -> tokio::sync::watch::Receiver<()> {
        self.changed.subscribe()
    }

    fn on_availability(&self, listener: Box<dyn Fn() + Send + Sync>) {
        self.availability.lock().unwrap_or_else(PoisonError::into_inner).push(listener);
    }

    fn start(
        self: Arc<Self>,
        caches: &Caches,
        client: &Client,
        stop: &CancellationToken,
        tasks: &TaskTracker,
    ) {
        for scope in caches.scopes(V::kind()) {
            let watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let driver = watch::Driver::new(Arc::clone(&self), caches.clone(), client.clone(), scope, watch);
            tasks.spawn(stop.clone().run_until_cancelled_owned(driver.run()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::{NodeView, PodView};

    #[test]
    fn nothing_is_ready_before_the_first_list() {
        let caches = Caches::new("a,b".parse().unwrap());
        assert_eq!(caches.ready(), Ok(()));
        caches.watch::<PodView>(Watch::default());
        caches.watch::<NodeView>(Watch::default());
        let missing = caches.ready().unwrap_err();
        for watch in ["pods in namespace a: ", "pods in namespace b: ", "nodes: "] {
            assert!(missing.contains(watch), "{missing}");
        }
        assert!(caches.known(&[PodView::kind()], &Text::new("a")).is_err());
    }

    #[test]
    fn a_forbidden_namespace_is_no_reason_not_to_be_ready_but_all_of_them_are() {
        let forbidden = || WatchState::Forbidden("no".into());
        let some = Caches::new("a,b".parse().unwrap());
        some.watch::<PodView>(Watch::default());
        some.set_state(PodView::kind(), Some(&Text::new("a")), forbidden());
        some.set_state(PodView::kind(), Some(&Text::new("b")), WatchState::Synced { failing: None });
        assert_eq!(some.ready(), Ok(()));
        assert_eq!(some.known(&[PodView::kind()], &Text::new("b")), Ok(()));
        assert_eq!(some.known(&[PodView::kind()], &Text::new("a")), Err("pods in namespace a: no".into()));
        let all = Caches::new(Namespaces::All);
        all.watch::<PodView>(Watch::default());
        all.set_state(PodView::kind(), None, forbidden());
        assert_eq!(all.ready(), Err("pods: no".into()));
    }
}
