//! One daemon in namespaces of its own, as a pod would hold it.
//!
//! Our child is `unshare`; its child is tini, the first process of the pod's pid namespace. When either ends,
//! so does everything in the pod, also what daemonized itself.

use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;

use crate::Sandbox;
use crate::process::{Process, bound_command, run, until};
use crate::scratch::Scratch;

const SCRIPT: &str = include_str!("../../../../testbed/slurm/pod.sh");
const TINI: &str = "tini";
/// Generous, since tests share the machine with builds; a start normally takes under a second.
const START: Duration = Duration::from_secs(60);
const EXEC: Duration = Duration::from_secs(30);
const END: Duration = Duration::from_secs(10);

/// Where pods run.
#[derive(Debug)]
pub(super) struct Site {
    pub(super) sandbox: Sandbox,
    /// Layers, as an overlay mount names them.
    pub(super) rootfs: String,
    pub(super) logs: Scratch,
}

#[derive(Debug, Clone)]
pub(super) struct PodSpec {
    pub(super) name: String,
    pub(super) address: Ipv4Addr,
    pub(super) files: Vec<PodFile>,
    pub(super) command: Vec<String>,
}

#[derive(Debug, Clone)]
pub(super) struct PodFile {
    pub(super) path: &'static str,
    pub(super) owner: u32,
    pub(super) mode: u32,
    pub(super) content: Vec<u8>,
}

impl Site {
    pub(super) fn log(&self, pod: &str) -> PathBuf {
        self.logs.join(&format!("{pod}.log"))
    }

    fn folder(&self, pod: &str) -> PathBuf {
        self.sandbox.path("/srv").join(pod)
    }

    /// Puts the files where the pod's root will show them.
    fn write_files(&self, spec: &PodSpec) -> Result<()> {
        let upper = self.folder(&spec.name).join("upper");
        for PodFile { path, owner, mode, content } in &spec.files {
            let path = upper.join(path.trim_start_matches('/'));
            let write = || {
                fs::create_dir_all(path.parent().unwrap_or(&upper))?;
                fs::write(&path, content)?;
                fs::set_permissions(&path, fs::Permissions::from_mode(*mode))?;
                chown(&path, Some(*owner), Some(*owner))
            };
            write().with_context(|| format!("write {}", path.display()))?;
        }
        Ok(())
    }
}

#[derive(Debug)]
pub(super) struct Pod {
    name: String,
    address: Ipv4Addr,
    process: Process,
    init: Pid,
}

impl Pod {
    /// Starts a pod with nothing but its files.
    pub(super) async fn create(site: &Site, spec: &PodSpec) -> Result<Self> {
        site.write_files(spec)?;
        Self::start(site, spec).await
    }

    /// Starts a pod on the files that an earlier one of this name left, if any.
    pub(super) async fn start(site: &Site, spec: &PodSpec) -> Result<Self> {
        let PodSpec { name, address, files: _, command: daemon } = spec;
        let mut command = site.sandbox.command("bash");
        command.args(["-c", SCRIPT, "pod.sh", name, &address.to_string()]).arg(&site.rootfs).args(daemon);
        let mut process = Process::spawn(name, command, &site.log(name))?;
        let init = until(&format!("the pod {name}"), START, || {
            process.check_running()?;
            // Before it is unshare, this process is a shell with children of its own.
            Ok(process.children().into_iter().find(|child| is_tini(*child)))
        })
        .await?;
        Ok(Self { name: name.clone(), address: *address, process, init })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn address(&self) -> Ipv4Addr {
        self.address
    }

    pub(super) fn log_tail(&self) -> String {
        format!("the log of {} ends with:\n{}", self.name, self.process.log_tail())
    }

    /// A path in the pod, as seen from outside.
    pub(super) fn path(&self, inside: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root", self.init)).join(inside.trim_start_matches('/'))
    }

    /// Every process in the pod.
    pub(super) fn processes(&self) -> Vec<Pid> {
        let namespace = |pid: Pid| fs::read_link(format!("/proc/{pid}/ns/pid")).ok();
        let Some(own) = namespace(self.init).filter(|_| self.is_running()) else { return Vec::new() };
        let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
        entries
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok().map(Pid::from_raw))
            .filter(|pid| namespace(*pid).is_some_and(|found| found == own))
            .collect()
    }

    /// False as soon as the pod's first process has ended.
    pub(super) fn is_running(&self) -> bool {
        self.process.children().contains(&self.init)
    }

