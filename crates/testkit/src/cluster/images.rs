//! Names of the images that every node has. Tags are fixed: there is no registry to pull from.

use crate::cache::SlurmVersion;

pub const PAUSE: &str = "testbed.slipway.hpc/pause:1";
pub const BUSYBOX: &str = "testbed.slipway.hpc/busybox:1";

/// The release that pods run.
pub const SLURM_VERSION: SlurmVersion = SlurmVersion::V26_05;

/// Every Slurm daemon; the pod's command decides which one runs.
pub fn slurm() -> String {
    format!("testbed.slipway.hpc/slurm:{}", SLURM_VERSION.as_str())
}
