//! `cargo xtask test`: all tests, in suites with a time budget each.
//!
//! Compilation is not counted. A suite over its budget is warned about, at twice the budget it is ended.

mod runner;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::ValueEnum;
use testkit::cache::{Cache, Part, SlurmVersion};
use testkit::cluster::Cluster;
use testkit::layers::Layer;

use crate::cluster::Borrowed;
use crate::{block_on, cargo, check, cluster, generate, images, say, setup, tell};
use runner::{Outcome, Tests};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only these; without it all that CI runs
    #[arg(long = "suite", value_name = "NAME")]
    suites: Vec<Suite>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Suite {
    /// Format, lints, dependency rules, generated files, unit and golden tests
    Fast,
    /// Against a real API server
    Api,
    /// Against real Slurm
    Slurm,
    /// On real nodes
    Pods,
}

/// Tells the pod tests where the cluster is that they share.
const PODS_KUBECONFIG: &str = "SLIPWAY_TEST_KUBECONFIG";
/// Tells tests of our own commands where they are.
const XTASK: &str = "SLIPWAY_XTASK";

impl Suite {
    const CI: [Self; 4] = [Self::Fast, Self::Api, Self::Slurm, Self::Pods];

    fn name(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Api => "api",
            Self::Slurm => "slurm",
            Self::Pods => "pods",
        }
    }

    fn budget(self) -> Duration {
        let minutes = match self {
            Self::Fast => 5,
            Self::Api => 8,
            Self::Slurm => 10,
            Self::Pods => 20,
        };
        Duration::from_secs(60 * minutes)
    }

    fn parts(self) -> Vec<Part> {
        match self {
            Self::Fast => vec![],
            Self::Api => vec![Part::Debian, Part::Kubernetes],
            Self::Slurm => {
                // What Slurm runs on as plain processes; the layers below come with it.
                let top = SlurmVersion::ALL.map(|version| Part::Layer(version, Layer::Testbed));
                [&[Part::Debian, Part::Kubernetes], top.as_slice()].concat()
            }
            Self::Pods => cluster::PARTS.to_vec(),
        }
    }

    fn run(self) -> Result<Outcome> {
        let mut outcome = Outcome::default();
        let mut tests = Tests::new(self.budget());
        match self {
            Self::Fast => {
                outcome += runner::step("format", cargo(&["fmt", "--all", "--check"]));
                let clippy = ["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"];
                outcome += runner::step("clippy", cargo(&clippy));
                outcome += runner::check("dependency rules", check::dependency_rules());
                outcome += runner::check("generated files", generate::up_to_date());
                outcome += runner::check("custom resources", check::compatibility());
                outcome += tests.cargo(&["--workspace", "--lib", "--bins", "--test", "process"], &[])?;
            }
            Self::Api => outcome += tests.cargo(&["--workspace", "--test", "api"], &["--test-threads=4"])?,
            Self::Slurm => {
                outcome += tests.cargo(&["--workspace", "--test", "slurm"], &["--test-threads=3"])?;
            }
            Self::Pods => {
                tests.env(XTASK, std::env::current_exe()?);
                let binary = ["--package", "e2e", "--test", "pods"];
                // Built before the clock runs; the demo among the tests finds them built.
                let cache = Cache::locate()?;
                let archive = images::for_nodes(&cache)?;
                // What is compared with the machine before and after needs the machine for itself.
                outcome += tests.cargo(&binary, &["--test-threads=1", "machine::"])?;
                let name = format!("test-{}", std::process::id());
                let cluster = Borrowed::start(&name, 3)?;
                block_on(Cluster::load(&cache, &name, &archive))?;
                tests.env(PODS_KUBECONFIG, cluster.kubeconfig());
                outcome += tests.cargo(&binary, &["--test-threads=4", "--skip", "machine::"])?;
            }
        }
        if tests.spent() > self.budget() {
            let (name, minutes) = (self.name(), self.budget().as_secs() / 60);
            tell(&format!("warning: suite {name} took longer than its budget of {minutes} minutes"));
        }
        Ok(Outcome { spent: tests.spent(), ..outcome })
    }
}

pub(crate) fn command(args: &Args) -> Result<ExitCode> {
    let suites = if args.suites.is_empty() { Suite::CI.to_vec() } else { args.suites.clone() };
    let started = Instant::now();
    let parts: Vec<Part> = Part::all()
        .into_iter()
        .filter(|part| suites.iter().any(|suite| suite.parts().contains(part)))
        .collect();
    setup::ensure(&parts)?;
    let mut table = Vec::new();
    for suite in suites {
        tell(&format!("suite {}: budget {} minutes", suite.name(), suite.budget().as_secs() / 60));
        let outcome = suite.run().unwrap_or_else(|error| {
            tell(&format!("suite {}: {error:#}", suite.name()));
            Outcome::failure()
        });
        table.push((suite, outcome));
    }
    testkit::scratch::sweep();
    let total = summary(&table, started.elapsed());
    Ok(if total.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn summary(table: &[(Suite, Outcome)], elapsed: Duration) -> Outcome {
    let mut total = Outcome::default();
    say("");
    say("suite   tests  seconds");
    for (suite, outcome) in table {
        let tests = outcome.passed + outcome.failed;
        let failed = if outcome.failed > 0 { format!("  {} failed", outcome.failed) } else { String::new() };
        say(&format!("{:<7} {tests:>5} {:>8.1}{failed}", suite.name(), outcome.spent.as_secs_f64()));
        total += outcome.clone();
    }
    say(&format!("set-up, compilation and tests together: {} s", elapsed.as_secs()));
    say(&format!("{} passed, {} failed", total.passed, total.failed));
    total
}
