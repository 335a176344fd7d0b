//! The real `slipway-node`, from the outside. What it shares with `slipway` is tested there in full.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail the test, as the tests do")]

#[path = "../../slipway/tests/support/mod.rs"]
mod support;

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Instant;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use support::{PATIENCE, Service, get, output};

fn slipway_node() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_slipway-node"))
}

#[test]
fn rebooter_is_alive_not_ready_measured_and_ends_on_sigterm() {
    let mut service = Service::start(slipway_node(), &["rebooter"]);
    service.wait_for(|line| line["level"] == "warn");
    assert_eq!(get(service.probes, "/healthz").status, 200);
    let ready = get(service.probes, "/readyz");
    assert_eq!(ready.status, 503);
    assert!(ready.body.contains("controllers failed: none registered"), "{}", ready.body);
    let metrics = get(service.metrics, "/metrics").body;
    assert!(metrics.contains("\nslipway_build_info{"), "{metrics}");
    assert!(metrics.contains("\nprocess_resident_memory_bytes "), "{metrics}");
    service.signal(Signal::SIGTERM);
    assert_eq!(service.exit_code(), Some(0));
}

#[test]
fn names_of_the_go_programs_are_understood() {
    let directory = tempfile::tempdir().unwrap();
    let link = |name: &str| {
        let link = directory.path().join(name);
        symlink(slipway_node(), &link).unwrap();
        link
    };
    let mut service = Service::start(&link("rebooter"), &["-log-level=info"]);
    assert_eq!(service.wait_for(|line| line["msg"] == "starting")["component"], "rebooter");
    drop(service);
    let refused = output(&link("power-manager"), &["resume", "--nodes", "a-[0-3]"]);
    assert_eq!(refused.status.code(), Some(2));
    let text = String::from_utf8(refused.stderr).unwrap();
    assert!(text.contains("no component 'power-manager'; it has: rebooter, "), "{text}");
}

/// A daemon as slurmctld is one: it leaves its starter, logs to a file only, and replaces itself when told to
/// reconfigure, by a child that takes over before it ends.
const DAEMON: &str = r#"#!/bin/bash
log=${@: -1} pid_file=$(dirname "$0")/pid
if [ "$1" != --inner ]; then setsid "$0" --inner "$@" > /dev/null 2>&1 & exit 0; fi
# A trap that fires inside a function sees the arguments of the function.
successor=("$0" "$@")
say() { echo "$*" >> "$log"; }
trap 'say ended by SIGTERM; exit 0' TERM
trap '"${successor[@]}" & while [ "$(cat "$pid_file")" = $$ ]; do sleep 0.01; done; exit 0' HUP
trap 'say gives up; exit 7' USR1
echo $$ > "$pid_file"
while read -r key value; do if [ "$key" = SigBlk: ]; then say "pid $$ blocks $value"; fi; done < /proc/$$/status
while :; do sleep 0.02; done
"#;

struct Daemon {
    folder: tempfile::TempDir,
    run: std::process::Child,
    lines: Receiver<String>,
    errors: Receiver<String>,
}

impl Daemon {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("fake-daemon");
        std::fs::write(&program, DAEMON).unwrap();
        std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let (pid_file, log) = (folder.path().join("pid"), folder.path().join("log"));
        // Tests may be run under nohup, and a shell cannot trap what was ignored when it began.
        let mut command = support::command(Path::new("env"), &["--default-signal"]);
        command
            .arg(slipway_node())
            .args(["run", "--pid-file"])
            .arg(pid_file)
            .arg("--log")
            .arg(log)
            .arg("--")
            .arg(program);
        let mut run = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = support::lines(run.stdout.take().unwrap(), |line| line);
        let errors = support::lines(run.stderr.take().unwrap(), |line| line);
        Self { folder, run, lines, errors }
    }

    /// The next line that has this in it.
    fn line(&self, part: &str) -> String {
        let (deadline, mut seen) = (Instant::now() + PATIENCE, Vec::new());
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) if line.contains(part) => return line,
                Ok(line) => seen.push(line),
                Err(error) => panic!("no line with `{part}`: {error}; there were {seen:#?}"),
            }
        }
    }

    fn pid(&self) -> Pid {
        let text = std::fs::read_to_string(self.folder.path().join("pid")).unwrap();
        Pid::from_raw(text.trim().parse().unwrap())
    }

    fn tell(&self, signal: Signal) {
        kill(Pid::from_raw(self.run.id().cast_signed()), signal).unwrap();
    }

    /// Its exit code, and what it said on standard error.
    fn end(mut self) -> (Option<i32>, String) {
        let mut said = String::new();
        loop {
            match self.errors.recv_timeout(PATIENCE) {
                Ok(line) => said += &line,
                // Standard error ends with the process.
                Err(RecvTimeoutError::Disconnected) => return (self.run.wait().unwrap().code(), said),
                Err(RecvTimeoutError::Timeout) => panic!("still running; it said: {said}"),
            }
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // After a failure: as long as it runs, so does the daemon that the file names.
        if let Ok(None) = self.run.try_wait() {
            let _ = kill(self.pid(), Signal::SIGKILL);
            let _ = self.run.kill();
            let _ = self.run.wait();
        }
    }
}

#[test]
fn a_daemon_is_followed_through_a_reconfigure_and_ended_in_order() {
    let daemon = Daemon::start();
    // slurmctld reconfigures by a signal to itself, which must not be blocked.
    assert!(daemon.line("pid ").ends_with("blocks 0000000000000000"));
    let first = daemon.pid();
    daemon.tell(Signal::SIGHUP);
    daemon.line("pid ");
    assert_ne!(daemon.pid(), first);
    daemon.tell(Signal::SIGTERM);
    daemon.line("ended by SIGTERM");
    assert_eq!(daemon.end(), (Some(0), String::new()));
}

#[test]
fn a_daemon_that_ends_by_itself_ends_the_container() {
    let daemon = Daemon::start();
    daemon.line("pid ");
    daemon.tell(Signal::SIGUSR1);
    daemon.line("gives up");
    let (code, errors) = daemon.end();
    assert_eq!(code, Some(1));
    assert!(errors.contains("fake-daemon ended by itself: exit code 7"), "{errors}");
}

#[test]
fn a_program_gets_the_limits_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("limits.conf");
    std::fs::write(&file, "* soft core 20\n* hard core 30\n* soft nofile 64\n* hard maxlogins 1\n").unwrap();
    let path = file.display().to_string();
    let script = "ulimit -Sc; ulimit -Hc; ulimit -Sn";
    let ran = output(slipway_node(), &["with-limits", "--file", &path, "--", "bash", "-c", script]);
    let said = String::from_utf8(ran.stdout).unwrap();
    assert!(said.ends_with("\n20\n30\n64\n"), "{said}");
    assert!(said.contains("`* hard maxlogins 1` is no limit for a daemon"), "{said}");
    // A file that is not there is no limit.
    let ran = output(slipway_node(), &["with-limits", "--file", "/nonexistent", "--", "sh", "-c", "exit 3"]);
    assert_eq!(ran.status.code(), Some(3));
}
