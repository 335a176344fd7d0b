//! `slipway-node`: what runs privileged on hosts or inside Slurm images, kept apart from the control plane so that
//! a privileged pod carries no controller code.

mod rebooter;

use std::process::ExitCode;

use telemetry::cli::{Program, VERSION};

static PROGRAM: Program = Program {
    name: "slipway-node",
    about: "Slurm clusters on Kubernetes: what runs on hosts and inside Slurm images",
    components: &[rebooter::COMPONENT, VERSION],
    called_by: &[
        ("rebooter", "rebooter"),
        ("sconfigcontroller", "sconfigcontroller"),
        ("power-manager", "power-manager"),
    ],
};

fn main() -> ExitCode {
    PROGRAM.main()
}
