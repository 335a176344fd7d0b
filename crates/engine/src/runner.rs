//! Runs one controller: takes keys, walks the steps, writes the status, turns failures into time.

mod status;

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::{debug, error, info, warn};

use crate::apply::{Applied, Applier};
use crate::cache::{Cache, Caches, Observed};
use crate::controller::{Controller, Options, Seen};
use crate::events::Events;
use crate::failure::{Disposition, Failure};
use crate::memory::Memory;
use crate::meta::Key;
use crate::metrics::{ControllerMetrics, Now};
use crate::plan::{Plan, World};
use crate::queue::{Lane, Next, Queue, Taken, When};
use crate::random;
use crate::reader::{Contents, Reader};
use crate::text::Text;
use crate::views::{Kind, View};
use status::Told;

/// How long a reconcile waits for the cache to see what the last one wrote. A watch delivers in milliseconds.
const CATCH_UP: Duration = Duration::from_secs(5);
/// A write that no watch delivers for so long will never come: the server's data were restored from a backup, say.
const FORGET: Duration = Duration::from_secs(60);
/// Everything is looked at this often even if nothing seems to change. It costs no request.
const SECOND_LOOK: Duration = Duration::from_secs(3600);

/// A controller that can be run without knowing its type.
pub(crate) trait Run: Send + Sync {
    fn run(self: Arc<Self>, term: CancellationToken) -> Pin<Box<dyn Future<Output = ()> + Send>>;
    fn name(&self) -> &'static str;
}

pub(crate) struct Runner<C: Controller> {
    pub controller: C,
    pub objects: Cache<C::Object>,
    pub caches: Caches,
    pub queue: Arc<Queue>,
    pub applier: Applier,
    pub events: Events,
    pub metrics: ControllerMetrics,
    pub options: Options,
    pub reads: Vec<Kind>,
    pub owns: Vec<Kind>,
    pub contents: Contents,
    /// Of each object; lost with it.
    pub memories: Mutex<HashMap<Key, Arc<tokio::sync::Mutex<Memory>>>>,
    pub stalled: Mutex<HashMap<Key, &'static str>>,
}

impl<C: Controller> std::fmt::Debug for Runner<C> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Runner").field("controller", &C::NAME).finish_non_exhaustive()
    }
}

impl<C: Controller> Run for Runner<C> {
    fn name(&self) -> &'static str {
        C::NAME
    }

    /// Works until the term ends, then lets reconciles that are under way end too.
    fn run(self: Arc<Self>, term: CancellationToken) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            tokio::select! {
                () = term.cancelled() => return,
                () = self.caches.settled(&self.reads) => {}
            }
            self.queue.schedule().release(Instant::now());
            // A term may follow another's: whatever that one did is looked at.
            for object in self.objects.all() {
                self.queue.add(&object.meta().key, Lane::Resync, When::Now);
            }
            info!(controller = C::NAME, objects = self.objects.len(), "controller works");
            let mut tasks = JoinSet::new();
            loop {
                let full = tasks.len() >= self.options.concurrency;
                tokio::select! {
                    biased;
                    () = term.cancelled() => break,
                    Some(_) = tasks.join_next(), if !tasks.is_empty() => {}
                    taken = self.queue.next(), if !full => {
                        let runner = Arc::clone(&self);
                        tasks.spawn(runner.look_at(taken));
                    }
                }
            }
            while tasks.join_next().await.is_some() {}
            // Whoever leads next tells of it.
            lock(&self.stalled).clear();
        })
    }
}

/// How far a walk came.
struct Walk<C: Controller> {
    facts: Option<C::Facts>,
    model: Option<C::Model>,
    plan: Option<Plan>,
    applied: Applied,
    failure: Option<Failure>,
}

impl<C: Controller> Default for Walk<C> {
    fn default() -> Self {
        Self { facts: None, model: None, plan: None, applied: Applied::default(), failure: None }
    }
}

