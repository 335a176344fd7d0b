//! The exporter of metrics.

use schemars::{JsonSchema, json_schema};
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::{NodeContainer, NodeVolume, SlurmNode, rules};
use crate::scalar::PrometheusDuration;
use crate::schema::inline_schema;

/// The exporter of metrics for Prometheus.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Exporter {
    /// How far back ended jobs are looked up, with `jobSource: accounting`. More than zero. Default: `1h`.
    #[serde(default = "lookback")]
    #[schemars(extend("x-kubernetes-validations" = [rules::LOOKBACK]))]
    pub accounting_jobs_lookback: PrometheusDuration,
    /// How often Slurm is asked. Default: `30s`.
    #[serde(default = "collection_interval")]
    pub collection_interval: PrometheusDuration,
    /// Whether there is an exporter. Default: `false`.
    #[serde(default)]
    pub enabled: bool,
    /// The exporter of releases before 1.20. Deprecated: with an image given here no exporter is run at all; use `exporterContainer`.
    pub exporter: Option<OldExporter>,
    /// The container with the exporter.
    pub exporter_container: Option<NodeContainer>,
    /// Where jobs are read from. Default: `controller`.
    #[serde(default)]
    pub job_source: JobSource,
    /// How many runs of one collector (nodes, jobs, scheduler) may overlap, where Slurm takes longer than `collectionInterval`. Default: 1.
    #[serde(default = "inflight")]
    #[schemars(range(min = 1))]
    pub max_collector_inflight: i32,
    /// The container with munged of the exporter of releases before 1.20. Deprecated and without effect.
    pub munge: Option<NodeContainer>,
    #[serde(flatten)]
    pub node: SlurmNode,
    /// How the Prometheus operator collects the metrics.
    #[serde(default = "PodMonitorConfig::standard")]
    pub pod_monitor_config: PodMonitorConfig,
    /// Service account of the pods. Default: one that is made for them.
    pub service_account_name: Option<String>,
    /// Volumes of the exporter of releases before 1.20. Deprecated and without effect.
    pub volumes: Option<ExporterVolumes>,
}

fn lookback() -> PrometheusDuration {
    "1h".into()
}

fn collection_interval() -> PrometheusDuration {
    "30s".into()
}

fn inflight() -> i32 {
    1
}

/// Where the exporter reads jobs from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum JobSource {
    /// slurmctld: what it still remembers.
    #[default]
    Controller,
    /// slurmdbd: also jobs that slurmctld has forgotten.
    Accounting,
}

/// The exporter of releases before 1.20.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OldExporter {
    #[serde(flatten)]
    pub container: NodeContainer,
    /// A PodTemplate that was laid over the pod of the old exporter. Deprecated and without effect.
    pub pod_template_name_ref: Option<String>,
}

/// Volumes of the exporter of releases before 1.20.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExporterVolumes {
    /// The shared root file system. Deprecated and without effect.
    pub jail: NodeVolume,
}

/// How the Prometheus operator collects the metrics.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodMonitorConfig {
    /// How often. Default: `30s` if `podMonitorConfig` is not given, else that of Prometheus.
    pub interval: Option<PrometheusDuration>,
    /// Name of the pod's label whose value becomes the label `job` of the metrics. Default: `slurm-exporter` if `podMonitorConfig` is
    /// not given.
    pub job_label: Option<String>,
    /// Changes to the labels of metrics before they are stored.
    pub metric_relabel_configs: Option<Vec<RelabelConfig>>,
    /// Changes to the labels of the pods before they are asked.
    pub relabel_config: Option<Vec<RelabelConfig>>,
    /// How long one collection may take. Default: `20s` if `podMonitorConfig` is not given, else that of Prometheus.
    pub scrape_timeout: Option<PrometheusDuration>,
}

impl PodMonitorConfig {
    fn standard() -> Self {
        Self {
            interval: Some("30s".into()),
            job_label: Some("slurm-exporter".to_owned()),
            metric_relabel_configs: None,
            relabel_config: None,
            scrape_timeout: Some("20s".into()),
        }
    }
}

/// A change to labels, as in the configuration of Prometheus.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RelabelConfig {
    /// What is done, for example `replace`, `keep`, `drop` or `labelmap`. Default: `replace`.
    #[serde(default = "replace")]
    #[schemars(with = "RelabelAction")]
    pub action: String,
    /// Divisor for `hashmod`.
    #[schemars(range(min = 0))]
    pub modulus: Option<i64>,
    /// Regular expression that the joined source labels are matched against. Default: `(.*)`.
    pub regex: Option<String>,
    /// What the target label becomes; `$1` is the first group of the expression. Default: `$1`.
    pub replacement: Option<String>,
    /// What is put between the source labels. Default: `;`.
    pub separator: Option<String>,
    /// Names of the labels whose values are joined.
    pub source_labels: Option<Vec<String>>,
    /// Name of the label that is written.
    pub target_label: Option<String>,
}

fn replace() -> String {
    "replace".to_owned()
}

/// The spellings of an action that the Prometheus operator knows.
#[derive(Debug)]
struct RelabelAction;

const RELABEL_ACTIONS: &[&str] = &[
    "replace",
    "Replace",
    "keep",
    "Keep",
    "drop",
    "Drop",
    "hashmod",
    "HashMod",
    "labelmap",
    "LabelMap",
    "labeldrop",
    "LabelDrop",
    "labelkeep",
    "LabelKeep",
    "lowercase",
    "Lowercase",
    "uppercase",
    "Uppercase",
    "keepequal",
    "KeepEqual",
    "dropequal",
    "DropEqual",
];

inline_schema!(RelabelAction, json_schema!({ "type": "string", "enum": RELABEL_ACTIONS }));
