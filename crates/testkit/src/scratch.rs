//! Temporary folders in memory that do not stay behind.
//!
//! Each is locked by its owner for as long as it lives. A killed owner cannot remove its folder, so whoever
//! makes the next one removes those that nobody holds.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use nix::fcntl::{Flock, FlockArg};

const PREFIX: &str = "slipway-";
const LOCK: &str = "owner.lock";

#[derive(Debug)]
pub(crate) struct Scratch {
    folder: tempfile::TempDir,
    _lock: Flock<File>,
}

impl Scratch {
    pub(crate) fn new(what: &str) -> Result<Self> {
        let memory = Path::new("/dev/shm");
        let base = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        sweep(&base);
        let folder = tempfile::Builder::new()
            .prefix(&format!("{PREFIX}{what}-"))
            .tempdir_in(&base)
            .with_context(|| format!("make a folder in {}", base.display()))?;
        let lock = try_lock(folder.path()).context("lock a new folder")?;
        Ok(Self { folder, _lock: lock })
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

fn try_lock(folder: &Path) -> Option<Flock<File>> {
    let file = File::options().create(true).append(true).open(folder.join(LOCK)).ok()?;
    Flock::lock(file, FlockArg::LockExclusiveNonblock).ok()
}

fn sweep(base: &Path) {
    let folders = fs::read_dir(base).into_iter().flatten().flatten().map(|entry| entry.path());
    for folder in folders.filter(|path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX))
            // No lock file yet: its owner is between making and locking it.
            && path.join(LOCK).exists()
    }) {
        if try_lock(&folder).is_some() {
            let _ = fs::remove_dir_all(&folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_abandoned_folder_is_swept_and_a_held_one_is_not() {
        let base = tempfile::tempdir().unwrap();
        let [held, abandoned] = ["held", "abandoned"].map(|name| {
            let folder = base.path().join(format!("{PREFIX}{name}"));
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join(LOCK), "").unwrap();
            folder
        });
        let _lock = try_lock(&held).unwrap();
        sweep(base.path());
        assert!(held.exists() && !abandoned.exists());
    }
}
