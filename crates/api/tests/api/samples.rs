//! Our own samples are accepted, and show what there is.

use anyhow::{Context, Result};
use api::soperator::{Dialect, v1};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::kinds;
use crate::server::{create, documents, ours, sample, workspace, yaml_files};

#[test]
fn every_kind_has_a_minimal_and_a_full_sample_that_is_accepted() -> Result<()> {
    testkit::run(async {
        let (plane, client) = ours().await?;
        let namespace = plane.namespace("samples").await?;
        let mut seen = Vec::new();
        for group in ["slurm.nebius.ai", "slinky.slurm.net"] {
            for file in yaml_files(&workspace().join("deploy/samples").join(group))? {
                let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                for document in documents(&file)? {
                    if let Err(refusal) = create(&client, &namespace, &document, true).await? {
                        panic!("{name}: {refusal}");
                    }
                    let kind = document["kind"].as_str().unwrap_or_default();
                    assert!(name.starts_with(&format!("{}-", kind.to_lowercase())), "{name} holds a {kind}");
                }
                seen.push(format!("{group}/{name}"));
            }
        }
        for kind in kinds::all() {
            for extent in ["minimal", "full"] {
                let name = format!("{}/{}-{extent}", kind.group, kind.kind.to_lowercase());
                assert!(seen.contains(&name), "no sample {name}");
            }
        }
        Ok(())
    })
}

/// A sample that is called full leaves nothing out without a reason.
#[test]
fn full_samples_use_nearly_all_fields_of_their_spec() -> Result<()> {
    for crd in api::crds() {
        let (group, kind) = (&crd["spec"]["group"], &crd["spec"]["names"]["kind"]);
        let name = format!(
            "{}/{}-full",
            group.as_str().unwrap_or_default(),
            kind.as_str().unwrap_or_default().to_lowercase()
        );
        let sample = sample(&name)?;
        let properties =
            &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
        let unused: Vec<&String> = properties
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(name, schema)| sample["spec"].get(*name).is_none() && !is_old(schema))
            .map(|(name, _)| name)
            .collect();
        assert!(unused.len() <= 3, "{name} does not show {unused:?}");
    }
    Ok(())
}

/// Whatever only 1.x has marks an object as one of 1.x; such an object must never get the defaults of 5.x.
#[test]
fn a_sign_of_1x_is_enough_for_its_dialect() -> Result<()> {
    let dialect =
        |cluster: Value| Ok::<_, anyhow::Error>(v1::SlurmCluster::deserialize(cluster)?.spec.dialect());
    let old = sample("slurm.nebius.ai/slurmcluster-1.x")?;
    assert_eq!(dialect(old.clone())?, Dialect::S);
    let new = sample("slurm.nebius.ai/slurmcluster-minimal")?;
    assert_eq!(dialect(new.clone())?, Dialect::H);
    for (place, value, expected) in [
        ("/crVersion", json!("1.22.2"), Dialect::S),
        ("/crVersion", json!("5.0.0"), Dialect::H),
        ("/crVersion", json!("10.0.0"), Dialect::H),
        ("/clusterType", json!("cpu"), Dialect::S),
        ("/slurmNodes/worker", old["spec"]["slurmNodes"]["worker"].clone(), Dialect::S),
    ] {
        let mut cluster = new.clone();
        let (parent, field) = place.rsplit_once('/').unwrap_or_default();
        cluster["spec"].pointer_mut(parent).with_context(|| parent.to_owned())?[field] = value.clone();
        assert_eq!(dialect(cluster)?, expected, "{place}: {value}");
    }
    Ok(())
}

fn is_old(schema: &Value) -> bool {
    let about = schema["description"].as_str().unwrap_or_default();
    about.contains("Deprecated") || about.contains("1.x")
}
