//! What `FakeKubelet` makes of pods.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, watcher};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use testkit::chaos::{Chaos, Fault};
use testkit::fake_kubelet::PodRuntime;
use testkit::process::eventually;
use testkit::{ControlPlane, FakeKubelet};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::{PATIENCE, create};

#[test]
fn a_runtime_starts_each_pod_once_and_ends_what_it_started() -> Result<()> {
    testkit::run(async {
        let plane = ControlPlane::start().await?;
        let namespace = plane.namespace("runtime").await?;
        let client = plane.client("runtime").await?;
        let (log, mut lines) = unbounded_channel();
        let runtime = Arc::new(Recorder { log, failures: AtomicU32::new(1) });
        let nodes = FakeKubelet::nodes(&namespace, 1).in_namespace(&namespace);
        let _kubelet = nodes.start_with(client.clone(), runtime).await?;
        let pods: Api<Pod> = Api::namespaced(client, &namespace);
        let mut next = async || lines.recv().await.context("the recorder is gone");

        create(&pods, json!({ "metadata": { "name": "gentle" }, "spec": pod_spec("rope:1") })).await?;
        assert_eq!(next().await?, "gentle fails to start");
        assert_eq!(next().await?, "gentle starts");
        eventually("it runs at the runtime's address", PATIENCE, async || {
            let pod = pods.get("gentle").await?;
            Ok((phase(&pod) == Some("Running") && addresses(&[pod]).contains(RUNTIME_ADDRESS)).then_some(()))
        })
        .await?;
        pods.delete("gentle", &DeleteParams::default().grace_period(7)).await?;
        assert_eq!(next().await?, "gentle ends within 7 s");
        eventually("it is gone", PATIENCE, async || {
            Ok(pods.get_opt("gentle").await?.is_none().then_some(()))
        })
        .await?;

        // Deleted by force, it is gone from the API before it ends.
        create(&pods, json!({ "metadata": { "name": "forced" }, "spec": pod_spec("rope:1") })).await?;
        assert_eq!(next().await?, "forced starts");
        pods.delete("forced", &DeleteParams::default().grace_period(0)).await?;
        assert_eq!(next().await?, "forced ends within 0 s");

        // A gate keeps a pod from its node until it is lifted.
        let mut spec = pod_spec("rope:1");
        spec["schedulingGates"] = json!([{ "name": "testkit.slipway.hpc/gate" }]);
        create(&pods, json!({ "metadata": { "name": "gated" }, "spec": spec })).await?;
        create(&pods, json!({ "metadata": { "name": "open" }, "spec": pod_spec("rope:1") })).await?;
        assert_eq!(next().await?, "open starts");
        let lift = Patch::Merge(json!({ "spec": { "schedulingGates": null } }));
        pods.patch("gated", &PatchParams::default(), &lift).await?;
        assert_eq!(next().await?, "gated starts");
        Ok(())
    })
}

#[test]
fn a_pod_that_vanishes_while_the_watch_is_broken_is_ended_too() -> Result<()> {
    testkit::run(async {
        let plane = ControlPlane::start().await?;
        let namespace = plane.namespace("vanish").await?;
        let client = plane.client("vanish").await?;
        let chaos = Chaos::before_api_server(client.clone()).await?;
        let (log, mut lines) = unbounded_channel();
        let runtime = Arc::new(Recorder { log, failures: AtomicU32::new(0) });
        let nodes = FakeKubelet::nodes(&namespace, 1).in_namespace(&namespace);
        let _kubelet = nodes.start_with(chaos.client()?, runtime).await?;
        let pods: Api<Pod> = Api::namespaced(client, &namespace);
        create(&pods, json!({ "metadata": { "name": "lost" }, "spec": pod_spec("rope:1") })).await?;
        assert_eq!(lines.recv().await.as_deref(), Some("lost starts"));

        // A list says nothing of what is no longer there.
        chaos.inject("/pods", Fault::expired_watch());
        chaos.cut_connections();
        eventually(
            "the refused watch and list",
            PATIENCE,
            async || Ok((chaos.injected() >= 2).then_some(())),
        )
        .await?;
        pods.delete("lost", &DeleteParams::default().grace_period(0)).await?;
        chaos.heal();
        assert_eq!(lines.recv().await.as_deref(), Some("lost ends within 30 s"));
        Ok(())
    })
}

const RUNTIME_ADDRESS: &str = "10.77.0.5";

/// Tells what it is asked to do; the first starts fail.
struct Recorder {
    log: UnboundedSender<String>,
    failures: AtomicU32,
}

impl PodRuntime for Recorder {
    fn start<'a>(&'a self, pod: &'a Pod) -> BoxFuture<'a, Result<Option<Ipv4Addr>>> {
        async {
            let fails = self.failures.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok();
            self.log.send(format!(
                "{} {}",
                pod.name_any(),
                if fails { "fails to start" } else { "starts" }
            ))?;
            ensure!(!fails, "not yet");
            Ok(Some(RUNTIME_ADDRESS.parse()?))
        }
        .boxed()
    }

