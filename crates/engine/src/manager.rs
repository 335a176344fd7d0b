//! Puts a process together: caches, controllers, leases, probes, metrics; and takes it apart again in order.
//!
//! Caches and probes run in every replica; controllers run where the lease of their product is held. Shutdown: no new
//! reconciles, those under way end, leases are released, watches end.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use futures::future::join_all;
use futures::stream::BoxStream;
use kube::Client;
use telemetry::health::Probe;
use telemetry::{Health, Registry};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tracing::{error, info};

use crate::access::Access;
use crate::apply::Applier;
use crate::cache::{Cache, CacheCollector, Caches, Watch};
use crate::calls::Calls;
use crate::controller::{Controller, Options, Wiring};
use crate::events::Events;
use crate::fence::{Fence, fenced_client};
use crate::leader::{self, Election, Standing};
use crate::meta::Key;
use crate::metrics::{Metrics, Now};
use crate::namespaces::Namespaces;
use crate::queue::{Lane, Queue, When};
use crate::reader::Contents;
use crate::runner::{Run, Runner};
use crate::views::{CrdView, Kind, LeaseView, View};

/// Requests of all controllers together. The server has other clients too.
const IN_FLIGHT: usize = 32;

/// What every process of ours is made of.
#[derive(Debug, Clone)]
pub struct Settings {
    pub namespaces: Namespaces,
    /// Who we are, in leases and events.
    pub identity: String,
    /// After how long an incomplete cache is an error in the log.
    pub cache_sync_timeout: Duration,
}

/// A process under construction.
pub struct Manager {
    config: kube::Config,
    client: Client,
    caches: Caches,
    registry: Registry,
    health: Health,
    metrics: Metrics,
    identity: String,
    cache_sync_timeout: Duration,
    in_flight: Arc<Semaphore>,
    products: Vec<Product>,
    /// Keys from elsewhere, and who wants them.
    external: Vec<(BoxStream<'static, Key>, Arc<Queue>)>,
}

/// Controllers that run under one lease.
struct Product {
    name: &'static str,
    election: Option<Election>,
    client: Client,
    runners: Vec<Arc<dyn Run>>,
}

impl std::fmt::Debug for Manager {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Manager").field("products", &self.products).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Product {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let controllers: Vec<_> = self.runners.iter().map(|runner| runner.name()).collect();
        out.debug_struct("Product")
            .field("name", &self.name)
            .field("controllers", &controllers)
            .finish_non_exhaustive()
    }
}

impl Manager {
    pub fn new(
        config: kube::Config,
        settings: Settings,
        registry: &Registry,
        health: &Health,
    ) -> kube::Result<Self> {
        let caches = Caches::new(settings.namespaces);
        // Definitions tell when a kind that is missing appears; without them it is asked for now and then.
        caches.watch::<CrdView>(Watch { optional: true, ..Watch::default() });
        registry.register_collector(CacheCollector(caches.clone()));
        let watched = caches.clone();
        health.add(Probe::Readiness, "caches", move || watched.ready());
        Ok(Self {
            client: plain_client(&config)?,
            config,
            caches,
            registry: registry.clone(),
            health: health.clone(),
            metrics: Metrics::register(registry),
            identity: settings.identity,
            cache_sync_timeout: settings.cache_sync_timeout,
            in_flight: Arc::new(Semaphore::new(IN_FLIGHT)),
            products: Vec::new(),
            external: Vec::new(),
        })
    }

    /// A group of controllers under one lease; without one they run in every replica, so there must be one only.
    pub fn product(&mut self, name: &'static str, lease: Option<leader::Settings>) -> kube::Result<()> {
        let election = match lease {
            Some(lease) => {
                let election = Election::new(plain_client(&self.config)?, lease, &self.registry);
                let status = election.status();
                self.health.add(Probe::Readiness, "lease", move || match status.get() {
                    Standing::Failing(why) => Err(why),
                    Standing::Starting | Standing::Leading | Standing::Following(_) => Ok(()),
                });
                Some(election)
            }
            None => None,
        };
        let fence = election.as_ref().map_or_else(Fence::open, Election::fence);
        let client = fenced_client(self.config.clone(), fence)?;
        self.products.push(Product { name, election, client, runners: Vec::new() });
        Ok(())
    }

