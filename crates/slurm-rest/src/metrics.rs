//! What calls cost and how they end, for each cluster.

use std::sync::Arc;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use telemetry::Registry;

type Label = (&'static str, Arc<str>);

const SECONDS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0];

/// The metrics of all clients of a process.
#[derive(Debug, Clone)]
pub struct Metrics {
    requests: Family<[Label; 3], Counter>,
    seconds: Family<[Label; 2], Histogram>,
    bytes: Family<[Label; 2], Counter>,
    retries: Family<[Label; 2], Counter>,
}

impl Default for Metrics {
    /// Counted and not shown.
    fn default() -> Self {
        Self {
            requests: Family::default(),
            seconds: Family::new_with_constructor(|| Histogram::new(SECONDS)),
            bytes: Family::default(),
            retries: Family::default(),
        }
    }
}

impl Metrics {
    /// Once in a process; clients of several clusters share them.
    #[must_use]
    pub fn register(registry: &Registry) -> Self {
        let metrics = Self::default();
        let name = "slipway_slurm_requests";
        registry.register(name, "Calls of slurmrestd by how they ended", metrics.requests.clone());
        let name = "slipway_slurm_request_seconds";
        registry.register(
            name,
            "Seconds that a call of slurmrestd took, retries included",
            metrics.seconds.clone(),
        );
        let name = "slipway_slurm_response_bytes";
        registry.register(name, "Bytes of slurmrestd's answers", metrics.bytes.clone());
        let name = "slipway_slurm_retries";
        registry.register(name, "Calls of slurmrestd that were tried again", metrics.retries.clone());
        metrics
    }

    pub(crate) fn called(
        &self,
        cluster: &Arc<str>,
        call: &'static str,
        result: &'static str,
        took: Duration,
        bytes: u64,
    ) {
        let labels = [("cluster", cluster.clone()), ("call", call.into())];
        let [cluster, call] = labels.clone();
        self.requests.get_or_create(&[cluster, call, ("result", result.into())]).inc();
        self.seconds.get_or_create(&labels).observe(took.as_secs_f64());
        self.bytes.get_or_create(&labels).inc_by(bytes);
    }

    pub(crate) fn retried(&self, cluster: &Arc<str>, call: &'static str) {
        self.retries.get_or_create(&[("cluster", cluster.clone()), ("call", call.into())]).inc();
    }
}
