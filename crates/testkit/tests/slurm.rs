//! The Slurm testbed on real Slurm, each release that there is.
#![expect(clippy::print_stdout, reason = "start times, shown with --nocapture")]

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use http::{Method, StatusCode};
use nix::unistd::Pid;
use serde_json::json;
use testkit::cache::SlurmVersion;
use testkit::process::eventually;
use testkit::slurm::{Auth, SlurmCluster, SlurmClusterBuilder, token};

#[path = "slurm/faults.rs"]
mod faults;
#[path = "slurm/worker_pods.rs"]
mod worker_pods;
use faults::chaos_makes_slurmrestd_fail_in_each_of_its_ways;
use worker_pods::{a_worker_pod_that_comes_back_takes_jobs_again, deleting_a_busy_worker_pod_loses_its_job};

const MINUTE: Duration = Duration::from_secs(60);

/// One test for each release from one function.
macro_rules! on_each_release {
    ($($test:ident),* $(,)?) => {
        mod v24_11 {
            $(#[test] fn $test() -> anyhow::Result<()> { testkit::run(super::$test(super::SlurmVersion::V24_11)) })*
        }
        mod v26_05 {
            $(#[test] fn $test() -> anyhow::Result<()> { testkit::run(super::$test(super::SlurmVersion::V26_05)) })*
        }
    };
}

on_each_release![
    a_job_runs,
    a_node_drains_and_resumes_over_rest,
    only_a_good_token_is_let_in,
    accounting_shows_the_job,
    accounting_works_with_munge,
    killing_a_node_kills_its_job_and_it_can_come_back,
    a_stopped_node_is_given_time,
    a_controller_restart_keeps_jobs_and_nodes,
    a_dropped_cluster_leaves_no_process,
    two_clusters_do_not_meet,
    deleting_a_busy_worker_pod_loses_its_job,
    a_worker_pod_that_comes_back_takes_jobs_again,
    chaos_makes_slurmrestd_fail_in_each_of_its_ways,
];

async fn start(what: &str, builder: SlurmClusterBuilder) -> Result<SlurmCluster> {
    let begin = Instant::now();
    let cluster = builder.start().await?;
    println!("Slurm {}, {what}: started in {:?}", cluster.version().as_str(), begin.elapsed());
    Ok(cluster)
}

async fn start_small(version: SlurmVersion) -> Result<SlurmCluster> {
    start("one node", SlurmCluster::builder(version).nodes(1)).await
}

async fn submit(cluster: &SlurmCluster, user: &str, script: &str) -> Result<u32> {
    let id = cluster.exec_as(user, &["sbatch", "--parsable", "--wrap", script]).await?;
    id.trim().parse().with_context(|| format!("sbatch said {id:?}"))
}

fn is_alive(pid: Pid) -> bool {
    nix::sys::signal::kill(pid, None).is_ok()
}

async fn a_job_runs(version: SlurmVersion) -> Result<()> {
    let cluster = start("auth/slurm", SlurmCluster::builder(version)).await?;
    let script = ["sbatch", "--parsable", "-N2", "--wrap", "whoami; srun hostname | sort"];
    let id = cluster.exec_as("alice", &script).await?.trim().parse()?;
    cluster.wait_job(id, "COMPLETED").await?;
    let output = cluster.exec("n1", &["cat", &format!("/tmp/slurm-{id}.out")]).await?;
    assert_eq!(output, "alice\nn1\nn2\n");
    Ok(())
}

async fn a_node_drains_and_resumes_over_rest(version: SlurmVersion) -> Result<()> {
    let cluster = start_small(version).await?;
    let token = cluster.token("slurm", MINUTE)?;
    let node = cluster.slurm_path("node/n1");

    let drain = json!({"state": ["DRAIN"], "reason": "maintenance"});
    let answer = cluster.rest(Method::POST, &node, Some(&drain), Some(&token)).await?;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.json);
    let seen = cluster.rest(Method::GET, &node, None, Some(&token)).await?.json["nodes"][0].clone();
    assert_eq!(seen["state"], json!(["IDLE", "DRAIN", "DYNAMIC_NORM"]));
    assert_eq!(seen["reason"], "maintenance");
    assert_eq!(seen["address"], cluster.node_address("n1")?.to_string());

    let resume = json!({"state": ["RESUME"]});
    let answer = cluster.rest(Method::POST, &node, Some(&resume), Some(&token)).await?;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.json);
    cluster.wait_node_state("n1", "idle", |state| state == ["IDLE", "DYNAMIC_NORM"]).await
}

async fn only_a_good_token_is_let_in(version: SlurmVersion) -> Result<()> {
    let cluster = start("no node", SlurmCluster::builder(version).nodes(0)).await?;
    let path = cluster.slurm_path("diag/");
    let status = async |token: Option<String>| {
        anyhow::Ok(cluster.rest(Method::GET, &path, None, token.as_deref()).await?.status.as_u16())
    };
    assert_eq!(status(Some(cluster.token("alice", MINUTE)?)).await?, 200);
    assert_eq!(status(Some(cluster.expired_token("alice")?)).await?, 511);
    assert_eq!(status(Some(token::sign(b"another key", "alice", MINUTE)?)).await?, 511);
    assert_eq!(status(Some("garbage".into())).await?, 511);
    assert_eq!(status(None).await?, 401);
    Ok(())
}

async fn accounting_shows_the_job(version: SlurmVersion) -> Result<()> {
    let cluster = start("auth/slurm, accounting", SlurmCluster::builder(version).accounting()).await?;
    check_accounting(&cluster).await
}

