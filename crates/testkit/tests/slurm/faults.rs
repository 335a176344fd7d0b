//! slurmrestd behind `Chaos`, and a test process that is killed with a cluster in it.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use http::StatusCode;
use nix::unistd::Pid;
use serde_json::Value;
use testkit::cache::SlurmVersion;
use testkit::chaos::{Chaos, Fault};
use testkit::process::{Process, bound_command, eventually};
use testkit::slurm::SlurmCluster;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A plain request, so that what arrives is what was sent.
async fn get(url: &str, path: &str, token: &str) -> Result<(u16, Value)> {
    let host = url.strip_prefix("http://").context("not a plain URL")?;
    let mut stream = TcpStream::connect(host).await?;
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nX-SLURM-USER-TOKEN: {token}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let (head, body) = answer.split_once("\r\n\r\n").context("the connection was cut")?;
    let status = head.split_whitespace().nth(1).context("no status")?.parse()?;
    // A body in chunks has their lengths around the JSON.
    let json = body.find('{').and_then(|start| Some(&body[start..=body.rfind('}')?])).unwrap_or("null");
    Ok((status, serde_json::from_str(json)?))
}

pub(crate) async fn chaos_makes_slurmrestd_fail_in_each_of_its_ways(version: SlurmVersion) -> Result<()> {
    let slurm = SlurmCluster::builder(version).nodes(1).start().await?;
    let address = slurm.rest_url().trim_start_matches("http://").parse()?;
    let chaos = Chaos::before_http(address).await?;
    let token = slurm.token("root", Duration::from_secs(60))?;
    let path = slurm.slurm_path("ping/");
    let ask = async || get(&chaos.url(), &path, &token).await;

    let (status, answer) = ask().await?;
    ensure!(status == 200 && answer["errors"].as_array().is_some_and(Vec::is_empty), "{status} {answer}");

    chaos.inject_times("ping", Fault::slurm_errors(2016, "Requested nodes are busy"), 1);
    let (status, answer) = ask().await?;
    assert_eq!((status, &answer["errors"][0]["error_number"]), (200, &Value::from(2016)));

    chaos.inject_times("ping", Fault::unauthorized(), 1);
    assert_eq!(ask().await?.0, 401);
    chaos.inject_times("ping", Fault::server_error(StatusCode::BAD_GATEWAY), 1);
    assert_eq!(ask().await?.0, 502);
    chaos.inject_times("ping", Fault::Cut, 1);
    assert!(ask().await.is_err(), "a cut connection has no answer");

    chaos.inject("ping", Fault::Cut);
    chaos.heal();
    assert_eq!(ask().await?.0, 200, "healed");
    Ok(())
}

/// Where the killed process below writes its processes; also what tells it to start at all.
const REPORT: &str = "SLIPWAY_TESTKIT_REPORT";

#[test]
fn a_killed_test_process_leaves_no_slurm_process() -> Result<()> {
    testkit::run(async {
        let folder = tempfile::tempdir()?;
        let report = folder.path().join("report");
        let mut command = bound_command(std::env::current_exe()?);
        command.args(["--exact", "faults::victim", "--nocapture"]).env(REPORT, &report);
        let mut victim = Process::spawn("victim", command, &folder.path().join("log"))?;
        let processes = eventually("the victim's cluster", Duration::from_secs(60), async || {
            victim.check_running()?;
            Ok(fs::read_to_string(&report).ok().filter(|text| text.ends_with('\n')))
        })
        .await?;
        let processes: Vec<Pid> =
            processes.split_whitespace().filter_map(|word| word.parse().ok().map(Pid::from_raw)).collect();
        ensure!(processes.len() > 8, "every daemon and the job should be there: {processes:?}");

        victim.kill();
        eventually("its processes are gone", Duration::from_secs(5), async || {
            let left: Vec<_> =
                processes.iter().filter(|pid| nix::sys::signal::kill(**pid, None).is_ok()).collect();
            ensure!(left.is_empty(), "still there: {left:?}");
            Ok(Some(()))
        })
        .await
    })
}

/// Not a test of its own: the process that the test above kills.
#[test]
fn victim() -> Result<()> {
    let Some(report) = std::env::var_os(REPORT) else { return Ok(()) };
    testkit::run(async {
        let cluster = SlurmCluster::builder(SlurmVersion::V26_05).accounting().start().await?;
        let job = cluster.exec_as("alice", &["sbatch", "--parsable", "--wrap", "sleep 1000"]).await?;
        cluster.wait_job(job.trim().parse()?, "RUNNING").await?;
        let mut processes = String::new();
        for pod in cluster.pods() {
            for pid in cluster.processes(pod)? {
                processes.push_str(&format!("{pid} "));
            }
        }
        fs::write(report, format!("{processes}\n"))?;
        std::future::pending().await
    })
}
