//! The real `slipway-node`, from the outside. What it shares with `slipway` is tested there in full.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test, as the tests do")]

#[path = "../../slipway/tests/support/mod.rs"]
mod support;

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use support::{Service, get, output};

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
    lines: std::io::Lines<std::io::BufReader<std::process::ChildStdout>>,
}

impl Daemon {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("fake-daemon");
        std::fs::write(&program, DAEMON).unwrap();
        std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let (pid_file, log) = (folder.path().join("pid"), folder.path().join("log"));
        let arguments = ["run", "--pid-file"];
        let mut command = support::command(slipway_node(), &arguments);
        command.arg(pid_file).arg("--log").arg(log).arg("--").arg(program);
        let mut run = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(run.stdout.take().unwrap()).lines();
        Self { folder, run, lines }
    }

    fn line(&mut self, part: &str) -> String {
        self.lines.by_ref().map_while(Result::ok).find(|line| line.contains(part)).unwrap()
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
        let mut errors = String::new();
        self.run.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        (self.run.wait().unwrap().code(), errors)
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
    let mut daemon = Daemon::start();
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
    let mut daemon = Daemon::start();
    daemon.line("pid ");
    daemon.tell(Signal::SIGUSR1);
    daemon.line("gives up");
    let (code, errors) = daemon.end();
    assert_eq!(code, Some(1));
    assert!(errors.contains("fake-daemon ended by itself: exit code 7"), "{errors}");
}
