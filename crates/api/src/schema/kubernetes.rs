//! Schemas of Kubernetes' own types, as an API server publishes them.
//!
//! `kubernetes.json` holds what `/openapi/v3/api/v1` of Kubernetes 1.36 says of them, less the descriptions: those would be two
//! thirds of every CRD. A test makes the file again from the API server that it runs on.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1 as core;
use schemars::Schema;
use serde_json::{Map, Value, json};

use crate::scalar::{IntOrString, Quantity};

/// The definitions, by the last part of their name.
const DEFINITIONS: &str = include_str!("kubernetes.json");

/// A type whose schema is among the published ones.
pub trait Published {
    const DEFINITION: &'static str;
}

macro_rules! published {
    ($($kind:ident),*) => {
        $(impl Published for core::$kind {
            const DEFINITION: &'static str = stringify!($kind);
        })*
        /// What `kubernetes.json` starts from; all else is there because one of these refers to it.
        const ROOTS: &[&str] = &[$(stringify!($kind)),*];
    };
}

published!(
    Affinity,
    Container,
    EnvVar,
    LocalObjectReference,
    PersistentVolumeClaimSpec,
    PodSecurityContext,
    Probe,
    ResourceRequirements,
    SecurityContext,
    Toleration,
    Volume,
    VolumeMount
);

/// A volume without its name. Kubernetes publishes only the whole of it.
#[derive(Debug)]
pub enum VolumeSource {}

impl Published for VolumeSource {
    const DEFINITION: &'static str = "VolumeSource";
}

/// The schema of a type, with what it refers to in place, and every object open to fields that are newer than it.
pub(crate) fn open(definition: &str) -> Schema {
    // The file is part of the program, and a test resolves every definition in it.
    let definitions: BTreeMap<String, Value> = serde_json::from_str(DEFINITIONS).unwrap_or_default();
    let schema = resolved(&json!({ "$ref": definition }), &definitions);
    Schema::try_from(schema).unwrap_or_default()
}

fn resolved(schema: &Value, definitions: &BTreeMap<String, Value>) -> Value {
    let Value::Object(node) = schema else { return schema.clone() };
    let mut out = match node.get("$ref").and_then(Value::as_str) {
        Some("IntOrString") => schema_of::<IntOrString>(),
        Some("Quantity") => schema_of::<Quantity>(),
        Some(name) => definitions.get(name).map(|found| resolved(found, definitions)).unwrap_or_default(),
        None => json!({}),
    };
    for (key, value) in node {
        match key.as_str() {
            "$ref" => {}
            "properties" => {
                let each = value.as_object().into_iter().flatten();
                let each = each.map(|(name, schema)| (name.clone(), resolved(schema, definitions)));
                out[key] = Value::Object(each.collect());
                out["x-kubernetes-preserve-unknown-fields"] = true.into();
            }
            "items" | "additionalProperties" => out[key] = resolved(value, definitions),
            _ => out[key] = value.clone(),
        }
    }
    out
}

fn schema_of<T: schemars::JsonSchema>() -> Value {
    T::json_schema(&mut schemars::SchemaGenerator::default()).to_value()
}

/// What the file has to hold, from the OpenAPI document of an API server.
pub fn published_by(openapi: &Value) -> Map<String, Value> {
    let mut definitions = Map::new();
    for root in ROOTS {
        collect(&format!("io.k8s.api.core.v1.{root}"), openapi, &mut definitions);
    }
    definitions.insert(VolumeSource::DEFINITION.to_owned(), without_name(&definitions["Volume"]));
    definitions
}

fn without_name(volume: &Value) -> Value {
    let mut source = volume.clone();
    if let Some(node) = source.as_object_mut() {
        node.remove("required");
    }
    if let Some(properties) = source["properties"].as_object_mut() {
        properties.remove("name");
    }
    source
}

fn collect(name: &str, openapi: &Value, into: &mut Map<String, Value>) {
    let short = short(name);
    if into.contains_key(short) {
        return;
    }
    // Holds the place while what it refers to is collected.
    into.insert(short.to_owned(), Value::Null);
    let schema = &openapi["components"]["schemas"][name];
    let schema = if short == "ObjectMeta" {
        json!({ "type": "object" })
    } else {
        reduced(schema, false, openapi, into)
    };
    into.insert(short.to_owned(), schema);
}

fn short(name: &str) -> &str {
    name.rsplit(['.', '/']).next().unwrap_or(name)
}

/// A schema less what a CRD has no use for: descriptions, merge strategies, enums, to which a newer Kubernetes may add, and the
/// zero values that the document gives as defaults of required fields, which would let the field be left out.
fn reduced(schema: &Value, required: bool, openapi: &Value, into: &mut Map<String, Value>) -> Value {
    let reference = schema.get("$ref").or_else(|| schema.pointer("/allOf/0/$ref")).and_then(Value::as_str);
    let mut out = match reference.map(|reference| (reference, short(reference))) {
        Some((_, "Time")) => json!({ "type": "string", "format": "date-time" }),
        Some((_, scalar @ ("Quantity" | "IntOrString"))) => json!({ "$ref": scalar }),
        Some((reference, short)) => {
            collect(reference.rsplit('/').next().unwrap_or(reference), openapi, into);
            json!({ "$ref": short })
        }
        None => json!({}),
    };
    let needed: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (key, value) in schema.as_object().into_iter().flatten() {
        match key.as_str() {
            "description" | "allOf" | "$ref" | "enum" => {}
            "x-kubernetes-patch-merge-key" | "x-kubernetes-patch-strategy" | "x-kubernetes-unions" => {}
            "default" if required || value == &json!({}) => {}
            "properties" => {
                for (name, property) in value.as_object().into_iter().flatten() {
                    out["properties"][name] =
                        reduced(property, needed.contains(&name.as_str()), openapi, into);
                }
            }
            "items" | "additionalProperties" => out[key] = reduced(value, true, openapi, into),
            _ => out[key] = value.clone(),
        }
    }
    out
}
