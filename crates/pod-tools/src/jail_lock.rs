//! One at a time: pods on all nodes share the jail, and what two of them make at once is neither's.

use std::fs::{File, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::fcntl::OFlag;

use crate::patience::until;

/// A copy of a large jail over a network takes minutes, and a pod that was told to end goes on for its grace period.
const PATIENCE: Duration = Duration::from_secs(600);

/// Held until the file is dropped, or its process or machine has gone.
pub(crate) fn take(jail: &Path) -> Result<File> {
    let path = jail.join(jail::LOCK);
    let mut options = File::options();
    options.write(true).create(true).truncate(false).mode(0o600).custom_flags(OFlag::O_NOFOLLOW.bits());
    let file = options
        .open(&path)
        .with_context(|| format!("open {}: can this pod write to the jail?", path.display()))?;
    until(PATIENCE, "look for a populate-jail pod that does not end", || match file.try_lock() {
        Ok(()) => Ok(Ok(())),
        Err(TryLockError::WouldBlock) => Ok(Err("another pod is making the jail".to_owned())),
        Err(TryLockError::Error(error)) => Err(error).with_context(|| format!("lock {}", path.display())),
    })?;
    Ok(file)
}
