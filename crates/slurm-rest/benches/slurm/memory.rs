//! Resident memory of this process.

use std::fs;

use anyhow::{Context, Result};

/// From here on the peak is that since now. Says how much there is now, in MiB.
pub(crate) fn forget_peak() -> Result<f64> {
    fs::write("/proc/self/clear_refs", "5").context("reset the peak of memory")?;
    mebibytes("VmRSS")
}

pub(crate) fn peak() -> Result<f64> {
    mebibytes("VmHWM")
}

fn mebibytes(field: &str) -> Result<f64> {
    let status = fs::read_to_string("/proc/self/status").context("read how much memory there is")?;
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()).context("no such field")?;
    Ok(kibibytes.parse::<f64>()? / 1024.0)
}
