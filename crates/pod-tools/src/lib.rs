//! What Slurm pods run at start. Each module is one subcommand of `slipway-node`: its `Args` and its `run`.
//!
//! These are programs, not a library that others decide with: nobody tells their errors apart, so `anyhow` carries
//! them to the one place that prints them.

pub mod complement_jail;
pub mod docker_proxy;
mod host;
mod jail_lock;
mod mounts;
mod patience;
pub mod populate_jail;
pub mod run;
mod say;
pub mod slurmd;
pub mod wait_jail;
pub mod with_limits;
pub mod worker_handoff;
pub mod worker_init;
