//! Faults of the API server and of the way to it.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use contract::{PATIENCE, World, plain_kubeconfig};
use engine::views::Whole;
use engine::{Child, Controller, Failure, Key, Options, Reader, Report, Seen};
use http::StatusCode;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::config::KubeConfigOptions;
use nix::sys::signal::Signal;
use sample::api::Sample;
use serde_json::{Value, json};
use telemetry::{Health, Registry};
use testkit::chaos::{Chaos, Fault};
use testkit::process::eventually;
use tokio_util::sync::CancellationToken;

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
        let metric = "slipway_stalled{controller=\"sample\",reason=\"DeadlineExceeded\"}";
        operator.measures(metric, |stalled| stalled > 0.0).await?;
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

#[test]
fn a_stop_waits_for_the_reconcile_under_way_and_gives_the_lease_back() -> Result<()> {
    testkit::run(async {
        let (world, chaos) = behind_chaos("stop").await?;
        let at = plain_kubeconfig(&chaos.url());
        let mut operator = world.operator_at("operator", &at, &world.namespace, &[]).await?;
        operator.logged("the lease", |line| line["msg"] == "controller works").await?;
        chaos.inject("/configmaps/one", Fault::Delay(Duration::from_secs(2)));
        world.create("one").await?;
        eventually(
            "the request to be under way",
            PATIENCE,
            async || Ok((chaos.injected() > 0).then_some(())),
        )
        .await?;
        ensure!(world.children().get_opt("one").await?.is_none());
        operator.signal(Signal::SIGTERM);
        // A new one has to wait for the next leader.
        operator.logged("the wish to stop", |line| line["msg"] == "shutting down").await?;
        world.create("two").await?;
        ensure!(operator.exit_code().await? == Some(0), "it did not end well");
        ensure!(world.children().get_opt("one").await?.is_some(), "the reconcile was cut off");
        ensure!(
            world.children().get_opt("two").await?.is_none(),
            "a reconcile was begun after the wish to stop"
        );
        let leases: Api<Lease> = Api::namespaced(world.client.clone(), &world.namespace);
        let holder = leases.get(sample::LEASE).await?.spec.and_then(|spec| spec.holder_identity);
        ensure!(holder.as_deref().unwrap_or_default().is_empty(), "held by {holder:?}");
        Ok(())
    })
}

/// The engine in this process, with a controller that has nothing but a source of its own.
#[test]
fn a_key_from_elsewhere_wakes_its_object() -> Result<()> {
    testkit::run(async {
        let world = World::new(&subject(), "external").await?;
        world.create("one").await?;
        let kubeconfig = serde_json::from_value(world.plane().kubeconfig("external", "system:masters")?)?;
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        let settings = engine::Settings {
            namespaces: world.namespace.parse().unwrap_or_default(),
            identity: "test".to_owned(),
            cache_sync_timeout: PATIENCE,
        };
        let mut manager = engine::Manager::new(config, settings, &Registry::new(), &Health::new())?;
        manager.product("listener", None)?;
        let (keys, elsewhere) = tokio::sync::mpsc::channel::<Key>(1);
        let (looked, mut looks) = tokio::sync::mpsc::channel(8);
        manager.controller(Options::default(), move |wiring, _| {
            let elsewhere =
                futures::stream::unfold(elsewhere, async |mut keys| Some((keys.recv().await?, keys)));
            wiring.external(elsewhere);
            Listener { looked }
        });
        let stop = CancellationToken::new();
        let running = tokio::spawn(manager.run(stop.clone()));
        let key = Key::new(&world.namespace, "one");
        ensure!(looks.recv().await == Some(key.clone()), "the list");
        while tokio::time::timeout(Duration::from_secs(1), looks.recv()).await.is_ok() {}
        for _ in 0..3 {
            keys.send(key.clone()).await?;
            ensure!(looks.recv().await == Some(key.clone()), "the key");
        }
        stop.cancel();
        running.await?;
        Ok(())
    })
}

struct Listener {
    looked: tokio::sync::mpsc::Sender<Key>,
}

impl Controller for Listener {
    type Object = Whole<Sample>;
    type Facts = ();
    type Model = ();

    const NAME: &'static str = "listener";

    async fn gather(&self, sample: &Whole<Sample>, _: &Reader) -> Result<(), Failure> {
        self.looked.send(sample.meta.key.clone()).await.map_err(|error| Failure::bug(error.to_string()))
    }

    fn resolve(&self, _: &Whole<Sample>, (): &()) -> Result<(), Failure> {
        Ok(())
    }

    fn render(&self, _: &Whole<Sample>, (): &()) -> Result<Vec<Child>, Failure> {
        Ok(Vec::new())
    }

    fn report(&self, _: &Seen<'_, Self>) -> Report {
        Report::default()
    }
}
