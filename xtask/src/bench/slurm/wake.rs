//! From a job's end to the wake of one who waits for its node, on real Slurm, at two nodes and at a thousand.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value, json};

use super::{Measured, once};
use crate::bench::{percentile, rounded};
use crate::tell;

const JOBS: usize = 100;
const CLUSTERS: [(&str, &str); 2] = [("view_wake_p99_ms", "2"), ("view_wake_1000_p99_ms", "1000")];

pub(super) fn measure(program: &Path) -> Result<Measured> {
    let (mut figures, mut samples) = (Map::new(), Map::new());
    for (figure, nodes) in CLUSTERS {
        tell(&format!("wake: {JOBS} jobs on a cluster of {nodes} nodes"));
        let run = once(program, &["wake", nodes, &JOBS.to_string()])?;
        let wakes = run["wake_us"].as_array().context("no wakes")?;
        let mut wakes: Vec<u64> = wakes.iter().filter_map(Value::as_u64).collect();
        ensure!(wakes.len() == JOBS, "{} wakes for {JOBS} jobs", wakes.len());
        wakes.sort_unstable();
        let milliseconds = |percent| rounded(percentile(&wakes, percent) as f64 / 1000.0);
        tell(&format!("wake: p50 {} ms, p99 {} ms", milliseconds(50), milliseconds(99)));
        figures.insert(figure.to_owned(), milliseconds(99));
        let sample = json!({
            "jobs": JOBS, "p50_ms": milliseconds(50), "p90_ms": milliseconds(90), "max_ms": milliseconds(100),
            "list_ms": run["list_ms"], "wake_us": wakes });
        samples.insert(format!("{nodes}_nodes"), sample);
    }
    Ok(Measured { figures, samples: samples.into() })
}
