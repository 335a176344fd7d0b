//! A measured program: started, asked whether it is ready, weighed, ended.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use kube::Client;
use nix::sys::signal::Signal;
use nix::unistd::{SysconfVar, sysconf};
use serde_json::Value;
use testkit::api_calls::ApiCalls;
use testkit::process::{Process, bound_command, run, until};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::target;

const PATIENCE: Duration = Duration::from_secs(120);
/// Between two questions to a program that is starting.
const POLL: Duration = Duration::from_millis(2);
/// Nothing happens for this long: it is at rest.
const QUIET: Duration = Duration::from_secs(2);

/// How a program is started.
pub(super) struct Start<'a> {
    pub program: &'a str,
    pub mode: &'a str,
    pub args: &'a [String],
    pub kubeconfig: &'a Value,
    pub folder: &'a Path,
}

/// A running program; killed when dropped.
pub(super) struct Subject {
    process: Process,
    started: Instant,
    log: PathBuf,
    probes: SocketAddr,
    metrics: SocketAddr,
}

fn command(start: &Start<'_>) -> Result<Command> {
    let config = start.folder.join(format!("{}.kubeconfig", start.mode));
    fs::write(&config, start.kubeconfig.to_string())?;
    let mut command = bound_command(target().join("release").join(start.program));
    command.arg(start.mode).args(start.args).env("KUBECONFIG", config);
    Ok(command)
}

/// Runs a program of the load to its end.
pub(super) async fn load(start: &Start<'_>) -> Result<()> {
    run(command(start)?, Duration::from_secs(600)).await?;
    Ok(())
}

impl Subject {
    pub(super) fn start(start: &Start<'_>) -> Result<Self> {
        let (probes, metrics) = free_addresses()?;
        let mut command = command(start)?;
        command.arg(format!("--health-probe-bind-address={probes}"));
        command.arg(format!("--metrics-bind-address={metrics}"));
        let log = start.folder.join(format!("{}.log", start.mode));
        // A log of an earlier run must not answer for this one.
        let _ = fs::remove_file(&log);
        let started = Instant::now();
        let process = Process::spawn(start.mode, command, &log)?;
        Ok(Self { process, started, log, probes, metrics })
    }

    /// Waits for the first good answer of `/readyz`, and gives the time since the start.
    pub(super) async fn ready(&mut self) -> Result<Duration> {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if get(self.probes, "/readyz").await.is_ok_and(|(status, _)| status == 200) {
                return Ok(self.started.elapsed());
            }
            self.process.check_running()?;
            tokio::time::sleep(POLL).await;
        }
        bail!("not ready within {PATIENCE:?}:\n{}", self.process.log_tail())
    }

    /// How many objects of a kind the engine's cache holds.
    pub(super) async fn cached(&self, kind: &str) -> Result<u64> {
        let (_, page) = get(self.metrics, "/metrics").await?;
        let metric = format!("slipway_cache_objects{{group=\"\",kind=\"{kind}\"}} ");
        let line = page.lines().find_map(|line| line.strip_prefix(&metric));
        Ok(line.with_context(|| format!("no metric {metric}"))?.parse()?)
    }

    /// How many objects a stock store holds, once it is complete.
    pub(super) async fn stock_cached(&mut self) -> Result<u64> {
        let (process, log) = (&mut self.process, &self.log);
        until("the stock store", PATIENCE, || {
            process.check_running()?;
            let text = fs::read_to_string(log)?;
            let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            let mut in_step = lines.filter(|line| line["msg"] == "in step");
            Ok(in_step.find_map(|line| line["objects"].as_u64()))
        })
        .await
    }

    /// A size of `/proc/PID/status` in MiB, such as `VmRSS`.
    pub(super) fn mebibytes(&self, field: &str) -> Result<f64> {
        let status = fs::read_to_string(self.proc("status"))?;
        let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        let kibibytes = line.and_then(|line| line.split_whitespace().next()).context("no such field")?;
        Ok(kibibytes.parse::<f64>()? / 1024.0)
    }

    /// From here on `VmHWM` is the peak since now.
    pub(super) fn forget_peak(&self) -> Result<()> {
        fs::write(self.proc("clear_refs"), "5").context("reset the peak of memory")
    }

    /// Seconds of processor so far.
    pub(super) fn processor_seconds(&self) -> Result<f64> {
        let stat = fs::read_to_string(self.proc("stat"))?;
        let (_, fields) = stat.rsplit_once(") ").context("stat without a name")?;
        let fields: Vec<&str> = fields.split(' ').collect();
        let ticks = fields[11].parse::<f64>()? + fields[12].parse::<f64>()?;
        let per_second = sysconf(SysconfVar::CLK_TCK)?.context("no clock tick")?;
        Ok(ticks / per_second as f64)
    }

    /// Waits until it uses no processor.
    pub(super) async fn at_rest(&mut self) -> Result<()> {
        let end = Instant::now() + PATIENCE;
        let mut used = self.processor_seconds()?;
        loop {
            tokio::time::sleep(QUIET).await;
            self.process.check_running()?;
            let now = self.processor_seconds()?;
            // A tick or two is what the runtime's own timers take.
            if now - used <= 0.02 {
                return Ok(());
            }
            ensure!(Instant::now() < end, "not at rest within {PATIENCE:?}");
            used = now;
        }
    }

    /// Asks it to end and waits for it.
    pub(super) async fn end(mut self) -> Result<()> {
        self.process.signal(Signal::SIGTERM);
        let status = until("the program to end", PATIENCE, || self.process.try_wait()).await?;
        ensure!(status.success(), "ended with {status}:\n{}", self.process.log_tail());
        Ok(())
    }

    fn proc(&self, file: &str) -> PathBuf {
        Path::new("/proc").join(self.process.pid().to_string()).join(file)
    }
}

/// Waits until a user, or everybody, writes nothing.
pub(super) async fn no_writes(calls: &ApiCalls, client: &Client, user: Option<&str>) -> Result<()> {
    let end = Instant::now() + PATIENCE;
    loop {
        let mark = calls.mark(client).await?;
        tokio::time::sleep(QUIET).await;
        let mut writes = calls.since(client, mark).await?.writes();
        if let Some(user) = user {
            writes = writes.by(user);
        }
        if writes.is_empty() {
            return Ok(());
        }
        ensure!(Instant::now() < end, "still written after {PATIENCE:?}: {writes:?}");
    }
}

fn free_addresses() -> Result<(SocketAddr, SocketAddr)> {
    // Both are held until both are known, so that they differ.
    let (one, two) =
        (TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?, TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?);
    Ok((one.local_addr()?, two.local_addr()?))
}

async fn get(address: SocketAddr, path: &str) -> Result<(u16, String)> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: bench\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let (head, body) = answer.split_once("\r\n\r\n").context("no answer")?;
    let status = head.split(' ').nth(1).context("no status")?.parse()?;
    Ok((status, body.to_owned()))
}
