//! What goes wrong, and what is left of it: nothing.

use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;
use testkit::by_hand::Shape;
use testkit::process::eventually;
use testkit::slurm::token;

use super::site::{DEADLINE, Site, site_alone};

const SOON: Duration = Duration::from_secs(90);

/// Every pod of the cluster is ended in turn, under a running job and a queue.
#[test]
fn killing_each_pod_in_turn_loses_nothing() -> Result<()> {
    testkit::run_within(DEADLINE, async {
        let site = site_alone(Shape::Privileged).await?;
        site.in_jail("echo kept > /opt/kept").await?;
        let done = submit(&site, "--output /dev/null --wrap true").await?;
        recorded(&site, &done, "COMPLETED").await?;
        let held = submit(&site, "--hold --output /dev/null --wrap true").await?;
        let running = submit(&site, "--nodelist worker-1 --output /dev/null --wrap 'sleep 600'").await?;
        queue_has(&site, &running, "RUNNING").await?;

        let components = ["controller", "accounting", "acct-db", "rest", "login"];
        for component in components {
            kill(&site, &pod_of(&site, component).await?).await?;
            queue_has(&site, &held, "PENDING").await.with_context(|| format!("after {component}"))?;
            queue_has(&site, &running, "RUNNING").await.with_context(|| format!("after {component}"))?;
            recorded(&site, &done, "COMPLETED").await.with_context(|| format!("after {component}"))?;
            // The host key is the one that was seen first, or ssh refuses.
            let kept = eventually("ssh", SOON, async || site.ssh.run("cat /opt/kept").await.map(Some)).await;
            assert_eq!(kept.with_context(|| format!("after {component}"))?, "kept\n");
        }
        kill(&site, "worker-0").await?;
        node_is(&site, "worker-0", "idle").await?;
        assert_eq!(site.ssh.run("srun --quiet -N2 cat /opt/kept").await?, "kept\nkept\n");
        queue_has(&site, &running, "RUNNING").await?;
        rest(&site, "nodes/").await.map(|code| assert_eq!(code, "200"))?;

        // The worker under the job itself: Slurm puts the job back into the queue, to start again two minutes later.
        kill(&site, "worker-1").await?;
        queue_has(&site, &running, "PENDING").await?;
        let job = site.controller(&["scontrol", "show", "job", &running]).await?;
        assert!(job.contains("Restarts=1"), "{job}");
        site.controller(&["scancel", &held, &running]).await?;
        recorded(&site, &running, "CANCELLED").await?;
        site.slurm.workers_idle().await
    })
}

async fn node_is(site: &Site, node: &str, state: &str) -> Result<()> {
    eventually(&format!("{node} {state} in Slurm"), SOON, async || {
        let found = site.controller(&["sinfo", "-h", "-N", "-n", node, "-p", "main", "-o", "%t"]).await?;
        Ok((found.trim() == state).then_some(()))
    })
    .await
}

async fn submit(site: &Site, arguments: &str) -> Result<String> {
    Ok(site.ssh.run(&format!("sbatch --parsable {arguments}")).await?.trim().to_owned())
}

async fn recorded(site: &Site, job: &str, state: &str) -> Result<()> {
    eventually(&format!("job {job} {state} in the database"), SOON, async || {
        let query = ["sacct", "-n", "-P", "-X", "-j", job, "-o", "state"];
        Ok(site.controller(&query).await?.starts_with(state).then_some(()))
    })
    .await
}

async fn queue_has(site: &Site, job: &str, state: &str) -> Result<()> {
    eventually(&format!("job {job} {state}"), SOON, async || {
        let found = site.controller(&["squeue", "-h", "-j", job, "-o", "%T"]).await?;
        Ok((found.trim() == state).then_some(()))
    })
    .await
}

async fn pod_of(site: &Site, component: &str) -> Result<String> {
    let pods: Api<Pod> = Api::namespaced(site.slurm.client(), site.slurm.namespace());
    let labels = ListParams::default().labels(&format!("app.kubernetes.io/component={component}"));
    let found = pods.list(&labels).await?.items.into_iter().next();
    found.and_then(|pod| pod.metadata.name).with_context(|| format!("no pod of {component}"))
}

async fn kill(site: &Site, pod: &str) -> Result<()> {
    site.slurm.kubectl(&["delete", "pod", pod, "--grace-period=1", "--wait=true"]).await?;
    site.slurm.ready(|_| ()).await.with_context(|| format!("after the end of {pod}"))
}

