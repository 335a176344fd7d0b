//! One watch of one kind in one namespace: kube's watcher feeds the store, and what goes wrong is sorted by what helps.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::{Stream, StreamExt};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};
use tracing::{debug, error, info, warn};

use super::decoded::Decoded;
use super::store::Epoch;
use super::{Caches, Inner, Watch};
use crate::failure::causes;
use crate::meta::Version;
use crate::queue::Backoff;
use crate::random;
use crate::text::Text;
use crate::views::{Kind, View};

/// Short at first, since most faults are a restart of the server, and never so long that people notice.
const RETRY: Backoff = Backoff { first: Duration::from_millis(250), longest: Duration::from_secs(10) };
/// For what only an administrator can mend.
const REFUSED: Backoff = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(60) };
/// For what can be done without.
const WITHHELD: Backoff = Backoff { first: Duration::from_secs(60), longest: Duration::from_secs(1800) };
/// A server that streams lists sends objects or the end of the list; one that only pretends to sends nothing.
const SILENCE: Duration = Duration::from_secs(30);
/// How long a watch must not complain to count as mended.
const RECOVERED: Duration = Duration::from_secs(6);
/// How often a kind is asked for that is not served, where definitions cannot be watched.
const UNKNOWN: Duration = Duration::from_secs(60);
/// Longer than any process runs; `Duration::MAX` is more than the timer can hold.
const FOREVER: Duration = Duration::from_secs(10 * 365 * 86_400);
/// Objects of a page are decoded at once, so a page must not be large.
const PAGE: u32 = 250;
/// A server that is starting may not know a kind yet; one answer is not believed.
const ABSENT_AFTER: u32 = 2;

/// How a watch is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchState {
    /// The first list is under way.
    Starting,
    /// The list came, and changes come since; `failing` if they do not now.
    Synced { failing: Option<String> },
    /// The server does not serve this kind, now.
    Absent,
    /// We may not read this.
    Forbidden(String),
    /// We may not read this, and can do without.
    Withheld(String),
    /// There never was a list.
    Failing(String),
}

/// `pods in namespace a: forbidden: …`
pub(super) fn describe(kind: &Kind, namespace: Option<&str>, state: &WatchState) -> String {
    let mut text = kind.plural.to_owned();
    // Writing into a String cannot fail.
    let _ = match namespace {
        Some(namespace) => write!(text, " in namespace {namespace}: "),
        None => write!(text, ": "),
    };
    text.push_str(match state {
        WatchState::Starting => "the list is not complete yet",
        WatchState::Synced { failing: None } => "in step",
        WatchState::Synced { failing: Some(why) } | WatchState::Failing(why) => why,
        WatchState::Absent => "not served",
        WatchState::Forbidden(why) | WatchState::Withheld(why) => why,
    });
    text
}

/// What an error of the watcher calls for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// The server does not stream lists.
    NoStreaming,
    NotServed,
    Forbidden,
    /// The watch fell behind; the watcher lists again by itself.
    Expired,
    Other,
}

fn fault(error: &watcher::Error, streaming: bool, custom: bool) -> Fault {
    use watcher::Error::{InitialListFailed, NoResourceVersion, WatchError, WatchFailed, WatchStartFailed};
    let code = match error {
        InitialListFailed(kube::Error::Api(status))
        | WatchStartFailed(kube::Error::Api(status))
        | WatchFailed(kube::Error::Api(status))
        | WatchError(status) => status.code,
        InitialListFailed(_) | WatchStartFailed(_) | WatchFailed(_) | NoResourceVersion => 0,
    };
    match code {
        400 | 405 | 422 | 501 if streaming => Fault::NoStreaming,
        // What Kubernetes brings is always served; who says otherwise is a proxy with a fault.
        404 if custom => Fault::NotServed,
        401 | 403 => Fault::Forbidden,
        410 => Fault::Expired,
        _ => Fault::Other,
    }
}

/// Whether a kind is there only if somebody has defined it.
fn is_custom(kind: Kind) -> bool {
    kind.group.contains('.') && !kind.group.ends_with(".k8s.io")
}

pub(super) struct Driver<V> {
    inner: Arc<Inner<V>>,
    caches: Caches,
    client: Client,
    namespace: Option<Text>,
    watch: Watch,
    /// A list came, and with it the first state that is worth something.
    synced: bool,
    /// The last attempt went wrong.
    failing: bool,
    failures: u32,
    not_served: u32,
    /// The server was silent when it was asked for a stream.
    paged: bool,
    /// How new the newest object of the list is that is under way.
    listed: Version,
}

