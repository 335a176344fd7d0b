//! The program under test, as a process.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use nix::sys::signal::Signal;
use serde_json::Value;
use testkit::process::{Process, bound_command, eventually, until};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::subject::Subject;
use crate::world::PATIENCE;

/// A running operator; killed when dropped.
#[derive(Debug)]
pub struct Operator {
    process: Process,
    log: PathBuf,
    metrics: SocketAddr,
    probes: SocketAddr,
}

impl Operator {
    /// Starts the program and waits until its servers listen.
    pub async fn start(
        subject: &Subject,
        name: &str,
        folder: &std::path::Path,
        kubeconfig: &Value,
        args: &[String],
        env: &[(&str, &str)],
    ) -> Result<Self> {
        let config = folder.join(format!("{name}.kubeconfig"));
        std::fs::write(&config, kubeconfig.to_string())?;
        let log = folder.join(format!("{name}.log"));
        let mut command = bound_command(subject.program);
        command.args(subject.args).args(args);
        command.args(["--metrics-bind-address=127.0.0.1:0", "--health-probe-bind-address=127.0.0.1:0"]);
        command.env("KUBECONFIG", &config).envs(env.iter().copied());
        let process = Process::spawn(name, command, &log)?;
        let unknown = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut operator = Self { process, log, metrics: unknown, probes: unknown };
        operator.metrics = operator.listening("metrics").await?;
        operator.probes = operator.listening("probes").await?;
        Ok(operator)
    }

    /// The first line of the log that fits.
    pub async fn logged(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> Result<Value> {
        let (process, log) = (&mut self.process, &self.log);
        until(what, PATIENCE, || {
            process.check_running()?;
            let text = std::fs::read_to_string(log)?;
            Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).find(|line| fits(line)))
        })
        .await
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    pub fn check_running(&mut self) -> Result<()> {
        self.process.check_running()
    }

    pub fn signal(&self, signal: Signal) {
        self.process.signal(signal);
    }

    pub async fn exit_code(mut self) -> Result<Option<i32>> {
        let status = until("the operator to end", PATIENCE, || self.process.try_wait()).await?;
        Ok(status.code())
    }

    /// The value of a metric whose line starts like this; 0 if there is none.
    pub async fn metric(&self, line: &str) -> Result<f64> {
        let (_, page) = self.metrics_page().await?;
        let found = page.lines().filter(|one| one.starts_with(line));
        Ok(found.filter_map(|one| one.rsplit(' ').next()?.parse::<f64>().ok()).sum())
    }

    /// Waits until such metrics add up to a value that fits.
    pub async fn measures(&self, line: &str, fits: impl Fn(f64) -> bool) -> Result<()> {
        eventually(line, PATIENCE, async || {
            let value = self.metric(line).await?;
            ensure!(fits(value), "{value}");
            Ok(Some(()))
        })
        .await
    }

    /// All metrics.
    pub async fn metrics_page(&self) -> Result<(u16, String)> {
        get(self.metrics, "/metrics").await
    }

    /// Status and text of a probe.
    pub async fn probe(&self, path: &str) -> Result<(u16, String)> {
        get(self.probes, path).await
    }

    async fn listening(&mut self, server: &str) -> Result<SocketAddr> {
        let fits = |line: &Value| line["msg"] == "listening" && line["server"] == server;
        let line = self.logged(&format!("{server} to listen"), fits).await?;
        Ok(line["address"].as_str().context("an address")?.parse()?)
    }
}

/// Whoever reads of a failed test wants to know what the operator said.
impl Drop for Operator {
    #[allow(clippy::print_stderr, reason = "shown for tests that fail, and for no others")]
    fn drop(&mut self) {
        let log = self.log();
        let lines: Vec<_> = log.lines().collect();
        eprintln!("{}:\n{}", self.log.display(), lines[lines.len().saturating_sub(100)..].join("\n"));
    }
}

async fn get(address: SocketAddr, path: &str) -> Result<(u16, String)> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: operator\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let Some((head, body)) = answer.split_once("\r\n\r\n") else { bail!("no answer: {answer:?}") };
    let status = head.split(' ').nth(1).context("a status")?.parse()?;
    Ok((status, body.to_owned()))
}