async fn accounting_works_with_munge(version: SlurmVersion) -> Result<()> {
    let builder = SlurmCluster::builder(version).accounting().auth(Auth::Munge);
    let cluster = start("auth/munge, accounting", builder).await?;
    let config = cluster.exec("slurmctld", &["scontrol", "show", "config"]).await?;
    ensure!(config.lines().any(|line| line.starts_with("AuthType") && line.ends_with("auth/munge")), config);
    check_accounting(&cluster).await
}

/// A job of alice is in the database, by command and over REST.
async fn check_accounting(cluster: &SlurmCluster) -> Result<()> {
    let id = submit(cluster, "alice", "exit 3").await?;
    cluster.wait_job(id, "FAILED").await?;
    let query = ["sacct", "-X", "-n", "-P", "-j", &id.to_string(), "-o", "user,state,exitcode"];
    let record = eventually("the job's record", MINUTE, async || {
        let record = cluster.exec_as("alice", &query).await?;
        Ok(record.contains("FAILED").then_some(record))
    })
    .await?;
    assert_eq!(record.trim(), "alice|FAILED|3:0");

    let path = cluster.slurmdb_path(&format!("job/{id}"));
    let answer = cluster.rest(Method::GET, &path, None, Some(&cluster.token("alice", MINUTE)?)).await?;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.json);
    let job = &answer.json["jobs"][0];
    assert_eq!((&job["user"], &job["state"]["current"]), (&json!("alice"), &json!(["FAILED"])));
    Ok(())
}

async fn killing_a_node_kills_its_job_and_it_can_come_back(version: SlurmVersion) -> Result<()> {
    let mut cluster = start_small(version).await?;
    let address = cluster.node_address("n1")?;
    let id = submit(&cluster, "alice", "touch /tmp/started; sleep 1000").await?;
    let flag = cluster.path("n1", "/tmp/started")?;
    eventually("the job's process", MINUTE, async || Ok(flag.exists().then_some(()))).await?;
    let inside = cluster.processes("n1")?;
    ensure!(inside.len() > 3, "tini, slurmd, slurmstepd and the job, not only {inside:?}");

    cluster.kill_node("n1").await?;
    ensure!(!inside.iter().copied().any(is_alive), "some of {inside:?} are still there");
    // slurmctld does not know yet.
    cluster.wait_job(id, "RUNNING").await?;

    cluster.add_node("n1", "CPUs=2 RealMemory=1000 Feature=dyn").await?;
    ensure!(cluster.node_address("n1")? != address, "a new pod has a new address");
    let path = cluster.slurm_path("node/n1");
    let token = cluster.token("root", MINUTE)?;
    let address = cluster.node_address("n1")?.to_string();
    eventually("the new address", MINUTE, async || {
        let answer = cluster.rest(Method::GET, &path, None, Some(&token)).await?.json;
        Ok((answer["nodes"][0]["address"] == address).then_some(()))
    })
    .await
}

async fn a_stopped_node_is_given_time(version: SlurmVersion) -> Result<()> {
    let mut cluster = start_small(version).await?;
    let inside = cluster.processes("n1")?;
    let begin = Instant::now();
    cluster.stop_node("n1", MINUTE).await?;
    ensure!(begin.elapsed() < MINUTE / 2, "slurmd did not end by itself");
    ensure!(!inside.iter().copied().any(is_alive), "some of {inside:?} are still there");
    let log = std::fs::read_to_string(cluster.log("n1"))?;
    ensure!(log.contains("Slurmd shutdown completing"), "slurmd did not end in order:\n{log}");
    Ok(())
}

async fn a_controller_restart_keeps_jobs_and_nodes(version: SlurmVersion) -> Result<()> {
    let mut cluster = start_small(version).await?;
    // Puts another process in the place of the first, which must not end the pod, and must be the one to stop.
    cluster.exec("slurmctld", &["scontrol", "reconfigure"]).await?;
    let held = cluster.exec_as("bob", &["sbatch", "--parsable", "--hold", "--wrap", "true"]).await?;
    cluster.restart_controller().await?;
    cluster.wait_job(held.trim().parse()?, "PENDING").await?;
    cluster.wait_idle(1).await
}

async fn a_dropped_cluster_leaves_no_process(version: SlurmVersion) -> Result<()> {
    let cluster = start("auth/munge", SlurmCluster::builder(version).auth(Auth::Munge)).await?;
    submit(&cluster, "alice", "sleep 1000").await?;
    let mut processes = Vec::new();
    for pod in cluster.pods() {
        let inside = cluster.processes(pod)?;
        ensure!(inside.len() > 1, "{pod} has only {inside:?}");
        processes.extend(inside);
    }
    let inside = cluster.sandbox().path("/srv/hosts");
    ensure!(inside.exists(), "{}", inside.display());
    drop(cluster);
    ensure!(!inside.exists(), "the sandbox is still there");
    processes.retain(|pid| is_alive(*pid));
    ensure!(processes.is_empty(), "left: {processes:?}");
    Ok(())
}

async fn two_clusters_do_not_meet(version: SlurmVersion) -> Result<()> {
    let (one, other) = tokio::try_join!(start_small(version), start_small(version))?;
    let token = one.token("root", MINUTE)?;
    let path = one.slurm_path("diag/");
    assert_eq!(one.rest(Method::GET, &path, None, Some(&token)).await?.status.as_u16(), 200);
    assert_eq!(other.rest(Method::GET, &path, None, Some(&token)).await?.status.as_u16(), 511);
    Ok(())
}
