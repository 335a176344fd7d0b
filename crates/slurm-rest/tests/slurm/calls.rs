//! Every call in every version, and what a version does not serve.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use slurm::state::{Activity, JobBase, NodeBase, NodeFlag};
use slurm_rest::{
    AccountingJobs, ApiVersion, Client, JobDescription, JobFilter, NodeUpdate, Reboot, Requeue,
    ReservationRequest, RestError, SignalTo,
};
use testkit::cache::SlurmVersion;
use testkit::process::eventually;

use crate::{client, cluster, versions};

const WAIT: Duration = Duration::from_secs(30);

fn is_not_served<T>(result: &Result<T, RestError>) -> bool {
    matches!(result, Err(RestError::NotServed { .. }))
}

fn is_not_found<T>(result: Result<T, RestError>) -> bool {
    match result {
        Err(RestError::NotFound { .. }) => true,
        Ok(_) => false,
        Err(other) => {
            println!("not \"not found\" but: {other}");
            false
        }
    }
}

/// A call that is served from a version on: elsewhere it has to say so.
fn served_from<T>(version: ApiVersion, since: ApiVersion, result: Result<T, RestError>) -> Result<Option<T>> {
    if version >= since {
        return Ok(Some(result?));
    }
    ensure!(is_not_served(&result), "{version} does not serve this before {since}");
    Ok(None)
}

async fn wait_node(
    client: &Client,
    name: &str,
    what: &str,
    fits: impl Fn(&slurm_rest::record::node::Node) -> bool,
) -> Result<()> {
    eventually(&format!("{name} {what}"), WAIT, async || {
        let node = client.node(name).await?;
        if fits(&node) { Ok(Some(())) } else { bail!("it is {}", node.state) }
    })
    .await
}

pub(crate) async fn controllers_are_asked_and_reconfigured(release: SlurmVersion) -> Result<()> {
    let cluster = cluster(release).nodes(1).start().await?;
    for &version in versions(release) {
        let client = client(&cluster, version)?;
        assert_eq!(client.version().await?, version);
        // It takes a moment until it listens again after a reconfigure.
        let pings = eventually("an answer to the ping", WAIT, async || {
            let pings = client.ping().await?;
            if pings.iter().all(|ping| ping.responding) {
                Ok(Some(pings))
            } else {
                bail!("{version}: {pings:?}")
            }
        })
        .await?;
        ensure!(pings.len() == 1 && pings[0].primary, "{version}: {pings:?}");
        assert_eq!(&*pings[0].hostname, "slurmctld");
        let diag = client.diag().await?;
        ensure!(
            diag.req_time.to_time().is_some() && diag.server_thread_count.to_u64() > Some(0),
            "{version}: {diag:?}"
        );
        ensure!(
            diag.rpcs_by_message_type.iter().any(|rpc| rpc.count.to_u64() > Some(0)),
            "{version}: {diag:?}"
        );
        // One right after another finds slurmctld busy with the first.
        eventually("the reconfigure", WAIT, async || Ok(Some(client.reconfigure().await?)))
            .await
            .with_context(|| std::fs::read_to_string(cluster.log("slurmctld")).unwrap_or_default())?;
        client
            .diag()
            .await
            .with_context(|| std::fs::read_to_string(cluster.log("slurmctld")).unwrap_or_default())?;
        if let Some(conf) = served_from(version, ApiVersion::V0_0_45, client.conf().await)? {
            assert_eq!((&conf["ClusterName"], &conf["AuthType"]), (&"test".into(), &"auth/slurm".into()));
        }
    }
    Ok(())
}

