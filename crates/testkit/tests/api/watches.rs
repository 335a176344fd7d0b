//! Streaming lists, which a controller starts with.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{PostParams, WatchEvent, WatchParams};
use kube::core::watch::Bookmark;
use kube::runtime::watcher::{self, watcher};
use kube::{Api, ResourceExt};
use testkit::ControlPlane;

use crate::config_map;

#[test]
fn a_streaming_list_ends_its_initial_objects_with_a_bookmark() -> Result<()> {
    testkit::run(async {
        let plane = ControlPlane::start().await?;
        let namespace = plane.namespace("stream").await?;
        let client = plane.client("stream").await?;
        let maps: Api<ConfigMap> = Api::namespaced(client, &namespace);
        for name in ["one", "two"] {
            maps.create(&PostParams::default(), &config_map(name)).await?;
        }

        // The controller-manager puts a map with the cluster's certificate in every namespace, at some time.
        let ours = WatchParams::streaming_lists().fields("metadata.name!=kube-root-ca.crt");
        let mut events = maps.watch(&ours, "").await?.boxed();
        let mut initial = Vec::new();
        loop {
            match events.try_next().await?.context("the watch ended")? {
                WatchEvent::Added(map) => initial.push(map.name_any()),
                WatchEvent::Bookmark(bookmark) if ends_initial_events(&bookmark) => break,
                other => bail!("{other:?} among the initial events"),
            }
        }
        initial.sort();
        assert_eq!(initial, ["one", "two"]);

        maps.create(&PostParams::default(), &config_map("three")).await?;
        loop {
            match events.try_next().await?.context("the watch ended")? {
                // These come from time to time.
                WatchEvent::Bookmark(bookmark) => assert!(!ends_initial_events(&bookmark)),
                WatchEvent::Added(map) => break assert_eq!(map.name_any(), "three"),
                other => bail!("{other:?} instead of the new map"),
            }
        }
        Ok(())
    })
}

#[test]
fn a_watcher_with_streaming_lists_needs_one_watch_and_no_list() -> Result<()> {
    testkit::run(async {
        let plane = ControlPlane::start().await?;
        let namespace = plane.namespace("stream").await?;
        let admin = plane.client("stream").await?;
        let maps: Api<ConfigMap> = Api::namespaced(admin.clone(), &namespace);
        for name in ["one", "two"] {
            maps.create(&PostParams::default(), &config_map(name)).await?;
        }
        let calls = plane.api_calls();
        let mark = calls.mark(&admin).await?;

        let watched: Api<ConfigMap> = Api::namespaced(plane.client("streaming-watcher").await?, &namespace);
        let config = watcher::Config::default().streaming_lists().fields("metadata.name!=kube-root-ca.crt");
        let mut events = watcher(watched, config).boxed();
        let mut initial = BTreeSet::new();
        loop {
            match events.try_next().await?.context("the watch ended")? {
                watcher::Event::Init => {}
                watcher::Event::InitApply(map) => drop(initial.insert(map.name_any())),
                watcher::Event::InitDone => break,
                other => bail!("{other:?} among the initial events"),
            }
        }
        assert_eq!(initial, ["one", "two"].map(String::from).into());
        maps.create(&PostParams::default(), &config_map("three")).await?;
        let event = events.try_next().await?.context("the watch ended")?;
        assert!(matches!(&event, watcher::Event::Apply(map) if map.name_any() == "three"), "{event:?}");

        let asked = calls.since(&admin, mark).await?.by("streaming-watcher");
        let verbs: Vec<_> = asked.iter().map(|call| call.verb.as_str()).collect();
        assert_eq!(verbs, ["watch"], "{asked:?}");
        Ok(())
    })
}

fn ends_initial_events(bookmark: &Bookmark) -> bool {
    bookmark.metadata.annotations.get("k8s.io/initial-events-end").is_some_and(|value| value == "true")
}
