//! Temporary folders in memory that do not stay behind.
//!
//! Each is locked by its owner for as long as it lives. A killed owner cannot remove its folder, so whoever
//! makes the next one removes those that nobody holds.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use nix::fcntl::{Flock, FlockArg};

const PREFIX: &str = "slipway-";

#[derive(Debug)]
pub(crate) struct Scratch {
    folder: tempfile::TempDir,
    _lock: Flock<File>,
}

impl Scratch {
    pub(crate) fn new(what: &str) -> Result<Self> {
        sweep();
        loop {
            let folder = tempfile::Builder::new()
                .prefix(&format!("{PREFIX}{what}-"))
                .tempdir_in(base())
                .with_context(|| format!("make a folder in {}", base().display()))?;
            let lock = Flock::lock(File::open(folder.path())?, FlockArg::LockExclusive)
                .map_err(|(_, error)| error)
                .context("lock a new folder")?;
            // Somebody may have found it between the two steps, and have taken it for abandoned.
            if folder.path().exists() {
                return Ok(Self { folder, _lock: lock });
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

fn base() -> PathBuf {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() }
}

/// Removes the folders of test processes that have ended.
pub fn sweep() {
    sweep_in(&base());
}

fn sweep_in(base: &Path) {
    let folders = fs::read_dir(base).into_iter().flatten().flatten().map(|entry| entry.path());
    let ours =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX));
    for folder in folders.filter(ours) {
        let abandoned =
            File::open(&folder).ok().and_then(|file| Flock::lock(file, FlockArg::LockExclusiveNonblock).ok());
        if abandoned.is_some() {
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
            folder
        });
        let _lock = Flock::lock(File::open(&held).unwrap(), FlockArg::LockExclusiveNonblock).unwrap();
        sweep_in(base.path());
        assert!(held.exists() && !abandoned.exists());
    }
}
