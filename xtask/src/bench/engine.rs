//! What the engine costs, beside kube's stock reflector and controller in the same run: memory of ten thousand pods and
//! nodes, the peak of a relist, the time from a change to its reconcile, requests at rest, time to ready.
//!
//! The order matters, since all share one machine. Reactions are timed first, with nothing else running. The ten idle
//! minutes come then, on a control plane of their own; an operator at rest needs a few milliseconds of processor a second,
//! so memory is measured beside it. What the load does to the idle operator could only add requests, never hide one.

mod idle;
mod memory;
mod react;
mod subject;

use anyhow::{Result, bail};
use serde_json::{Map, Value, json};
use testkit::cache::Part;

use super::{median, percentile, rounded};
use crate::{block_on, cargo, setup, tell};

pub(super) fn measure() -> Result<Map<String, Value>> {
    setup::ensure(&[Part::Debian, Part::Kubernetes])?;
    tell("building the measured programs");
    let build = ["build", "--release", "--quiet", "--package", "sample", "--bins"];
    if !cargo(&build).status()?.success() {
        bail!("the measured programs do not compile");
    }
    block_on(async {
        let react = Box::pin(react::measure()).await?;
        let (idle, memory) = tokio::try_join!(Box::pin(idle::measure()), Box::pin(memory::measure()))?;
        let mut figures = Map::new();
        let mut samples = Map::new();
        for (name, measured) in [("react", react), ("idle", idle), ("memory", memory)] {
            figures.extend(measured.figures);
            samples.insert(name.to_owned(), measured.samples);
        }
        figures.insert("samples".to_owned(), json!(samples));
        Ok(figures)
    })
}

/// Figures, and what is behind them.
struct Measured {
    figures: Map<String, Value>,
    samples: Value,
}
