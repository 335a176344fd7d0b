//! Keeps the [`Facts`] of one cluster fresh, and wakes those who wait for a change.
//!
//! Four loops ask. One has the whole list of nodes, and pauses nine times as long as the answer took, so that it never
//! has more than a tenth of slurmrestd's time. One asks for single nodes, those that somebody waits on, several times a
//! second, and one at once for those that somebody begins to wait on; each of them pauses in the same way. One looks at
//! partitions and reservations now and then. Jobs are asked for only to explain why a node is not free.
//!
//! A question that failed changes nothing of what is known: facts age, and say why. Only the list says that Slurm does
//! not answer, or that a node is gone; a single node that cannot be had makes it come sooner.

mod changes;
mod jobs;
mod merge;
mod pace;
#[cfg(test)]
mod tests;
mod waiting;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use futures::StreamExt;
use slurm::facts::{self, Facts};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

pub use changes::{Changes, Subscription};
pub use waiting::Waiting;

use crate::client::Client;
use crate::error::RestError;
use crate::record::cluster::{Partition, Reservation};
use changes::Subscribers;
use jobs::Jobs;
use pace::{Recent, rest};
use waiting::Waited;

/// How often a view asks.
#[derive(Debug, Clone, Copy)]
pub struct ViewOptions {
    /// Between two lists, at least, while nobody waits.
    pub quiet: Duration,
    /// The same while somebody waits.
    pub waiting: Duration,
    /// Between two questions for single nodes, at least.
    pub single: Duration,
    /// Between two looks at partitions and reservations, at least.
    pub others: Duration,
    /// For a list of nodes, partitions or reservations.
    pub list_deadline: Duration,
    /// For one node.
    pub node_deadline: Duration,
    /// For all jobs, which take far longer than all nodes.
    pub jobs_deadline: Duration,
}

impl Default for ViewOptions {
    fn default() -> Self {
        Self {
            quiet: Duration::from_secs(5),
            waiting: Duration::from_secs(1),
            single: Duration::from_millis(250),
            others: Duration::from_secs(30),
            list_deadline: Duration::from_secs(30),
            node_deadline: Duration::from_secs(10),
            jobs_deadline: Duration::from_secs(120),
        }
    }
}

/// How long a small question may take.
const SMALL: Duration = Duration::from_secs(5);
/// The end of a failure should be noticed soon, also of one that took long.
const LONGEST_AFTER_FAILURE: Duration = Duration::from_secs(10);
/// When a list is asked for even if small questions are in vain: its error is the one that is shown.
const A_LIST_ANYWAY: Duration = Duration::from_secs(60);
/// Single nodes that are asked for at a time.
const AT_A_TIME: usize = 4;
/// Changes are asked for no longer than this before a whole list is: slurmctld's clock can be set back, and that a node was
/// deleted is no change.
const CHANGES_SINCE: Duration = Duration::from_secs(60);

/// From when changes are asked for: by slurmctld's clock, and by ours.
type Since = Option<(u64, Instant)>;

/// A view of one cluster; clones share it, and with the last of them it ends.
#[derive(Debug, Clone)]
pub struct View {
    shared: Arc<Shared>,
    _running: Arc<DropGuard>,
}

#[derive(Debug)]
struct Shared {
    client: Client,
    options: ViewOptions,
    facts: RwLock<Facts>,
    subscribers: Subscribers,
    waited: Waited,
    jobs: Jobs,
    /// A list is wanted before its time.
    soon: Notify,
    /// The next list has to be a whole one. A single node was not as it was known, and its answer can be older than that of a
    /// list that came before it; or it is not there any more; or somebody knows better.
    doubt: AtomicBool,
}

impl View {
    /// Begins to ask, on the runtime of the caller.
    #[must_use]
    pub fn start(client: Client, options: ViewOptions) -> Self {
        let shared = Arc::new(Shared {
            client,
            options,
            facts: RwLock::default(),
            subscribers: Subscribers::default(),
            waited: Waited::default(),
            jobs: Jobs::default(),
            soon: Notify::new(),
            doubt: AtomicBool::new(false),
        });
        let stop = CancellationToken::new();
        let asking = shared.clone();
        tokio::spawn(stop.clone().run_until_cancelled_owned(async move {
            tokio::join!(
                asking.keep_listing(),
                asking.keep_looking_at_others(),
                asking.keep_asking_for_waited_ones(),
                asking.keep_asking_for_new_ones()
            );
        }));
        Self { shared, _running: Arc::new(stop.drop_guard()) }
    }