    pub(super) fn check_running(&self) -> Result<()> {
        if self.is_running() { Ok(()) } else { Err(anyhow!("{} ended; {}", self.name, self.log_tail())) }
    }

    /// Whether something in the pod listens. Asks the kernel and not the daemon, which would log each try.
    pub(super) fn is_listening(&self, port: u16) -> bool {
        listens(self.init, port)
    }

    pub(super) async fn wait_listening(&self, port: u16) -> Result<()> {
        until(&format!("{} on port {port}", self.name), START, || {
            self.check_running()?;
            Ok(self.is_listening(port).then_some(()))
        })
        .await
        .with_context(|| self.log_tail())
    }

    /// Runs a program in the pod, with its root and all its namespaces.
    pub(super) async fn exec(&self, args: &[&str]) -> Result<String> {
        self.check_running()?;
        let mut command = bound_command("nsenter");
        command.arg(format!("--target={}", self.init));
        command.args(["--mount", "--pid", "--uts", "--ipc", "--net", "--root", "--wd", "--"]);
        command.args(["env", "-i", "-C", "/", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"]);
        // Entering a pid namespace forks, and only the outer process is ours to kill: the inner one ends itself.
        let inner_limit = EXEC.as_secs() + 1;
        command.args(["timeout", "--signal=KILL", &inner_limit.to_string()]).args(args);
        run(command, EXEC).await.with_context(|| format!("in {}", self.name))
    }

    /// Ends the pod: politely at first, after `grace` by force. Its files stay.
    pub(super) async fn stop(&mut self, grace: Duration) -> Result<()> {
        self.signal(Signal::SIGTERM);
        if self.wait_end(grace).await.is_ok() {
            return Ok(());
        }
        self.kill().await
    }

    /// Ends the pod by force, and returns when its last process is gone.
    pub(super) async fn kill(&mut self) -> Result<()> {
        // The first process is reaped last, and unshare ends after it: so its end is that of the whole pod.
        self.signal(Signal::SIGKILL);
        self.wait_end(END).await
    }

    async fn wait_end(&mut self, limit: Duration) -> Result<()> {
        until(&format!("the end of {}", self.name), limit, || Ok(self.process.try_wait()?.map(|_status| ())))
            .await
    }

    fn signal(&self, signal: Signal) {
        // As long as it is our child's child it is not reaped, so its number means no other process.
        if self.is_running() {
            let _ = kill(self.init, signal);
        }
    }

    /// Takes away the network and the files of a pod that has ended.
    pub(super) async fn remove(self, site: &Site) -> Result<()> {
        let mut command = site.sandbox.command("ip");
        command.args(["netns", "del", &self.name]);
        run(command, EXEC).await?;
        let folder = site.folder(&self.name);
        fs::remove_dir_all(&folder).with_context(|| format!("remove {}", folder.display()))
    }
}

impl Drop for Pod {
    fn drop(&mut self) {
        if self.is_running() {
            self.signal(Signal::SIGKILL);
            // Not reaped here, that is for `process`. Killing unshare first would be quicker, but would leave
            // what is in the pod to end some time later, as a child of the machine's first process.
            let unshare = Pid::from_raw(self.process.pid().cast_signed());
            let _ = waitid(Id::Pid(unshare), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT);
        }
    }
}

fn is_tini(pid: Pid) -> bool {
    fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim_end() == TINI)
}

fn listens(pid: Pid, port: u16) -> bool {
    ["tcp", "tcp6"].iter().any(|table| {
        fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("net").join(table))
            .is_ok_and(|text| shows_listener(&text, port))
    })
}

/// Reads the kernel's table of sockets: `sl local_address rem_address st …`, all in hexadecimal.
fn shows_listener(table: &str, port: u16) -> bool {
    const LISTEN: &str = "0A";
    let suffix = format!(":{port:04X}");
    table.lines().any(|line| {
        let mut fields = line.split_whitespace().skip(1);
        fields.next().is_some_and(|local| local.ends_with(&suffix)) && fields.nth(1) == Some(LISTEN)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_listener_on_the_port_counts() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt\n   \
                     0: 00000000:1AA1 00000000:0000 0A 00000000:00000000 00:00000000 00000000\n   \
                     1: 02004D0A:1AA2 01004D0A:D431 01 00000000:00000000 00:00000000 00000000\n";
        assert!(shows_listener(table, 6817));
        assert!(!shows_listener(table, 6818), "an open connection is no listener");
        assert!(!shows_listener(table, 6820));
    }
}
