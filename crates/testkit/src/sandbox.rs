//! Anonymous mount and network namespaces, in which clusters live.
//!
//! Nothing in them has a name outside: when the last process in them ends, the kernel takes every mount,
//! link, route and firewall rule away. That is why a killed test leaves nothing behind.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::cache::{Cache, Part};
use crate::forward::Forward;
use crate::process::{Process, bound_command, run, until};

const SCRIPT: &str = include_str!("../../../testbed/sandbox.sh");

#[derive(Debug)]
pub struct Sandbox {
    holder: Process,
}

impl Sandbox {
    /// A network of its own with nothing but loopback; `/run` and `/srv` empty and in memory; what is written to
    /// `/etc`, `/tmp` and `/var` in memory; the unpacked Debian packages as if installed.
    pub async fn start(cache: &Cache, log: &std::path::Path) -> Result<Self> {
        crate::require_root("namespaces")?;
        let tools = cache.part(Part::Debian)?;
        let mut command = bound_command("unshare");
        command
            .args(["--mount", "--net", "--propagation", "private", "bash", "-c", SCRIPT, "sandbox"])
            .arg(&tools)
            .arg(cache.root());
        let mut sandbox = Self { holder: Process::spawn("sandbox", command, log)? };
        until("sandbox", Duration::from_secs(20), || {
            sandbox.holder.check_running()?;
            Ok(sandbox.path("run/sandbox-ready").exists().then_some(()))
        })
        .await?;
        Ok(sandbox)
    }

    /// A path inside, as seen from outside.
    pub fn path(&self, inside: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root", self.holder.pid())).join(inside.trim_start_matches('/'))
    }

    /// A command that runs inside; its process is the program itself, with no wrapper left around it.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let namespaces = format!("/proc/{}/ns", self.holder.pid());
        let mut command = bound_command("nsenter");
        command.arg(format!("--mount={namespaces}/mnt")).arg(format!("--net={namespaces}/net")).arg("--");
        command.arg(program);
        command
    }

    /// Runs a shell script inside.
    pub async fn shell(&self, script: &str) -> Result<String> {
        let mut command = self.command("bash");
        command.args(["-eu", "-c", script]);
        run(command, Duration::from_secs(60)).await
    }

    /// A port on this machine's 127.0.0.1 that leads to an address inside.
    pub fn forward(&self, to: SocketAddr) -> Result<Forward> {
        Forward::into_namespace(&PathBuf::from(format!("/proc/{}/ns/net", self.holder.pid())), to)
            .with_context(|| format!("forward to {to}"))
    }
}