impl<C: Controller> Runner<C> {
    async fn look_at(self: Arc<Self>, taken: Taken) {
        let started = Instant::now();
        self.metrics.waited.observe(taken.waited.as_secs_f64());
        if taken.failures > 0 {
            self.metrics.retries.inc();
        }
        let key = taken.key.clone();
        let (runner, inner) = (Arc::clone(&self), key.clone());
        let task = AbortOnDropHandle::new(tokio::spawn(async move { runner.reconcile(&inner).await }));
        // A panic ends its own task and nothing else.
        let told = match task.await {
            Ok(told) => told,
            Err(fault) if fault.is_panic() => self.panicked(&key, fault).await,
            Err(_) => return,
        };
        let time = started.elapsed().as_secs_f64();
        self.metrics.worked.observe(time);
        self.metrics.time.observe(time);
        let next = self.account(&key, &told);
        self.queue.done(&key, next, random::fraction());
    }

    /// Counts what came of a reconcile, and says when to look again.
    fn account(&self, key: &Key, told: &Told) -> Next {
        match told.stalled {
            Some(reason) => lock(&self.stalled).insert(key.clone(), reason),
            None => lock(&self.stalled).remove(key),
        };
        let Some(failure) = &told.failure else {
            if told.gone {
                self.metrics.reconciled("success");
                return Next::Rest;
            }
            self.metrics.reconciled(if told.again.is_some() { "requeue_after" } else { "success" });
            let floor = SECOND_LOOK.mul_f64(0.75 + 0.5 * random::fraction());
            return Next::After(told.again.unwrap_or(floor).min(floor));
        };
        let Failure { disposition, reason, message, .. } = failure;
        self.metrics.reconciled("error");
        self.metrics.errors.inc();
        match disposition {
            Disposition::InvalidSpec => {
                self.metrics.terminal.inc();
                info!(controller = C::NAME, object = %key, reason, error = message, "waiting for an edit");
            }
            Disposition::Conflict => {
                debug!(controller = C::NAME, object = %key, error = message, "once more");
            }
            Disposition::Bug => error!(controller = C::NAME, object = %key, error = message, "a bug of ours"),
            Disposition::Blocked { .. } | Disposition::Transient => {
                warn!(controller = C::NAME, object = %key, reason, error = message, "not done");
            }
        }
        disposition.next()
    }

    async fn panicked(self: &Arc<Self>, key: &Key, fault: tokio::task::JoinError) -> Told {
        self.metrics.panics.inc();
        let panic = fault.into_panic();
        let words = panic.downcast_ref::<&str>().copied().map(str::to_owned);
        let words = words.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        let failure = Failure::bug(format!("the controller panicked: {words}"));
        let (runner, key, told) = (Arc::clone(self), key.clone(), failure.clone());
        let report = tokio::spawn(async move {
            let Some(object) = runner.objects.get(&key) else { return Told::gone() };
            let memory = runner.memory(&key);
            let mut memory = memory.lock().await;
            let walk = Walk { failure: Some(told), ..Walk::default() };
            runner.tell(&object, walk, &runner.applier.anew(), &mut memory).await
        });
        // Even the report may panic; the failure is told all the same, in log and metrics.
        report.await.unwrap_or_else(|_| Told { failure: Some(failure), ..Told::default() })
    }

    async fn reconcile(&self, key: &Key) -> Told {
        let memory = self.memory(key);
        let mut memory = memory.lock().await;
        let behind = self.caught_up(key, &mut memory).await.err();
        let Some(object) = self.objects.get(key) else {
            lock(&self.memories).remove(key);
            return Told::gone();
        };
        if object.meta().deleting.is_some() {
            return Told::gone();
        }
        memory.begin(&object.meta().uid);
        #[cfg(debug_assertions)]
        panic_if_asked(key);
        let applier = self.applier.anew();
        let mut walk = Walk::default();
        let deadline = self.options.deadline;
        walk.failure = match behind {
            Some(failure) => Some(failure),
            None => {
                let limited =
                    tokio::time::timeout(deadline, self.walk(&object, &applier, &mut memory, &mut walk));
                match limited.await {
                    Ok(outcome) => outcome.err(),
                    Err(_) => {
                        let what =
                            applier.calls.waiting_for().unwrap_or_else(|| "gathering facts".to_owned());
                        Some(Failure::deadline(&what, deadline))
                    }
                }
            }
        };
        self.tell(&object, walk, &applier, &mut memory).await
    }

