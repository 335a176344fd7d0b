//! Our own samples are accepted, and show what there is.

use anyhow::Result;
use serde_json::Value;

use crate::kinds;
use crate::server::{create, documents, ours, workspace, yaml_files};

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
        let sample = crate::server::sample(&name)?;
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

fn is_old(schema: &Value) -> bool {
    let about = schema["description"].as_str().unwrap_or_default();
    about.contains("Deprecated") || about.contains("1.x")
}
