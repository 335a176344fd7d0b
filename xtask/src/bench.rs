//! `cargo xtask bench NAME [--json]`: what speed and memory are, measured.

mod engine;
mod ground;

use anyhow::Result;
use clap::ValueEnum;
use serde_json::{Map, Value};

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
}

pub(crate) fn command(args: &Args) -> Result<()> {
    let figures = match args.name {
        Bench::Ground => ground::measure()?,
        Bench::Engine => engine::measure()?,
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
