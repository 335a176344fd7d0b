//! What the caches hold and how their watches do, read when somebody asks.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

use super::{Caches, WatchState};

/// Metrics of all caches of a process.
#[derive(Debug)]
pub(crate) struct CacheCollector(pub(crate) Caches);

impl Collector for CacheCollector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), std::fmt::Error> {
        let kinds = self.0.kinds();
        let help = "Objects in the cache.";
        let mut objects =
            encoder.encode_descriptor("slipway_cache_objects", help, None, MetricType::Gauge)?;
        for (kind, registered) in kinds.iter() {
            let labels = [("group", kind.group), ("kind", kind.kind)];
            ConstGauge::new(registered.erased.len() as u64).encode(objects.encode_family(&labels)?)?;
        }
        let help = "Objects that cannot be read and are skipped; always 1.";
        let mut skipped =
            encoder.encode_descriptor("slipway_unreadable_objects", help, None, MetricType::Gauge)?;
        for (kind, registered) in kinds.iter() {
            for key in registered.erased.unreadable() {
                let labels = [
                    ("group", kind.group),
                    ("kind", kind.kind),
                    ("namespace", key.namespace.as_str()),
                    ("name", key.name.as_str()),
                ];
                ConstGauge::new(1_u64).encode(skipped.encode_family(&labels)?)?;
            }
        }
        let help = "Whether a watch delivers; state says why not.";
        let mut up = encoder.encode_descriptor("slipway_watch_up", help, None, MetricType::Gauge)?;
        for ((kind, namespace), state) in self.0.states().iter() {
            let (word, works) = match state {
                WatchState::Starting => ("starting", 0_u64),
                WatchState::Synced { failing: None } => ("synced", 1),
                WatchState::Synced { failing: Some(_) } | WatchState::Failing(_) => ("failing", 0),
                WatchState::Absent => ("absent", 0),
                WatchState::Forbidden(_) | WatchState::Withheld(_) => ("forbidden", 0),
            };
            let labels = [
                ("group", kind.group),
                ("kind", kind.kind),
                ("namespace", namespace.as_deref().unwrap_or("")),
                ("state", word),
            ];
            ConstGauge::new(works).encode(up.encode_family(&labels)?)?;
        }
        Ok(())
    }
}
