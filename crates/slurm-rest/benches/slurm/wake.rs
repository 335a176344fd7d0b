//! From a job's end to the wake of one who waits for its node to be free, on real Slurm: `slurm wake NODES JOBS`.
//!
//! The job itself says when it ended; it runs on this machine, by the same clock. What is measured holds slurmctld's
//! own time to clean up after the job, the time until the view asks, and the time of that answer.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use slurm::state::Activity;
use slurm_rest::token::{Claims, Signed};
use slurm_rest::view::{Subscription, View, ViewOptions};
use slurm_rest::{Client, Endpoint, Options};
use testkit::cache::SlurmVersion;
use testkit::process::eventually;
use testkit::slurm::SlurmCluster;

const NODE: &str = "n1";
/// Of the first node; slurmctld asks there after all the nodes that have no slurmd.
const ADDRESS: &str = "10.77.1.0";
const REAL: u32 = 2;
const WAIT: Duration = Duration::from_secs(60);

pub(crate) async fn measure(nodes: u32, jobs: u32) -> Result<Value> {
    let mut builder = SlurmCluster::builder(SlurmVersion::V26_05).nodes(REAL);
    if nodes > REAL {
        let names = format!("f[1-{}]", nodes - REAL);
        builder = builder
            .extra_conf(&format!("NodeName={names} NodeAddr={ADDRESS} CPUs=2 RealMemory=1000 State=UNKNOWN"));
    }
    let cluster = builder.start().await?;
    let key = Signed {
        key: cluster.jwt_key().into(),
        user: "root".into(),
        claims: Claims::default(),
        lifetime: Duration::from_secs(3600),
    };
    let client = Client::new(
        Endpoint::parse(&cluster.rest_url(), None)?,
        std::sync::Arc::new(key),
        Options::new("bench"),
    );
    eventually("all nodes idle", WAIT, async || {
        let listed = client.nodes().await?.records;
        let idle = listed.iter().filter(|node| node.state.to_string().starts_with("IDLE"));
        Ok((idle.count() == nodes as usize).then_some(()))
    })
    .await?;
    let begin = Instant::now();
    client.nodes().await?;
    let list = begin.elapsed();

    let view = View::start(client, ViewOptions::default());
    let mut changes = view.subscribe();
    let _waiting = view.wait_on(NODE);
    until(&view, &mut changes, Activity::Free).await?;
    let mut wakes = Vec::new();
    for number in 0..jobs {
        // Ends that keep time with the questions would flatter, or the opposite.
        let script = format!("sleep 0.{}; date +%s%N", 600 + 37 * number % 400);
        let list = format!("--nodelist={NODE}");
        let command = ["srun", &list, "sh", "-c", &script];
        let (ended, woken) = tokio::try_join!(cluster.exec_as("alice", &command), async {
            until(&view, &mut changes, Activity::Busy).await?;
            until(&view, &mut changes, Activity::Free).await?;
            Ok(SystemTime::now())
        })?;
        let ended = Duration::from_nanos(ended.trim().parse().context("no time of the end")?);
        let woken = woken.duration_since(UNIX_EPOCH)?;
        let wake = woken.checked_sub(ended).context("woken before the end")?;
        wakes.push(u64::try_from(wake.as_micros())?);
    }
    Ok(json!({ "nodes": nodes, "list_ms": list.as_secs_f64() * 1000.0, "wake_us": wakes }))
}

/// As a controller would wait: woken by changes, and deciding by facts that are young.
async fn until(view: &View, changes: &mut Subscription, wanted: Activity) -> Result<()> {
    let young = Duration::from_secs(5);
    let so = async {
        while view.read(|facts| facts.activity(NODE, Instant::now(), young)) != wanted {
            changes.next().await.context("the view has ended")?;
        }
        Ok(())
    };
    tokio::time::timeout(WAIT, so)
        .await
        .with_context(|| format!("{NODE} is not {wanted:?} within {WAIT:?}"))?
}
