//! `cargo xtask`: the project's own commands.

mod api_reference;
mod bench;
mod check;
mod cluster;
mod crd_diff;
mod demo;
mod generate;
mod images;
mod setup;
mod suites;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", about, disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Bring what the other commands need into the cache directory
    Setup(setup::Args),
    /// A real Kubernetes cluster on this machine
    #[command(subcommand)]
    Cluster(cluster::Command),
    /// Build the images
    Images(images::Args),
    /// A Slurm cluster on a real Kubernetes cluster on this machine, and a job that runs
    Demo(demo::Args),
    /// Run the tests
    Test(suites::Args),
    /// Check the dependency rules between crates and the generated files
    Check,
    /// Write the generated files anew
    Generate,
    /// Compare our custom resources with those of the operators that they replace
    CrdDiff(crd_diff::Args),
    /// Measure
    Bench(bench::Args),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(cli.command) {
        Ok(code) => code,
        Err(error) => {
            tell(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Setup(args) => setup::command(&args).map(|()| ExitCode::SUCCESS),
        Command::Cluster(command) => cluster::command(command),
        Command::Images(args) => images::command(&args).map(|()| ExitCode::SUCCESS),
        Command::Demo(args) => demo::command(&args),
        Command::Test(args) => suites::command(&args),
        Command::Check => check::command().map(|()| ExitCode::SUCCESS),
        Command::Generate => generate::command().map(|()| ExitCode::SUCCESS),
        Command::CrdDiff(args) => crd_diff::command(&args),
        Command::Bench(args) => bench::command(&args).map(|()| ExitCode::SUCCESS),
    }
}

/// Progress and errors: standard error, so that standard output stays machine-readable.
#[allow(clippy::print_stderr)]
pub(crate) fn tell(line: &str) {
    eprintln!("{line}");
}

/// Results.
#[allow(clippy::print_stdout)]
pub(crate) fn say(line: &str) {
    println!("{line}");
}

/// The root of the workspace.
pub(crate) fn workspace() -> std::path::PathBuf {
    let xtask = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask).to_owned()
}

/// Where cargo puts what it builds.
pub(crate) fn target() -> std::path::PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace().join("target"), Into::into)
}

/// A cargo command in the workspace, of the cargo that started us if one did.
pub(crate) fn cargo(args: &[&str]) -> std::process::Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = std::process::Command::new(program);
    command.args(args).current_dir(workspace());
    command
}

/// The runtime for commands that talk to a cluster.
pub(crate) fn block_on<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?.block_on(future)
}
