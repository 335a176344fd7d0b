//! The metrics of a process: what components register, and what every process has (its build, its own resources).

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Metric, Registry as Inner};

use crate::build_info::{BUILD, BuildInfo};
use crate::process_metrics::ProcessCollector;

/// A handle on the metrics of this process; clones share them.
#[derive(Debug, Clone)]
pub struct Registry {
    // Written only while components start, so readers never wait.
    inner: Arc<RwLock<Inner>>,
    shared: Arc<Mutex<BTreeMap<String, Box<dyn Any + Send + Sync>>>>,
}

impl Registry {
    /// What [`Registry::encode`] writes. Prometheus asks for it first since 2.5.
    pub const CONTENT_TYPE: &'static str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

    /// A registry with build info and the metrics of the process.
    #[must_use]
    pub fn new() -> Self {
        let mut inner = Inner::default();
        let BuildInfo { version, revision, rustc } = BUILD;
        let build = Family::<[(&'static str, &'static str); 3], Gauge>::default();
        build.get_or_create(&[("version", version), ("revision", revision), ("rustc", rustc)]).set(1);
        inner.register("slipway_build_info", "The build that is running; always 1", build);
        inner.register_collector(Box::new(ProcessCollector::new()));
        Self { inner: Arc::new(RwLock::new(inner)), shared: Arc::default() }
    }

    /// Adds a metric. Counters are given without `_total`, which the format adds.
    pub fn register(&self, name: &str, help: &str, metric: impl Metric) {
        self.inner.write().unwrap_or_else(PoisonError::into_inner).register(name, help, metric);
    }

    /// The metric of this name, added by whoever asks first: for parts that a process has several of, which tell
    /// themselves apart by a label. A family that is described twice makes a scraper refuse the whole page.
    pub fn shared<M: Metric + Clone + Default>(&self, name: &str, help: &str) -> M {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = shared.get(name) {
            // Two types under one name is a mistake of ours: the second is then counted and not shown.
            return known.downcast_ref::<M>().cloned().unwrap_or_default();
        }
        let metric = M::default();
        self.register(name, help, metric.clone());
        shared.insert(name.to_owned(), Box::new(metric.clone()));
        metric
    }

    /// Adds a source that is asked at every scrape.
    pub fn register_collector(&self, collector: impl Collector) {
        self.inner.write().unwrap_or_else(PoisonError::into_inner).register_collector(Box::new(collector));
    }

    /// All metrics as OpenMetrics text.
    pub fn encode(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        text::encode(&mut text, &self.inner.read().unwrap_or_else(PoisonError::into_inner))?;
        Ok(text)
    }
}

impl Default for Registry {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::metrics::counter::Counter;

    use super::*;

    #[test]
    fn every_process_reports_its_build_and_its_resources() {
        let text = Registry::new().encode().unwrap();
        let build = text.lines().find(|line| line.starts_with("slipway_build_info{")).unwrap();
        assert!(build.contains(concat!("version=\"", env!("CARGO_PKG_VERSION"), "\"")), "{build}");
        assert!(build.contains("revision=\"") && build.contains("rustc=\"1."), "{build}");
        assert!(build.ends_with("} 1"), "{build}");
        for name in [
            "process_resident_memory_bytes",
            "process_cpu_seconds_total",
            "process_open_fds",
            "process_start_time_seconds",
        ] {
            assert!(text.lines().any(|line| line.starts_with(&format!("{name} "))), "{name} in\n{text}");
        }
        assert!(text.ends_with("# EOF\n"));
    }

    #[test]
    fn clones_share_what_is_registered() {
        let registry = Registry::new();
        let reconciles = Counter::<u64>::default();
        registry.clone().register("slipway_reconciles", "Reconciles done", reconciles.clone());
        reconciles.inc();
        assert!(registry.encode().unwrap().contains("\nslipway_reconciles_total 1\n"));
    }

    #[test]
    fn a_shared_metric_is_described_once() {
        let registry = Registry::new();
        for name in ["a", "b"] {
            let queues =
                registry.shared::<Family<[(&'static str, &'static str); 1], Gauge>>("depth", "Waiting");
            queues.get_or_create(&[("name", name)]).set(1);
        }
        let text = registry.encode().unwrap();
        assert_eq!(text.matches("# HELP depth ").count(), 1, "{text}");
        assert_eq!(text.matches("\ndepth{name=").count(), 2, "{text}");
    }

    /// The rules of the exposition format that a scraper refuses to bend.
    #[test]
    fn every_sample_belongs_to_the_family_described_before_it() {
        let text = Registry::new().encode().unwrap();
        let mut family = "";
        let mut seen = Vec::new();
        for line in text.lines().filter(|line| *line != "# EOF") {
            if let Some(described) = line.strip_prefix("# HELP ") {
                family = described.split(' ').next().unwrap();
                assert!(!seen.contains(&family), "{family} is described twice");
                seen.push(family);
            } else if !line.starts_with('#') {
                assert!(line.starts_with(family), "{line} under {family}");
                let value = line.rsplit(' ').next().unwrap();
                assert!(value.parse::<f64>().is_ok(), "{line}");
            }
        }
    }
}
