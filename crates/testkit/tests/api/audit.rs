//! `ApiCalls`: what the audit log proves about a client.

use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt};
use http::Request;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchParams};
use serde_json::json;
use testkit::ControlPlane;

use crate::{config_map, create, refusal};

#[test]
fn calls_are_counted_by_client_verb_and_resource_in_their_order() -> Result<()> {
    testkit::run(async {
        let plane = ControlPlane::start().await?;
        let namespace = plane.namespace("audit").await?;
        let admin = plane.client("audit-admin").await?;
        let maps: Api<ConfigMap> = Api::namespaced(plane.client("audited").await?, &namespace);
        let others: Api<ConfigMap> = Api::namespaced(plane.client("audited-too").await?, &namespace);
        let calls = plane.api_calls();
        maps.list(&ListParams::default()).await?;
        let mark = calls.mark(&admin).await?;

        for name in ["one", "two"] {
            maps.create(&PostParams::default(), &config_map(name)).await?;
        }
        others.get("one").await?;
        let patch = Patch::Merge(json!({ "data": { "key": "value" } }));
        maps.patch("one", &PatchParams::default(), &patch).await?;
        refusal(maps.get("three").await)?;
        maps.delete("two", &DeleteParams::default()).await?;

        let calls = calls.since(&admin, mark).await?;
        let ours = calls.by("audited");
        let counts: Vec<_> =
            ours.counts().into_iter().map(|((_, verb, resource), n)| (verb, resource, n)).collect();
        let of_maps = |verb: &str, count: usize| (verb.to_owned(), "configmaps".to_owned(), count);
        assert_eq!(
            counts,
            [of_maps("create", 2), of_maps("delete", 1), of_maps("get", 1), of_maps("patch", 1)]
        );
        let order: Vec<_> =
            ours.iter().map(|call| (call.verb.as_str(), call.name.as_str(), call.code)).collect();
        let expected = [
            ("create", "one", 201),
            ("create", "two", 201),
            ("patch", "one", 200),
            ("get", "three", 404),
            ("delete", "two", 200),
        ];
        assert_eq!(order, expected);
        assert!(ours.iter().map(|call| call.received).is_sorted(), "{ours:?}");
        assert!(ours.iter().all(|call| call.namespace == namespace), "{ours:?}");

        assert_eq!((ours.writes().len(), ours.of("secrets").len()), (4, 0), "{ours:?}");
        assert_eq!(calls.by("audited-too").within(&namespace).of("configmaps").len(), 1, "{calls:?}");
        assert!(calls.within(&namespace).writes().by("audited-too").is_empty(), "{calls:?}");
        Ok(())
    })
}

#[test]
fn a_call_for_no_resource_shows_its_path_and_who_called() -> Result<()> {
    testkit::run(async {
        let plane = ControlPlane::start().await?;
        let client = plane.client("curious").await?;
        let calls = plane.api_calls();
        let mark = calls.mark(&client).await?;
        let request = Request::get("/version?pretty=1").header("user-agent", "spyglass/1").body(Vec::new())?;
        client.request_text(request).await?;
        let ours = calls.since(&client, mark).await?.by("curious");
        let seen: Vec<_> =
            ours.iter().map(|call| (&*call.verb, &*call.resource, &*call.user_agent)).collect();
        assert_eq!(seen, [("get", "/version", "spyglass/1")]);
        Ok(())
    })
}

#[test]
fn a_watch_counts_once_whether_it_ends_goes_on_or_is_refused() -> Result<()> {
    testkit::run(async {
        let plane = ControlPlane::start().await?;
        let namespace = plane.namespace("audit").await?;
        let admin = plane.client("audit-admin").await?;
        let client = plane.client("watching").await?;
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace);
        let leases: Api<Lease> = Api::namespaced(client, &namespace);
        let nobody: Api<ConfigMap> =
            Api::namespaced(plane.client_as("unwatching", "nobody").await?, &namespace);
        create(&leases, json!({ "metadata": { "name": "one" }, "spec": {} })).await?;
        let calls = plane.api_calls();
        let mark = calls.mark(&admin).await?;

        let _: Vec<_> = maps.watch(&WatchParams::default().timeout(1), "0").await?.try_collect().await?;
        let mut lasting = leases.watch(&WatchParams::default(), "0").await?.boxed();
        lasting.try_next().await?.context("the watch ended")?;
        let refused = nobody.watch(&WatchParams::default(), "0").await.map(|_| "a watch");
        assert!(refusal(refused)?.is_forbidden());

        let calls = calls.since(&admin, mark).await?;
        let of = |client: &str, resource: &str| {
            let found = calls.by(client).of(resource);
            found.iter().map(|call| (call.verb.clone(), call.code)).collect::<Vec<_>>()
        };
        assert_eq!(of("watching", "configmaps"), [("watch".to_owned(), 200)], "{calls:?}");
        assert_eq!(of("watching", "leases"), [("watch".to_owned(), 200)], "{calls:?}");
        assert_eq!(of("unwatching", "configmaps"), [("watch".to_owned(), 403)], "{calls:?}");
        Ok(())
    })
}

#[test]
fn renewals_of_a_lease_are_no_writes() -> Result<()> {
    testkit::run(async {
        let plane = ControlPlane::start().await?;
        let namespace = plane.namespace("audit").await?;
        let admin = plane.client("audit-admin").await?;
        let client = plane.client("renewing").await?;
        let leases: Api<Lease> = Api::namespaced(client.clone(), &namespace);
        let maps: Api<ConfigMap> = Api::namespaced(client, &namespace);
        create(&leases, json!({ "metadata": { "name": "leader" }, "spec": {} })).await?;
        let calls = plane.api_calls();
        let mark = calls.mark(&admin).await?;

        let renewal = Patch::Merge(json!({ "spec": { "holderIdentity": "renewing" } }));
        leases.patch("leader", &PatchParams::default(), &renewal).await?;
        maps.create(&PostParams::default(), &config_map("one")).await?;

        let ours = calls.since(&admin, mark).await?.by("renewing");
        assert_eq!(
            (ours.len(), ours.writes().len(), ours.writes().of("configmaps").len()),
            (2, 1, 1),
            "{ours:?}"
        );
        Ok(())
    })
}

#[test]
fn a_client_that_is_quiet_between_two_marks_has_no_calls() -> Result<()> {
    testkit::run(async {
        let plane = ControlPlane::start().await?;
        let namespace = plane.namespace("audit").await?;
        let client = plane.client("quiet").await?;
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace);
        let others: Api<ConfigMap> = Api::namespaced(plane.client("busy").await?, &namespace);
        let calls = plane.api_calls();

        maps.create(&PostParams::default(), &config_map("one")).await?;
        // The client that asks is the one that is counted: its own questions must not show.
        let mark = calls.mark(&client).await?;
        others.get("one").await?;
        let seen = calls.since(&client, mark).await?;
        assert!(seen.by("quiet").is_empty() && seen.by("busy").len() == 1, "{seen:?}");
        let seen = calls.since(&client, mark).await?;
        assert!(seen.by("quiet").is_empty(), "the first question shows: {seen:?}");
        Ok(())
    })
}
