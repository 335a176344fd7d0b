//! The Prometheus operator: which pods and Services Prometheus collects metrics from.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::CustomResource;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::scalar::PrometheusDuration;
use crate::soperator::v1::RelabelConfig;

/// Pods that metrics are collected from.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "monitoring.coreos.com",
    version = "v1",
    kind = "PodMonitor",
    namespaced,
    schema = "disabled",
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
pub struct PodMonitorSpec {
    /// The label of a pod whose value becomes the label `job` of its metrics.
    pub job_label: Option<String>,
    /// Namespaces of the pods; that of the PodMonitor if not given.
    pub namespace_selector: Option<NamespaceSelector>,
    /// The ports of the pods that are asked.
    pub pod_metrics_endpoints: Option<Vec<Endpoint>>,
    /// Labels that the pods have.
    pub selector: LabelSelector,
}

/// Services that metrics are collected from.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "monitoring.coreos.com",
    version = "v1",
    kind = "ServiceMonitor",
    namespaced,
    schema = "disabled",
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
pub struct ServiceMonitorSpec {
    /// The ports of the Services that are asked.
    pub endpoints: Vec<Endpoint>,
    /// The label of a Service whose value becomes the label `job` of its metrics.
    pub job_label: Option<String>,
    /// Namespaces of the Services; that of the ServiceMonitor if not given.
    pub namespace_selector: Option<NamespaceSelector>,
    /// Labels that the Services have.
    pub selector: LabelSelector,
}

/// Namespaces, by their names.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceSelector {
    /// Names of the namespaces.
    pub match_names: Option<Vec<String>>,
}

/// A port that is asked for metrics.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Endpoint {
    /// How often; as Prometheus is configured if not given.
    pub interval: Option<PrometheusDuration>,
    /// Changes to the labels of metrics before they are stored.
    pub metric_relabelings: Option<Vec<RelabelConfig>>,
    /// Path of the metrics; `/metrics` if not given.
    pub path: Option<String>,
    /// Name of the port.
    pub port: Option<String>,
    /// Changes to the labels of the target before it is asked.
    pub relabelings: Option<Vec<RelabelConfig>>,
    /// `http` or `https`.
    pub scheme: Option<String>,
    /// How long an answer may take; as Prometheus is configured if not given.
    pub scrape_timeout: Option<PrometheusDuration>,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::foreign::round_trip;

    fn endpoint(path: &str, port: &str) -> Value {
        json!({
            "interval": "30s",
            "metricRelabelings": [{ "action": "labeldrop", "regex": "pod|instance|container" }],
            "path": path,
            "port": port,
            "relabelings": [{ "action": "replace", "sourceLabels": ["a"], "targetLabel": "b" }],
            "scheme": "http",
            "scrapeTimeout": "20s",
        })
    }

    #[test]
    fn a_pod_monitor_keeps_every_field_we_write() {
        let monitor = json!({
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "PodMonitor",
            "metadata": { "name": "demo", "namespace": "slurm" },
            "spec": {
                "jobLabel": "slurm-exporter",
                "namespaceSelector": {},
                "podMetricsEndpoints": [endpoint("/metrics", "metrics"), endpoint("/metrics", "monitoring")],
                "selector": { "matchLabels": { "app.kubernetes.io/component": "exporter" } },
            },
        });
        assert_eq!(round_trip::of::<PodMonitor>(&monitor), monitor);
    }

    #[test]
    fn a_service_monitor_keeps_every_field_we_write() {
        let monitor = json!({
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "ServiceMonitor",
            "metadata": { "name": "demo-slurmctld-metrics", "namespace": "slurm" },
            "spec": {
                "endpoints": [endpoint("/metrics/jobs", "slurmctld"), endpoint("/metrics/nodes", "other")],
                "jobLabel": "app.kubernetes.io/name",
                "namespaceSelector": { "matchNames": ["slurm"] },
                "selector": { "matchLabels": { "app.kubernetes.io/component": "controller" } },
            },
        });
        assert_eq!(round_trip::of::<ServiceMonitor>(&monitor), monitor);
    }
}
