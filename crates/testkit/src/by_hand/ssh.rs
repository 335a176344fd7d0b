//! ssh to the login node of a by-hand cluster, through a port on 127.0.0.1.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::forward::Forward;
use crate::process::{bound_command, run};

const LIMIT: Duration = Duration::from_secs(120);

/// A key pair, and beside it the host keys that were seen.
#[derive(Debug, Clone)]
pub struct Key {
    private: PathBuf,
}

impl Key {
    /// The key of a folder, made if it is not there. The folder must be closed to others.
    pub async fn in_folder(folder: &Path) -> Result<Self> {
        let key = Self { private: folder.join("ssh-key") };
        if !key.private.exists() {
            let mut command = bound_command("ssh-keygen");
            command.args(["-q", "-t", "ed25519", "-N", "", "-C", "demo", "-f"]).arg(&key.private);
            run(command, LIMIT).await.context("make a key for ssh")?;
        }
        Ok(key)
    }

    pub(super) fn public(&self) -> Result<String> {
        let path = self.private.with_extension("pub");
        let text = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        Ok(text.trim().to_owned())
    }
}

/// A way to the login node that is open as long as this lives.
#[derive(Debug)]
pub struct Ssh {
    forward: Forward,
    key: Key,
    user: String,
}

impl Ssh {
    pub fn new(forward: Forward, key: Key, user: &str) -> Self {
        Self { forward, key, user: user.to_owned() }
    }

    pub fn address(&self) -> SocketAddr {
        self.forward.address()
    }

    /// `ssh` with its options; words of a command may follow.
    fn options(&self, command: &mut Command) {
        let known = self.key.private.with_file_name("known-hosts");
        // Settings of whoever calls this are for other hosts.
        command.args(["-F", "none"]);
        command.arg("-i").arg(&self.key.private).args(["-p", &self.address().port().to_string()]);
        for option in [
            "BatchMode=yes",
            "IdentitiesOnly=yes",
            "LogLevel=ERROR",
            "ConnectTimeout=10",
            // The first key is taken, another one later is not: the host keys outlive their pod.
            "StrictHostKeyChecking=accept-new",
            "HostKeyAlias=login",
            &format!("UserKnownHostsFile={}", known.display()),
        ] {
            command.args(["-o", option]);
        }
        command.arg(format!("{}@{}", self.user, self.address().ip()));
    }

    /// Runs a shell command as the user; gives what it printed.
    pub async fn run(&self, script: &str) -> Result<String> {
        let mut command = bound_command("ssh");
        self.options(&mut command);
        command.arg(script);
        run(command, LIMIT).await
    }

    /// The same with a terminal, for programs that behave differently on one.
    pub async fn run_on_terminal(&self, script: &str) -> Result<String> {
        let mut command = bound_command("ssh");
        command.arg("-tt");
        self.options(&mut command);
        command.arg(script);
        run(command, LIMIT).await
    }

    /// A command of the caller's own, with its terminal if it has one.
    pub fn command(&self, words: &[String]) -> Command {
        let mut command = Command::new("ssh");
        self.options(&mut command);
        command.args(words);
        command
    }
}
