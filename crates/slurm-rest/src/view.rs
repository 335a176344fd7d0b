//! Keeps the [`Facts`] of one cluster fresh, and wakes those who wait for a change.
//!
//! Two loops ask. One has the whole list of nodes, and pauses nine times as long as the answer took, so that it never
//! has more than a tenth of slurmrestd's time. The other asks for single nodes, those that somebody waits on, several
//! times a second. Jobs are asked for only to explain why a node is not free.
//!
//! A question that failed changes nothing of what is known: facts age, and say why.

mod changes;
mod jobs;
mod merge;
mod pace;
mod waiting;

use std::sync::{Arc, PoisonError, RwLock};
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
use crate::record::Json;
use changes::Subscribers;
use jobs::Jobs;
use pace::{Pace, Recent};
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
    /// For a list.
    pub list_deadline: Duration,
    /// For one node.
    pub node_deadline: Duration,
}

impl Default for ViewOptions {
    fn default() -> Self {
        Self {
            quiet: Duration::from_secs(5),
            waiting: Duration::from_secs(1),
            single: Duration::from_millis(250),
            others: Duration::from_secs(30),
            list_deadline: Duration::from_secs(120),
            node_deadline: Duration::from_secs(10),
        }
    }
}

/// Single nodes that are asked for at a time.
const AT_A_TIME: usize = 4;

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
        });
        let stop = CancellationToken::new();
        let asking = shared.clone();
        tokio::spawn(stop.clone().run_until_cancelled_owned(async move {
            tokio::join!(asking.keep_listing(), asking.keep_asking_for_single_nodes());
        }));
        Self { shared, _running: Arc::new(stop.drop_guard()) }
    }

    /// Reads what is known; no waiting, no question.
    pub fn read<R>(&self, read: impl FnOnce(&Facts) -> R) -> R {
        read(&self.shared.facts.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Hears of every change from now on.
    #[must_use]
    pub fn subscribe(&self) -> Subscription {
        self.shared.subscribers.subscribe()
    }

    /// Has one node asked for several times a second, until the guard is dropped.
    #[must_use]
    pub fn wait_on(&self, node: &str) -> Waiting {
        let waiting = self.shared.waited.add(node);
        self.shared.soon.notify_one();
        waiting
    }

    /// Has the whole list asked for before its time, as far as its cost allows.
    pub fn ask_soon(&self) {
        self.shared.soon.notify_one();
    }

    /// The jobs that hold a node, for people. Answers are shared and bounded by their cost like lists: they can be
    /// some time old.
    pub async fn jobs_on(&self, node: &str) -> Result<Vec<facts::Job>, RestError> {
        self.shared.jobs.on(&self.shared.client, node).await
    }
}

impl Shared {
    async fn keep_listing(&self) {
        let (mut since, mut others_at) = (None, None::<Instant>);
        loop {
            let begin = Instant::now();
            let listed = self.list_nodes(&mut since).await;
            if others_at.is_none_or(|at| at.elapsed() >= self.options.others) {
                self.look_at_others().await;
                others_at = Some(Instant::now());
            }
            let pace = Pace { cost: begin.elapsed(), failed: !listed };
            self.pause(begin + pace.cost, pace).await;
        }
    }

    /// Pauses as long as the cost asks for, and as long as nobody needs to know more.
    async fn pause(&self, from: Instant, pace: Pace) {
        let least = if self.waited.is_empty() { self.options.quiet } else { self.options.waiting };
        tokio::select! {
            () = tokio::time::sleep_until(from + pace.pause(least)) => {}
            // Who begins to wait, or asks for a list, shortens the pause to what the cost asks for.
            () = self.soon.notified() => tokio::time::sleep_until(from + pace.pause(self.options.waiting)).await,
        }
    }

    /// True if the nodes are known now.
    async fn list_nodes(&self, since: &mut Option<u64>) -> bool {
        let client = self.client.within(self.options.list_deadline);
        let begin = Instant::now().into_std();
        let answer = match *since {
            Some(since) => client.nodes_since(since).await,
            None => client.nodes().await.map(Some),
        };
        match answer {
            Ok(Some(listed)) => {
                *since = listed.last_update.filter(|_| listed.odd.is_none());
                self.change(|facts| merge::nodes(&mut facts.nodes, listed, begin))
            }
            Ok(None) => self.change(|facts| merge::unchanged(&mut facts.nodes, begin)),
            Err(error) => {
                *since = None;
                self.change(|facts| merge::failed(&mut facts.nodes, &error, begin))
            }
        }
    }

    async fn look_at_others(&self) {
        let begin = Instant::now().into_std();
        let client = self.client.within(self.options.list_deadline);
        let partitions = client.partitions().await;
        self.change(|facts| {
            let changed =
                merge::all(&mut facts.partitions, partitions, |Json(record)| record.into_fact(), begin);
            Changes { partitions: changed, ..Changes::default() }
        });
        let reservations = client.reservations().await;
        self.change(|facts| {
            let changed =
                merge::all(&mut facts.reservations, reservations, |Json(record)| record.into_fact(), begin);
            Changes { reservations: changed, ..Changes::default() }
        });
    }

    async fn keep_asking_for_single_nodes(&self) {
        let mut recent = Recent::default();
        loop {
            self.waited.until_someone_waits().await;
            let begin = Instant::now();
            let client = self.client.within(self.options.node_deadline);
            if let Err(error) = client.recount_nodes().await {
                // The nodes say the same, and are told of it.
                tracing::debug!(%error, "counts may be old");
            }
            let asked = futures::stream::iter(self.waited.names()).map(|name| self.ask_for(name));
            asked.buffer_unordered(AT_A_TIME).collect::<()>().await;
            let cost = recent.least_with(begin.elapsed());
            let pause = Pace { cost, failed: false }.pause(self.options.single);
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                // Somebody new is answered at once.
                () = self.waited.until_someone_new_waits() => {}
            }
        }
    }

    async fn ask_for(&self, name: Box<str>) {
        let begin = Instant::now().into_std();
        match self.client.within(self.options.node_deadline).node(&name).await {
            Ok(node) => {
                self.change(|facts| merge::node(&mut facts.nodes, node, begin));
            }
            // Only a whole list can say that a node is gone: "no such node" and "no answer" are close neighbours in
            // Slurm.
            Err(RestError::NotFound { .. }) => self.soon.notify_one(),
            Err(error) => {
                self.change(|facts| merge::failed(&mut facts.nodes, &error, begin));
            }
        }
    }

    /// Changes facts, and tells whoever wants to know. True if the nodes are known.
    fn change(&self, change: impl FnOnce(&mut Facts) -> Changes) -> bool {
        let (changes, known) = {
            let mut facts = self.facts.write().unwrap_or_else(PoisonError::into_inner);
            let changes = change(&mut facts);
            (changes, facts.nodes.trouble().is_none())
        };
        self.subscribers.tell(&changes);
        known
    }
}