pub(crate) async fn nodes_are_read_and_changed(release: SlurmVersion) -> Result<()> {
    let cluster = cluster(release).start().await?;
    for &version in versions(release) {
        let client = client(&cluster, version)?;
        let listed = client.nodes().await?;
        ensure!(
            listed.odd.is_none() && listed.last_update.is_some() && listed.release.is_some(),
            "{version}: {listed:?}"
        );
        let names: Vec<&str> = listed.records.iter().map(|node| &*node.name).collect();
        assert_eq!(names, ["n1", "n2"], "{version}");
        let node = client.node("n1").await?.into_fact(std::time::Instant::now());
        assert_eq!(
            (node.activity(), node.takes_jobs(), node.cpus),
            (Activity::Free, true, 2),
            "{version}: {node:?}"
        );
        assert_eq!(*node.address, *cluster.node_address("n1")?.to_string());
        // slurmd says here that it has just booted, and slurmctld then keeps no time of it for a while.
        ensure!(node.slurmd_start_time.is_some(), "{version}: {node:?}");
        ensure!(
            node.partitions.has("all") && node.partitions.has("dyn") && node.features.has("dyn"),
            "{version}: {node:?}"
        );
        ensure!(is_not_found(client.node("nobody").await), "{version}");
        ensure!(is_not_found(client.update_node("nobody", &NodeUpdate::resume()).await), "{version}");

        let why = "ours: \"quoted\", é and #";
        client.update_node("n1", &NodeUpdate::drain(why)).await?;
        let node = client.node("n1").await?.into_fact(std::time::Instant::now());
        ensure!(node.state.has(NodeFlag::Drain) && !node.takes_jobs(), "{version}: {node:?}");
        assert_eq!((&*node.reason, &*node.reason_by), (why, "root"), "{version}");
        ensure!(node.reason_at.is_some(), "{version}: {node:?}");
        client.update_node("n1", &NodeUpdate::undrain()).await?;
        ensure!(!client.node("n1").await?.state.has(NodeFlag::Drain), "{version}");

        client.update_nodes(&["n1", "n2"], &NodeUpdate::drain("both")).await?;
        for node in client.nodes().await?.records {
            ensure!(node.state.has(NodeFlag::Drain) && &*node.reason == "both", "{version}: {node:?}");
        }
        ensure!(
            is_not_found(client.update_nodes(&["n1", "nobody"], &NodeUpdate::resume()).await),
            "{version}"
        );
        ensure!(
            !client.node("n1").await?.state.has(NodeFlag::Drain),
            "{version}: those that Slurm knows are changed all the same"
        );
        client.update_nodes(&["n2"], &NodeUpdate::resume()).await?;
        client.update_node("n2", &NodeUpdate::down("gone")).await?;
        assert_eq!(client.node("n2").await?.state.base(), Some(NodeBase::Down), "{version}");
        client.update_node("n2", &NodeUpdate::resume()).await?;
        wait_node(&client, "n2", "idle again", |node| node.state.base() == Some(NodeBase::Idle)).await?;

        let update = NodeUpdate {
            comment: Some("pod: worker-0".into()),
            extra: Some("more".into()),
            features: Some(vec!["dyn".into(), "new".into()]),
            active_features: Some(vec!["new".into()]),
            ..NodeUpdate::default()
        };
        client.update_node("n1", &update).await?;
        let node = client.node("n1").await?;
        assert_eq!((&*node.comment, &*node.extra), ("pod: worker-0", "more"), "{version}");
        ensure!(
            node.features.has("new") && node.active_features.has("new") && !node.active_features.has("dyn"),
            "{node:?}"
        );
        let back = NodeUpdate {
            features: Some(vec!["dyn".into()]),
            active_features: Some(vec!["dyn".into()]),
            comment: Some(String::new()),
            extra: Some(String::new()),
            ..NodeUpdate::default()
        };
        client.update_node("n1", &back).await?;
        let node = client.node("n1").await?;
        assert_eq!((&*node.comment, &*node.extra), ("", ""), "{version}: an empty text is a value");
        ensure!(matches!(client.node("").await, Err(RestError::Invalid { .. })));
        // A node that is resumed is known to respond only after the next ping.
        for name in ["n1", "n2"] {
            wait_node(&client, name, "responding", |node| !node.state.has(NodeFlag::NotResponding)).await?;
        }
    }
    Ok(())
}