/// Why a stream was given up.
enum End {
    /// Begin anew, with a list.
    Again,
    /// The kind is not served: wait for its definition.
    Absent,
}

impl<V: View> Driver<V> {
    pub(super) fn new(
        inner: Arc<Inner<V>>,
        caches: Caches,
        client: Client,
        namespace: Option<Text>,
        watch: Watch,
    ) -> Self {
        let (synced, failing, failures, not_served) = (false, false, 0, 0);
        let (paged, listed) = (false, Version::default());
        Self { inner, caches, client, namespace, watch, synced, failing, failures, not_served, paged, listed }
    }

    pub(super) async fn run(mut self) {
        loop {
            let streaming = !self.paged && !self.caches.shared.paged.load(Ordering::Relaxed);
            let stream = watcher(self.api(), self.config(streaming));
            match self.follow(Box::pin(stream), streaming).await {
                End::Again => {}
                End::Absent => self.wait_for_definition().await,
            }
        }
    }

    fn api(&self) -> Api<Decoded<V>> {
        let client = self.client.clone();
        match &self.namespace {
            Some(namespace) => Api::namespaced_with(client, namespace, &()),
            None => Api::all_with(client, &()),
        }
    }

    fn config(&self, streaming: bool) -> watcher::Config {
        let mut config = watcher::Config::default().page_size(PAGE);
        config.label_selector = self.watch.labels.map(str::to_owned);
        config.field_selector.clone_from(&self.watch.fields);
        if streaming { config.streaming_lists() } else { config }
    }

    async fn follow<S>(&mut self, mut stream: S, streaming: bool) -> End
    where
        S: Stream<Item = watcher::Result<Event<Decoded<V>>>> + Unpin,
    {
        let mut epoch = self.begin();
        let mut listing = true;
        loop {
            let patience = match (self.failing, listing && streaming) {
                (true, _) => RECOVERED,
                (false, true) => SILENCE,
                (false, false) => FOREVER,
            };
            match tokio::time::timeout(patience, stream.next()).await {
                Ok(Some(Ok(event))) => {
                    listing = match &event {
                        Event::Init | Event::InitApply(_) => true,
                        Event::InitDone | Event::Apply(_) | Event::Delete(_) => false,
                    };
                    self.take(event, &mut epoch);
                    self.works(!listing);
                }
                Ok(Some(Err(error))) => match fault(&error, streaming && listing, is_custom(V::kind())) {
                    Fault::NoStreaming => {
                        info!(kind = V::kind().kind, "the API server does not stream lists: paging instead");
                        self.caches.shared.paged.store(true, Ordering::Relaxed);
                        return End::Again;
                    }
                    Fault::NotServed if self.is_absent() => return End::Absent,
                    Fault::Expired => {
                        self.pause(RETRY).await;
                        // The watcher lists again by itself only if the watch had begun.
                        if matches!(error, watcher::Error::WatchStartFailed(_)) {
                            return End::Again;
                        }
                    }
                    fault => self.failed(&error, fault).await,
                },
                // After a fault: no news is good news, since a watch that cannot be opened says so at once.
                Err(_) if self.failing => self.works(!listing),
                // kube's watcher does not end; a server that says nothing may not stream lists.
                Ok(None) | Err(_) => {
                    self.paged = true;
                    return End::Again;
                }
            }
        }
    }

    fn take(&mut self, event: Event<Decoded<V>>, epoch: &mut Epoch) {
        match event {
            Event::Init => {
                *epoch = self.begin();
                self.listed = Version::default();
            }
            // A list comes in the order of names: that it has brought something new says nothing of the rest.
            Event::InitApply(object) => {
                self.listed = self.listed.max(object.version);
                self.apply(object, *epoch, true);
            }
            Event::Apply(object) => self.apply(object, *epoch, false),
            Event::Delete(Decoded { key, version, .. }) => self.inner.update(|store, changes| {
                store.advance(self.namespace.as_ref(), version);
                store.remove(&key, &mut |change| changes.push(change));
            }),
            Event::InitDone => {
                self.sweep(*epoch);
                let listed = self.listed;
                self.inner.update(|store, _| store.advance(self.namespace.as_ref(), listed));
            }
        }
    }

    fn apply(&self, object: Decoded<V>, epoch: Epoch, replay: bool) {
        let Decoded { key, version, view, .. } = object;
        match view {
            Ok(view) => self.inner.update(|store, changes| {
                if !replay {
                    store.advance(self.namespace.as_ref(), version);
                }
                store.apply(view, epoch, replay, &mut |change| changes.push(change));
            }),
            Err(why) => {
                let news = self.inner.update(|store, _| store.skip(key.clone(), why.clone(), epoch));
                if news {
                    error!(kind = V::kind().kind, object = %key, error = why, "skipped an object that cannot be read");
                }
            }
        }
    }

