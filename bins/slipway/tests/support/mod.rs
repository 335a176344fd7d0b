//! A real process under test: started, asked over HTTP, signalled, and awaited. Shared by both programs' tests.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail the test, as the tests do")]
#![allow(dead_code, reason = "not every program's tests use all of it")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// Everything asked of a process must happen within this: a machine under load takes its time, a hang takes for ever.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// The variables that a developer's shell may hold and that would change what is tested.
const LOG_VARIABLES: [&str; 2] = ["SLURM_OPERATOR_LOG_FORMAT", "SLURM_OPERATOR_LOG_LEVEL"];

pub(crate) fn command(program: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null());
    for name in LOG_VARIABLES {
        command.env_remove(name);
    }
    command
}

/// Runs a program that ends by itself.
pub(crate) fn output(program: &Path, args: &[&str]) -> Output {
    command(program, args).output().unwrap()
}

/// A running service, killed when the test ends.
pub(crate) struct Service {
    child: Child,
    lines: Receiver<Value>,
    pub(crate) seen: Vec<Value>,
    pub(crate) metrics: SocketAddr,
    pub(crate) probes: SocketAddr,
}

impl Service {
    /// Starts a service on free ports and waits until both servers listen.
    pub(crate) fn start(program: &Path, args: &[&str]) -> Self {
        let mut command = command(program, args);
        command.args(["--metrics-bind-address=127.0.0.1:0", "--health-probe-bind-address=127.0.0.1:0"]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = lines(child.stderr.take().unwrap(), json);
        let unknown = SocketAddr::from(([0, 0, 0, 0], 0));
        let mut service = Self { child, lines, seen: Vec::new(), metrics: unknown, probes: unknown };
        service.metrics = service.listening("metrics");
        service.probes = service.listening("probes");
        service
    }

    fn listening(&mut self, server: &str) -> SocketAddr {
        let line = self.wait_for(|line| line["msg"] == "listening" && line["server"] == server);
        line["address"].as_str().unwrap().parse().unwrap()
    }

    /// The first log line that fits, among those seen and those to come.
    pub(crate) fn wait_for(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(line) = self.seen.iter().find(|line| fits(line)) {
                return line.clone();
            }
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => self.seen.push(line),
                Err(error) => panic!("{error}; logged so far: {:#?}", self.seen),
            }
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().try_into().unwrap()), signal).unwrap();
    }

    /// Waits for the process to end and answers its exit code. Its log ends with it, which needs no polling.
    pub(crate) fn exit_code(mut self) -> Option<i32> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => self.seen.push(line),
                Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => break,
                Err(error) => panic!("still running: {error}; logged so far: {:#?}", self.seen),
            }
        }
        self.child.wait().unwrap().code()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Every line of the log must be one JSON object.
fn json(line: String) -> Value {
    serde_json::from_str(&line).unwrap_or(Value::String(line))
}

/// What a process says, line by line, so that a test can stop waiting. The channel closes when the process does.
pub(crate) fn lines<T: Send + 'static>(
    from: impl Read + Send + 'static,
    parse: impl Fn(String) -> T + Send + 'static,
) -> Receiver<T> {
    let (sender, receiver) = sync_channel(1000);
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            if sender.send(parse(line)).is_err() {
                return;
            }
        }
    });
    receiver
}

pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

pub(crate) fn get(address: SocketAddr, path: &str) -> Reply {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Reply { status, head: head.to_lowercase(), body: body.to_owned() }
}

/// A peer that begins a request and never ends it, which keeps a server from ending by itself.
pub(crate) fn unfinished_request(address: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost:").unwrap();
    // Answers on later connections show that the server has had its turns to read this one.
    for _ in 0..3 {
        assert_eq!(get(address, "/healthz").status, 200);
    }
    stream
}
