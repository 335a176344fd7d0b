//! YAML for people to read in a diff.
//!
//! Block style, but for one thing: the inside of a Kubernetes type is one line of JSON, which YAML is too. Nobody reads those, and in
//! block style they are nine tenths of a CRD.

use std::fmt::Write;

use serde_json::{Map, Value};

pub(super) fn document(value: &Value) -> String {
    let mut out = String::new();
    if let Value::Object(map) = value {
        fields(&mut out, map, 0);
    }
    out
}

fn fields(out: &mut String, map: &Map<String, Value>, depth: usize) {
    for (key, value) in map {
        let _ = write!(out, "{:depth$}{}:", "", scalar(key));
        field(out, value, depth);
    }
}

/// What stands behind a colon.
fn field(out: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Object(map) if is_open(map) => open(out, map, depth),
        Value::Object(map) if !map.is_empty() => {
            out.push('\n');
            fields(out, map, depth + 2);
        }
        Value::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
            out.push('\n');
            for item in items {
                let _ = write!(out, "{:depth$}-", "");
                match item {
                    Value::Object(map) if !map.is_empty() => {
                        let mut inner = String::new();
                        fields(&mut inner, map, depth + 2);
                        let _ = write!(out, " {}", inner.trim_start());
                    }
                    _ => {
                        let _ = writeln!(out, " {item}");
                    }
                }
            }
        }
        Value::String(text) => {
            let _ = writeln!(out, " {}", scalar(text));
        }
        _ => {
            let _ = writeln!(out, " {value}");
        }
    }
}

/// A schema that lets unknown fields through: a Kubernetes type.
fn is_open(map: &Map<String, Value>) -> bool {
    map.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true))
}

/// A Kubernetes type: what we say of it in block style, what Kubernetes says of it in one line per key.
fn open(out: &mut String, map: &Map<String, Value>, depth: usize) {
    out.push('\n');
    for (key, value) in map {
        let _ = write!(out, "{:1$}{2}:", "", depth + 2, scalar(key));
        match value {
            Value::Object(inner) if key == "properties" => {
                out.push('\n');
                for (name, schema) in inner {
                    let described = schema.get("description").is_some();
                    let _ = write!(out, "{:1$}{2}:", "", depth + 4, scalar(name));
                    if described {
                        field(out, schema, depth + 4);
                    } else {
                        let _ = writeln!(out, " {schema}");
                    }
                }
            }
            _ => field(out, value, depth + 2),
        }
    }
}

/// A string as it is where YAML would read it so, else in the quotes of JSON.
fn scalar(text: &str) -> String {
    let plain = text.starts_with(|first: char| first.is_ascii_alphabetic())
        && !text.ends_with(char::is_whitespace)
        && text.chars().all(|char| !char.is_control() && !"\"\\{}[],&*!|>'%@`".contains(char))
        && !text.contains(": ")
        && !text.contains(" #")
        && !text.ends_with(':')
        && !["true", "false", "yes", "no", "on", "off", "null", "y", "n"]
            .contains(&text.to_lowercase().as_str());
    if plain { text.to_owned() } else { Value::String(text.to_owned()).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_written_is_read_back_the_same() {
        let value = json!({
            "plain": "some text", "quoted": ["yes", "no", "1", "", "a: b", "a #b", " x", "- y", "ü", "\n", "\\"], "no": 1,
            "empty": {}, "none": [], "deep": { "list": [{ "a": [1, 2], "b": { "c": null } }, {}, [1]] },
            "open": { "type": "object", "description": "it's", "x-kubernetes-preserve-unknown-fields": true,
                "properties": { "name": { "type": "string", "description": "ours" }, "theirs": { "default": "a" } } },
        });
        let text = document(&value);
        let back: Value = serde_saphyr::from_str(&text).unwrap();
        assert_eq!(back, value, "{text}");
    }

    #[test]
    fn every_crd_is_read_back_the_same() {
        for crd in api::crds() {
            let back: Value = serde_saphyr::from_str(&document(&crd)).unwrap();
            assert_eq!(back, crd);
        }
    }

    /// Soperator's alone are 3.5 MB, more than `kubectl apply` and some registries of charts take.
    #[test]
    fn all_crds_together_are_small() {
        let size: usize = api::crds().iter().map(|crd| document(crd).len()).sum();
        assert!(size < 1_500_000, "{size} bytes");
    }
}
