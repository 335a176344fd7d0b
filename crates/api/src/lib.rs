//! Custom resources of both APIs that Slipway speaks, and the few fields it writes of other operators' kinds.
//!
//! The types are the source of everything: the CRDs in `deploy/crds`, the reference in `docs/reference/api` and
//! `kubectl explain` come from their fields, defaults, rules and doc comments. Any object that the CRDs accept decodes.
//!
//! Defaults stand in the schema, so that the stored object says what will happen. The exception is a field whose default differs
//! between Soperator 1.x and 5.x: it has none here, and is filled in when the dialect of the cluster is known.

#![allow(clippy::duplicated_attributes, reason = "printer columns of different fields have the same type")]

pub mod condition;
mod default;
pub mod foreign;
pub mod merge;
pub mod open;
pub mod scalar;
pub mod schema;
pub mod slinky;
pub mod soperator;

use serde_json::Value;

pub use open::Open;

/// All kinds of both groups as CRDs, in the order in which they are best read.
pub fn crds() -> Vec<Value> {
    [soperator::crds(), slinky::crds()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls `look` with every field of ours, and its path. Kubernetes' own types are open, and their fields have no description here.
    fn fields(schema: &Value, path: &str, look: &mut impl FnMut(&str, &Value)) {
        let open = schema["x-kubernetes-preserve-unknown-fields"] == true;
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            if open && field.get("description").is_none() {
                continue;
            }
            let path = format!("{path}.{name}");
            look(&path, field);
            fields(field, &path, look);
        }
        for inner in ["items", "additionalProperties"].iter().filter_map(|key| schema.get(key)) {
            fields(inner, path, look);
        }
    }

    /// `kubectl explain` is a manual.
    #[test]
    fn every_field_says_what_it_is_for() {
        let mut poor = Vec::new();
        let mut seen = 0;
        for crd in crds() {
            let kind = crd["spec"]["names"]["kind"].as_str().unwrap();
            let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
            for part in ["spec", "status"] {
                fields(&schema["properties"][part], &format!("{kind}.{part}"), &mut |path, field| {
                    seen += 1;
                    let text = field["description"].as_str().unwrap_or_default();
                    let letters = |text: &str| {
                        text.to_lowercase().replace(|letter: char| !letter.is_alphanumeric(), "")
                    };
                    let name = path.rsplit('.').next().unwrap_or_default();
                    if text.chars().count() < 20 || letters(text) == letters(name) {
                        poor.push(format!("{path}: {text:?}"));
                    }
                });
            }
        }
        assert!(seen > 500, "only {seen} fields were looked at");
        assert!(poor.is_empty(), "{}", poor.join("\n"));
    }
}
