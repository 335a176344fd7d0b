//! Processes that never outlive the program that started them.
//!
//! Each is started through `setpriv --pdeathsig KILL`: the kernel ends it when we end, also by SIGKILL.
//! The kernel means the *thread* that forked, so all forks happen on one thread that never returns.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::LazyLock;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

type Request = (Command, SyncSender<io::Result<Child>>);

static SPAWNER: LazyLock<SyncSender<Request>> = LazyLock::new(|| {
    let (requests, queue) = sync_channel::<Request>(0);
    std::thread::spawn(move || {
        while let Ok((mut command, reply)) = queue.recv() {
            // The asker waits for the answer, so there is somebody to take it.
            let _ = reply.send(command.spawn());
        }
    });
    requests
});

/// A command whose process ends with ours. `spawn` it with [`Process::spawn`] or [`run`] only.
pub fn bound_command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(program).stdin(Stdio::null());
    command
}

fn spawn_on_the_long_lived_thread(command: Command) -> Result<Child> {
    let (reply, answer) = sync_channel(1);
    SPAWNER.send((command, reply)).map_err(|_| anyhow!("the spawning thread is gone"))?;
    Ok(answer.recv().context("the spawning thread is gone")??)
}

/// A running process; dropped, it is killed and reaped.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts a command made by [`bound_command`], with its output appended to `log`.
    pub fn spawn(name: impl Into<String>, mut command: Command, log: &Path) -> Result<Self> {
        let name = name.into();
        let output = File::options()
            .create(true)
            .append(true)
            .open(log)
            .with_context(|| format!("open {}", log.display()))?;
        command.stdout(output.try_clone()?).stderr(output);
        let child = spawn_on_the_long_lived_thread(command).with_context(|| format!("start {name}"))?;
        Ok(Self { name, child, log: log.to_owned() })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    fn nix_pid(&self) -> Pid {
        Pid::from_raw(self.child.id().cast_signed())
    }

    /// The direct children of this process, from the kernel.
    pub fn children(&self) -> Vec<Pid> {
        let pid = self.pid();
        fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))
            .unwrap_or_default()
            .split_whitespace()
            .filter_map(|word| word.parse().ok().map(Pid::from_raw))
            .collect()
    }

    /// An error with the end of the log if the process has ended.
    pub fn check_running(&mut self) -> Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("{} ended with {status}:\n{}", self.name, self.log_tail()),
        }
    }

    pub fn try_wait(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    pub fn signal(&self, signal: Signal) {
        let _ = kill(self.nix_pid(), signal);
    }

    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// The last lines of the log, for error messages.
    pub fn log_tail(&self) -> String {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<_> = text.lines().collect();
        lines[lines.len().saturating_sub(15)..].join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Runs a command to its end and gives its output; a failure carries what it printed.
pub async fn run(mut command: Command, limit: Duration) -> Result<String> {
    let shown = format!("{command:?}");
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = spawn_on_the_long_lived_thread(command).with_context(|| format!("start {shown}"))?;
    let pid = Pid::from_raw(child.id().cast_signed());
    let output = tokio::task::spawn_blocking(move || child.wait_with_output());
    let output = match tokio::time::timeout(limit, output).await {
        Ok(output) => output??,
        Err(_) => {
            let _ = kill(pid, Signal::SIGKILL);
            bail!("{shown} did not end within {limit:?} and was killed");
        }
    };
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(stdout);
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    bail!("{shown}: {}\n{stdout}{stderr}", output.status)
}

/// Asks until the answer is `Some`; `what` and the last error are named when time is up.
pub async fn eventually<T>(
    what: &str,
    limit: Duration,
    mut ask: impl AsyncFnMut() -> Result<Option<T>>,
) -> Result<T> {
    let end = tokio::time::Instant::now() + limit;
    loop {
        let answer = ask().await;
        if let Ok(Some(value)) = answer {
            return Ok(value);
        }
        if tokio::time::Instant::now() >= end {
            return match answer {
                Err(error) => Err(error.context(format!("{what}: not within {limit:?}"))),
                Ok(_) => bail!("{what}: not within {limit:?}"),
            };
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
}

/// The same for a question that is answered on the spot. Here an error is an answer and ends the wait.
pub async fn until<T>(what: &str, limit: Duration, mut ask: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let end = tokio::time::Instant::now() + limit;
    loop {
        if let Some(value) = ask()? {
            return Ok(value);
        }
        if tokio::time::Instant::now() >= end {
            bail!("{what}: not within {limit:?}");
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Waits for something that cannot come any more once one of these processes has ended.
pub async fn while_running<'a, T>(
    processes: impl IntoIterator<Item = &'a mut Process>,
    wait: impl Future<Output = Result<T>>,
) -> Result<T> {
    let mut processes: Vec<_> = processes.into_iter().collect();
    let one_has_ended = async {
        loop {
            if let Err(ended) = processes.iter_mut().try_for_each(|process| process.check_running()) {
                return ended;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::select! {
        result = wait => result,
        ended = one_has_ended => Err(ended),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_survives_the_thread_that_asked_for_it_and_dies_when_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let mut process = std::thread::spawn(move || {
            let mut command = bound_command("sleep");
            command.arg("60");
            Process::spawn("sleep", command, &log).unwrap()
        })
        .join()
        .unwrap();
        process.check_running().unwrap();
        let pid = process.nix_pid();
        drop(process);
        assert!(kill(pid, None).is_err(), "the process is still there");
    }

    #[tokio::test]
    async fn a_failed_command_shows_what_it_printed() {
        let mut command = bound_command("sh");
        command.args(["-c", "echo no such thing >&2; exit 3"]);
        let error = run(command, Duration::from_secs(10)).await.unwrap_err().to_string();
        assert!(error.contains("no such thing") && error.contains('3'), "{error}");
    }

    #[tokio::test]
    async fn a_wait_ends_with_the_process_it_depends_on() {
        let folder = tempfile::tempdir().unwrap();
        let mut command = bound_command("sh");
        command.args(["-c", "echo out of rope; exit 4"]);
        let mut process = Process::spawn("climber", command, &folder.path().join("log")).unwrap();
        let never = std::future::pending::<Result<()>>();
        let error = while_running([&mut process], never).await.unwrap_err().to_string();
        assert!(error.contains("climber") && error.contains("out of rope"), "{error}");
    }

    #[tokio::test]
    async fn a_wait_that_ends_in_vain_names_the_last_error() {
        let error = eventually("the tide", Duration::ZERO, async || Err::<Option<()>, _>(anyhow!("ebb")))
            .await
            .unwrap_err();
        assert_eq!(format!("{error:#}"), "the tide: not within 0ns: ebb");
    }
}
