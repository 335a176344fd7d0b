//! What a controller is: five steps over one kind of object, and the watches that wake it.
//!
//! The engine walks `gather → resolve → render → plan → apply → report` for one object at a time. Only `gather` and `act`
//! may wait; the others are plain functions.

use std::future::{Future, ready};
use std::sync::Arc;
use std::time::Duration;

use futures::Stream;
use futures::stream::BoxStream;
use jiff::Timestamp;
use kube::core::object::HasStatus;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::access::Access;
use crate::apply::Applied;
use crate::cache::{Cache, Caches, Change, Watch};
use crate::child::Child;
use crate::conditions::{Truth, Wait};
use crate::failure::Failure;
use crate::meta::Key;
use crate::plan::Plan;
use crate::queue::{Burst, Lane, Queue, When};
use crate::reader::Reader;
use crate::views::{Kind, Typed, View, Whole};

/// An object that a controller is for.
pub trait Primary: View {
    /// The status as JSON; null if there is none.
    fn status(&self) -> Value;
}

impl<K: Typed + HasStatus<Status: Serialize>> Primary for Whole<K> {
    fn status(&self) -> Value {
        serde_json::to_value(self.object.status()).unwrap_or_default()
    }
}

/// One controller.
pub trait Controller: Send + Sync + Sized + 'static {
    type Object: Primary;
    type Facts: Send + Sync;
    type Model: Send + Sync;

    /// Field manager, name in metrics, logs and events.
    const NAME: &'static str;

    /// Whether this controller writes the status. Of several controllers of a kind one does.
    const TELLS: bool = true;

    /// Everything that this reconcile needs to know, from the caches; named objects through the reader.
    fn gather(
        &self,
        object: &Self::Object,
        reader: &Reader,
    ) -> impl Future<Output = Result<Self::Facts, Failure>> + Send;

    /// What is meant, or which field is wrong and how to mend it.
    fn resolve(&self, object: &Self::Object, facts: &Self::Facts) -> Result<Self::Model, Failure>;

    /// The children that are wanted, exactly.
    fn render(&self, object: &Self::Object, model: &Self::Model) -> Result<Vec<Child>, Failure>;

    /// What has to be done beside Kubernetes objects, after they are applied.
    fn act(
        &self,
        object: &Self::Object,
        model: &Self::Model,
        applied: &Applied,
    ) -> impl Future<Output = Result<(), Failure>> + Send {
        let _ = (object, model, applied);
        ready(Ok(()))
    }

    /// What the status says. Called after every reconcile, also after one that failed.
    fn report(&self, seen: &Seen<'_, Self>) -> Report;
}

/// How far a reconcile came.
#[derive(Debug)]
pub struct Seen<'a, C: Controller> {
    pub object: &'a C::Object,
    pub facts: Option<&'a C::Facts>,
    pub model: Option<&'a C::Model>,
    pub plan: Option<&'a Plan>,
    pub failure: Option<&'a Failure>,
    pub now: Timestamp,
}

/// What is told of an object.
#[derive(Debug, Default)]
pub struct Report {
    /// Fields of the status, without conditions.
    pub fields: Map<String, Value>,
    /// Conditions of components; the four general ones come by themselves.
    pub conditions: Vec<(&'static str, Truth, &'static str, String)>,
    /// What is still waited for.
    pub waits: Vec<Wait>,
}

/// How a controller is run.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    pub concurrency: usize,
    /// For one reconcile, all its requests included.
    pub deadline: Duration,
    pub burst: Burst,
}

impl Default for Options {
    fn default() -> Self {
        Self { concurrency: 4, deadline: Duration::from_secs(60), burst: Burst::default() }
    }
}