    /// Adds a controller to the product that was added last. `wire` says what it watches and makes it from the caches.
    pub fn controller<C: Controller>(
        &mut self,
        options: Options,
        wire: impl FnOnce(&mut Wiring<'_>, &Cache<C::Object>) -> C,
    ) {
        let Some(product) = self.products.last_mut() else { return };
        let metrics = self.metrics.of(C::NAME);
        let queue = Arc::new(Queue::new(options.burst, metrics.adds.clone()));
        let mut wiring = Wiring::new(&self.caches, Arc::clone(&queue), C::Object::kind());
        let objects = wiring.primary::<C::Object>();
        let controller = wire(&mut wiring, &objects);
        let Wiring { reads, owns, external, .. } = wiring;
        for kind in &reads {
            let (objects, queue) = (objects.clone(), Arc::clone(&queue));
            // A kind that appears or goes away may change what is wanted.
            self.caches.on_availability(*kind, move || {
                for object in objects.all() {
                    queue.add(&object.meta().key, Lane::Resync, When::Now);
                }
            });
        }
        self.external.extend(external.into_iter().map(|keys| (keys, Arc::clone(&queue))));
        let calls = Calls::new(product.client.clone(), Arc::clone(&self.in_flight));
        let runner = Arc::new(Runner {
            controller,
            objects,
            caches: self.caches.clone(),
            queue,
            applier: Applier::new(calls, C::NAME),
            events: Events::new(product.client.clone(), C::NAME, &self.identity),
            metrics,
            options,
            reads,
            owns,
            contents: Contents::default(),
            memories: Mutex::new(HashMap::new()),
            stalled: Mutex::new(HashMap::new()),
        });
        self.metrics.watch(Arc::clone(&runner) as Arc<dyn Now>);
        product.runners.push(runner);
    }

    #[must_use]
    pub fn caches(&self) -> &Caches {
        &self.caches
    }

    /// Works until `shutdown`, then ends in order.
    pub async fn run(self, shutdown: CancellationToken) {
        let watching = CancellationToken::new();
        let watches = self.caches.start(&self.client, &watching);
        tokio::spawn(
            watching.clone().run_until_cancelled_owned(patient(self.caches.clone(), self.cache_sync_timeout)),
        );
        for (keys, queue) in self.external {
            tokio::spawn(watching.clone().run_until_cancelled_owned(forward(keys, queue)));
        }
        join_all(self.products.into_iter().map(|product| product.run(shutdown.clone()))).await;
        // A process without products is a cache; it still waits to be told.
        shutdown.cancelled().await;
        watching.cancel();
        watches.wait().await;
    }
}

impl Product {
    async fn run(self, shutdown: CancellationToken) {
        let Self { name, election, runners, .. } = self;
        let lead = |term: CancellationToken| {
            let work: Vec<_> = runners.iter().map(|runner| Arc::clone(runner).run(term.clone())).collect();
            async move {
                info!(product = name, controllers = work.len(), "controllers start");
                join_all(work).await;
                info!(product = name, "controllers have ended");
            }
        };
        match election {
            Some(election) => election.run(shutdown, lead).await,
            None => lead(shutdown).await,
        }
    }
}

/// Nobody has to ask why nothing happens.
async fn patient(caches: Caches, limit: Duration) {
    tokio::time::sleep(limit).await;
    if let Err(missing) = caches.ready() {
        error!(missing, "caches are still not complete");
    }
}

/// kube repeats a failed request for minutes without a word. A renewal would outlive its lease that way, and a watch would
/// be broken without anybody knowing; both have pauses of their own.
fn plain_client(config: &kube::Config) -> kube::Result<Client> {
    let mut config = config.clone();
    config.default_retry = false;
    // A server that takes the connection and never answers would else be waited for without an end. Watches of kube end
    // by themselves after 290 s.
    config.connect_timeout = Some(Duration::from_secs(5));
    config.read_timeout = Some(Duration::from_secs(330));
    Client::try_from(config)
}

/// Like watches, in every replica: whoever leads next knows already.
async fn forward(mut keys: BoxStream<'static, Key>, queue: Arc<Queue>) {
    while let Some(key) = keys.next().await {
        queue.add(&key, Lane::Change, When::Now);
    }
}

/// What a controller does to the API server, as its wiring declares it.
#[must_use]
pub fn access_of<C: Controller>(wire: impl FnOnce(&mut Wiring<'_>, &Cache<C::Object>) -> C) -> Vec<Access> {
    let (caches, queue) = (Caches::new(Namespaces::All), Arc::default());
    let mut wiring = Wiring::new(&caches, queue, C::Object::kind());
    let objects = wiring.primary::<C::Object>();
    wire(&mut wiring, &objects);
    wiring.access
}

/// What the runtime does for itself in every namespace it works in.
#[must_use]
pub fn runtime_access() -> Vec<Access> {
    const EVENTS: Kind = Kind::namespaced("events.k8s.io", "v1", "Event", "events");
    [Access::to(CrdView::kind(), &["list", "watch"]), Access::to(EVENTS, &["create", "patch"])].concat()
}

/// What it does in the namespace of its lease.
#[must_use]
pub fn lease_access() -> Vec<Access> {
    Access::to(LeaseView::kind(), &["create", "get", "patch"])
}