pub(crate) async fn nodes_come_and_go(release: SlurmVersion) -> Result<()> {
    let mut cluster = cluster(release).nodes(1).start().await?;
    for (number, &version) in versions(release).iter().enumerate() {
        let client = client(&cluster, version)?;
        let line = format!("NodeName=made{number} State=CLOUD CPUs=4 RealMemory=1000 Feature=dyn");
        if served_from(version, ApiVersion::V0_0_44, client.create_node(&line).await)?.is_some() {
            let name = format!("made{number}");
            ensure!(client.node(&name).await?.state.has(NodeFlag::Cloud), "{version}");
            client.delete_node(&name).await?;
            ensure!(is_not_found(client.node(&name).await), "{version}");
            let wrong = client.create_node("NodeName=").await;
            ensure!(matches!(wrong, Err(RestError::Slurm { .. })), "{version}: {wrong:?}");
        }
        ensure!(is_not_found(client.delete_node("nobody").await), "{version}");
        let reboot = Reboot { nodes: "n1".into(), asap: true, ..Reboot::default() };
        ensure!(is_not_served(&client.reboot_nodes(&reboot).await), "{version}");
        ensure!(!client.serves_reboot().await?, "{version}");
    }
    let client = client(&cluster, ApiVersion::V0_0_45)?;
    let id = client.submit(&job("sleep 1000")).await?.id;
    cluster.wait_job(id, "RUNNING").await?;
    let busy = client.delete_node("n1").await.err().context("a busy node was deleted")?;
    assert_eq!(busy.number(), Some(2016), "{busy}");
    client.cancel(id).await?;
    wait_node(&client, "n1", "free", |node| node.state.activity() == Activity::Free).await?;
    cluster.stop_node("n1", WAIT).await?;
    client.delete_node("n1").await?;
    let left = client.nodes().await?;
    ensure!(left.records.is_empty() && left.odd.is_none(), "a cluster without nodes is an answer: {left:?}");
    Ok(())
}

slurm_rest::record! {
    /// What a caller wants that wants little.
    struct OnlyId {
        job_id: u32 = required b"job_id",
    }
}

fn job(script: &str) -> JobDescription {
    JobDescription {
        script: format!("#!/bin/bash\n{script}\n"),
        name: "test".into(),
        current_working_directory: "/tmp".into(),
        environment: vec!["PATH=/usr/bin:/bin".into()],
        comment: Some("over REST".into()),
        ..JobDescription::default()
    }
}

