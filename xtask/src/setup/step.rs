//! One command of set-up: its output in a log, a sign of life while it runs, its last lines if it fails.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use testkit::cache::{Cache, Part};

use crate::tell;

const SUMS: &str = "SHA256SUMS";

pub(super) fn log_path(cache: &Cache, part: Part) -> PathBuf {
    cache.root().join("log").join(format!("{}.log", part.name()))
}

/// Runs a command for a part; `what` completes the sentence "set-up: PART: WHAT".
pub(super) fn run(cache: &Cache, part: Part, what: &str, command: &mut Command) -> Result<()> {
    tell(&format!("set-up: {}: {what}", part.name()));
    let path = log_path(cache, part);
    let log = File::options().create(true).append(true).open(&path)?;
    let status = command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    let mut child = status.spawn().with_context(|| format!("start {}", command.get_program().display()))?;
    let (done, ended) = sync_channel(1);
    let started = Instant::now();
    let status = std::thread::scope(|scope| {
        scope.spawn(move || {
            while ended.recv_timeout(Duration::from_secs(30)) == Err(RecvTimeoutError::Timeout) {
                tell(&format!("set-up: {}: {what} … {} s", part.name(), started.elapsed().as_secs()));
            }
        });
        let status = child.wait();
        let _ = done.send(());
        status
    })?;
    if status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&fs::read(&path)?).into_owned();
    let lines: Vec<_> = text.lines().collect();
    bail!("{what}: {status}\n{}", lines[lines.len().saturating_sub(20)..].join("\n"))
}

/// Writes the checksums of a folder's files beside them.
pub(super) fn write_sums(folder: &Path) -> Result<()> {
    let script =
        format!("sha256sum -- $(find . -maxdepth 1 -type f ! -name {SUMS} -printf '%P\\n' | sort) > {SUMS}");
    let status = Command::new("sh").args(["-c", &script]).current_dir(folder).status()?;
    if !status.success() {
        bail!("sha256sum in {}: {status}", folder.display());
    }
    Ok(())
}

/// Compares a part with its checksums; false if it has none.
pub(super) fn verify(folder: &Path) -> Result<bool> {
    if !folder.join(SUMS).exists() {
        return Ok(false);
    }
    let output = Command::new("sha256sum").args(["--check", "--quiet", SUMS]).current_dir(folder).output()?;
    if !output.status.success() {
        bail!(
            "{} is damaged, remove it and run `cargo xtask setup`:\n{}",
            folder.display(),
            String::from_utf8_lossy(&output.stdout)
        );
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_part_is_named() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!verify(folder.path()).unwrap(), "there are no checksums yet");
        fs::write(folder.path().join("etcd"), "sound").unwrap();
        write_sums(folder.path()).unwrap();
        assert!(verify(folder.path()).unwrap());
        fs::write(folder.path().join("etcd"), "sounD").unwrap();
        assert!(verify(folder.path()).unwrap_err().to_string().contains("etcd: FAILED"));
    }
}