    /// Reads what is known; no waiting, no question.
    pub fn read<R>(&self, read: impl FnOnce(&Facts) -> R) -> R {
        read(&self.shared.read())
    }

    /// Hears of every change from now on.
    #[must_use]
    pub fn subscribe(&self) -> Subscription {
        self.shared.subscribers.subscribe()
    }

    /// Has one node asked for several times a second, until the guard is dropped. Of the first answer subscribers are told
    /// even if it is no news: what is known of the node is young from then on.
    #[must_use]
    pub fn wait_on(&self, node: &str) -> Waiting {
        let waiting = self.shared.waited.add(node, Instant::now().into_std());
        self.shared.soon.notify_one();
        waiting
    }

    /// Has the whole list asked for before its time, as far as its cost allows; for who has changed something, such as
    /// deleted a node, of which Slurm does not tell.
    pub fn ask_soon(&self) {
        self.shared.doubt.store(true, Ordering::Relaxed);
        self.shared.soon.notify_one();
    }

    /// The jobs that hold a node, for people. Answers are shared and bounded by their cost like lists: they can be
    /// some time old. What has to be true now is asked of [`Client::jobs_on`].
    pub async fn jobs_on(&self, node: &str) -> Result<Vec<facts::Job>, RestError> {
        let client = self.shared.client.within(self.shared.options.jobs_deadline);
        self.shared.jobs.on(&client, node).await
    }
}

impl Shared {
    async fn keep_listing(&self) {
        // Among answers that nothing has changed a whole list would look cheap.
        let (mut since, mut whole_ones, mut unchanged) = (None, Recent::default(), Recent::default());
        let mut was_away = false;
        loop {
            let begin = Instant::now();
            let (answered, whole) = self.list_nodes(&mut since).await;
            let (end, cost) = (Instant::now(), begin.elapsed());
            let recent = if whole { &mut whole_ones } else { &mut unchanged };
            // One that failed at once tells nothing of what a list costs.
            if answered || cost > self.options.quiet {
                recent.add(cost);
            }
            let rest = rest(recent.least());
            let away = !answered && self.wait_for_slurm(end + A_LIST_ANYWAY).await;
            // What it took is then not all its own; neither is that of the next one, which waited for Slurm as well.
            self.pause(end, if away || was_away { rest.min(cost) } else { rest }).await;
            was_away = away;
        }
    }

    /// A list was not answered: either Slurm is away, and is asked for one soon after it is back, or the list is too much
    /// for it, and costs what it costs. Small questions tell: true if it was away.
    async fn wait_for_slurm(&self, until: Instant) -> bool {
        let client = self.client.within(SMALL);
        let mut was_away = false;
        while Instant::now() < until {
            let begin = Instant::now();
            let answered = client.recount_nodes().await.is_ok();
            // It may have come back in the middle of the question.
            was_away |= !answered || begin.elapsed() > self.options.waiting;
            if answered {
                break;
            }
            tokio::time::sleep(begin.elapsed().max(self.options.waiting)).await;
        }
        was_away
    }

    async fn keep_looking_at_others(&self) {
        let mut recent = Recent::default();
        loop {
            let begin = Instant::now();
            let answered = self.look_at_others().await;
            // They are short: who does not answer does not work, either.
            let rest = if answered { rest(recent.add(begin.elapsed()).least()) } else { Duration::ZERO };
            tokio::time::sleep(rest.max(self.options.others)).await;
        }
    }

    /// Rests, and pauses as long as nobody needs to know more.
    async fn pause(&self, from: Instant, rest: Duration) {
        let least = if self.waited.is_empty() { self.options.quiet } else { self.options.waiting };
        tokio::select! {
            () = tokio::time::sleep_until(from + rest.max(least)) => {}
            // Who begins to wait, or asks for a list, shortens the pause to what the cost asks for.
            () = self.soon.notified() => tokio::time::sleep_until(from + rest.max(self.options.waiting)).await,
        }
    }