pub(crate) async fn jobs_are_submitted_signalled_and_ended(release: SlurmVersion) -> Result<()> {
    let cluster = cluster(release).start().await?;
    for &version in versions(release) {
        let client = client(&cluster, version)?;
        let held = JobDescription { hold: Some(true), partition: Some("dyn".into()), ..job("true") };
        let held = client.submit(&held).await?.id;
        let pending = client.job(held).await?;
        assert_eq!(pending.job_state.base(), Some(JobBase::Pending), "{version}");
        assert_eq!(
            (&*pending.partition, &*pending.comment, &*pending.user_name),
            ("dyn", "over REST", "root")
        );

        let on_n2 = JobDescription {
            required_nodes: Some(vec!["n2".into()]),
            time_limit: Some(90.into()),
            ..job("trap 'exit 7' USR1; while true; do sleep 0.1; done")
        };
        let running = client.submit(&on_n2).await?.id;
        cluster.wait_job(running, "RUNNING").await?;
        let jobs = client.jobs_on("n2").await?;
        ensure!(jobs.len() == 1 && jobs[0].id == running && jobs[0].start.is_some(), "{version}: {jobs:?}");
        ensure!(jobs[0].end.is_some(), "{version}: it has a limit: {jobs:?}");
        let others = client.jobs_on("n1").await?;
        ensure!(others.is_empty(), "{version}: {others:?}");
        assert_eq!(client.job(running).await?.time_limit.to_u64(), Some(90));
        let of_root = JobFilter { user: Some("root".into()), ..JobFilter::default() };
        let listed = client.jobs(&of_root).await?.records;
        ensure!(
            listed.iter().any(|job| job.job_id == held) && listed.iter().any(|job| job.job_id == running),
            "{version}"
        );
        let of_bob = JobFilter { user: Some("bob".into()), ..JobFilter::default() };
        ensure!(client.jobs(&of_bob).await?.records.is_empty(), "{version}: bob has none");
        let in_dyn = JobFilter { partition: Some("dyn".into()), ..JobFilter::default() };
        let listed = client.jobs(&in_dyn).await?.records;
        ensure!(
            listed.iter().any(|job| job.job_id == held) && listed.iter().all(|job| &*job.partition == "dyn"),
            "{version}: {listed:?}"
        );
        let ids = client.jobs_as::<OnlyId>().await?;
        ensure!(ids.odd.is_none() && ids.records.iter().any(|job| job.job_id == held), "{version}: {ids:?}");

        let node = client.node("n2").await?.into_fact(std::time::Instant::now());
        assert_eq!(node.activity(), Activity::Busy, "{version}: {node:?}");
        if served_from(version, ApiVersion::V0_0_45, client.requeue(running, Requeue::Held).await)?.is_some()
        {
            let held = client.job(running).await?;
            let held = (held.job_state.base(), held.priority.to_u64(), &*held.state_reason);
            assert_eq!(held, (Some(JobBase::Pending), Some(0), "JobHeldUser"), "{version}");
            client.cancel(running).await?;
        } else {
            // A signal that meets the start of the script is lost.
            eventually("the end by a signal", WAIT, async || {
                client.signal(running, "USR1", SignalTo::Everything).await?;
                Ok((client.job(running).await?.job_state.base() == Some(JobBase::Failed)).then_some(()))
            })
            .await?;
        }
        client.cancel(held).await?;
        let ended = client.job(held).await?;
        ensure!(ended.job_state.is_over(), "{version}: {ended:?}");
        client.cancel(held).await.context("a job that is over")?;
        ensure!(is_not_found(client.job(4_000_000).await), "{version}: no such job");
        ensure!(is_not_found(client.cancel(4_000_000).await), "{version}: no such job to cancel");
        ensure!(
            is_not_found(client.signal(4_000_000, "USR1", SignalTo::Steps).await),
            "{version}: no such job to signal"
        );
        let nowhere =
            client.submit(&JobDescription { partition: Some("nowhere".into()), ..job("true") }).await;
        let nowhere = nowhere.err().context("a job in a partition that is not there")?;
        assert_eq!(nowhere.number(), Some(2000), "{version}: {nowhere}");
        wait_node(&client, "n2", "free", |node| node.state.activity() == Activity::Free).await?;
    }
    Ok(())
}

/// Waits for a signal and for ever, once it has said that it is there.
fn patient(name: &str, out: &str) -> String {
    format!("trap 'echo {name} >>{out}' USR1; echo ready >>{out}; while true; do sleep 0.1; done")
}

pub(crate) async fn a_signal_reaches_those_it_is_for(release: SlurmVersion) -> Result<()> {
    let cluster = cluster(release).nodes(1).start().await?;
    for &version in versions(release) {
        let client = client(&cluster, version)?;
        let reached: [(_, &[&str]); 3] = [
            (SignalTo::Steps, &["step"]),
            (SignalTo::Batch, &["batch"]),
            (SignalTo::Everything, &["batch", "child", "step"]),
        ];
        for (to, expected) in reached {
            let out = format!("/tmp/{version}-{to:?}");
            let (child, step, batch) =
                (patient("child", &out), patient("step", &out), patient("batch", &out));
            let script = format!("bash -c \"{child}\" &\nsrun --overlap -n1 bash -c \"{step}\" &\n{batch}");
            let id = client.submit(&job(&script)).await?.id;
            cluster.wait_job(id, "RUNNING").await?;
            let said = async |word: &str, count: usize| {
                let text = cluster.exec("n1", &["cat", &out]).await?;
                Ok((text.matches(word).count() == count).then_some(text))
            };
            eventually("all of them", WAIT, async || said("ready", 3).await).await?;
            client.signal(id, "USR1", to).await?;
            for word in expected {
                eventually(word, WAIT, async || said(word, 1).await).await?;
            }
            // A second later nobody else has heard of it.
            tokio::time::sleep(Duration::from_secs(1)).await;
            let text = cluster.exec("n1", &["cat", &out]).await?;
            let mut heard: Vec<&str> = text.lines().filter(|line| *line != "ready").collect();
            heard.sort_unstable();
            assert_eq!(heard, expected, "{version}: {to:?}");
            client.cancel(id).await?;
            wait_node(&client, "n1", "free", |node| node.state.activity() == Activity::Free).await?;
        }
    }
    Ok(())
}

