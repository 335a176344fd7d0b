//! A worker as Soperator 1.x starts it: slurm.conf does not name it, and it makes itself known from its environment.

use anyhow::{Context, Result};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::EnvVar;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use testkit::by_hand::Shape;
use testkit::process::eventually;

use super::site::{DEADLINE, Site, site_alone};

const NODE: &str = "extra-0";

/// The workers' own set under another name, with what the operator of 1.x adds to the environment.
fn extra(mut set: StatefulSet, namespace: &str) -> Result<StatefulSet> {
    set.metadata = Default::default();
    set.metadata.name = Some("extra".to_owned());
    set.status = None;
    let spec = set.spec.as_mut().context("a set without a spec")?;
    spec.replicas = Some(1);
    let labels = [("app.kubernetes.io/component", "nodeset"), ("worker", "extra")];
    let labels: std::collections::BTreeMap<_, _> =
        labels.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    spec.selector.match_labels = Some(labels.clone());
    let template = spec.template.metadata.get_or_insert_default();
    template.labels.get_or_insert_default().extend(labels);
    let pod = spec.template.spec.as_mut().context("a set without pods")?;
    let slurmd = pod.containers.iter_mut().find(|container| container.name == "slurmd");
    let environment = [
        ("SLURM_REAL_MEMORY", "900"),
        ("SLURM_NODE_EXTRA", r#"{"on": "$INSTANCE_ID", "not": "$(run)"}"#),
        ("SLURM_FEATURE_spare", "extra-[0-4]"),
        ("SLURM_FEATURE_other", "extra-[1-4]"),
        ("K8S_SERVICE_NAME", "demo-nodeset-svc"),
        ("K8S_POD_NAMESPACE", namespace),
    ];
    let slurmd = slurmd.context("no slurmd")?;
    slurmd.env.get_or_insert_default().extend(environment.map(|(name, value)| EnvVar {
        name: name.to_owned(),
        value: Some(value.to_owned()),
        ..EnvVar::default()
    }));
    Ok(set)
}

async fn joins(site: &Site) -> Result<()> {
    let state =
        async || site.controller(&["sinfo", "-h", "-N", "-n", NODE, "-p", "main", "-o", "%t %f"]).await;
    eventually("the extra worker in Slurm", DEADLINE / 5, async || {
        Ok((state().await?.trim() == "idle spare").then_some(()))
    })
    .await?;
    let record = site.controller(&["scontrol", "show", "node", NODE]).await?;
    assert!(record.contains("RealMemory=900") && record.contains("DYNAMIC_NORM"), "{record}");
    // Variables are filled in; what a shell would run is text.
    assert!(record.contains(r#"Extra={"on": "node"#) && record.contains(r#""not": "$(run)"}"#), "{record}");
    let said = site.ssh.run("srun --quiet --constraint spare bash -c 'hostname; id -un'").await?;
    assert_eq!(said, format!("{NODE}\nalice\n"));
    Ok(())
}

#[test]
fn a_worker_that_slurm_conf_does_not_name_joins_and_runs_jobs() -> Result<()> {
    testkit::run_within(DEADLINE, async {
        let site = site_alone(Shape::Privileged).await?;
        let sets: Api<StatefulSet> = Api::namespaced(site.slurm.client(), site.slurm.namespace());
        let set = extra(sets.get("worker").await?, site.slurm.namespace())?;
        sets.create(&PostParams::default(), &set).await?;
        let joined = joins(&site).await;
        // Whatever came of it: other tests count the workers.
        sets.delete("extra", &DeleteParams::foreground()).await?;
        site.slurm.kubectl(&["wait", "--for=delete", "pod/extra-0", "--timeout=60s"]).await?;
        let removed = site.controller(&["scontrol", "delete", &format!("nodename={NODE}")]).await;
        joined.and(removed.map(|_| ()))
    })
}
