//! Two who write the same: field managers, and holders of a lease.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use testkit::ControlPlane;

use crate::{create, refusal};

#[test]
fn a_second_field_manager_conflicts_unless_it_forces() -> Result<()> {
    testkit::run(async {
        let plane = ControlPlane::start().await?;
        let namespace = plane.namespace("apply").await?;
        let maps: Api<ConfigMap> = Api::namespaced(plane.client("apply").await?, &namespace);
        let apply = async |params: &PatchParams, data: Value| {
            let map = json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "shared" }, "data": data,
            });
            maps.patch("shared", params, &Patch::Apply(map)).await
        };
        let (first, second) = (PatchParams::apply("first"), PatchParams::apply("second"));

        apply(&first, json!({ "colour": "red", "size": "large" })).await?;
        let status = refusal(apply(&second, json!({ "colour": "blue" })).await)?;
        assert!(
            status.is_conflict() && status.message.contains(r#"conflict with "first": .data.colour"#),
            "{status}"
        );
        // The same value is no conflict: both own it then.
        apply(&second, json!({ "colour": "red" })).await?;

        let forced = apply(&second.clone().force(), json!({ "colour": "blue" })).await?;
        assert_eq!(data_of(&forced), [("colour", "blue"), ("size", "large")].into());
        let status = refusal(apply(&first, json!({ "colour": "red", "size": "large" })).await)?;
        assert!(status.is_conflict() && status.message.contains(r#"conflict with "second""#), "{status}");
        Ok(())
    })
}

#[test]
fn a_field_goes_when_its_only_manager_stops_setting_it() -> Result<()> {
    testkit::run(async {
        let plane = ControlPlane::start().await?;
        let namespace = plane.namespace("apply").await?;
        let maps: Api<ConfigMap> = Api::namespaced(plane.client("apply").await?, &namespace);
        let apply = async |manager: &str, data: Value| {
            let map = json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "shared" }, "data": data,
            });
            maps.patch("shared", &PatchParams::apply(manager), &Patch::Apply(map)).await
        };

        apply("first", json!({ "colour": "red", "size": "large" })).await?;
        apply("second", json!({ "size": "large" })).await?;
        let after = apply("first", json!({})).await?;
        assert_eq!(data_of(&after), [("size", "large")].into());
        let after = apply("second", json!({})).await?;
        assert_eq!(data_of(&after), BTreeMap::new());
        Ok(())
    })
}

#[test]
fn of_two_that_take_a_lease_one_loses_and_can_see_why() -> Result<()> {
    testkit::run(async {
        let plane = ControlPlane::start().await?;
        let namespace = plane.namespace("lease").await?;
        let leases: Api<Lease> = Api::namespaced(plane.client("lease").await?, &namespace);
        // A write that counts only for the version that was read.
        let take = async |holder: &str, read: &Lease| {
            let patch = json!({
                "metadata": { "resourceVersion": read.metadata.resource_version },
                "spec": {
                    "holderIdentity": holder, "leaseDurationSeconds": 15,
                    "renewTime": format!("{:.6}", Timestamp::now()),
                },
            });
            leases.patch("leader", &PatchParams::default(), &Patch::Merge(patch)).await
        };

        let read = create(&leases, json!({ "metadata": { "name": "leader" }, "spec": {} })).await?;
        let (one, two) = tokio::join!(take("one", &read), take("two", &read));
        let (winner, lost) = if one.is_ok() { (one?, two) } else { (two?, one) };
        let status = refusal(lost)?;
        assert!(status.is_conflict() && status.message.contains("the object has been modified"), "{status}");

        let holder =
            winner.spec.as_ref().and_then(|spec| spec.holder_identity.clone()).context("a holder")?;
        let renewed = take(&holder, &winner).await?;
        assert_ne!(renewed.resource_version(), winner.resource_version());
        let status = refusal(take("late", &winner).await)?;
        assert!(status.is_conflict(), "{status}");
        assert_eq!(leases.get("leader").await?.spec.and_then(|spec| spec.holder_identity), Some(holder));
        Ok(())
    })
}

fn data_of(map: &ConfigMap) -> BTreeMap<&str, &str> {
    map.data.iter().flatten().map(|(key, value)| (key.as_str(), value.as_str())).collect()
}
