//! `slipway crds`: the CRDs of this build, to be installed by `kubectl apply --server-side -f -`.

use std::io::{self, Write};

use clap::Args as _;
use telemetry::cli::{Component, tool};

pub(crate) const COMPONENT: Component = Component {
    name: "crds",
    about: "Print the custom resource definitions as YAML",
    args: Args::augment_args,
    run: |call| tool(call, |Args {}| print()),
};

#[derive(Debug, clap::Args)]
struct Args {}

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(include_str!(concat!("../../../deploy/crds/", $name, ".yaml"))),*]
    };
}

/// A test compares what is printed with the folder.
const FILES: &[&str] = files!(
    "slurm.nebius.ai_slurmclusters",
    "slurm.nebius.ai_nodesets",
    "slurm.nebius.ai_nodesetpowerstates",
    "slurm.nebius.ai_nodeconfigurators",
    "slurm.nebius.ai_jailedconfigs",
    "slurm.nebius.ai_activechecks",
    "slinky.slurm.net_controllers",
    "slinky.slurm.net_nodesets",
    "slinky.slurm.net_loginsets",
    "slinky.slurm.net_accountings",
    "slinky.slurm.net_restapis",
    "slinky.slurm.net_tokens",
);

fn print() -> io::Result<()> {
    let mut out = io::stdout().lock();
    for file in FILES {
        writeln!(out, "---")?;
        out.write_all(file.as_bytes())?;
    }
    out.flush()
}
