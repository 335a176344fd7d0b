//! Manifests for the original operators are accepted by our CRDs, and the stored object is the one that theirs would give.
//!
//! The originals' files are not part of the project. Where they are not beside it these tests say so and pass.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::{Context, Result};
use api::soperator::{Dialect, v1, v1alpha1};
use serde::Deserialize;
use serde_json::Value;
use testkit::ControlPlane;

use crate::kinds;
use crate::server::{create, documents, install, ours, workspace, yaml_files};

/// Where the stored objects differ on purpose, and why.
const DIFFERENCES: &[(&str, &str)] = &[
    // Only 1.x has it; without it is the same as `false`.
    ("ActiveCheck", "spec.slurmJobSpec.eachWorkerJobArray"),
];

/// Defaults that only 5.x has. An object of 1.x gets them too; they mean what 1.x does anyway, or nothing to it.
const ONLY_5_X: &[(&str, &str)] = &[
    ("SlurmCluster", "spec.cgroupVersion"),
    ("SlurmCluster", "spec.plugStackConfig.ncclInspectorPreConf"),
    ("SlurmCluster", "spec.plugStackConfig.pyxis.importerPath"),
    ("SlurmCluster", "spec.plugStackConfig.pyxis.useSquashfuse"),
    ("SlurmCluster", "spec.slurmConfig.resumeTimeout"),
    ("SlurmCluster", "spec.slurmConfig.suspendTime"),
    ("SlurmCluster", "spec.slurmConfig.taskProlog"),
    ("SlurmCluster", "spec.slurmNodes.controller.openMetrics"),
    ("SlurmCluster", "spec.slurmNodes.controller.sssdDebugLevel"),
    ("SlurmCluster", "spec.slurmNodes.login.sssdDebugLevel"),
    ("SlurmCluster", "spec.slurmNodes.exporter.accountingJobsLookback"),
    ("SlurmCluster", "spec.slurmNodes.exporter.jobSource"),
    ("SlurmCluster", "spec.slurmNodes.exporter.maxCollectorInflight"),
    ("NodeSet", "spec.ephemeralNodes"),
    ("NodeSet", "spec.ephemeralTopologyWaitTimeout"),
    ("NodeSet", "spec.initialNumberEphemeralNodes"),
    ("NodeSet", "spec.slurmd.port"),
    ("NodeSet", "spec.slurmd.volumes.persistentVolumeClaimRetentionPolicy"),
    ("NodeSet", "spec.sssdDebugLevel"),
    ("NodeSet", "spec.updateStrategy"),
    ("NodeSet", "spec.workerInitRandomDelaySeconds"),
    ("NodeConfigurator", "spec.hostIPC"),
    ("NodeConfigurator", "spec.hostNetwork"),
    ("NodeConfigurator", "spec.shareProcessNamespace"),
    ("ActiveCheck", "spec.slurmJobSpec.jobContainer.imagePullPolicy"),
    ("ActiveCheck", "spec.slurmJobSpec.mungeContainer.imagePullPolicy"),
];

/// The originals' files, or `None` with a word about it.
fn peers() -> Option<PathBuf> {
    let folder = workspace().join("../shared/peers");
    if folder.is_dir() {
        return Some(folder);
    }
    // Straight to stderr: what is printed the usual way is shown only if a test fails.
    let _ = writeln!(std::io::stderr(), "not compared: ../shared/peers is not beside the project");
    None
}

/// The documents of our kinds among those of a folder.
fn custom_resources(folder: &std::path::Path) -> Result<Vec<(String, Value)>> {
    let kinds = kinds::all();
    let mut found = Vec::new();
    for file in yaml_files(folder)? {
        // Values of charts lie among the manifests of one folder; they have no kind.
        for document in documents(&file)? {
            let group = document["apiVersion"].as_str().and_then(|version| version.split('/').next());
            let ours =
                kinds.iter().any(|kind| Some(kind.group.as_str()) == group && document["kind"] == *kind.kind);
            if ours {
                found.push((file.display().to_string(), document));
            }
        }
    }
    Ok(found)
}

#[test]
fn soperator_manifests_are_stored_as_soperator_stores_them() -> Result<()> {
    let Some(peers) = peers() else { return Ok(()) };
    testkit::run(async move {
        let (plane, client) = ours().await?;
        let samples = peers.join("soperator/samples-own");
        let versions =
            [("head", Dialect::H, [DIFFERENCES, &[]]), ("v1.22", Dialect::S, [DIFFERENCES, ONLY_5_X])];
        for (version, dialect, allowed) in versions {
            let namespace = plane.namespace("soperator").await?;
            let expected = custom_resources(&samples.join(format!("{version}-defaulted")))?;
            let manifests = custom_resources(&samples.join(version))?;
            assert!(
                manifests.len() >= 5 && expected.len() == manifests.len(),
                "{version}: {}",
                manifests.len()
            );
            for (file, manifest) in manifests {
                let stored = create(&client, &namespace, &manifest, false).await?;
                let stored = stored.map_err(anyhow::Error::msg).with_context(|| file.clone())?;
                let same = |object: &Value| {
                    object["kind"] == manifest["kind"]
                        && object["metadata"]["name"] == manifest["metadata"]["name"]
                };
                let (_, theirs) = expected
                    .iter()
                    .find(|(_, object)| same(object))
                    .with_context(|| format!("{file}: no result"))?;
                compare(&file, &filled(stored, dialect)?, theirs, &allowed.concat());
            }
        }
        Ok(())
    })
}

