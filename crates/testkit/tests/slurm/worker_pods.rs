//! `SlurmKubelet`: a worker pod is a real node of Slurm, and its end a real loss.

use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::json;
use testkit::cache::SlurmVersion;
use testkit::process::eventually;
use testkit::slurm::{SlurmCluster, SlurmKubelet};
use testkit::{ControlPlane, FakeKubelet};

const MINUTE: Duration = Duration::from_secs(60);

/// slurmctld gives a silent node up after seconds, not after the usual half minute.
const IMPATIENT: &str = "SlurmdTimeout=5";

fn pod(name: &str, worker: bool) -> Result<Pod> {
    Ok(serde_json::from_value(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "labels": { "worker": worker.to_string() } },
        "spec": { "terminationGracePeriodSeconds": 1, "containers": [{ "name": "c", "image": "none" }] },
    }))?)
}

fn is_worker(pod: &Pod) -> bool {
    pod.labels().get("worker").is_some_and(|value| value == "true")
}

async fn kubelet(client: Client, namespace: &str, version: SlurmVersion) -> Result<SlurmKubelet> {
    let slurm = SlurmCluster::builder(version).nodes(0).extra_conf(IMPATIENT).start().await?;
    let nodes = FakeKubelet::nodes(namespace, 2).in_namespace(namespace);
    SlurmKubelet::start(nodes, client, slurm, is_worker).await
}

async fn running(pods: &Api<Pod>, name: &str) -> Result<Pod> {
    eventually(&format!("pod {name} Running"), MINUTE, async || {
        let pod = pods.get(name).await?;
        let phase = pod.status.as_ref().and_then(|status| status.phase.clone());
        Ok((phase.as_deref() == Some("Running")).then_some(pod))
    })
    .await
}

async fn gone(pods: &Api<Pod>, name: &str) -> Result<()> {
    eventually(&format!("pod {name} gone"), MINUTE, async || {
        Ok(pods.get_opt(name).await?.is_none().then_some(()))
    })
    .await
}

pub(crate) async fn deleting_a_busy_worker_pod_loses_its_job(version: SlurmVersion) -> Result<()> {
    let plane = ControlPlane::start().await?;
    let namespace = plane.namespace("workers").await?;
    let client = plane.client("workers").await?;
    let kubelet = kubelet(client.clone(), &namespace, version).await?;
    let pods: Api<Pod> = Api::namespaced(client, &namespace);
    for (name, worker) in [("worker-0", true), ("login-0", false)] {
        pods.create(&PostParams::default(), &pod(name, worker)?).await?;
    }
    running(&pods, "login-0").await?;
    let worker = running(&pods, "worker-0").await?;
    let job: u32 = {
        let slurm = kubelet.slurm().await;
        slurm.wait_idle(1).await?;
        let address = worker.status.and_then(|status| status.pod_ip);
        assert_eq!(
            address,
            Some(slurm.node_address("worker-0")?.to_string()),
            "the pod has slurmd's address"
        );
        let submit = ["sbatch", "--parsable", "--no-requeue", "--wrap", "sleep 1000"];
        let job = slurm.exec_as("alice", &submit).await?.trim().parse().context("sbatch")?;
        slurm.wait_job(job, "RUNNING").await?;
        job
    };
    // To slurmctld a job runs as soon as it has told slurmd to start it.
    let processes = eventually("tini, slurmd and the job's processes", MINUTE, async || {
        let processes = kubelet.slurm().await.processes("worker-0")?;
        Ok((processes.len() > 2).then_some(processes))
    })
    .await?;

    pods.delete("worker-0", &DeleteParams::default()).await?;
    gone(&pods, "worker-0").await?;
    let alive = |pid: &&nix::unistd::Pid| nix::sys::signal::kill(**pid, None).is_ok();
    assert_eq!(processes.iter().find(alive), None, "the job's processes went with the pod");
    kubelet.slurm().await.wait_job(job, "NODE_FAIL").await
}

pub(crate) async fn a_worker_pod_that_comes_back_takes_jobs_again(version: SlurmVersion) -> Result<()> {
    let plane = ControlPlane::start().await?;
    let namespace = plane.namespace("workers").await?;
    let client = plane.client("workers").await?;
    let kubelet = kubelet(client.clone(), &namespace, version).await?;
    let pods: Api<Pod> = Api::namespaced(client, &namespace);
    for round in ["first", "second"] {
        pods.create(&PostParams::default(), &pod("worker-0", true)?).await?;
        running(&pods, "worker-0").await?;
        let slurm = kubelet.slurm().await;
        slurm.wait_idle(1).await?;
        assert_eq!(slurm.exec_as("alice", &["srun", "echo", round]).await?.trim(), round);
        drop(slurm);
        pods.delete("worker-0", &DeleteParams::default()).await?;
        gone(&pods, "worker-0").await?;
    }
    Ok(())
}
