//! What pod tests on this kind of machine cannot show of the entrypoints.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::workspace;

fn scripts() -> Vec<PathBuf> {
    let folders =
        ["opt/bin/slurm", "opt/soperator/bin"].map(|folder| workspace().join("images/rootfs").join(folder));
    let entries = folders.iter().flat_map(|folder| fs::read_dir(folder).unwrap());
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn every_script_parses_and_may_be_run() {
    let scripts = scripts();
    assert!(scripts.len() > 15, "{scripts:?}");
    for script in scripts {
        let text = fs::read_to_string(&script).unwrap();
        if let Some("sh") = script.extension().and_then(|extension| extension.to_str()) {
            let parsed = Command::new("bash").arg("-n").arg(&script).status().unwrap();
            assert!(parsed.success(), "{}", script.display());
        }
        // What has no first line of its own is read by others.
        let is_program = text.starts_with("#!");
        let mode = fs::metadata(&script).unwrap().permissions().mode();
        assert_eq!(mode & 0o111 != 0, is_program, "{}: mode {mode:o}", script.display());
        assert!(!text.contains("eval "), "{}: text of users is not a program", script.display());
    }
}

fn make_system_slice(root: &Path) -> bool {
    let library = workspace().join("images/rootfs/opt/bin/slurm/lib.sh");
    let script = r#". "$1"; make_system_slice "$2""#;
    Command::new("bash").args(["-euc", script, "bash"]).arg(library).arg(root).status().unwrap().success()
}

/// A folder in place of cgroups of version 2, which this machine does not have.
#[test]
fn jobs_get_a_slice_where_cgroups_are_of_version_2() {
    let root = tempfile::tempdir().unwrap();
    let slice = root.path().join("system.slice");
    assert!(make_system_slice(root.path()) && !slice.exists(), "version 1 has no slices");
    fs::write(root.path().join("cgroup.controllers"), "cpu memory").unwrap();
    assert!(make_system_slice(root.path()) && slice.is_dir());
    fs::write(slice.join("memory.oom.group"), "0").unwrap();
    assert!(make_system_slice(root.path()), "a container that starts again finds the slice");
    assert_eq!(fs::read_to_string(slice.join("memory.oom.group")).unwrap(), "1\n");
}
