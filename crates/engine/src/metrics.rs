//! Metrics of controllers, under the names by which dashboards for controller-runtime look for them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::Histogram;
use telemetry::Registry;

type Labels<const N: usize> = [(&'static str, &'static str); N];

/// From 10 ns to 1000 s, as Kubernetes' own queues have them.
const QUEUE_BUCKETS: [f64; 12] = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1000.0];
const RECONCILE_BUCKETS: [f64; 13] =
    [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0];

/// The metrics of all controllers of a process.
#[derive(Debug, Clone)]
pub(crate) struct Metrics {
    adds: Family<Labels<2>, Counter>,
    retries: Family<Labels<2>, Counter>,
    waited: Family<Labels<2>, Histogram>,
    worked: Family<Labels<2>, Histogram>,
    reconciles: Family<Labels<2>, Counter>,
    errors: Family<Labels<1>, Counter>,
    terminal: Family<Labels<1>, Counter>,
    panics: Family<Labels<1>, Counter>,
    time: Family<Labels<1>, Histogram>,
    now: Arc<Mutex<Vec<Arc<dyn Now>>>>,
}

/// What can be read of a controller at any moment.
pub(crate) trait Now: std::fmt::Debug + Send + Sync {
    fn controller(&self) -> &'static str;
    fn concurrency(&self) -> usize;
    fn depth(&self) -> usize;
    /// How long each reconcile that is under way has taken so far.
    fn running(&self) -> Vec<Duration>;
    /// How many objects are stalled, by reason.
    fn stalled(&self) -> BTreeMap<&'static str, u64>;
}

/// Those of one controller.
#[derive(Debug, Clone)]
pub(crate) struct ControllerMetrics {
    pub adds: Counter,
    pub retries: Counter,
    pub waited: Histogram,
    pub worked: Histogram,
    pub errors: Counter,
    pub terminal: Counter,
    pub panics: Counter,
    pub time: Histogram,
    reconciles: Family<Labels<2>, Counter>,
    controller: &'static str,
}

impl ControllerMetrics {
    pub(crate) fn reconciled(&self, result: &'static str) {
        self.reconciles.get_or_create(&[("controller", self.controller), ("result", result)]).inc();
    }
}

impl Metrics {
    pub(crate) fn register(registry: &Registry) -> Self {
        let queue = || Family::new_with_constructor((|| Histogram::new(QUEUE_BUCKETS)) as fn() -> Histogram);
        let metrics = Self {
            adds: Family::default(),
            retries: Family::default(),
            waited: queue(),
            worked: queue(),
            reconciles: Family::default(),
            errors: Family::default(),
            terminal: Family::default(),
            panics: Family::default(),
            time: Family::new_with_constructor(|| Histogram::new(RECONCILE_BUCKETS)),
            now: Arc::default(),
        };
        registry.register("workqueue_adds", "Keys added to the queue", metrics.adds.clone());
        registry.register("workqueue_retries", "Keys added after a failure", metrics.retries.clone());
        let help = "Seconds that a key was due before it was looked at";
        registry.register("workqueue_queue_duration_seconds", help, metrics.waited.clone());
        let help = "Seconds that a look at a key took";
        registry.register("workqueue_work_duration_seconds", help, metrics.worked.clone());
        let name = "controller_runtime_reconcile";
        registry.register(name, "Reconciles by result", metrics.reconciles.clone());
        let name = "controller_runtime_reconcile_errors";
        registry.register(name, "Reconciles that failed", metrics.errors.clone());
        let name = "controller_runtime_terminal_reconcile_errors";
        registry.register(name, "Reconciles that only an edit can help", metrics.terminal.clone());
        let name = "controller_runtime_reconcile_panics";
        registry.register(name, "Reconciles that panicked", metrics.panics.clone());
        let name = "controller_runtime_reconcile_time_seconds";
        registry.register(name, "Seconds that a reconcile took", metrics.time.clone());
        registry.register_collector(NowCollector(Arc::clone(&metrics.now)));
        metrics
    }

    pub(crate) fn of(&self, controller: &'static str) -> ControllerMetrics {
        let queue = [("name", controller), ("controller", controller)];
        let one = [("controller", controller)];
        ControllerMetrics {
            adds: self.adds.get_or_create(&queue).clone(),
            retries: self.retries.get_or_create(&queue).clone(),
            waited: self.waited.get_or_create(&queue).clone(),
            worked: self.worked.get_or_create(&queue).clone(),
            errors: self.errors.get_or_create(&one).clone(),
            terminal: self.terminal.get_or_create(&one).clone(),
            panics: self.panics.get_or_create(&one).clone(),
            time: self.time.get_or_create(&one).clone(),
            reconciles: self.reconciles.clone(),
            controller,
        }
    }

    pub(crate) fn watch(&self, controller: Arc<dyn Now>) {
        self.now.lock().unwrap_or_else(PoisonError::into_inner).push(controller);
    }
}

/// What is so at the moment of a scrape.
#[derive(Debug)]
struct NowCollector(Arc<Mutex<Vec<Arc<dyn Now>>>>);

impl Collector for NowCollector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), std::fmt::Error> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut gauge = |name, help, value: &dyn Fn(&dyn Now) -> f64| {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for one in &all {
                let labels = [("name", one.controller()), ("controller", one.controller())];
                ConstGauge::new(value(one.as_ref())).encode(family.encode_family(&labels)?)?;
            }
            Ok::<_, std::fmt::Error>(())
        };
        let seconds =
            |one: &dyn Now| one.running().into_iter().map(|time| time.as_secs_f64()).collect::<Vec<_>>();
        gauge("workqueue_depth", "Keys that are due.", &|one| one.depth() as f64)?;
        let help = "Seconds that reconciles under way have taken, together.";
        gauge("workqueue_unfinished_work_seconds", help, &|one| seconds(one).iter().sum())?;
        let help = "Seconds that the longest reconcile under way has taken.";
        let longest = |one: &dyn Now| seconds(one).into_iter().fold(0.0, f64::max);
        gauge("workqueue_longest_running_processor_seconds", help, &longest)?;
        let help = "Reconciles that may be under way at a time.";
        gauge("controller_runtime_max_concurrent_reconciles", help, &|one| one.concurrency() as f64)?;
        let help = "Reconciles under way.";
        gauge("controller_runtime_active_workers", help, &|one| one.running().len() as f64)?;

        let help = "Objects that wait longer than they should, or that only an edit can help.";
        let mut stalled = encoder.encode_descriptor("slipway_stalled", help, None, MetricType::Gauge)?;
        for one in &all {
            for (reason, count) in one.stalled() {
                let labels = [("controller", one.controller()), ("reason", reason)];
                ConstGauge::new(count).encode(stalled.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}