/// With these clusters of the original ran.
#[test]
fn soperator_clusters_that_ran_are_accepted() -> Result<()> {
    let Some(peers) = peers() else { return Ok(()) };
    testkit::run(async move {
        let (plane, client) = ours().await?;
        let namespace = plane.namespace("soperator").await?;
        for folder in ["objects-head", "objects-1.22"] {
            let manifests = custom_resources(&peers.join("soperator").join(folder))?;
            assert!(!manifests.is_empty(), "{folder}");
            for (file, manifest) in manifests {
                let stored = create(&client, &namespace, &manifest, true).await?;
                stored.map_err(anyhow::Error::msg).with_context(|| file)?;
            }
        }
        Ok(())
    })
}

/// A stored object with the defaults that the schema cannot have, since 1.x and 5.x differ in them.
fn filled(stored: Value, dialect: Dialect) -> Result<Value> {
    Ok(match stored["kind"].as_str() {
        Some("SlurmCluster") => {
            let mut cluster = v1::SlurmCluster::deserialize(stored)?;
            assert_eq!(cluster.spec.dialect(), dialect, "{:?}", cluster.metadata.name);
            cluster.spec.fill_defaults();
            serde_json::to_value(cluster)?
        }
        Some("NodeSet") => {
            let mut node_set = v1alpha1::NodeSet::deserialize(stored)?;
            node_set.spec.fill_defaults(dialect);
            serde_json::to_value(node_set)?
        }
        _ => stored,
    })
}

#[test]
fn slinky_manifests_are_stored_as_slinky_stores_them() -> Result<()> {
    let Some(peers) = peers() else { return Ok(()) };
    testkit::run(async move {
        let (plane, client) = ours().await?;
        let namespace = plane.namespace("slinky").await?;
        // Slinky's own CRDs on a server of their own say what Slinky stores.
        let original = ControlPlane::own().await?;
        let original_client = original.client("api-test").await?;
        let original_namespace = original.namespace("slinky").await?;
        let mut crds = Vec::new();
        for file in yaml_files(&peers.join("slinky/crds"))? {
            crds.extend(documents(&file)?);
        }
        install(&original_client, crds).await?;
        let mut manifests = Vec::new();
        // The last is what a cluster had that ran.
        for folder in ["samples", "helm-rendered", "objects/slurm"] {
            manifests.extend(custom_resources(&peers.join("slinky").join(folder))?);
        }
        assert!(manifests.len() >= 11, "{}", manifests.len());
        for (file, manifest) in manifests {
            let stored = create(&client, &namespace, &manifest, true).await?;
            let stored = stored.map_err(anyhow::Error::msg).with_context(|| file.clone())?;
            let theirs = create(&original_client, &original_namespace, &manifest, true).await?;
            let theirs = theirs.map_err(anyhow::Error::msg).with_context(|| format!("{file} at Slinky"))?;
            compare(&file, &stored, &theirs, &[]);
        }
        Ok(())
    })
}

fn compare(file: &str, ours: &Value, theirs: &Value, allowed: &[(&str, &str)]) {
    let kind = ours["kind"].as_str().unwrap_or_default();
    let mut found = Vec::new();
    differences(&theirs["spec"], &ours["spec"], "spec", &mut found);
    found.retain(|(path, _)| !allowed.contains(&(kind, path.as_str())));
    assert!(found.is_empty(), "{file}: {found:#?}");
}

fn differences(theirs: &Value, ours: &Value, path: &str, found: &mut Vec<(String, String)>) {
    match (theirs, ours) {
        (Value::Object(theirs), Value::Object(ours)) => {
            let names: std::collections::BTreeSet<&String> = theirs.keys().chain(ours.keys()).collect();
            for name in names {
                let [theirs, ours] = [theirs, ours].map(|map| map.get(name).unwrap_or(&Value::Null));
                differences(theirs, ours, &format!("{path}.{name}"), found);
            }
        }
        (Value::Array(theirs), Value::Array(ours)) if theirs.len() == ours.len() => {
            for (theirs, ours) in theirs.iter().zip(ours) {
                differences(theirs, ours, &format!("{path}[]"), found);
            }
        }
        _ if theirs == ours => {}
        _ => found.push((path.to_owned(), format!("theirs {theirs}, ours {ours}"))),
    }
}