/// Under HTTP 200 and no errors.
pub(crate) async fn each_task_of_an_array_says_how_it_took_it(release: SlurmVersion) -> Result<()> {
    let cluster = cluster(release).nodes(1).start().await?;
    let client = client(&cluster, ApiVersion::V0_0_45)?;
    let version = client.version().await?;
    let submit = async |how: &str| -> Result<u32> {
        let submit = ["sbatch", "--parsable", how, "--array=0-1", "--mem=10", "--wrap", "sleep 1000"];
        Ok(cluster.exec("slurmctld", &submit).await?.trim().parse()?)
    };
    let pending = submit("--hold").await?;
    let refused = client.requeue(pending, Requeue::Pending).await;
    if version < ApiVersion::V0_0_45 {
        ensure!(is_not_served(&refused), "{refused:?}");
    } else {
        let refused = refused.err().context("none of it has begun")?;
        ensure!(refused.number() == Some(2024) && refused.to_string().contains("pending"), "{refused}");
    }
    client.cancel(pending).await?;
    let running = submit("--requeue").await?;
    cluster.wait_job(running, "RUNNING").await?;
    if version >= ApiVersion::V0_0_45 {
        client.requeue(running, Requeue::Held).await?;
        let listed = client.jobs(&JobFilter::default()).await?.records;
        let tasks: Vec<_> = listed
            .iter()
            .filter(|job| job.array_job_id.to_u64() == Some(running.into()))
            .map(|job| (job.job_state.base(), &*job.state_reason))
            .collect();
        assert_eq!(tasks, [(Some(JobBase::Pending), "JobHeldUser"); 2]);
    }
    Ok(client.cancel(running).await?)
}

pub(crate) async fn partitions_licences_and_reservations(release: SlurmVersion) -> Result<()> {
    let cluster = cluster(release).start().await?;
    for &version in versions(release) {
        let client = client(&cluster, version)?;
        let partitions = client.partitions().await?;
        ensure!(partitions.records.len() == 2 && partitions.odd.is_none(), "{version}: {partitions:?}");
        let all = client.partition("all").await?.into_fact();
        ensure!(all.state.has("UP") && all.total_nodes == 2 && &*all.nodes == "n[1-2]", "{version}: {all:?}");
        ensure!(is_not_found(client.partition("nowhere").await), "{version}");
        let licences = client.licenses().await?.records;
        ensure!(
            licences.len() == 1 && &*licences[0].name == "matlab" && licences[0].total.to_u64() == Some(5),
            "{licences:?}"
        );

        ensure!(client.reservations().await?.records.is_empty(), "{version}");
        ensure!(is_not_found(client.reservation("nothing").await), "{version}");
        let wanted = ReservationRequest {
            name: "ours".into(),
            start_time: Some(client.diag().await?.req_time.to_u64().unwrap_or_default().into()),
            duration: Some(30.into()),
            node_list: Some(vec!["n1".into()]),
            users: Some(vec!["root".into()]),
            flags: Some(vec!["MAINT".into(), "IGNORE_JOBS".into()]),
            ..ReservationRequest::default()
        };
        if served_from(version, ApiVersion::V0_0_43, client.create_reservation(&wanted).await)?.is_none() {
            ensure!(is_not_served(&client.update_reservation(&wanted).await), "{version}");
            // Deleting came to 26.05 in all its versions, and is in none of 24.11.
            let deleted = client.delete_reservation("nothing").await;
            let expected =
                if release == SlurmVersion::V24_11 { is_not_served(&deleted) } else { is_not_found(deleted) };
            ensure!(expected, "{version}");
            continue;
        }
        let made = client.reservation("ours").await?.into_fact();
        ensure!(
            made.flags.has("MAINT") && made.users.has("root") && &*made.nodes == "n1",
            "{version}: {made:?}"
        );
        let (start, end) = (made.start.context("no start")?, made.end.context("no end")?);
        assert_eq!(end.0 - start.0, 1800, "{version}");
        let again = client.create_reservation(&wanted).await;
        ensure!(matches!(again, Err(RestError::Invalid { .. })), "{version}: {again:?}");
        let longer = ReservationRequest {
            name: "ours".into(),
            duration: Some(60.into()),
            ..ReservationRequest::default()
        };
        client.update_reservation(&longer).await?;
        let made = client.reservation("ours").await?.into_fact();
        assert_eq!(made.end.context("no end")?.0 - made.start.context("no start")?.0, 3600, "{version}");
        let other = ReservationRequest { name: "nothing".into(), ..longer };
        ensure!(is_not_found(client.update_reservation(&other).await), "{version}");
        client.delete_reservation("ours").await?;
        ensure!(is_not_found(client.reservation("ours").await), "{version}");
        ensure!(is_not_found(client.delete_reservation("ours").await), "{version}");
    }
    Ok(())
}

