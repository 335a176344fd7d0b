//! Time and memory of decoding recorded answers, multiplied. What exactly is in a figure says
//! `crates/slurm-rest/benches/slurm/main.rs`.
//!
//! Each measurement is a process of its own, so that none has memory that another left. Contenders take turns, so
//! that what else the machine does meets all of them.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value, json};

use super::{Measured, once};
use crate::bench::{median, rounded};
use crate::tell;

/// Answers that are measured in turns.
struct Series {
    name: &'static str,
    measure: &'static str,
    list: &'static str,
    count: &'static str,
    form: &'static str,
    rounds: usize,
}

impl Series {
    const fn new(name: &'static str, [measure, list, count, form]: [&'static str; 4], rounds: usize) -> Self {
        Self { name, measure, list, count, form, rounds }
    }
}

const CONTENDERS: [&str; 3] = ["ours", "value", "typed"];
/// So much that only ours can be asked for it.
const LARGE: &str = "100000";

/// The indented answers are those of a slurmrestd that nobody told to be brief; they are in the samples only.
const SERIES: [Series; 7] = [
    Series::new("nodes_10k", ["time", "nodes", "10000", "compact"], 9),
    Series::new("jobs_20k", ["time", "jobs", "20000", "compact"], 5),
    Series::new("nodes_10k_peak", ["peak", "nodes", "10000", "compact"], 3),
    Series::new("jobs_20k_peak", ["peak", "jobs", "20000", "compact"], 3),
    Series::new("jobs_100k_peak", ["peak", "jobs", LARGE, "compact"], 3),
    Series::new("nodes_10k_indented", ["time", "nodes", "10000", "indented"], 5),
    Series::new("jobs_20k_indented", ["time", "jobs", "20000", "indented"], 3),
];

/// The figure of each contender of a series that has one.
const FIGURES: [(&str, &str, &str); 7] = [
    ("nodes_10k_ms", "nodes_10k", "ours"),
    ("nodes_10k_value_ms", "nodes_10k", "value"),
    ("jobs_20k_ms", "jobs_20k", "ours"),
    ("jobs_20k_value_ms", "jobs_20k", "value"),
    ("jobs_20k_peak_mib", "jobs_20k_peak", "ours"),
    ("jobs_20k_value_peak_mib", "jobs_20k_peak", "value"),
    ("jobs_100k_peak_mib", "jobs_100k_peak", "ours"),
];

/// All runs of one contender.
#[derive(Default)]
struct Runs {
    values: Vec<f64>,
    bytes: Value,
    records: Value,
}

pub(super) fn measure(program: &Path) -> Result<Measured> {
    // First of all, whether it is right.
    let checked =
        Command::new(program).stdout(Stdio::null()).status().context("start the measured program")?;
    ensure!(checked.success(), "the contenders do not agree on what an answer says");
    let mut all = BTreeMap::new();
    for series in &SERIES {
        for (contender, runs) in series.run(program)? {
            tell(&format!("decode: {} {contender} {:.1?}", series.name, runs.values));
            all.insert((series.name, contender), runs);
        }
    }
    let mut figures = Map::new();
    for (figure, series, contender) in FIGURES {
        let runs = all.get(&(series, contender)).with_context(|| format!("{figure} was not measured"))?;
        figures.insert(figure.to_owned(), rounded(median(runs.values.clone())));
    }
    let mut samples = Map::new();
    for ((series, contender), runs) in all {
        let sample = json!({
            "median": rounded(median(runs.values.clone())), "runs": runs.values.into_iter().map(rounded).collect::<Vec<_>>(),
            "bytes": runs.bytes, "records": runs.records });
        samples.insert(format!("{series}_{contender}"), sample);
    }
    Ok(Measured { figures, samples: samples.into() })
}

impl Series {
    fn run(&self, program: &Path) -> Result<BTreeMap<&'static str, Runs>> {
        let mut all: BTreeMap<_, Runs> = BTreeMap::new();
        let contenders = if self.count == LARGE { CONTENDERS.split_at(1).0 } else { &CONTENDERS };
        for _ in 0..self.rounds {
            for contender in contenders {
                let arguments = [self.measure, contender, self.list, self.count, self.form];
                let run = once(program, &arguments).with_context(|| format!("measure {arguments:?}"))?;
                let runs = all.entry(*contender).or_default();
                runs.values.push(run["ms"].as_f64().or(run["mib"].as_f64()).context("nothing was measured")?);
                (runs.bytes, runs.records) = (run["bytes"].clone(), run["records"].clone());
            }
        }
        Ok(all)
    }
}
