//! A view of a real cluster: it sees what happens, soon, and never takes silence for emptiness.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use slurm::facts::Lookup;
use slurm::state::{Activity, NodeFlag};
use slurm_rest::view::{Changes, Subscription, View, ViewOptions};
use slurm_rest::{ApiVersion, NodeUpdate};
use testkit::cache::SlurmVersion;
use testkit::chaos::{Chaos, Fault};
use testkit::process::eventually;

use crate::{client, client_at, cluster, versions};

const LIMIT: Duration = Duration::from_secs(10);
const WAIT: Duration = Duration::from_secs(40);

fn activity(view: &View, node: &str) -> Activity {
    view.read(|facts| facts.activity(node, Instant::now(), LIMIT))
}

/// Hears changes until it is so.
async fn until(changes: &mut Subscription, what: &str, mut so: impl FnMut(&Changes) -> bool) -> Result<()> {
    let heard = async {
        while let Some(changes) = changes.next().await {
            if so(&changes) {
                return Ok(());
            }
        }
        bail!("{what}: the view has ended")
    };
    tokio::time::timeout(WAIT, heard).await.with_context(|| format!("{what}: not within {WAIT:?}"))?
}

pub(crate) async fn who_waits_on_a_node_hears_when_its_job_ends(release: SlurmVersion) -> Result<()> {
    let cluster = cluster(release).start().await?;
    let view = View::start(client(&cluster, ApiVersion::V0_0_45)?, ViewOptions::default());
    assert_eq!(activity(&view, "n1"), Activity::Unclear, "nothing was seen yet");
    let mut changes = view.subscribe();
    until(&mut changes, "the first list", |changes| {
        changes.nodes.contains("n1") && changes.nodes.contains("n2")
    })
    .await?;
    assert_eq!(activity(&view, "n1"), Activity::Free);
    assert_eq!(activity(&view, "nobody"), Activity::Free, "Slurm has just said all it has");

    let _waiting = view.wait_on("n1");
    let job = ["sbatch", "--parsable", "--nodelist=n1", "--wrap", "sleep 3"];
    let id: u32 = cluster.exec_as("alice", &job).await?.trim().parse()?;
    until(&mut changes, "the job's begin", |_| activity(&view, "n1") == Activity::Busy).await?;
    let jobs = view.jobs_on("n1").await?;
    ensure!(jobs.len() == 1 && jobs[0].id == id && &*jobs[0].user == "alice", "{jobs:?}");
    ensure!(jobs[0].end.is_none(), "it has no limit, and Slurm says that it ends in a year: {jobs:?}");
    ensure!(view.jobs_on("n2").await?.is_empty());
    until(&mut changes, "the job's end", |_| activity(&view, "n1") == Activity::Free).await?;
    cluster.wait_job(id, "COMPLETED").await?;
    let others = view.read(|facts| (facts.partitions.latest().len(), facts.reservations.age(Instant::now())));
    ensure!(others.0 == 2 && others.1.is_some(), "{others:?}");
    Ok(())
}

/// Slurm's clock has whole seconds; and before 26.05.3 slurmrestd fails where nodes have changed and no partition
/// has.
pub(crate) async fn no_change_is_missed_when_asking_for_changes(release: SlurmVersion) -> Result<()> {
    let cluster = cluster(release).start().await?;
    for &version in versions(release) {
        let client = client(&cluster, version)?;
        eventually("a second in which nothing happens", WAIT, async || {
            let since = client.nodes().await?.last_update.context("no time")?;
            Ok(client.nodes_since(since).await?.is_none().then_some(()))
        })
        .await?;
        for round in 0..10 {
            let since = client.nodes().await?.last_update.context("no time")?;
            let drain = round % 2 == 0;
            let update = if drain { NodeUpdate::drain("now") } else { NodeUpdate::undrain() };
            client.update_node("n1", &update).await?;
            let listed = client.nodes_since(since).await?;
            let listed = listed.with_context(|| format!("{version}: round {round} was missed"))?;
            let drained = listed.records.iter().any(|node| node.state.has(NodeFlag::Drain));
            assert_eq!(drained, drain, "{version}: round {round}");
        }
    }
    let client = client(&cluster, ApiVersion::V0_0_45)?;
    let since = client.nodes().await?.last_update.context("no time")?;
    client.update_node("n1", &NodeUpdate::drain("raw")).await?;
    let path = cluster.slurm_path(&format!("nodes/?update_time={since}"));
    let raw = cluster.rest(http::Method::GET, &path, None, Some(&cluster.token("root", WAIT)?)).await?;
    let status = if release == SlurmVersion::V24_11 { 500 } else { 200 };
    assert_eq!(raw.status.as_u16(), status, "what `nodes_since` makes up for: {}", raw.json["errors"]);
    client.update_node("n1", &NodeUpdate::undrain()).await?;

    // A view sees it without anybody waiting on the node.
    let options = ViewOptions { quiet: Duration::from_millis(300), ..ViewOptions::default() };
    let view = View::start(client.clone(), options);
    let mut changes = view.subscribe();
    until(&mut changes, "the first list", |changes| changes.nodes.contains("n1")).await?;
    tokio::time::sleep(Duration::from_secs(3)).await;
    client.update_node("n1", &NodeUpdate::drain("seen?")).await?;
    until(&mut changes, "the drain", |_| {
        view.read(|facts| facts.nodes.latest().get("n1").is_some_and(|node| node.state.has(NodeFlag::Drain)))
    })
    .await
}

