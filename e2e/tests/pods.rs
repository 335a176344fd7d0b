//! On real nodes. `cargo xtask test --suite pods` brings the cluster that these share.

#[path = "pods/machine.rs"]
mod machine;
#[path = "pods/programs.rs"]
mod programs;
#[path = "pods/slurm.rs"]
mod slurm;
#[path = "pods/volumes.rs"]
mod volumes;
#[path = "pods/workloads.rs"]
mod workloads;
