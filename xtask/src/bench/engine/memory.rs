//! What ten thousand pods and nodes weigh, how high a relist peaks, and how long a start takes.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kube::Client;
use serde_json::{Map, Value, json};
use testkit::ControlPlane;
use testkit::chaos::{Chaos, Fault};
use testkit::pki::MASTERS;
use testkit::process::eventually;

use super::subject::{Start, Subject, load, no_writes};
use super::{Measured, median, rounded};
use crate::tell;

const OBJECTS: u64 = 10_000;
const RUNS: usize = 3;
/// The stock store is only compared with: it needs a gigabyte and more.
const STOCK_RUNS: usize = 1;
/// Allocators give back what they do not need after a moment.
const SETTLE: Duration = Duration::from_secs(10);
/// Smaller pods would flatter.
const LEAST_POD: usize = 15_000;
const PROGRAM: &str = "engine-bench";

/// One process that was weighed.
struct Weighed {
    mebibytes: f64,
    ready: Duration,
}

struct Scale<'a> {
    kubeconfig: Value,
    folder: &'a Path,
}

pub(super) async fn measure() -> Result<Measured> {
    let plane = ControlPlane::own().await?;
    let client = plane.client("bench").await?;
    let folder = tempfile::tempdir()?;
    let scale = Scale { kubeconfig: plane.kubeconfig("measured", MASTERS)?, folder: folder.path() };
    for mode in ["load-nodes", "load-pods"] {
        tell(&format!("memory: {mode}"));
        let args = [format!("--number={OBJECTS}")];
        load(&scale.start(mode, &args)).await?;
    }
    // The controller-manager has something to say about every new node.
    no_writes(&plane.api_calls(), &client, None).await?;
    let (pod_bytes, node_bytes) = (sent(&client, "pods").await?, sent(&client, "nodes").await?);
    let least = pod_bytes.iter().min().copied().unwrap_or_default();
    ensure!(least >= LEAST_POD, "a pod of {least} bytes is too small to be measured with");

    let mut runs = Map::new();
    let mut ready = Vec::new();
    let mut weights = Map::new();
    for (mode, kind, times) in [
        ("empty", None, RUNS),
        ("pods", Some("Pod"), RUNS),
        ("nodes", Some("Node"), RUNS),
        ("stock-pods", None, STOCK_RUNS),
    ] {
        let mut weighed = Vec::new();
        for _ in 0..times {
            weighed.push(scale.weigh(mode, kind).await?);
        }
        let mebibytes: Vec<f64> = weighed.iter().map(|one| one.mebibytes).collect();
        tell(&format!("memory: {mode} {mebibytes:.1?} MiB"));
        if mode == "pods" {
            ready = weighed.iter().map(|one| one.ready.as_secs_f64() * 1000.0).collect();
        }
        runs.insert(mode.to_owned(), mebibytes.iter().copied().map(rounded).collect());
        weights.insert(mode.to_owned(), json!(median(mebibytes)));
    }
    let relist = scale.relist(&plane).await?;
    let weight = |mode: &str| weights[mode].as_f64().unwrap_or_default();
    let over_empty = |mode: &str| rounded(weight(mode) - weight("empty"));
    let figures = Map::from_iter([
        ("pods_10k_mib".to_owned(), over_empty("pods")),
        ("pods_10k_stock_mib".to_owned(), over_empty("stock-pods")),
        ("nodes_10k_mib".to_owned(), over_empty("nodes")),
        ("relist_peak_ratio".to_owned(), rounded(relist.peak / relist.steady)),
        ("start_ready_ms".to_owned(), rounded(median(ready.clone()))),
    ]);
    let samples = json!({
        "objects": OBJECTS,
        "pod_bytes": sizes(&pod_bytes), "node_bytes": sizes(&node_bytes),
        "rss_mib": runs,
        "start_ready_ms": ready.into_iter().map(rounded).collect::<Vec<_>>(),
        "relist": { "steady_mib": rounded(relist.steady), "peak_mib": rounded(relist.peak), "after_mib": rounded(relist.after),
            "processor_seconds": rounded(relist.processor), "watches": relist.watches },
    });
    Ok(Measured { figures, samples })
}