pub(crate) async fn silence_is_never_an_empty_cluster(release: SlurmVersion) -> Result<()> {
    let mut cluster = cluster(release).start().await?;
    let options = ViewOptions {
        quiet: Duration::from_millis(500),
        list_deadline: Duration::from_secs(3),
        ..ViewOptions::default()
    };
    let view = View::start(client(&cluster, ApiVersion::V0_0_45)?, options);
    let mut changes = view.subscribe();
    until(&mut changes, "the first list", |changes| changes.nodes.len() == 2).await?;
    // A list may have to rest for long on a machine that is busy.
    let _waiting = view.wait_on("n1");

    cluster.stop_controller().await?;
    until(&mut changes, "the silence", |changes| changes.reachable).await?;
    view.read(|facts| {
        assert_eq!(facts.nodes.latest().len(), 2, "what was known stays");
        let later = Instant::now() + LIMIT;
        let found = facts.node("n1", later, LIMIT);
        let Lookup::Unclear(stale) = found else { unreachable!("it is too old to decide by: {found:?}") };
        assert!(stale.why.is_some() && stale.age >= Some(LIMIT), "{stale}");
        assert_eq!(facts.activity("nobody", later, LIMIT), Activity::Unclear);
        assert!(facts.nodes.trouble().is_some());
    });
    cluster.start_controller().await?;
    until(&mut changes, "the answer after the silence", |changes| changes.reachable).await?;
    view.read(|facts| assert!(facts.nodes.trouble().is_none() && facts.nodes.latest().len() == 2));
    Ok(())
}

pub(crate) async fn a_lying_server_frees_nobody(release: SlurmVersion) -> Result<()> {
    let cluster = cluster(release).start().await?;
    let chaos = Chaos::before_http(cluster.rest_url().trim_start_matches("http://").parse()?).await?;
    let client = client_at(&chaos.url(), &cluster, ApiVersion::V0_0_45)?;
    let options = ViewOptions {
        quiet: Duration::from_millis(200),
        list_deadline: Duration::from_secs(2),
        ..ViewOptions::default()
    };
    let view = View::start(client.clone(), options);
    let mut changes = view.subscribe();
    until(&mut changes, "the first list", |changes| changes.nodes.len() == 2).await?;
    let ok = http::StatusCode::OK;
    let faults = [
        Fault::CutAfter(2000),
        Fault::slurm_errors(1, "Unspecified error"),
        Fault::Answer(ok, serde_json::json!({"errors": [], "warnings": []})),
        Fault::Answer(ok, serde_json::json!({"nodes": [], "errors": []})),
        Fault::Answer(ok, serde_json::json!({"nodes": [{"name": "n1"}], "last_update": 1, "errors": []})),
    ];
    for fault in faults {
        println!("{fault:?}");
        chaos.inject("nodes/", fault.clone());
        until(&mut changes, "the fault", |changes| changes.reachable).await?;
        let known = view.read(|facts| (facts.nodes.latest().len(), facts.nodes.trouble().is_some()));
        assert_eq!(known, (2, true), "{fault:?}");
        // What was known counts until it is too old, and a node that is not in the answer is not gone.
        let later = Instant::now() + LIMIT;
        for node in ["n1", "n2", "nobody"] {
            let found = view.read(|facts| facts.activity(node, later, LIMIT));
            assert_eq!(found, Activity::Unclear, "{fault:?}: {node}");
        }
        chaos.heal();
        until(&mut changes, "the healing", |changes| changes.reachable).await?;
    }
    Ok(())
}

