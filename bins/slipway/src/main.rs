//! `slipway`: the control plane. Distroless, non-root, one executable for all its components.

mod crds;
mod operator;

use std::process::ExitCode;

use telemetry::cli::{Program, VERSION};

/// Gives back what a list needed: after one, glibc would keep it.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

static PROGRAM: Program = Program {
    name: "slipway",
    about: "Slurm clusters on Kubernetes: the control plane",
    components: &[operator::COMPONENT, crds::COMPONENT, VERSION],
    called_by: &[
        ("slurm_operator", "operator"),
        ("manager", "operator"),
        ("webhook", "webhook"),
        ("soperatorchecks", "checks"),
        ("exporter", "exporter"),
        ("soperator-exporter", "exporter"),
    ],
};

fn main() -> ExitCode {
    PROGRAM.main()
}