/// The code of a GET as root, who may reconfigure.
async fn rest(site: &Site, path: &str) -> Result<String> {
    let key = site.slurm.secret("demo-rest-jwt-key", "rest_jwt.key").await?;
    let token = token::sign(&key, "root", Duration::from_secs(60))?;
    let api = site.shape.slurm().newest_api();
    let call = format!(
        "curl -s -o /dev/null -w '%{{http_code}}' -m 60 -H 'X-SLURM-USER-TOKEN: {token}' http://demo-rest-svc:6820/slurm/{api}/{path}"
    );
    site.in_jail(&call).await
}

async fn survives_a_bad_reconfigure(shape: Shape) -> Result<()> {
    let site = site_alone(shape).await?;
    let bad = [
        (
            "NoSuchKey",
            "cp -a /etc/slurm/slurm.conf /root/good.conf; echo NoSuchKey=1 >> /etc/slurm/slurm.conf",
        ),
        ("slurm.conf", "mv /etc/slurm/slurm.conf /root/good.conf"),
    ];
    for (named, spoil) in bad {
        let already = site.slurm.logs("controller-0", "slurmctld").await?.len();
        site.in_jail(&format!("cp -a /etc/slurm /root/good; cd /etc/slurm; {spoil}")).await?;
        let answer = rest(&site, "reconfigure/").await;
        // Whatever came of it: the next test needs a good file.
        let still_there = rest(&site, "nodes/").await;
        site.in_jail("cp -a /root/good/. /etc/slurm; rm -r /root/good").await?;
        assert_ne!(answer?, "200", "{named}: the reconfigure was taken for a good one");
        assert_eq!(still_there?, "200", "{named}: slurmctld is gone");
        eventually(&format!("{named} in the log"), SOON, async || {
            let log = site.slurm.logs("controller-0", "slurmctld").await?;
            let new = log.get(already..).unwrap_or_default();
            Ok(new.lines().any(|line| line.contains("error") && line.contains(named)).then_some(()))
        })
        .await?;
        assert_eq!(restarts(&site).await?, 0, "{named}: the container was restarted");
        // And it still does what it is asked, by a new process of its own.
        assert_eq!(rest(&site, "reconfigure/").await?, "200");
        assert_eq!(site.ssh.run("srun --quiet echo after").await?, "after\n");
        assert_eq!(restarts(&site).await?, 0, "{named}: the container was restarted");
    }
    Ok(())
}

async fn restarts(site: &Site) -> Result<i32> {
    let pods: Api<Pod> = Api::namespaced(site.slurm.client(), site.slurm.namespace());
    let status = pods.get("controller-0").await?.status.unwrap_or_default();
    let containers = status.container_statuses.unwrap_or_default();
    let slurmctld = containers.into_iter().find(|container| container.name == "slurmctld");
    Ok(slurmctld.context("no slurmctld in its pod")?.restart_count)
}

#[test]
fn slurmctld_survives_a_bad_reconfigure() -> Result<()> {
    testkit::run_within(DEADLINE, survives_a_bad_reconfigure(Shape::Privileged))
}

#[test]
fn slurmctld_24_11_survives_a_bad_reconfigure() -> Result<()> {
    testkit::run_within(DEADLINE, survives_a_bad_reconfigure(Shape::Slurm24_11))
}

/// A job must not run in half a root file system. Its user is told why, and the node is not to blame.
async fn refuses_an_unfinished_jail(shape: Shape) -> Result<()> {
    let site = site_alone(shape).await?;
    site.in_jail("touch /.slipway-populating").await?;
    let srun = site.ssh.run("timeout 60 srun --quiet echo ran 2>&1; echo code $?").await;
    let batch = async {
        let job = submit(&site, "--output batch-in-half-a-jail --wrap 'echo ran'").await?;
        recorded(&site, &job, "FAILED").await
    };
    let batch = batch.await;
    site.in_jail("rm /.slipway-populating").await?;
    let said = srun?;
    assert!(
        said.contains("the copy into the jail /mnt/jail is not complete") && !said.contains("ran"),
        "{said}"
    );
    assert!(said.trim_end().ends_with("code 1"), "{said}");
    batch?;
    let output = site.ssh.run("cat batch-in-half-a-jail").await?;
    assert!(output.contains("is not complete") && !output.contains("ran"), "{output}");
    site.slurm.workers_idle().await.context("the workers are not drained")?;
    assert_eq!(site.ssh.run("srun --quiet echo ran").await?, "ran\n");
    Ok(())
}

#[test]
fn a_job_is_told_that_the_jail_is_not_whole() -> Result<()> {
    testkit::run_within(DEADLINE, refuses_an_unfinished_jail(Shape::UserNamespaces))
}

#[test]
fn a_job_of_slurm_24_11_is_told_that_the_jail_is_not_whole() -> Result<()> {
    testkit::run_within(DEADLINE, refuses_an_unfinished_jail(Shape::Slurm24_11))
}
