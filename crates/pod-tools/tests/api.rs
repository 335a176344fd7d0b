//! The hand-off of a worker against a real API server.

use anyhow::Result;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use pod_tools::worker_handoff::{Outcome, hand_off};
use serde_json::{Value, json};
use testkit::ControlPlane;

const OPERATION: &str = "slurm.nebius.ai/worker-operation-id";
const PHASE: &str = "slurm.nebius.ai/worker-operation-phase";

async fn worker(labels: Value) -> Result<(Client, String, Api<Pod>)> {
    let server = ControlPlane::start().await?;
    let client = server.client("worker").await?;
    let namespace = server.namespace("handoff").await?;
    let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace);
    let pod = json!({
        "metadata": { "name": "worker-0", "labels": labels },
        "spec": { "containers": [{ "name": "slurmd", "image": "none" }] },
    });
    pods.create(&PostParams::default(), &serde_json::from_value(pod)?).await?;
    Ok((client, namespace, pods))
}

#[test]
fn a_worker_that_is_to_stop_says_that_it_is_ready() -> Result<()> {
    testkit::run(async {
        let (client, namespace, pods) =
            worker(json!({ OPERATION: "rev-2", PHASE: "stopping", "other": "kept" })).await?;
        let operation = "rev-2".to_owned();
        let outcome = hand_off(client.clone(), &namespace, "worker-0").await?;
        assert_eq!(outcome, Outcome::HandedOver { operation: operation.clone() });
        let labels = pods.get("worker-0").await?.labels().clone();
        assert_eq!((labels[PHASE].as_str(), labels["other"].as_str()), ("ready", "kept"));
        // Slurm may run the program again.
        assert_eq!(hand_off(client, &namespace, "worker-0").await?, Outcome::AlreadyReady { operation });
        Ok(())
    })
}

#[test]
fn a_worker_that_nobody_asked_says_nothing() -> Result<()> {
    testkit::run(async {
        let (client, namespace, pods) = worker(json!({ "other": "kept" })).await?;
        let before = pods.get("worker-0").await?.resource_version();
        let refused = format!("{:#}", hand_off(client.clone(), &namespace, "worker-0").await.unwrap_err());
        assert!(refused.contains(OPERATION), "{refused}");
        let labels = json!({ "metadata": { "labels": { OPERATION: "rev-2", PHASE: "odd" } } });
        pods.patch("worker-0", &PatchParams::default(), &Patch::Merge(&labels)).await?;
        let changed = pods.get("worker-0").await?.resource_version();
        assert_ne!(changed, before);
        hand_off(client, &namespace, "worker-0").await.unwrap_err();
        assert_eq!(pods.get("worker-0").await?.resource_version(), changed, "something was written");
        Ok(())
    })
}
