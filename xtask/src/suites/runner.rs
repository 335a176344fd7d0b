//! Runs test binaries, counts what they say, and ends what takes too long.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::ops::AddAssign;
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::{cargo, say, tell};

/// What came of some tests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    pub passed: usize,
    pub failed: usize,
    pub spent: Duration,
}

impl Outcome {
    pub(super) fn failure() -> Self {
        Self { failed: 1, ..Self::default() }
    }

    fn success() -> Self {
        Self { passed: 1, ..Self::default() }
    }
}

impl AddAssign for Outcome {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.spent += other.spent;
    }
}

/// A check that is a command; counts as one test.
pub(super) fn step(what: &str, mut command: Command) -> Outcome {
    check(
        what,
        command
            .status()
            .context("start cargo")
            .and_then(|status| if status.success() { Ok(()) } else { bail!("{status}") }),
    )
}

/// A check of our own; counts as one test.
pub(super) fn check(what: &str, result: Result<()>) -> Outcome {
    match result {
        Ok(()) => {
            say(&format!("{what} ... ok"));
            Outcome::success()
        }
        Err(error) => {
            say(&format!("{what} ... FAILED: {error:#}"));
            Outcome::failure()
        }
    }
}

/// The tests of one suite, under its budget.
pub(super) struct Tests {
    budget: Duration,
    spent: Duration,
    env: Vec<(&'static str, OsString)>,
}

impl Tests {
    pub(super) fn new(budget: Duration) -> Self {
        Self { budget, spent: Duration::ZERO, env: Vec::new() }
    }

    pub(super) fn env(&mut self, name: &'static str, value: impl Into<OsString>) {
        self.env.push((name, value.into()));
    }

    /// Time in tests, compilation apart.
    pub(super) fn spent(&self) -> Duration {
        self.spent
    }

    /// `cargo test`: compiles, then runs within twice the budget.
    pub(super) fn cargo(&mut self, selection: &[&str], arguments: &[&str]) -> Result<Outcome> {
        let mut compile = cargo(&["test", "--no-run"]);
        if !compile.args(selection).status()?.success() {
            bail!("the tests do not compile");
        }
        let mut command = cargo(&["test", "--no-fail-fast"]);
        command.args(selection).arg("--").args(arguments).envs(self.env.iter().cloned()).stdin(Stdio::null());
        let limit = (2 * self.budget).saturating_sub(self.spent);
        let started = Instant::now();
        let outcome = run(command, limit);
        self.spent += started.elapsed();
        outcome
    }
}

fn run(mut command: Command, limit: Duration) -> Result<Outcome> {
    let mut child = command.stdout(Stdio::piped()).spawn().context("start cargo test")?;
    let output = child.stdout.take().context("cargo test has no output")?;
    let pid = Pid::from_raw(child.id().cast_signed());
    let (done, ended) = sync_channel(1);
    let watchdog = std::thread::spawn(move || {
        let late = ended.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
        if late {
            tell("the suite took more than twice its budget and is ended");
            end_tree(pid);
        }
        late
    });
    let mut outcome = Outcome::default();
    for line in BufReader::new(output).lines() {
        let line = line?;
        if let Some((passed, failed)) = counted(&line) {
            outcome.passed += passed;
            outcome.failed += failed;
        }
        say(&line);
    }
    let status = child.wait()?;
    let _ = done.send(());
    let late = watchdog.join().unwrap_or(true);
    // A test binary that dies says nothing of its tests, and tests that nobody finds have not passed.
    let silent = !status.success() && outcome.failed == 0;
    if late || silent || outcome.passed + outcome.failed == 0 {
        outcome.failed += 1;
    }
    Ok(outcome)
}

/// `test result: ok. 3 passed; 1 failed; …`
fn counted(line: &str) -> Option<(usize, usize)> {
    let rest = line.strip_prefix("test result: ")?.split_once(". ")?.1;
    let number = |word: &str| rest.split("; ").find_map(|part| part.strip_suffix(word)?.trim().parse().ok());
    Some((number("passed")?, number("failed")?))
}

/// Ends a process and everything below it, the parent first so that it starts nothing new.
fn end_tree(pid: Pid) {
    // Each thread has children of its own.
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    let children: Vec<String> = lists.collect();
    let _ = kill(pid, Signal::SIGKILL);
    let numbers = children.iter().flat_map(|list| list.split_whitespace());
    for child in numbers.filter_map(|word| word.parse().ok()) {
        end_tree(Pid::from_raw(child));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_counted() {
        let line = "test result: FAILED. 12 passed; 3 failed; 1 ignored; 0 measured; 2 filtered out; finished in 1.20s";
        assert_eq!(counted(line), Some((12, 3)));
        assert_eq!(counted("test it_works ... ok"), None);
    }

    #[test]
    fn a_binary_that_dies_is_a_failure() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo 'test result: ok. 2 passed; 0 failed; 0 ignored'; exit 101"]);
        let outcome = run(command, Duration::from_secs(10)).unwrap();
        assert_eq!((outcome.passed, outcome.failed), (2, 1));
    }

    #[test]
    fn no_tests_are_a_failure() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo 'test result: ok. 0 passed; 0 failed; 0 ignored'"]);
        assert_eq!(run(command, Duration::from_secs(10)).unwrap().failed, 1);
    }

    #[test]
    fn a_suite_that_hangs_is_ended_with_all_it_started() {
        let started = Instant::now();
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 60 & echo started; wait"]);
        let outcome = run(command, Duration::from_millis(200)).unwrap();
        assert_eq!(outcome.failed, 1);
        assert!(started.elapsed() < Duration::from_secs(30));
    }
}
