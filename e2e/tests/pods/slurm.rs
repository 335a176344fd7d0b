//! Slurm in real pods: the images, the jail and the manifests of `deploy/by-hand`.

#[path = "slurm/dynamic_worker.rs"]
mod dynamic_worker;
#[path = "slurm/faults.rs"]
mod faults;
#[path = "slurm/jobs.rs"]
mod jobs;
#[path = "slurm/populate.rs"]
mod populate;
#[path = "slurm/privileges.rs"]
mod privileges;
#[path = "slurm/rest.rs"]
mod rest;
#[path = "slurm/site.rs"]
mod site;
