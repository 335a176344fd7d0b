//! `slipway-node run`: stands in a container for a Slurm daemon that must survive a bad reconfigure.
//!
//! slurmctld in the foreground (`-D`) ends when a reconfigure meets a slurm.conf that it cannot read, and with it the
//! container. As a daemon it keeps running on the old configuration. So it is started as one, and what a container
//! expects is added here: its log on standard output, signals forwarded, orphans reaped, an end when it ends.

mod family;
mod reconfigure;

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::stat::Mode;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, mkfifo};

use crate::say::say;
use family::Family;
use reconfigure::Failures;

/// What a daemon is told when we are: ends, reconfigures, and log rotation among them.
const FORWARDED: [Signal; 6] =
    [Signal::SIGTERM, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGHUP, Signal::SIGUSR1, Signal::SIGUSR2];

/// The kernel's list of children misses some while others come and go. Orphans of other programs may be the only ones
/// left, so after this many looks in vain the daemon is gone.
const LOOKS: u32 = 5;
/// Milliseconds between two looks.
const LOOK: u8 = 100;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where the daemon writes its process id [default: /var/run/NAME.pid]
    #[arg(long)]
    pid_file: Option<PathBuf>,
    /// The pipe that the daemon logs to [default: /run/NAME.log]
    #[arg(long)]
    log: Option<PathBuf>,
    /// The daemon and its arguments; `-L` is added
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<String>,
}

pub fn run(args: Args) -> Result<()> {
    let Some((program, arguments)) = args.command.split_first() else { bail!("no command") };
    let name = Path::new(program).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let pid_file = args.pid_file.unwrap_or_else(|| format!("/var/run/{name}.pid").into());
    let log_path = args.log.unwrap_or_else(|| format!("/run/{name}.log").into());

    // What a daemon leaves behind becomes our child, also when we are not the first process.
    prctl::set_child_subreaper(true).context("become the parent of orphans")?;
    let log = open_log(&log_path)?;
    // A daemon closes what it inherits, so it gets the pipe by name. slurm.conf says /dev/null; the flag wins.
    let started = Command::new(program).args(arguments).arg("-L").arg(&log_path).spawn();
    let first = started.with_context(|| format!("start {program}"))?.id().cast_signed();
    // Only now: a child inherits what is blocked, and slurmctld reconfigures by a signal to itself.
    let signals = signals()?;

    let mut life = Life {
        family: Family::new(Path::new(program)),
        pid_file,
        first: Pid::from_raw(first),
        asked: None,
        waiting: Vec::new(),
        last: None,
    };
    let mut failures = Failures::default();
    let end = watch(&signals, &log, &mut life, &mut failures);
    // What the daemon said last.
    let _ = copy_log(&log, &mut failures);
    end?;
    if life.asked.is_some() {
        return Ok(());
    }
    match life.last {
        Some(status) => bail!("{name} ended by itself: {status}"),
        None => bail!("{name} ended by itself"),
    }
}

/// Signals arrive as data, in the order of everything else.
fn signals() -> Result<SignalFd> {
    let mut set: SigSet = FORWARDED.into_iter().collect();
    set.add(Signal::SIGCHLD);
    set.thread_block().context("block signals")?;
    SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK).context("receive signals")
}

/// Open for writing too, so that it has no end while the daemon is replaced by another process.
fn open_log(path: &Path) -> Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(error).with_context(|| format!("remove {}", path.display()));
        }
        _ => {
            mkfifo(path, Mode::S_IRUSR | Mode::S_IWUSR)
                .with_context(|| format!("make {}", path.display()))?;
        }
    }
    File::options()
        .read(true)
        .write(true)
        .custom_flags(OFlag::O_NONBLOCK.bits())
        .open(path)
        .with_context(|| format!("open {}", path.display()))
}

