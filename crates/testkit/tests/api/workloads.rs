//! The controller-manager's workloads on nodes that do not exist.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use testkit::fake_kubelet::OUTCOME;
use testkit::process::eventually;
use testkit::{ControlPlane, FakeKubelet};

use crate::pods::{addresses, phase, pod_spec};
use crate::{PATIENCE, config_map, create};

#[test]
fn what_an_object_owns_goes_with_it() -> Result<()> {
    testkit::run(async {
        let plane = ControlPlane::start().await?;
        let namespace = plane.namespace("owner").await?;
        let maps: Api<ConfigMap> = Api::namespaced(plane.client("owner").await?, &namespace);
        let owner = maps.create(&PostParams::default(), &config_map("owner")).await?;
        let mut owned = config_map("owned");
        owned.metadata.owner_references = Some(vec![serde_json::from_value(json!({
            "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.uid(),
        }))?]);
        maps.create(&PostParams::default(), &owned).await?;
        maps.create(&PostParams::default(), &config_map("free")).await?;

        maps.delete("owner", &DeleteParams::background()).await?;
        eventually("the owned one is gone", PATIENCE, async || {
            Ok(maps.get_opt("owned").await?.is_none().then_some(()))
        })
        .await?;
        maps.get("free").await?;
        Ok(())
    })
}

#[test]
fn a_stateful_set_gets_ready_rolls_and_shrinks() -> Result<()> {
    testkit::run(async {
        let plane = ControlPlane::start().await?;
        let namespace = plane.namespace("stateful").await?;
        let client = plane.client("stateful").await?;
        let kubelet =
            FakeKubelet::nodes(&namespace, 2).in_namespace(&namespace).start(client.clone()).await?;
        let sets: Api<StatefulSet> = Api::namespaced(client.clone(), &namespace);
        let pods: Api<Pod> = Api::namespaced(client, &namespace);
        create(&sets, json!({
            "metadata": { "name": "crew" },
            "spec": { "replicas": 3, "selector": selector(), "serviceName": "crew", "template": template("rope:1") },
        }))
        .await?;
        let settled = async |replicas: i32| {
            eventually("the StatefulSet is settled", PATIENCE, async || {
                let set = sets.get("crew").await?;
                let status = set.status.unwrap_or_default();
                let done = status.observed_generation == set.metadata.generation
                    && status.replicas == replicas
                    && status.ready_replicas == Some(replicas)
                    && status.available_replicas == Some(replicas)
                    && status.current_revision == status.update_revision;
                Ok(done.then_some(()))
            })
            .await
        };

        settled(3).await?;
        let crew = pods.list(&ListParams::default()).await?.items;
        assert_eq!(names(&crew), ["crew-0", "crew-1", "crew-2"]);
        assert_eq!(addresses(&crew).len(), 3, "each pod has an address of its own");
        for pod in &crew {
            let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).context("placed")?;
            assert!(kubelet.node_names().contains(&node), "{node}");
        }

        let patch = Patch::Strategic(json!({ "spec": { "template": template("rope:2") } }));
        sets.patch("crew", &PatchParams::default(), &patch).await?;
        settled(3).await?;
        let rolled = pods.list(&ListParams::default()).await?.items;
        assert_eq!(names(&rolled), ["crew-0", "crew-1", "crew-2"]);
        assert!(rolled.iter().all(|pod| image(pod) == Some("rope:2")), "{rolled:#?}");
        let uids = |pods: &[Pod]| pods.iter().filter_map(ResourceExt::uid).collect::<BTreeSet<_>>();
        assert!(uids(&crew).is_disjoint(&uids(&rolled)));

        let patch = Patch::Merge(json!({ "spec": { "replicas": 1 } }));
        sets.patch("crew", &PatchParams::default(), &patch).await?;
        settled(1).await?;
        eventually("the others are gone", PATIENCE, async || {
            let left = pods.list(&ListParams::default()).await?.items;
            Ok((names(&left) == ["crew-0"]).then_some(()))
        })
        .await
    })
}