/// What was too old to decide by is young again, and nobody else would say so.
pub(crate) async fn who_begins_to_wait_is_answered_also_if_nothing_is_new(
    release: SlurmVersion,
) -> Result<()> {
    let cluster = cluster(release).start().await?;
    let hour = Duration::from_secs(3600);
    let options = ViewOptions { quiet: hour, waiting: hour, ..ViewOptions::default() };
    let view = View::start(client(&cluster, ApiVersion::V0_0_45)?, options);
    let mut changes = view.subscribe();
    until(&mut changes, "the first list", |changes| changes.reachable).await?;
    for round in 0..3 {
        let begin = Instant::now();
        let _waiting = view.wait_on("n1");
        let answered = |changes: &Changes| changes.nodes.contains("n1");
        until(&mut changes, "the answer", answered).await?;
        let young = view.read(|facts| facts.activity("n1", Instant::now(), begin.elapsed()));
        assert_eq!(young, Activity::Free, "round {round}");
    }
    // A name that Slurm does not know is answered by the list, as far as its pace allows.
    let options = ViewOptions { quiet: hour, ..ViewOptions::default() };
    let view = View::start(client(&cluster, ApiVersion::V0_0_45)?, options);
    let mut changes = view.subscribe();
    until(&mut changes, "the first list", |changes| changes.reachable).await?;
    let _waiting = view.wait_on("nobody");
    until(&mut changes, "the answer", |changes| changes.nodes.contains("nobody")).await?;
    drop(view);
    while changes.next().await.is_some() {}
    Ok(())
}

/// That a node was deleted is no change to slurmctld: asked for changes it can say that there are none.
pub(crate) async fn a_deleted_node_is_gone_soon(release: SlurmVersion) -> Result<()> {
    let mut cluster = cluster(release).start().await?;
    let client = client(&cluster, ApiVersion::V0_0_45)?;
    for (node, waits) in [("n1", true), ("n2", false)] {
        cluster.stop_node(node, WAIT).await?;
        let view = View::start(client.clone(), ViewOptions::default());
        let mut changes = view.subscribe();
        let known = || view.read(|facts| facts.nodes.latest().contains_key(node));
        until(&mut changes, "the first list", |_| known()).await?;
        // From here on it asks for changes.
        tokio::time::sleep(Duration::from_secs(8)).await;
        let waiting = waits.then(|| view.wait_on(node));
        client.delete_node(node).await?;
        if !waits {
            view.ask_soon();
        }
        until(&mut changes, "the end of the node", |_| !known()).await?;
        assert_eq!(activity(&view, node), Activity::Free, "Slurm does not know it");
        drop(waiting);
    }
    Ok(())
}

/// slurmctld counts what jobs hold before it sends all nodes, and not before it sends one.
pub(crate) async fn one_node_is_counted_anew(release: SlurmVersion) -> Result<()> {
    let cluster = cluster(release).start().await?;
    for &version in versions(release) {
        let client = client(&cluster, version)?;
        let job = ["sbatch", "--parsable", "--nodelist=n1", "--wrap", "sleep 1000"];
        let id: u32 = cluster.exec_as("alice", &job).await?.trim().parse()?;
        cluster.wait_job(id, "RUNNING").await?;
        let cpus = async || Ok::<_, slurm_rest::RestError>(client.node("n1").await?.alloc_cpus.to_u64());
        client.recount_nodes().await?;
        assert_eq!(cpus().await?, Some(1), "{version}");
        client.cancel(id).await?;
        // Until its processes are gone; then the base state is IDLE, and only the old count says MIXED.
        cluster.wait_job(id, "CANCELLED").await?;
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(cpus().await?, Some(1), "{version}: what `recount_nodes` is for");
        client.recount_nodes().await?;
        assert_eq!(cpus().await?, Some(0), "{version}");
    }
    Ok(())
}

/// A suspended job gives its processors back and keeps its memory: where memory is not counted its node looks as if
/// nothing were there, also to Slurm itself. Only jobs tell.
pub(crate) async fn a_suspended_job_shows_by_its_memory(release: SlurmVersion) -> Result<()> {
    for (select, expected) in [("CR_Core_Memory", Activity::Busy), ("CR_Core", Activity::Free)] {
        let cluster = cluster(release).extra_conf(&format!("SelectTypeParameters={select}")).start().await?;
        let client = client(&cluster, ApiVersion::V0_0_45)?;
        let job = ["sbatch", "--parsable", "--nodelist=n1", "--wrap", "sleep 1000"];
        let id: u32 = cluster.exec_as("alice", &job).await?.trim().parse()?;
        cluster.wait_job(id, "RUNNING").await?;
        cluster.exec("slurmctld", &["scontrol", "suspend", &id.to_string()]).await?;
        cluster.wait_job(id, "SUSPENDED").await?;
        let nodes = client.nodes().await?.records;
        let node = nodes.into_iter().find(|node| &*node.name == "n1").context("no n1")?;
        let node = node.into_fact(Instant::now());
        assert_eq!(node.activity(), expected, "{select}: {node:?}");
        let jobs = client.jobs_on("n1").await?;
        ensure!(jobs.len() == 1 && jobs[0].id == id, "{select}: {jobs:?}");
        if expected == Activity::Free {
            client.delete_node("n1").await.context("Slurm does not refuse to forget the node, either")?;
        }
    }
    Ok(())
}
