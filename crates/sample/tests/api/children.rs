//! Children that are more than a ConfigMap: immutable fields, generated secrets, kinds that may be missing.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use contract::{PATIENCE, World};
use engine::views::{ConfigMapView, SecretView, StatefulSetView};
use engine::{Kind, View};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, ResourceExt};
use sample::api::Gadget;
use serde_json::json;
use testkit::FakeKubelet;
use testkit::process::eventually;

use super::subject;

/// Uids of the pods that run.
async fn pods(world: &World) -> Result<Vec<Option<String>>> {
    let pods: Api<Pod> = Api::namespaced(world.client.clone(), &world.namespace);
    let mut uids: Vec<_> = pods.list(&ListParams::default()).await?.iter().map(ResourceExt::uid).collect();
    uids.sort();
    Ok(uids)
}

#[test]
fn an_immutable_field_makes_the_set_anew_and_keeps_its_pods() -> Result<()> {
    testkit::run(async {
        let world = World::new(&subject(), "immutable").await?;
        let _nodes = FakeKubelet::nodes("immutable", 1)
            .in_namespace(&world.namespace)
            .start(world.client.clone())
            .await?;
        let mut operator = world.operator("operator").await?;
        world.create_with("one", &json!({ "message": "x", "replicas": 2, "serviceName": "first" })).await?;
        world.told("one", "Ready", "True", "AsWanted").await?;
        let (before, sets) = (pods(&world).await?, world.api(StatefulSetView::kind()));
        let old = sets.get("one").await?;
        ensure!(before.len() == 2, "{before:?}");

        world.edit("one", &json!({ "serviceName": "second" })).await?;
        let new = eventually("another set", PATIENCE, async || {
            let set = sets.get_opt("one").await?;
            Ok(set.filter(|set| set.uid() != old.uid() && set.data["spec"]["serviceName"] == "second"))
        })
        .await?;
        world.told("one", "Ready", "True", "AsWanted").await?;
        ensure!(pods(&world).await? == before, "pods were lost");
        let set = new.uid().context("a uid")?;
        eventually("the pods to be taken over", PATIENCE, async || {
            let pods: Api<Pod> = Api::namespaced(world.client.clone(), &world.namespace);
            let list = pods.list(&ListParams::default()).await?;
            let taken = list.iter().all(|pod| pod.owner_references().iter().any(|owner| owner.uid == set));
            Ok(taken.then_some(()))
        })
        .await?;
        operator.check_running()
    })
}

#[test]
fn a_generated_secret_is_made_once_and_outlives_edits_and_restarts() -> Result<()> {
    testkit::run(async {
        let world = World::new(&subject(), "once").await?;
        let operator = world.operator("operator").await?;
        world.create("one").await?;
        world.settled("one").await?;
        let secrets = world.api(SecretView::kind());
        let first = secrets.get("one-key").await?;
        world.delete(&secrets, "one-key").await?;
        let made = eventually("another", PATIENCE, async || Ok(secrets.get_opt("one-key").await?)).await?;
        ensure!(made.data["data"] != first.data["data"]);
        ensure!(made.data["data"]["key"].as_str().is_some_and(|key| key.len() > 20));
        ensure!(
            !operator.log().contains(made.data["data"]["key"].as_str().unwrap_or("?")),
            "it is in the log"
        );
        world.edit("one", &json!({ "message": "other" })).await?;
        world.child("one", "the edit", |child| child.data["data"]["message"] == "other").await?;
        drop(operator);
        let _operator = world.operator("again").await?;
        world.edit("one", &json!({ "message": "third" })).await?;
        world.child("one", "the edit", |child| child.data["data"]["message"] == "third").await?;
        let now = secrets.get("one-key").await?;
        ensure!(now.resource_version() == made.resource_version(), "it was written again");
        Ok(())
    })
}

