//! JSON Schema as `schemars` writes it, made into what a CRD may contain.
//!
//! CRDs know no `null` type: a null that a user writes is dropped by the API server before it is stored, unless a field is
//! marked `nullable`, which only those are that the Go operators mark.

use serde_json::{Map, Value, json};

pub(super) fn of(schema: Value) -> Value {
    match schema {
        Value::Object(node) => Value::Object(structural(node)),
        // `true`: anything goes. It stands for `serde_json::Value`.
        _ => json!({ "x-kubernetes-preserve-unknown-fields": true }),
    }
}

fn structural(mut node: Map<String, Value>) -> Map<String, Value> {
    for key in ["$schema", "title"] {
        node.remove(key);
    }
    without_null(&mut node);
    one_of_constants(&mut node);
    if let Some(text) = node.get("description").and_then(Value::as_str) {
        let text = unwrapped(text);
        node.insert("description".to_owned(), text.into());
    }
    if let Some(Value::Object(properties)) = node.get_mut("properties") {
        for schema in properties.values_mut() {
            *schema = of(schema.take());
        }
    }
    for key in ["items", "additionalProperties"] {
        if let Some(schema @ Value::Object(_)) = node.get_mut(key) {
            *schema = of(schema.take());
        }
    }
    node
}

/// What `Option` adds: `type: [.., null]`, `anyOf: [.., null]`, `enum: [.., null]`, `default: null`.
fn without_null(node: &mut Map<String, Value>) {
    if node.get("default").is_some_and(Value::is_null) {
        node.remove("default");
    }
    if let Some(Value::Array(types)) = node.get_mut("type") {
        types.retain(|name| name != "null");
        if let [name] = types.as_slice() {
            let name = name.clone();
            node.insert("type".to_owned(), name);
        }
    }
    if let Some(Value::Array(values)) = node.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if let Some(Value::Array(variants)) = node.get_mut("anyOf") {
        variants.retain(|variant| variant.get("type") != Some(&"null".into()));
        if let [Value::Object(only)] = variants.as_slice() {
            let only = only.clone();
            node.remove("anyOf");
            // What is said of the field wins over what is said of its type.
            for (key, value) in only {
                node.entry(key).or_insert(value);
            }
            without_null(node);
        }
    }
}

/// An enum whose variants have doc comments: its values, and what they mean as part of the description.
fn one_of_constants(node: &mut Map<String, Value>) {
    let Some(Value::Array(variants)) = node.get("oneOf") else { return };
    let mut values = Vec::new();
    let mut meanings = Vec::new();
    for variant in variants {
        if let Some(plain) = variant.get("enum").and_then(Value::as_array) {
            values.extend(plain.iter().cloned());
        } else if let Some(value) = variant.get("const") {
            values.push(value.clone());
            if let (Some(name), Some(text)) =
                (value.as_str(), variant.get("description").and_then(Value::as_str))
            {
                meanings.push(format!("- `{name}`: {}", unwrapped(text)));
            }
        } else {
            return;
        }
    }
    node.remove("oneOf");
    node.insert("type".to_owned(), "string".into());
    node.insert("enum".to_owned(), values.into());
    let about = node.get("description").and_then(Value::as_str).unwrap_or_default();
    let about = format!("{about}\n\n{}", meanings.join("\n"));
    node.insert("description".to_owned(), about.trim().into());
}

/// Lines of a doc comment joined to paragraphs; paragraphs and list items stay apart.
fn unwrapped(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines().map(str::trim) {
        let apart = line.is_empty() || line.starts_with("- ");
        if !out.is_empty() && !out.ends_with('\n') {
            out.push(if apart { '\n' } else { ' ' });
        }
        out.push_str(line);
        if line.is_empty() {
            out.push('\n');
        }
    }
    out.trim().to_owned()
}