    async fn walk(
        &self,
        object: &C::Object,
        applier: &Applier,
        memory: &mut Memory,
        walk: &mut Walk<C>,
    ) -> Result<(), Failure> {
        let reader = Reader::new(self.caches.clone(), applier.calls.clone(), self.contents.clone());
        let facts = walk.facts.insert(self.controller.gather(object, &reader).await?);
        let model = walk.model.insert(self.controller.resolve(object, facts)?);
        let mut children = self.controller.render(object, model)?;
        for child in &mut children {
            child.owned_by(C::NAME, C::Object::kind(), object.meta())?;
        }
        let world = Children { caches: &self.caches, kinds: &self.owns, owner: &object.meta().uid };
        memory.keep_only(&children, &world);
        let plan = walk.plan.insert(Plan::make(C::NAME, &object.meta().uid, &children, &world, memory));
        if !plan.is_empty() {
            debug!(controller = C::NAME, object = %object.meta().key, %plan, "plan");
        }
        let failure;
        (walk.applied, failure) = applier.carry_out(plan, &children, memory).await;
        if let Some(failure) = failure {
            return Err(failure);
        }
        self.controller.act(object, model, &walk.applied).await
    }

    /// Nothing is decided on caches that are incomplete, or older than what we wrote ourselves.
    async fn caught_up(&self, key: &Key, memory: &mut Memory) -> Result<(), Failure> {
        if let Err(on) = self.caches.known(&self.reads, &key.namespace) {
            return Err(Failure::blocked("CacheIncomplete", on));
        }
        while let Some(written) = memory.written.last() {
            if written.at.elapsed() < FORGET && !self.caches.seen(written, CATCH_UP).await {
                let on = format!("the watch to deliver our write of {} {}", written.kind.kind, written.key);
                return Err(Failure { stalled: true, ..Failure::blocked("CacheBehind", on) });
            }
            memory.written.pop();
        }
        Ok(())
    }

    fn memory(&self, key: &Key) -> Arc<tokio::sync::Mutex<Memory>> {
        Arc::clone(lock(&self.memories).entry(key.clone()).or_default())
    }

    fn seen<'a>(&self, object: &'a C::Object, walk: &'a Walk<C>, now: Timestamp) -> Seen<'a, C> {
        Seen {
            object,
            facts: walk.facts.as_ref(),
            model: walk.model.as_ref(),
            plan: walk.plan.as_ref(),
            failure: walk.failure.as_ref(),
            now,
        }
    }
}

/// A fault that a test needs and no input can cause. Release builds do not have it.
#[cfg(debug_assertions)]
#[allow(clippy::panic, reason = "this is what a test asks for")]
fn panic_if_asked(key: &Key) {
    if std::env::var("SLIPWAY_TEST_PANIC_ON").is_ok_and(|asked| asked == key.to_string()) {
        panic!("asked to by a test");
    }
}

/// The world as the caches have it, for one owner.
struct Children<'a> {
    caches: &'a Caches,
    kinds: &'a [Kind],
    owner: &'a Text,
}

impl World for Children<'_> {
    fn observed(&self, kind: Kind, key: &Key) -> Option<Observed> {
        self.caches.observed(kind, key)
    }

    fn owned(&self) -> Vec<(Kind, Observed)> {
        let of = |kind: &Kind| {
            let kind = *kind;
            self.caches.controlled_by(kind, self.owner).into_iter().map(move |observed| (kind, observed))
        };
        self.kinds.iter().flat_map(of).collect()
    }
}

impl<C: Controller> Now for Runner<C> {
    fn controller(&self) -> &'static str {
        C::NAME
    }

    fn concurrency(&self) -> usize {
        self.options.concurrency
    }

    fn depth(&self) -> usize {
        self.queue.schedule().depth()
    }

    fn running(&self) -> Vec<Duration> {
        self.queue.schedule().running().map(|(_, since)| since.elapsed()).collect()
    }

    fn stalled(&self) -> BTreeMap<&'static str, u64> {
        let mut counts = BTreeMap::new();
        for reason in lock(&self.stalled).values() {
            *counts.entry(*reason).or_default() += 1;
        }
        counts
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
