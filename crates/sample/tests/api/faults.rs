//! Faults of the API server and of the way to it.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use contract::{PATIENCE, World, plain_kubeconfig};
use http::StatusCode;
use serde_json::{Value, json};
use testkit::chaos::{Chaos, Fault};
use testkit::process::eventually;

use super::subject;

async fn behind_chaos(name: &str) -> Result<(World, Chaos)> {
    let world = World::new(&subject(), name).await?;
    let chaos = Chaos::before_api_server(world.plane().client(&world.user("operator")).await?).await?;
    Ok((world, chaos))
}

#[test]
fn a_request_without_an_answer_is_told_as_stalled_and_tried_again() -> Result<()> {
    testkit::run(async {
        let (world, chaos) = behind_chaos("silent").await?;
        let at = plain_kubeconfig(&chaos.url());
        let operator = world.operator_at("operator", &at, &world.namespace, &[]).await?;
        world.create("one").await?;
        world.settled("one").await?;
        chaos.inject("/configmaps/one", Fault::Delay(Duration::from_secs(60)));
        world.edit("one", &json!({ "message": "other" })).await?;
        let stalled = world.told("one", "Stalled", "True", "DeadlineExceeded").await?;
        let message = stalled["message"].as_str().unwrap_or_default();
        ensure!(
            message == format!("no answer within 10 s: apply ConfigMap {}/one", world.namespace),
            "{message}"
        );
        ensure!(
            operator.metric("slipway_stalled{controller=\"sample\",reason=\"DeadlineExceeded\"}").await?
                > 0.0
        );
        chaos.heal();
        chaos.cut_connections();
        world.child("one", "the edit", |child| child.data["data"]["message"] == "other").await?;
        world.told("one", "Stalled", "False", "NotStalled").await?;
        Ok(())
    })
}

#[test]
fn a_server_that_does_not_stream_lists_is_asked_for_pages() -> Result<()> {
    testkit::run(async {
        let (world, chaos) = behind_chaos("paged").await?;
        let refusal = json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 422, "reason": "Invalid",
            "message": "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled" });
        let path = format!("/namespaces/{}/samples", world.namespace);
        chaos.inject_times(&path, Fault::Answer(StatusCode::UNPROCESSABLE_ENTITY, refusal), 1);
        let calls = world.plane().api_calls();
        let mark = calls.mark(&world.client).await?;
        let at = plain_kubeconfig(&chaos.url());
        let mut operator = world.operator_at("operator", &at, &world.namespace, &[]).await?;
        world.create("one").await?;
        world.settled("one").await?;
        operator
            .logged("the change to be told", |line| {
                line["msg"].as_str().is_some_and(|msg| msg.contains("paging"))
            })
            .await?;
        let listed = calls.since(&world.client, mark).await?.by(&world.user("operator"));
        ensure!(!listed.filter(|call| call.verb == "list" && call.resource == "samples").is_empty());
        world.edit("one", &json!({ "footnote": "live" })).await?;
        world.child("one", "the edit", |child| child.data["data"]["footnote"] == "live").await?;
        Ok(())
    })
}

#[test]
fn one_child_that_is_refused_does_not_keep_the_others_from_being_applied() -> Result<()> {
    testkit::run(async {
        let (world, chaos) = behind_chaos("refused").await?;
        let at = plain_kubeconfig(&chaos.url());
        let mut operator = world.operator_at("operator", &at, &world.namespace, &[]).await?;
        eventually("readiness", PATIENCE, async || {
            Ok((operator.probe("/readyz").await?.0 == 200).then_some(()))
        })
        .await?;
        let no: Value = json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403, "reason": "Forbidden",
            "message": "no secrets today" });
        chaos.inject(
            &format!("/namespaces/{}/secrets", world.namespace),
            Fault::Answer(StatusCode::FORBIDDEN, no),
        );
        world.create("one").await?;
        world.child("one", "the child", |_| true).await?;
        let blocked = world.told("one", "Ready", "False", "Forbidden").await?;
        let message = blocked["message"].as_str().context("a message")?;
        ensure!(message.contains("one-key: no secrets today"), "{message}");
        chaos.heal();
        world.told("one", "Ready", "True", "AsWanted").await?;
        operator.check_running()
    })
}