    fn begin(&self) -> Epoch {
        self.inner.update(|store, _| store.begin(self.namespace.as_ref()))
    }

    fn sweep(&self, epoch: Epoch) {
        let namespace = self.namespace.as_deref();
        self.inner.update(|store, changes| {
            store.sweep(namespace, epoch, &mut |change| changes.push(change));
        });
    }

    /// Something came, or nothing went wrong.
    fn works(&mut self, listed: bool) {
        if listed && (self.failing || !self.synced) {
            let first = !self.synced;
            self.synced = true;
            self.set_state(WatchState::Synced { failing: None });
            // Whoever waited for it, for whatever reason, looks again.
            self.tell_availability();
            if first {
                debug!(kind = V::kind().kind, namespace = self.namespace.as_deref(), "in step");
            } else {
                info!(kind = V::kind().kind, namespace = self.namespace.as_deref(), "the watch works again");
            }
        }
        (self.failing, self.failures, self.not_served) = (false, 0, 0);
    }

    /// Says what is wrong, once, and waits before the next attempt.
    async fn failed(&mut self, error: &watcher::Error, fault: Fault) {
        self.failing = true;
        self.not_served += u32::from(fault == Fault::NotServed);
        let why = causes(error);
        let state = match fault {
            Fault::Forbidden if self.watch.optional => WatchState::Withheld(why.clone()),
            Fault::Forbidden => WatchState::Forbidden(why.clone()),
            _ if self.synced => WatchState::Synced { failing: Some(why.clone()) },
            _ => WatchState::Failing(why.clone()),
        };
        // A list that was refused later is as old as any other that fails, and better than none.
        if self.set_state(state) {
            warn!(kind = V::kind().kind, namespace = self.namespace.as_deref(), error = why, "watch");
        }
        let backoff = match fault {
            Fault::Forbidden if self.watch.optional => WITHHELD,
            Fault::Forbidden => REFUSED,
            _ => RETRY,
        };
        self.pause(backoff).await;
    }

    async fn pause(&mut self, backoff: Backoff) {
        self.failures += 1;
        tokio::time::sleep(backoff.pause(self.failures, random::fraction())).await;
    }

    /// Whether the kind is gone, and not only a server that is starting.
    fn is_absent(&self) -> bool {
        self.caches.defined(V::kind()) != Some(true) && self.not_served + 1 >= ABSENT_AFTER
    }

    /// The kind is not served: forget its objects, then sleep until its definition appears. Where definitions
    /// cannot be watched it is asked for now and then.
    async fn wait_for_definition(&mut self) {
        let nothing = self.begin();
        self.sweep(nothing);
        (self.synced, self.failing, self.not_served) = (false, false, 0);
        if self.set_state(WatchState::Absent) {
            info!(kind = V::kind().kind, group = V::kind().group, "not served: waiting for its definition");
            self.tell_availability();
        }
        let Some(mut changed) = self.caches.crds_changed() else {
            tokio::time::sleep(UNKNOWN).await;
            return;
        };
        loop {
            let patience = match self.caches.defined(V::kind()) {
                Some(true) => break,
                Some(false) => FOREVER,
                None => UNKNOWN,
            };
            if tokio::time::timeout(patience, changed.changed()).await.is_err() {
                return;
            }
        }
        // It is served a moment after it is defined.
        self.pause(RETRY).await;
    }

    fn set_state(&self, state: WatchState) -> bool {
        self.caches.set_state(V::kind(), self.namespace.as_ref(), state)
    }

    fn tell_availability(&self) {
        for listener in self.inner.availability.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            listener();
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;
    use crate::views::PodView;

    fn refused(code: u16) -> watcher::Error {
        let status = Status { code, ..Status::default() };
        watcher::Error::WatchStartFailed(kube::Error::Api(Box::new(status)))
    }

    #[test]
    fn faults_are_sorted_by_what_helps() {
        for (code, streaming, expected) in [
            (422, true, Fault::NoStreaming),
            (400, true, Fault::NoStreaming),
            (422, false, Fault::Other),
            (404, true, Fault::NotServed),
            (403, true, Fault::Forbidden),
            (401, false, Fault::Forbidden),
            (410, false, Fault::Expired),
            (503, true, Fault::Other),
        ] {
            assert_eq!(fault(&refused(code), streaming, true), expected, "{code}");
        }
        assert_eq!(fault(&refused(404), true, is_custom(PodView::kind())), Fault::Other);
    }
}