#[test]
fn a_deployment_gets_available_rolls_and_goes_with_its_pods() -> Result<()> {
    testkit::run(async {
        let plane = ControlPlane::start().await?;
        let namespace = plane.namespace("deployment").await?;
        let client = plane.client("deployment").await?;
        let _kubelet =
            FakeKubelet::nodes(&namespace, 2).in_namespace(&namespace).start(client.clone()).await?;
        let deployments: Api<Deployment> = Api::namespaced(client.clone(), &namespace);
        let pods: Api<Pod> = Api::namespaced(client, &namespace);
        create(
            &deployments,
            json!({
                "metadata": { "name": "crew" },
                "spec": { "replicas": 2, "selector": selector(), "template": template("rope:1") },
            }),
        )
        .await?;
        let available = async || {
            eventually("the Deployment is available", PATIENCE, async || {
                let deployment = deployments.get("crew").await?;
                let status = deployment.status.unwrap_or_default();
                let done = status.observed_generation == deployment.metadata.generation
                    && status.replicas == Some(2)
                    && status.updated_replicas == Some(2)
                    && status.available_replicas == Some(2);
                Ok(done.then_some(()))
            })
            .await
        };

        available().await?;
        let patch = Patch::Strategic(json!({ "spec": { "template": template("rope:2") } }));
        deployments.patch("crew", &PatchParams::default(), &patch).await?;
        available().await?;
        eventually("only new pods are left", PATIENCE, async || {
            let left = pods.list(&ListParams::default()).await?.items;
            Ok((left.len() == 2 && left.iter().all(|pod| image(pod) == Some("rope:2"))).then_some(()))
        })
        .await?;

        deployments.delete("crew", &DeleteParams::background()).await?;
        eventually("no pod is left", PATIENCE, async || {
            Ok(pods.list(&ListParams::default()).await?.items.is_empty().then_some(()))
        })
        .await
    })
}

#[test]
fn jobs_complete_or_fail_as_their_pods_say() -> Result<()> {
    testkit::run(async {
        let plane = ControlPlane::start().await?;
        let namespace = plane.namespace("jobs").await?;
        let client = plane.client("jobs").await?;
        let _kubelet =
            FakeKubelet::nodes(&namespace, 1).in_namespace(&namespace).start(client.clone()).await?;
        let jobs: Api<Job> = Api::namespaced(client.clone(), &namespace);
        let pods: Api<Pod> = Api::namespaced(client, &namespace);
        let outcomes = [("plain", None), ("sunk", Some("Failed")), ("endless", Some("Running"))];
        for (name, outcome) in outcomes {
            create(&jobs, json!({
                "metadata": { "name": name },
                "spec": { "backoffLimit": 0, "template": {
                    "metadata": { "annotations": outcome.map(|outcome| json!({ OUTCOME: outcome })) },
                    "spec": { "restartPolicy": "Never", "containers": [{ "name": "main", "image": "rope:1" }] },
                } },
            }))
            .await?;
        }

        for (name, condition) in [("plain", "Complete"), ("sunk", "Failed")] {
            eventually(&format!("{name} is {condition}"), PATIENCE, async || {
                let status = jobs.get(name).await?.status.unwrap_or_default();
                let mut conditions = status.conditions.iter().flatten();
                Ok(conditions.any(|one| one.type_ == condition && one.status == "True").then_some(()))
            })
            .await?;
        }
        eventually("the endless one runs", PATIENCE, async || {
            let status = jobs.get("endless").await?.status.unwrap_or_default();
            Ok((status.ready == Some(1)).then_some(()))
        })
        .await?;
        let phase_of = async |job: &str| {
            let found = pods.list(&ListParams::default().labels(&format!("job-name={job}"))).await?.items;
            Ok::<_, kube::Error>(found.iter().filter_map(phase).map(str::to_owned).collect::<Vec<_>>())
        };
        assert_eq!(phase_of("plain").await?, ["Succeeded"]);
        assert_eq!(phase_of("sunk").await?, ["Failed"]);
        assert_eq!(phase_of("endless").await?, ["Running"]);
        Ok(())
    })
}

fn selector() -> Value {
    json!({ "matchLabels": { "app": "crew" } })
}

fn template(image: &str) -> Value {
    json!({
        "metadata": { "labels": { "app": "crew" } },
        "spec": pod_spec(image),
    })
}

fn names(pods: &[Pod]) -> Vec<String> {
    let mut names: Vec<_> = pods.iter().map(ResourceExt::name_any).collect();
    names.sort();
    names
}

fn image(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.containers.first()?.image.as_deref()
}
