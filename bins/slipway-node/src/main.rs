//! `slipway-node`: what runs privileged on hosts or inside Slurm images, kept apart from the control plane so that
//! a privileged pod carries no controller code.

mod pod_tools;
mod rebooter;

use std::process::ExitCode;

use telemetry::cli::{Program, VERSION};

static PROGRAM: Program = Program {
    name: "slipway-node",
    about: "Slurm clusters on Kubernetes: what runs on hosts and inside Slurm images",
    components: &[
        rebooter::COMPONENT,
        pod_tools::COMPLEMENT_JAIL,
        pod_tools::DOCKER_PROXY,
        pod_tools::POPULATE_JAIL,
        pod_tools::RUN,
        pod_tools::SLURMD,
        pod_tools::WAIT_JAIL,
        pod_tools::WITH_LIMITS,
        pod_tools::WORKER_HANDOFF,
        pod_tools::WORKER_INIT,
        VERSION,
    ],
    called_by: &[
        ("rebooter", "rebooter"),
        ("sconfigcontroller", "sconfigcontroller"),
        ("power-manager", "power-manager"),
    ],
};

fn main() -> ExitCode {
    PROGRAM.main()
}