/// Where a controller says what it watches; what it may do follows from that.
pub struct Wiring<'a> {
    pub(crate) caches: &'a Caches,
    pub(crate) queue: Arc<Queue>,
    pub(crate) primary: Kind,
    /// Kinds whose caches have to be complete.
    pub(crate) reads: Vec<Kind>,
    /// Kinds of children: what is no longer wanted of these is removed.
    pub(crate) owns: Vec<Kind>,
    pub(crate) access: Vec<Access>,
    pub(crate) external: Vec<BoxStream<'static, Key>>,
}

impl std::fmt::Debug for Wiring<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Wiring").field("primary", &self.primary).finish_non_exhaustive()
    }
}

impl<'a> Wiring<'a> {
    pub(crate) fn new(caches: &'a Caches, queue: Arc<Queue>, primary: Kind) -> Self {
        let (reads, owns, access, external) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { caches, queue, primary, reads, owns, access, external }
    }

    /// The objects that the controller is for.
    pub(crate) fn primary<V: Primary>(&mut self) -> Cache<V> {
        self.access.extend(Access::sub(V::kind(), "status", &["patch"]));
        self.access.extend(Access::sub(V::kind(), "finalizers", &["update"]));
        self.watches(Watch::default(), When::Now, |change: &Change<V>| {
            // A change of nothing but the status is our own: to look again would overtake the pause after a failure.
            let own =
                matches!((&change.old, &change.new), (Some(old), Some(new)) if old.meta() == new.meta());
            change.latest().filter(|_| !own).map(|object| object.meta().key.clone()).into_iter().collect()
        })
    }

    /// A kind of children: a change of one wakes its owner, and the controller may write it.
    pub fn owns<V: View>(&mut self, watch: Watch) -> Cache<V> {
        self.owns.push(V::kind());
        self.access.extend(Access::to(V::kind(), &["create", "delete", "patch"]));
        let primary = self.primary;
        self.watches(watch, When::Now, move |change: &Change<V>| owners(change, primary))
    }

    /// A kind of children that are created once and then left alone, such as generated Secrets.
    pub fn creates<V: View>(&mut self, watch: Watch) -> Cache<V> {
        self.access.extend(Access::to(V::kind(), &["create"]));
        let primary = self.primary;
        self.watches(watch, When::Now, move |change: &Change<V>| owners(change, primary))
    }

    /// Any other kind: `route` says whom a change concerns.
    pub fn watches<V: View>(
        &mut self,
        watch: Watch,
        when: When,
        route: impl Fn(&Change<V>) -> Vec<Key> + Send + Sync + 'static,
    ) -> Cache<V> {
        self.reads.push(V::kind());
        self.access.extend(Access::to(V::kind(), &["list", "watch"]));
        let cache = self.caches.watch::<V>(watch);
        let queue = Arc::clone(&self.queue);
        cache.on_change(move |change| {
            let lane = if change.replay { Lane::Resync } else { Lane::Change };
            for key in route(change) {
                queue.add(&key, lane, when);
            }
        });
        cache
    }

    /// All caches, for whoever asks what is served.
    #[must_use]
    pub fn caches(&self) -> &Caches {
        self.caches
    }

    /// Keys from elsewhere.
    pub fn external(&mut self, keys: impl Stream<Item = Key> + Send + 'static) {
        self.external.push(Box::pin(keys));
    }

    /// More that the controller does: named reads, other writes.
    pub fn may(&mut self, access: Vec<Access>) {
        self.access.extend(access);
    }
}

/// The owners of a kind that manage the object, before and after the change.
pub fn owners<V: View>(change: &Change<V>, kind: Kind) -> Vec<Key> {
    let mut keys: Vec<Key> = [&change.old, &change.new]
        .into_iter()
        .flatten()
        .filter_map(|view| {
            let owner = view.meta().controller()?;
            let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
            let namespace = if kind.namespaced { view.meta().namespace().as_str() } else { "" };
            (*owner.kind == *kind.kind && group == kind.group).then(|| Key::new(namespace, &owner.name))
        })
        .collect();
    keys.dedup();
    keys
}
