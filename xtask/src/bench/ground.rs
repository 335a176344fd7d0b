//! How long the ground takes: from nothing to an API server that serves, and to three nodes Ready.

use std::cell::Cell;
use std::time::Instant;

use anyhow::Result;
use serde_json::{Map, Value, json};
use testkit::cluster::{Cluster, Size, Step};

use crate::{block_on, cluster, setup, tell};

const RUNS: usize = 3;
const NODES: usize = 3;

pub(super) fn measure() -> Result<Map<String, Value>> {
    testkit::require_root("clusters")?;
    let cache = setup::ensure(&cluster::PARTS)?;
    let mut samples = Vec::new();
    for run in 1..=RUNS {
        let sample = block_on(async {
            let started = Instant::now();
            let api_server = Cell::new(0.0);
            let name = format!("bench-{}", std::process::id());
            let size = Size { nodes: NODES, fake: 0 };
            let cluster = Cluster::start(&cache, &name, size, |step| {
                if step == Step::ApiServer {
                    api_server.set(started.elapsed().as_secs_f64());
                }
            })
            .await?;
            let nodes = started.elapsed().as_secs_f64();
            drop(cluster);
            Ok([api_server.get(), nodes])
        })?;
        tell(&format!("run {run}: API server {:.2} s, {NODES} nodes Ready {:.2} s", sample[0], sample[1]));
        samples.push(sample);
    }
    let median = |column: usize| {
        let mut values: Vec<f64> = samples.iter().map(|sample| sample[column]).collect();
        values.sort_by(f64::total_cmp);
        (values[RUNS / 2] * 100.0).round() / 100.0
    };
    let figures = json!({
        "api_server_seconds": median(0),
        "nodes_ready_seconds": median(1),
        "nodes": NODES,
        "samples": samples,
    });
    Ok(figures.as_object().cloned().unwrap_or_default())
}
