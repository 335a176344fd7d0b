//! What we read, held against what each slurmrestd says of itself.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use http::Method;
use serde_json::Value;
use slurm::state::{JobState, NodeState};
use slurm_rest::ApiVersion;
use slurm_rest::record::Record;
use slurm_rest::record::job::Job;
use slurm_rest::record::node::Node;
use testkit::cache::SlurmVersion;

use crate::{cluster, versions};

/// Fields that came with a later version.
const LATER: [(&[u8], ApiVersion); 1] = [(b"topology", ApiVersion::V0_0_43)];

pub(crate) async fn every_field_and_state_is_described(release: SlurmVersion) -> Result<()> {
    let cluster = cluster(release).nodes(0).start().await?;
    let token = cluster.token("root", Duration::from_secs(60))?;
    let document = cluster.rest(Method::GET, "/openapi/v3", None, Some(&token)).await?.json;
    for &version in versions(release) {
        for (list, keys) in [("nodes", Node::KEYS), ("jobs", Job::KEYS)] {
            let fields = fields(&document, version, list).with_context(|| format!("{version}: {list}"))?;
            for key in keys {
                let name = std::str::from_utf8(key)?;
                let later = LATER.iter().any(|(field, since)| field == key && version < *since);
                assert_eq!(fields.contains_key(name), !later, "{version}: {name} in {list}");
            }
            let (field, known): (_, fn(&str) -> bool) = match list {
                "nodes" => ("state", |word| NodeState::from_words([word]).unknown().next().is_none()),
                _ => ("job_state", |word| JobState::from_words([word]).unknown().next().is_none()),
            };
            let words = words(&document, &fields[field]).with_context(|| format!("{version}: {field}"))?;
            let unknown: BTreeSet<_> = words.iter().filter(|word| !known(word)).collect();
            ensure!(words.len() > 20 && unknown.is_empty(), "{version}: {unknown:?} of {words:?}");
        }
    }
    Ok(())
}

/// The fields of a record of a list.
fn fields(document: &Value, version: ApiVersion, list: &str) -> Option<serde_json::Map<String, Value>> {
    let answer = &document["paths"][format!("/slurm/{version}/{list}/")]["get"]["responses"]["200"];
    let answer = resolve(document, &answer["content"]["application/json"]["schema"])?;
    let records = resolve(document, &answer["properties"][list])?;
    resolve(document, &records["items"])?["properties"].as_object().cloned()
}

/// The words that a list of words may have.
fn words(document: &Value, field: &Value) -> Option<Vec<String>> {
    let words = resolve(document, &resolve(document, field)?["items"])?["enum"].as_array()?;
    Some(words.iter().filter_map(|word| word.as_str().map(str::to_owned)).collect())
}

fn resolve<'a>(document: &'a Value, schema: &'a Value) -> Option<&'a Value> {
    match schema["$ref"].as_str() {
        None => Some(schema),
        Some(path) => resolve(document, document.pointer(path.strip_prefix('#')?)?),
    }
}
