//! `cargo xtask bench NAME [--json]`: what speed and memory are, measured.

mod engine;
mod ground;
mod slurm;

use anyhow::Result;
use clap::ValueEnum;
use serde_json::{Map, Value, json};

use crate::say;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What to measure
    name: Bench,
    /// One flat JSON object on standard output, and nothing else there
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Bench {
    /// Seconds from nothing to the API server, and to 3 nodes Ready
    Ground,
    /// Memory, relist, reaction, idle requests and start of the engine, beside kube's own; 12 minutes
    Engine,
    /// Decoding slurmrestd's lists beside serde_json's `Value` and full structs, and the wake at a job's end; 6 minutes
    Slurm,
}

pub(crate) fn command(args: &Args) -> Result<()> {
    let figures = match args.name {
        Bench::Ground => ground::measure()?,
        Bench::Engine => engine::measure()?,
        Bench::Slurm => slurm::measure()?,
    };
    show(&figures, args.json);
    Ok(())
}

fn show(figures: &Map<String, Value>, json: bool) {
    if json {
        say(&Value::Object(figures.clone()).to_string());
        return;
    }
    for (name, value) in figures {
        say(&format!("{name:<24} {value}"));
    }
}

/// Two digits are as much as runs agree on.
fn rounded(value: f64) -> Value {
    json!((value * 100.0).round() / 100.0)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// The smallest of sorted times that so many percent do not exceed.
fn percentile(sorted: &[u64], percent: usize) -> u64 {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_nearest_rank() {
        let times: Vec<u64> = (1..=200).collect();
        assert_eq!(
            (percentile(&times, 50), percentile(&times, 99), percentile(&times, 100)),
            (100, 198, 200)
        );
        assert_eq!((percentile(&[7], 99), percentile(&[], 99)), (7, 0));
    }
}
