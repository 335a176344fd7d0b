//! Cgroups are the one thing of a node that outlives its namespaces. They are removed when they are empty,
//! never with anything in them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::state::pause;

const ROOT: &str = "/sys/fs/cgroup";

/// The folders of a cgroup in every hierarchy of this machine.
fn folders(cgroup: &str) -> Vec<PathBuf> {
    let relative = cgroup.trim_start_matches('/');
    let unified = Path::new(ROOT).to_owned();
    let hierarchies = fs::read_dir(ROOT).into_iter().flatten().flatten().map(|entry| entry.path());
    std::iter::once(unified)
        .chain(hierarchies)
        .map(|base| base.join(relative))
        .filter(|path| path.is_dir())
        .collect()
}

/// Removes a cgroup and all below it, and says whether it is gone. The kernel lets go of one some time after its
/// last process.
pub(super) fn remove(cgroup: &str, limit: Duration) -> bool {
    let end = Instant::now() + limit;
    loop {
        for folder in folders(cgroup) {
            remove_tree(&folder);
        }
        let gone = folders(cgroup).is_empty();
        if gone || Instant::now() >= end {
            return gone;
        }
        pause();
    }
}

fn remove_tree(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_tree(&entry.path());
        }
    }
    let _ = fs::remove_dir(folder);
}
