//! Who we are.

use anyhow::{Context, Result};

/// The name of this host, which is the name of the pod.
pub(crate) fn name() -> Result<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").context("read the name of this host")?;
    Ok(name.trim().to_owned())
}
