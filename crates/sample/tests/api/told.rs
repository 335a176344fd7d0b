//! What users are told: conditions, events, metrics.

use anyhow::{Result, ensure};
use contract::{PATIENCE, World, condition};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use serde_json::json;
use testkit::process::eventually;

use super::subject;

#[test]
fn a_mistake_is_told_with_its_field_and_forgotten_when_it_is_mended() -> Result<()> {
    testkit::run(async {
        let world = World::new(&subject(), "mistake").await?;
        let operator = world.operator("operator").await?;
        world.create_with("one", &json!({ "message": "x", "replicas": -1 })).await?;
        let stalled = world.told("one", "Stalled", "True", "InvalidSpec").await?;
        ensure!(stalled["message"].as_str().is_some_and(|text| text.contains("spec.replicas")), "{stalled}");
        world.told("one", "Ready", "False", "InvalidSpec").await?;
        let metric = "slipway_stalled{controller=\"sample\",reason=\"InvalidSpec\"}";
        operator.measures(metric, |stalled| stalled > 0.0).await?;
        let events: Api<Event> = Api::namespaced(world.client.clone(), &world.namespace);
        eventually("an event", PATIENCE, async || {
            let list = events.list(&ListParams::default()).await?;
            let told = list.iter().any(|event| {
                event.reason.as_deref() == Some("InvalidSpec") && event.type_.as_deref() == Some("Warning")
            });
            Ok(told.then_some(()))
        })
        .await?;

        let since = stalled["lastTransitionTime"].clone();
        world.edit("one", &json!({ "message": "y" })).await?;
        let later = eventually("the next generation to be told of", PATIENCE, async || {
            let object = world.objects().get("one").await?;
            let stalled = condition(&object, "Stalled");
            Ok((stalled["observedGeneration"].as_i64() == object.metadata.generation).then_some(stalled))
        })
        .await?;
        ensure!(later["lastTransitionTime"] == since, "{later}, not {since}");

        world.edit("one", &json!({ "replicas": 0 })).await?;
        world.told("one", "Ready", "True", "AsWanted").await?;
        world.told("one", "Stalled", "False", "NotStalled").await?;
        operator.measures(metric, |stalled| stalled == 0.0).await?;
        Ok(())
    })
}

#[test]
fn what_is_missing_is_named_and_its_coming_wakes_the_object() -> Result<()> {
    testkit::run(async {
        let world = World::new(&subject(), "missing").await?;
        let operator = world.operator("operator").await?;
        world.create_with("one", &json!({ "message": "x", "secret": "wanted" })).await?;
        let waiting = world.told("one", "Progressing", "True", "SecretMissing").await?;
        let message = waiting["message"].as_str().unwrap_or_default();
        ensure!(message == "waiting for Secret wanted, named by spec.secret", "{message}");

        let secrets: Api<Secret> = Api::namespaced(world.client.clone(), &world.namespace);
        let secret = json!({ "metadata": { "name": "wanted" }, "stringData": { "a": "1" } });
        secrets.create(&PostParams::default(), &serde_json::from_value(secret)?).await?;
        world.told("one", "Ready", "True", "AsWanted").await?;
        ensure!(world.objects().get("one").await?.data["status"]["secretKeys"] == 1);

        // Content is read again when it has changed, and else not at all.
        let patch = json!({ "stringData": { "b": "2" } });
        secrets.patch("wanted", &PatchParams::default(), &Patch::Merge(patch)).await?;
        eventually("the second key", PATIENCE, async || {
            Ok((world.objects().get("one").await?.data["status"]["secretKeys"] == 2).then_some(()))
        })
        .await?;
        let calls = world.plane().api_calls();
        let mark = calls.mark(&world.client).await?;
        let before = operator.metric("controller_runtime_reconcile_total").await?;
        contract::merge(&world.objects(), "one", &json!({ "metadata": { "labels": { "look": "again" } } }))
            .await?;
        operator.measures("controller_runtime_reconcile_total", |reconciles| reconciles > before).await?;
        let read = calls.since(&world.client, mark).await?.by(&world.user("operator"));
        let read = read.filter(|call| call.verb == "get" && call.resource == "secrets");
        ensure!(read.is_empty(), "{read:?}");
        Ok(())
    })
}

#[test]
fn a_wait_names_what_for_and_since_when() -> Result<()> {
    testkit::run(async {
        // Nobody runs pods here.
        let world = World::new(&subject(), "waits").await?;
        let _operator = world.operator("operator").await?;
        world.create_with("one", &json!({ "message": "x", "replicas": 2 })).await?;
        let waiting = world.told("one", "Progressing", "True", "PodsNotReady").await?;
        let message = waiting["message"].as_str().unwrap_or_default();
        ensure!(
            message.starts_with("waiting for 2 pods of StatefulSet one to be ready since 2"),
            "{message}"
        );
        world.told("one", "Stalled", "False", "NotStalled").await?;
        Ok(())
    })
}

#[test]
fn dashboards_find_their_metrics() -> Result<()> {
    testkit::run(async {
        let world = World::new(&subject(), "metrics").await?;
        let operator = world.operator("operator").await?;
        world.create("one").await?;
        world.settled("one").await?;
        for metric in [
            "workqueue_adds_total{name=\"sample\",controller=\"sample\"}",
            "workqueue_queue_duration_seconds_count{name=\"sample\"",
            "workqueue_work_duration_seconds_count{name=\"sample\"",
            "controller_runtime_reconcile_total{controller=\"sample\",result=",
            "controller_runtime_reconcile_time_seconds_count{controller=\"sample\"}",
            "controller_runtime_max_concurrent_reconciles{name=\"sample\"",
            "leader_election_master_status{name=\"sample.slipway.hpc\"}",
            "slipway_cache_objects{group=\"sample.slipway.hpc\",kind=\"Sample\"}",
            "slipway_watch_up{group=\"sample.slipway.hpc\",kind=\"Sample\"",
        ] {
            operator.measures(metric, |value| value > 0.0).await?;
        }
        let (_, page) = operator.metrics_page().await?;
        for metric in [
            "workqueue_depth{",
            "workqueue_unfinished_work_seconds{",
            "workqueue_longest_running_processor_seconds{",
            "workqueue_retries_total{",
            "controller_runtime_reconcile_errors_total{",
            "controller_runtime_terminal_reconcile_errors_total{",
            "controller_runtime_reconcile_panics_total{",
            "controller_runtime_active_workers{",
        ] {
            ensure!(page.contains(&format!("\n{metric}")), "{metric} in\n{page}");
        }
        Ok(())
    })
}