/// Copies what is there, and listens for what has to be explained.
fn copy_log(mut log: &File, failures: &mut Failures) -> io::Result<()> {
    let mut buffer = [0; 16 * 1024];
    let mut out = io::stdout().lock();
    loop {
        match log.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(read) => {
                out.write_all(&buffer[..read])?;
                failures.hear(&buffer[..read]);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return out.flush(),
            Err(error) => return Err(error),
        }
    }
}

/// Whether any process is left below us.
#[derive(PartialEq, Eq)]
enum Children {
    Some,
    None,
}

/// What is known of the daemon.
struct Life {
    family: Family,
    pid_file: PathBuf,
    /// The process that was started; the daemon is another.
    first: Pid,
    /// The signal by which we were told to end.
    asked: Option<Signal>,
    /// Signals for which nobody was there yet.
    waiting: Vec<Signal>,
    /// How the last process of the daemon ended.
    last: Option<String>,
}

/// Until no process of the daemon is left.
fn watch(signals: &SignalFd, log: &File, life: &mut Life, failures: &mut Failures) -> Result<()> {
    let mut unseen = 0;
    loop {
        copy_log(log, failures).context("copy the log")?;
        if failures.take() {
            reconfigure::explain();
        }
        while let Some(signal) = signals.read_signal().context("read a signal")? {
            match Signal::try_from(signal.ssi_signo.cast_signed()) {
                Ok(Signal::SIGCHLD) => (),
                Ok(signal) => life.forward(signal),
                Err(_) => continue,
            }
        }
        // Before the first wait too: what ended earlier sent no signal that we could have seen.
        let children = life.reap()?;
        unseen = if life.family.is_seen() { 0 } else { unseen + 1 };
        if children == Children::None || unseen == LOOKS {
            return Ok(());
        }
        life.deliver();
        let settled = unseen == 0 && life.waiting.is_empty();
        let patience = if settled { PollTimeout::NONE } else { PollTimeout::from(LOOK) };
        let mut ready =
            [PollFd::new(signals.as_fd(), PollFlags::POLLIN), PollFd::new(log.as_fd(), PollFlags::POLLIN)];
        match poll(&mut ready, patience) {
            Ok(_) | Err(Errno::EINTR) => (),
            Err(error) => return Err(error).context("wait for signals"),
        }
    }
}

impl Life {
    fn forward(&mut self, signal: Signal) {
        if matches!(signal, Signal::SIGTERM | Signal::SIGINT | Signal::SIGQUIT) {
            self.asked = Some(signal);
        }
        if !self.waiting.contains(&signal) {
            self.waiting.push(signal);
        }
        self.deliver();
    }

    /// In the middle of a start or a reconfigure there may be nobody to hear a signal; it is kept for the next look.
    fn deliver(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let written = fs::read_to_string(&self.pid_file).ok().and_then(|text| text.trim().parse().ok());
        let daemons = self.family.to_signal(written);
        if daemons.is_empty() {
            return;
        }
        for signal in self.waiting.drain(..) {
            for pid in &daemons {
                say(&format!("{signal} to {} {pid}", self.family.name()));
                let _ = kill(*pid, signal);
            }
        }
    }

    fn reap(&mut self) -> Result<Children> {
        loop {
            match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::StillAlive) => return Ok(Children::Some),
                Err(Errno::ECHILD) => return Ok(Children::None),
                Ok(WaitStatus::Exited(pid, code)) => self.ended(pid, code != 0, &format!("exit code {code}")),
                Ok(WaitStatus::Signaled(pid, signal, _)) => {
                    self.ended(pid, true, &format!("killed by {signal}"));
                }
                Ok(_) | Err(Errno::EINTR) => (),
                Err(error) => return Err(error).context("wait for processes"),
            }
        }
    }

    /// The first process ends well as soon as the daemon is on its own; that is no end of the daemon.
    fn ended(&mut self, pid: Pid, badly: bool, how: &str) {
        if pid != self.first || badly {
            self.last = Some(how.to_owned());
        }
        // Told to end in the middle of a reconfigure: whoever takes over has not heard it.
        if let Some(signal) = self.asked {
            self.forward(signal);
        }
    }
}
