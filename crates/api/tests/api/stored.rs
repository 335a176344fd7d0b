//! Objects that an older installation stored: one that cannot be decoded does not hide the others of its kind, and one that our rules
//! would refuse can still be worked with.

use std::time::Duration;

use anyhow::Result;
use api::slinky::v1beta1 as slinky;
use api::soperator::{v1, v1alpha1};
use kube::api::{ListParams, Patch, PatchParams};
use kube::core::{DeserializeGuard, NamespaceResourceScope};
use kube::{Api, Client, CustomResourceExt, Resource};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use testkit::ControlPlane;
use testkit::process::eventually;

use crate::server::{create, install, sample};

/// The same CRDs, as an installation may have had them that let anything through.
fn loose() -> Vec<Value> {
    let mut crds = api::crds();
    for crd in &mut crds {
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] =
            json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    }
    crds
}

#[test]
fn an_object_that_cannot_be_decoded_is_skipped_in_a_list_of_its_kind() -> Result<()> {
    testkit::run(async {
        let plane = ControlPlane::own().await?;
        let client = plane.client("api-test").await?;
        let namespace = plane.namespace("undecodable").await?;
        install(&client, loose()).await?;
        for crd in api::crds() {
            let names = (crd["spec"]["group"].as_str(), crd["spec"]["names"]["kind"].as_str());
            let (Some(group), Some(kind)) = names else { continue };
            let good = sample(&format!("{group}/{}-minimal", kind.to_lowercase()))?;
            let mut bad = good.clone();
            bad["metadata"]["name"] = "a-bad-one".into();
            for value in bad["spec"].as_object_mut().into_iter().flat_map(Map::values_mut) {
                *value = json!(42.5);
            }
            for object in [good, bad] {
                create(&client, &namespace, &object, false).await?.map_err(anyhow::Error::msg)?;
            }
        }
        install(&client, api::crds()).await?;

        check::<v1::SlurmCluster>(&client, &namespace).await?;
        check::<v1alpha1::NodeSet>(&client, &namespace).await?;
        check::<v1alpha1::NodeSetPowerState>(&client, &namespace).await?;
        check::<v1alpha1::NodeConfigurator>(&client, &namespace).await?;
        check::<v1alpha1::JailedConfig>(&client, &namespace).await?;
        check::<v1alpha1::ActiveCheck>(&client, &namespace).await?;
        check::<slinky::Controller>(&client, &namespace).await?;
        check::<slinky::NodeSet>(&client, &namespace).await?;
        check::<slinky::LoginSet>(&client, &namespace).await?;
        check::<slinky::Accounting>(&client, &namespace).await?;
        check::<slinky::RestApi>(&client, &namespace).await?;
        check::<slinky::Token>(&client, &namespace).await
    })
}

/// Finalizers, labels and conditions go onto such an object; whoever edits its spec is told what is wrong with it.
#[test]
fn a_stored_object_that_a_rule_refuses_is_not_locked() -> Result<()> {
    testkit::run(async {
        let plane = ControlPlane::own().await?;
        let client = plane.client("api-test").await?;
        let namespace = plane.namespace("stored").await?;
        install(&client, loose()).await?;
        let mut cluster = sample("slurm.nebius.ai/slurmcluster-minimal")?;
        cluster["spec"]["volumeSources"][0]["name"] = "root".into();
        for volumes in ["controller", "login"] {
            cluster["spec"]["slurmNodes"][volumes]["volumes"]["jail"]["volumeSourceName"] = "root".into();
        }
        create(&client, &namespace, &cluster, false).await?.map_err(anyhow::Error::msg)?;
        install(&client, api::crds()).await?;

        let api: Api<v1::SlurmCluster> = Api::namespaced(client.clone(), &namespace);
        let apply = PatchParams::default();
        // Right after a change of the CRD the server still checks by the old one, or answers that it sets up its storage again.
        let mut edits = 0;
        eventually("an edit of the spec is refused", Duration::from_secs(30), async || {
            edits += 1;
            let edit = json!({ "spec": { "customSlurmConfig": format!("MaxStepCount={edits}") } });
            let refusal = api.patch("slurm", &apply, &Patch::Merge(edit)).await.err();
            let told = refusal.filter(|error| error.to_string().contains("must have an entry named jail"));
            Ok(told.map(|_| ()))
        })
        .await?;
        let metadata = json!({ "labels": { "a": "b" }, "finalizers": ["slipway.hpc/test"] });
        api.patch("slurm", &apply, &Patch::Merge(json!({ "metadata": metadata }))).await?;
        let condition = json!({
            "type": "Ready", "status": "False", "reason": "InvalidSpec", "message": "no volume named jail",
            "lastTransitionTime": "2026-11-18T06:48:00Z",
        });
        let status = json!({ "status": { "phase": "Pending", "conditions": [condition] } });
        api.patch_status("slurm", &apply, &Patch::Merge(status)).await?;
        Ok(())
    })
}

async fn check<K>(client: &Client, namespace: &str) -> Result<()>
where
    K: CustomResourceExt + Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    K: Clone + std::fmt::Debug + DeserializeOwned,
{
    let api: Api<DeserializeGuard<K>> = Api::namespaced(client.clone(), namespace);
    // Right after a change of the CRD the server answers that its storage is being set up again.
    let list = eventually(&format!("list {}", K::crd_name()), Duration::from_secs(30), async || {
        Ok(Some(api.list(&ListParams::default()).await?))
    })
    .await?;
    let bad: Vec<_> = list.items.iter().filter_map(|guard| guard.0.as_ref().err()).collect();
    assert_eq!((list.items.len(), bad.len()), (2, 1), "{}", K::crd_name());
    assert_eq!(bad[0].metadata.name.as_deref(), Some("a-bad-one"));
    Ok(())
}