    fn stop<'a>(&'a self, pod: &'a Pod, grace: Duration) -> BoxFuture<'a, Result<()>> {
        async move { Ok(self.log.send(format!("{} ends within {} s", pod.name_any(), grace.as_secs()))?) }
            .boxed()
    }
}

#[test]
fn a_pod_is_left_to_the_scheduler_where_there_is_one() -> Result<()> {
    testkit::run(async {
        let plane = ControlPlane::start().await?;
        let namespace = plane.namespace("scheduled").await?;
        let client = plane.client("scheduled").await?;
        let nodes = FakeKubelet::nodes(&namespace, 1).in_namespace(&namespace).scheduled();
        let kubelet = nodes.start(client.clone()).await?;
        let pods: Api<Pod> = Api::namespaced(client, &namespace);
        create(&pods, json!({ "metadata": { "name": "waiting" }, "spec": pod_spec("rope:1") })).await?;
        let mut spec = pod_spec("rope:1");
        spec["nodeName"] = json!(kubelet.node_names()[0]);
        create(&pods, json!({ "metadata": { "name": "placed" }, "spec": spec })).await?;

        eventually("the placed one runs", PATIENCE, async || {
            Ok((phase(&pods.get("placed").await?) == Some("Running")).then_some(()))
        })
        .await?;
        let waiting = pods.get("waiting").await?;
        assert_eq!(phase(&waiting), Some("Pending"));
        assert_eq!(waiting.spec.and_then(|spec| spec.node_name), None);
        Ok(())
    })
}

#[test]
fn heartbeats_renew_the_lease_of_each_node() -> Result<()> {
    testkit::run(async {
        let plane = ControlPlane::start().await?;
        let namespace = plane.namespace("heartbeat").await?;
        let client = plane.client("heartbeat").await?;
        let leases: Api<Lease> = Api::namespaced(client.clone(), "kube-node-lease");
        let nodes = FakeKubelet::nodes(&namespace, 2).in_namespace(&namespace);
        let kubelet = nodes.heartbeat(Duration::from_millis(100)).start(client).await?;
        for name in kubelet.node_names() {
            let renewed = async |after: Option<MicroTime>| {
                eventually("a renewal", PATIENCE, async || {
                    let spec = leases.get(name).await?.spec.unwrap_or_default();
                    ensure!(spec.holder_identity.as_ref() == Some(name), "{spec:?}");
                    Ok(spec.renew_time.filter(|time| Some(time) > after.as_ref()))
                })
                .await
            };
            let first = renewed(None).await?;
            renewed(Some(first)).await?;
        }
        Ok(())
    })
}

#[test]
fn a_thousand_pods_run_within_a_minute() -> Result<()> {
    const PODS: usize = 1_000;
    testkit::run(async {
        let plane = ControlPlane::start().await?;
        let namespace = plane.namespace("thousand").await?;
        let client = plane.client("thousand").await?;
        let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace);
        let kubelet =
            FakeKubelet::nodes(&namespace, 20).in_namespace(&namespace).start(client.clone()).await?;
        let fill =
            stream::iter(0..PODS).map(Ok::<_, anyhow::Error>).try_for_each_concurrent(8, async |index| {
                let pod = json!({
                    "metadata": { "name": format!("pod-{index}") },
                    "spec": pod_spec("rope:1"),
                });
                create(&pods, pod).await.map(drop)
            });
        let mut running = BTreeSet::new();
        let count = async {
            let mut events = watcher(pods.clone(), watcher::Config::default()).applied_objects().boxed();
            while running.len() < PODS {
                let pod = events.try_next().await?.context("the watch ended")?;
                if phase(&pod) == Some("Running") {
                    running.insert(pod.name_any());
                }
            }
            anyhow::Ok(())
        };
        tokio::time::timeout(Duration::from_secs(60), async { tokio::try_join!(fill, count) }).await??;

        let nodes: Api<Node> = Api::all(client);
        for name in kubelet.node_names() {
            let conditions =
                nodes.get(name).await?.status.and_then(|status| status.conditions).unwrap_or_default();
            assert!(
                conditions.iter().any(|one| one.type_ == "Ready" && one.status == "True"),
                "{conditions:?}"
            );
        }
        let all = pods.list(&ListParams::default()).await?.items;
        assert_eq!((all.len(), addresses(&all).len()), (PODS, PODS));
        Ok(())
    })
}

pub(crate) fn pod_spec(image: &str) -> Value {
    json!({ "containers": [{ "name": "main", "image": image }] })
}

pub(crate) fn addresses(pods: &[Pod]) -> BTreeSet<&str> {
    pods.iter().filter_map(|pod| pod.status.as_ref()?.pod_ip.as_deref()).collect()
}

pub(crate) fn phase(pod: &Pod) -> Option<&str> {
    pod.status.as_ref()?.phase.as_deref()
}
