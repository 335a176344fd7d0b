//! What talking to slurmrestd costs: decoding its lists, beside `serde_json::Value` and structs with every field in
//! the same run; and how soon one who waits for a node is woken.

mod decode;
mod wake;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use cargo_metadata::Message;
use serde_json::{Map, Value, json};
use testkit::cache::{Part, SlurmVersion};
use testkit::layers::Layer;

use crate::{cargo, setup, tell};

pub(super) fn measure() -> Result<Map<String, Value>> {
    setup::ensure(&[Part::Debian, Part::Layer(SlurmVersion::V26_05, Layer::Testbed)])?;
    tell("building the measured program");
    let program = build()?;
    let wake = wake::measure(&program)?;
    let decode = decode::measure(&program)?;
    let mut figures = decode.figures;
    figures.extend(wake.figures);
    figures.insert("samples".to_owned(), json!({ "decode": decode.samples, "wake": wake.samples }));
    Ok(figures)
}

/// Figures, and what is behind them.
struct Measured {
    figures: Map<String, Value>,
    samples: Value,
}

/// One measurement, in a process of its own.
fn once(program: &Path, arguments: &[&str]) -> Result<Value> {
    let done = Command::new(program).args(arguments).stderr(Stdio::inherit()).output()?;
    ensure!(done.status.success(), "ended with {}", done.status);
    Ok(serde_json::from_slice(&done.stdout)?)
}

/// Builds the program and says where it is.
fn build() -> Result<PathBuf> {
    let arguments = ["bench", "--package", "slurm-rest", "--bench", "slurm", "--no-run", "--quiet"];
    let mut command = cargo(&arguments);
    command.arg("--message-format=json-render-diagnostics").stderr(Stdio::inherit());
    let built = command.output().context("start cargo")?;
    ensure!(built.status.success(), "the measured program does not compile");
    for message in Message::parse_stream(built.stdout.as_slice()) {
        if let Message::CompilerArtifact(artifact) = message?
            && artifact.target.is_bench()
            && let Some(program) = artifact.executable
        {
            return Ok(program.into());
        }
    }
    bail!("cargo does not say where the measured program is")
}