#[test]
fn a_restart_writes_nothing_that_is_there() -> Result<()> {
    testkit::run(async {
        let world = World::new(&subject(), "again").await?;
        let operator = world.operator("operator").await?;
        world.create("one").await?;
        let child = world.settled("one").await?;
        let object = world.objects().get("one").await?;
        operator.signal(nix::sys::signal::Signal::SIGTERM);
        ensure!(operator.exit_code().await? == Some(0));
        let operator = world.operator("second").await?;
        operator.measures("controller_runtime_reconcile_total", |reconciles| reconciles > 0.0).await?;
        ensure!(world.settled("one").await?.resource_version() == child.resource_version());
        ensure!(world.objects().get("one").await?.resource_version() == object.resource_version());
        Ok(())
    })
}

#[test]
fn what_is_no_longer_wanted_goes() -> Result<()> {
    testkit::run(async {
        let world = World::new(&subject(), "prune").await?;
        let _operator = world.operator("operator").await?;
        world.create_with("one", &json!({ "message": "x", "extra": "y" })).await?;
        world.create_with("two", &json!({ "message": "x", "extra": "y" })).await?;
        let maps = world.api(ConfigMapView::kind());
        for name in ["one-extra", "two-extra"] {
            eventually(name, PATIENCE, async || Ok(maps.get_opt(name).await?)).await?;
        }
        world.edit("one", &json!({ "extra": null })).await?;
        eventually("one-extra to go", PATIENCE, async || {
            Ok(maps.get_opt("one-extra").await?.is_none().then_some(()))
        })
        .await?;
        ensure!(maps.get_opt("two-extra").await?.is_some(), "another's child went too");
        Ok(())
    })
}

#[test]
fn a_kind_that_may_be_missing_is_used_while_it_is_there() -> Result<()> {
    testkit::run(async {
        let subject = subject();
        let world = World::bare(&subject, "optional").await?;
        world.install(&subject.crds[..1]).await?;
        let mut operator = world.operator("operator").await?;
        world.create("one").await?;
        world.told("one", "Ready", "True", "AsWanted").await?;

        let gadgets = world.api(Kind::of::<Gadget>());
        for _ in 0..2 {
            world.install(&subject.crds[1..]).await?;
            eventually("a gadget", PATIENCE, async || Ok(gadgets.get_opt("one").await?)).await?;
            let definitions: Api<CustomResourceDefinition> = Api::all(world.client.clone());
            definitions.delete("gadgets.gadgets.example.com", &DeleteParams::default()).await?;
            eventually("the kind to go", PATIENCE, async || {
                Ok(definitions.get_opt("gadgets.gadgets.example.com").await?.is_none().then_some(()))
            })
            .await?;
            world.edit("one", &json!({ "message": "without" })).await?;
            world.child("one", "the edit", |child| child.data["data"]["message"] == "without").await?;
            world.told("one", "Ready", "True", "AsWanted").await?;
            world.edit("one", &json!({ "message": "with" })).await?;
        }
        operator.check_running()
    })
}

#[test]
fn an_object_of_somebody_else_with_our_childs_name_is_left_alone_and_named() -> Result<()> {
    testkit::run(async {
        let world = World::new(&subject(), "theirs").await?;
        let _operator = world.operator("operator").await?;
        let maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), &world.namespace);
        let theirs = json!({ "metadata": { "name": "one", "labels": { "app.kubernetes.io/managed-by": "sample" } },
            "data": { "message": "theirs" } });
        let theirs = maps.create(&PostParams::default(), &serde_json::from_value(theirs)?).await?;
        world.create("one").await?;
        let waiting = world.told("one", "Progressing", "True", "ChildInTheWay").await?;
        let message = waiting["message"].as_str().unwrap_or_default();
        ensure!(
            message.contains(&format!("ConfigMap {}/one: somebody else's", world.namespace)),
            "{message}"
        );
        ensure!(maps.get("one").await?.resource_version() == theirs.resource_version(), "it was written");
        maps.delete("one", &DeleteParams::default()).await?;
        // It wakes nobody: it is looked whether it still is there.
        eventually("ours", Duration::from_secs(90), async || {
            let ours = maps.get_opt("one").await?;
            Ok(ours.filter(|map| !map.owner_references().is_empty()))
        })
        .await?;
        Ok(())
    })
}
