//! What worker-init does to the world: run scontrol, let time pass, say something. It is a trait so that the order of
//! things is tested without any of them.

use std::io::ErrorKind;
use std::pin::pin;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tokio::process::Command;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::sleep;

use crate::say::say;

/// When a line says that scontrol is slow, and when it is killed. It may hang on munge or on the file system.
const SLOW: Duration = Duration::from_secs(10);
const TOO_SLOW: Duration = Duration::from_secs(25);

pub(super) trait Effects {
    /// Time since the program started.
    fn now(&self) -> Duration;
    fn scontrol(&mut self, args: &[&str]) -> Result<Ran>;
    fn pause(&mut self, time: Duration) -> Result<()>;
    fn say(&mut self, line: &str);
}

/// How a program ended.
#[derive(Debug, Clone)]
pub(super) struct Ran {
    pub(super) ok: bool,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

impl Ran {
    /// One line for people: scontrol explains itself on either stream.
    pub(super) fn complaint(&self) -> String {
        let mut lines = self.stderr.lines().chain(self.stdout.lines()).map(str::trim);
        let line = lines.find(|line| !line.is_empty()).unwrap_or("it printed nothing");
        line.chars().take(300).collect()
    }

    pub(super) fn mentions(&self, text: &str) -> bool {
        self.stderr.contains(text) || self.stdout.contains(text)
    }
}

/// The pod this runs in.
#[derive(Debug)]
pub(super) struct Pod {
    start: Instant,
    runtime: Runtime,
    /// The first process of a container gets no signal that it has no handler for: without this, deleting a pod that
    /// waits takes as long as its grace period.
    terminate: Signal,
}

impl Pod {
    pub(super) fn new() -> Result<Self> {
        Self::that_stops_on(SignalKind::terminate())
    }

    fn that_stops_on(kind: SignalKind) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let terminate = {
            let _context = runtime.enter();
            signal(kind).context("listen for the signal to stop")?
        };
        Ok(Self { start: Instant::now(), runtime, terminate })
    }
}

impl Effects for Pod {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn scontrol(&mut self, args: &[&str]) -> Result<Ran> {
        self.runtime.block_on(run("scontrol", args, &mut self.terminate))
    }

    fn pause(&mut self, time: Duration) -> Result<()> {
        self.runtime.block_on(async {
            tokio::select! {
                () = sleep(time) => Ok(()),
                _ = self.terminate.recv() => bail!("told to stop (SIGTERM) while waiting"),
            }
        })
    }

    fn say(&mut self, line: &str) {
        say(line);
    }
}

async fn run(program: &str, args: &[&str], terminate: &mut Signal) -> Result<Ran> {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).kill_on_drop(true);
    let mut output = pin!(command.output());
    let mut slow = pin!(sleep(SLOW));
    let mut too_slow = pin!(sleep(TOO_SLOW));
    let mut said = false;
    loop {
        tokio::select! {
            ended = &mut output => return match ended {
                Ok(output) => Ok(Ran {
                    ok: output.status.success(),
                    stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
                    stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
                }),
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    Err(error).with_context(|| format!("run {program}: there is no such program in PATH"))
                }
                Err(error) => Err(error).with_context(|| format!("run {program}")),
            },
            () = &mut slow, if !said => {
                said = true;
                say(&format!("{program} {} has not answered for {} s", args.join(" "), SLOW.as_secs()));
            }
            () = &mut too_slow => {
                let stderr = format!("no answer within {} s", TOO_SLOW.as_secs());
                return Ok(Ran { ok: false, stdout: String::new(), stderr });
            }
            _ = terminate.recv() => bail!("told to stop (SIGTERM) while {program} ran"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(script: &str) -> Result<Ran> {
        let mut pod = Pod::new()?;
        pod.runtime.block_on(run("sh", &["-c", script], &mut pod.terminate))
    }

    #[test]
    fn both_streams_and_the_outcome_of_a_program_are_kept() {
        let ran = ran("echo out; echo; echo 'sad  ' >&2; exit 3").unwrap();
        assert_eq!((ran.ok, ran.complaint().as_str()), (false, "sad"));
        assert!(ran.mentions("out") && ran.mentions("sad") && !ran.mentions("glad"));
    }

    #[test]
    fn a_program_that_does_not_exist_ends_the_wait() {
        let mut pod = Pod::new().unwrap();
        let error = pod.runtime.block_on(run("no-such-program", &[], &mut pod.terminate)).unwrap_err();
        assert_eq!(error.to_string(), "run no-such-program: there is no such program in PATH");
    }

    #[test]
    fn being_told_to_stop_ends_a_pause() {
        // Not SIGTERM: the tests beside this one, in the same process, would stop as well.
        let mut pod = Pod::that_stops_on(SignalKind::user_defined1()).unwrap();
        nix::sys::signal::raise(nix::sys::signal::Signal::SIGUSR1).unwrap();
        let error = pod.pause(Duration::from_secs(60)).unwrap_err();
        assert!(error.to_string().contains("SIGTERM"), "{error}");
    }
}