pub(crate) async fn accounting_is_read(release: SlurmVersion) -> Result<()> {
    let cluster = cluster(release).accounting().nodes(1).start().await?;
    cluster.exec("slurmctld", &["sacctmgr", "-i", "add", "account", "research"]).await?;
    cluster
        .exec("slurmctld", &["sacctmgr", "-i", "add", "user", "alice", "account=research", "fairshare=7"])
        .await?;
    let id = cluster.exec_as("alice", &["sbatch", "--parsable", "--wrap", "exit 3"]).await?.trim().parse()?;
    cluster.wait_job(id, "FAILED").await?;
    for &version in versions(release) {
        let client = client(&cluster, version)?;
        let hour_ago = client.diag().await?.req_time.to_u64().context("no time")? - 3600;
        let wanted = AccountingJobs {
            user: Some("alice".into()),
            from: Some(hour_ago),
            whole_usage: true,
            ..AccountingJobs::default()
        };
        let job = eventually("the job's record", WAIT, async || {
            let mut jobs = client.accounting_jobs(&wanted).await?;
            ensure!(jobs.odd.is_none(), "{version}: {jobs:?}");
            Ok(jobs.records.pop().filter(|job| job.state().base() == Some(JobBase::Failed)))
        })
        .await?;
        assert_eq!(
            (job.job_id, &*job.user, &*job.account, &*job.nodes),
            (id, "alice", "research", "n1"),
            "{version}"
        );
        ensure!(
            job.exit_code.return_code.to_u64() == Some(3) && job.time.start.to_time().is_some(),
            "{version}: {job:?}"
        );
        ensure!(
            job.tres.allocated.iter().any(|tres| &*tres.kind == "cpu" && tres.count.to_u64() == Some(1)),
            "{job:?}"
        );
        let alone = client.accounting_job(id).await?;
        assert_eq!(alone, [job], "{version}");
        ensure!(is_not_found(client.accounting_job(4_000_000).await), "{version}");
        let of_bob = AccountingJobs { user: Some("bob".into()), ..wanted };
        ensure!(client.accounting_jobs(&of_bob).await?.records.is_empty(), "{version}");

        let associations = client.associations().await?.records;
        let alice = associations.iter().find(|one| &*one.user == "alice").context("no association")?;
        assert_eq!((&*alice.account, alice.shares_raw.to_u64()), ("research", Some(7)), "{version}");
        let users = client.users().await?.records;
        let alice = users.iter().find(|user| &*user.name == "alice").context("no user")?;
        assert_eq!(&*alice.default.account, "research", "{version}");
        ensure!(client.qos().await?.records.iter().any(|qos| &*qos.name == "normal"), "{version}");
        let shares = client.shares().await?;
        let alice = shares.records.iter().find(|share| &*share.name == "alice").context("no share")?;
        ensure!(alice.shares.to_u64() == Some(7) && &*alice.parent == "research", "{version}: {alice:?}");
        ensure!(alice.kind.has("USER"), "{version}: {alice:?}");
    }
    Ok(())
}