/// A relist, seen from outside.
struct Relist {
    steady: f64,
    peak: f64,
    after: f64,
    processor: f64,
    watches: usize,
}

impl Scale<'_> {
    fn start<'a>(&'a self, mode: &'a str, args: &'a [String]) -> Start<'a> {
        Start { program: PROGRAM, mode, args, kubeconfig: &self.kubeconfig, folder: self.folder }
    }

    /// Starts a process, waits until it has all objects of a kind and is at rest, and weighs it.
    async fn weigh(&self, mode: &str, kind: Option<&str>) -> Result<Weighed> {
        let mut subject = Subject::start(&self.start(mode, &[]))?;
        let ready = subject.ready().await?;
        let objects = match kind {
            Some(kind) => subject.cached(kind).await?,
            None if mode == "empty" => OBJECTS,
            None => subject.stock_cached().await?,
        };
        ensure!(objects == OBJECTS, "{mode} has {objects} objects");
        subject.at_rest().await?;
        tokio::time::sleep(SETTLE).await;
        let mebibytes = subject.mebibytes("VmRSS")?;
        subject.end().await?;
        Ok(Weighed { mebibytes, ready })
    }

    /// Breaks the watch of a process at rest, and answers its next one with "expired": it has to list again.
    async fn relist(&self, plane: &ControlPlane) -> Result<Relist> {
        const USER: &str = "relisting";
        let chaos = Chaos::before_api_server(plane.client(USER).await?).await?;
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "chaos",
            "clusters": [{ "name": "chaos", "cluster": { "server": chaos.url() } }],
            "contexts": [{ "name": "chaos", "context": { "cluster": "chaos", "user": "" } }],
        });
        let start = Start { kubeconfig: &kubeconfig, ..self.start("pods", &[]) };
        let mut subject = Subject::start(&start)?;
        subject.ready().await?;
        subject.at_rest().await?;
        tokio::time::sleep(SETTLE).await;
        let (calls, client) = (plane.api_calls(), plane.client("bench").await?);
        let mark = calls.mark(&client).await?;
        let (steady, processor) = (subject.mebibytes("VmRSS")?, subject.processor_seconds()?);
        subject.forget_peak()?;
        chaos.inject_times("/api/v1/pods", Fault::expired_watch(), 1);
        chaos.cut_connections();
        eventually("the watch to be told that it expired", Duration::from_secs(30), async || {
            Ok((chaos.injected() > 0).then_some(()))
        })
        .await?;
        let again =
            async || Ok::<_, anyhow::Error>(calls.since(&client, mark).await?.by(USER).of("pods").len());
        eventually("the list", Duration::from_secs(30), async || Ok((again().await? > 0).then_some(())))
            .await?;
        subject.at_rest().await?;
        let (peak, after) = (subject.mebibytes("VmHWM")?, subject.mebibytes("VmRSS")?);
        let processor = subject.processor_seconds()? - processor;
        // Going on where the watch was takes milliseconds; decoding all pods does not.
        ensure!(processor > 0.1, "{processor} s of processor are no list of {OBJECTS} pods");
        ensure!(subject.cached("Pod").await? == OBJECTS, "pods were lost");
        let watches = again().await?;
        subject.end().await?;
        tell(&format!("memory: relist from {steady:.1} to {peak:.1} MiB"));
        Ok(Relist { steady, peak, after, processor, watches })
    }
}

/// Bytes of some objects as the server sends them.
async fn sent(client: &Client, plural: &str) -> Result<Vec<usize>> {
    let request = http::Request::get(format!("/api/v1/{plural}?limit=200")).body(Vec::new())?;
    let list: Value = client.request(request).await?;
    let items = list["items"].as_array().context("a list")?;
    Ok(items.iter().map(|item| item.to_string().len()).collect())
}

fn sizes(bytes: &[usize]) -> Value {
    let mean = bytes.iter().sum::<usize>() / bytes.len().max(1);
    json!({ "of": bytes.len(), "least": bytes.iter().min(), "mean": mean, "most": bytes.iter().max() })
}