    /// Whether there was an answer, and whether it was another one than that nothing has changed.
    async fn list_nodes(&self, since: &mut Since) -> (bool, bool) {
        let client = self.client.within(self.options.list_deadline);
        let begin = Instant::now();
        let asked = begin.into_std();
        let doubt = self.doubt.swap(false, Ordering::Relaxed);
        let answer = match since.filter(|(_, at)| !doubt && at.elapsed() < CHANGES_SINCE) {
            Some((since, _)) => client.nodes_since(since).await,
            None => client.nodes().await.map(Some),
        };
        let answered = answer.is_ok();
        let whole = !matches!(answer, Ok(None));
        self.change(|facts| {
            let mut changes = match answer {
                Ok(Some(listed)) => {
                    let last_update = listed.last_update;
                    let (changes, all) = merge::nodes(&mut facts.nodes, listed, asked);
                    *since = last_update.filter(|_| all).map(|last_update| (last_update, begin));
                    changes
                }
                Ok(None) => merge::unchanged(&mut facts.nodes, asked),
                Err(error) => {
                    *since = None;
                    merge::failed(&mut facts.nodes, &error, asked)
                }
            };
            if facts.nodes.complete_at() == Some(asked) {
                changes.nodes.extend(self.waited.all_answered(asked));
            }
            changes
        });
        (answered, whole)
    }

    /// True if there were answers.
    async fn look_at_others(&self) -> bool {
        let begin = Instant::now().into_std();
        let client = self.client.within(self.options.list_deadline);
        let partitions = client.partitions().await;
        let mut answered = partitions.is_ok();
        self.change(|facts| {
            let changed = merge::all(&mut facts.partitions, partitions, Partition::into_fact, begin);
            Changes { partitions: changed, ..Changes::default() }
        });
        let reservations = client.reservations().await;
        answered &= reservations.is_ok();
        self.change(|facts| {
            let changed = merge::all(&mut facts.reservations, reservations, Reservation::into_fact, begin);
            Changes { reservations: changed, ..Changes::default() }
        });
        answered
    }

    async fn keep_asking_for_waited_ones(&self) {
        let (mut recent, mut pause) = (Recent::default(), self.options.single);
        loop {
            self.waited.until_someone_waits().await;
            tokio::time::sleep(pause).await;
            let names = self.waited.all();
            if let Ok(count @ 1..) = u32::try_from(names.len()) {
                pause = self.ask_for(names, |cost| recent.add(cost / count).least() * count).await;
            }
        }
    }

    /// Who begins to wait does not wait for the turn of all, as long as that takes no more than another tenth.
    async fn keep_asking_for_new_ones(&self) {
        loop {
            self.waited.until_someone_new_waits().await;
            let names = self.waited.new_ones();
            if !names.is_empty() {
                let pause = self.ask_for(names, |cost| cost).await;
                tokio::time::sleep(pause).await;
            }
        }
    }

    /// How long to pause then. `own` is what counts of the cost.
    async fn ask_for(&self, names: Vec<Box<str>>, own: impl FnOnce(Duration) -> Duration) -> Duration {
        let begin = Instant::now();
        let client = self.client.within(self.options.node_deadline);
        if let Err(error) = client.recount_nodes().await {
            // Without it nodes would show what jobs held some time ago, and look young.
            tracing::debug!(%error, "single nodes are not asked for");
            self.soon.notify_one();
            // It is a small question: who does not answer it does not work, either.
            return begin.elapsed().min(LONGEST_AFTER_FAILURE).max(self.options.single);
        }
        // What jobs hold is as of now, and the rest younger.
        let asked = begin.into_std();
        let asking = futures::stream::iter(names).map(|name| self.ask_for_one(&client, name, asked));
        asking.buffer_unordered(AT_A_TIME).collect::<()>().await;
        rest(own(begin.elapsed())).max(self.options.single)
    }

    async fn ask_for_one(&self, client: &Client, name: Box<str>, asked: std::time::Instant) {
        match client.node(&name).await {
            Ok(node) => self.change(|facts| {
                let mut changes = merge::node(&mut facts.nodes, node, asked);
                if !changes.is_empty() {
                    self.doubt.store(true, Ordering::Relaxed);
                }
                if self.waited.answered(&name, asked) {
                    changes.nodes.insert(name);
                }
                changes
            }),
            // Only a whole list can say that a node is gone: "no such node" and "no answer" are close neighbours in
            // Slurm.
            Err(error) => {
                tracing::debug!(%error, node = &*name, "it is left to the list");
                let known = self.read().nodes.latest().contains_key(&name);
                self.doubt.fetch_or(known, Ordering::Relaxed);
                self.soon.notify_one();
            }
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, Facts> {
        self.facts.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes facts, and tells whoever wants to know.
    fn change(&self, change: impl FnOnce(&mut Facts) -> Changes) {
        let changes = change(&mut self.facts.write().unwrap_or_else(PoisonError::into_inner));
        self.subscribers.tell(&changes);
    }
}
