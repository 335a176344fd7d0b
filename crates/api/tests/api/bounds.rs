//! Every bound of the schemas (enums, patterns, lengths, limits, sets, required fields) refuses what is outside of it, by the name of the field.
//!
//! The samples are what is inside; each is broken in one place at a time. Rules in CEL have cases of their own.

use std::collections::BTreeSet;

use anyhow::Result;
use serde_json::{Value, json};

use crate::server::{create, merge, ours, sample, workspace, yaml_files};

/// One bound and a value in its place that is outside.
struct Breach {
    /// Where, as the server says it: `spec.partitions[0].name`.
    field: String,
    /// Where, as JSON has it: `/spec/partitions/0/name`.
    pointer: String,
    /// `None`: the field is left out.
    value: Option<Value>,
    /// How the server refuses it.
    words: &'static str,
}

/// Where a walk through a schema is.
struct Place {
    schema: String,
    field: String,
    pointer: String,
}

impl Place {
    fn spec() -> Self {
        Self { schema: "spec".to_owned(), field: "spec".to_owned(), pointer: "/spec".to_owned() }
    }

    fn field(&self, name: &str) -> Self {
        Self {
            schema: format!("{}.{name}", self.schema),
            field: format!("{}.{name}", self.field),
            pointer: format!("{}/{name}", self.pointer),
        }
    }

    fn breach(&self, value: Option<Value>, words: &'static str) -> Breach {
        Breach { field: self.field.clone(), pointer: self.pointer.clone(), value, words }
    }

    fn first(&self) -> Self {
        Self {
            schema: format!("{}[]", self.schema),
            field: format!("{}[0]", self.field),
            pointer: format!("{}/0", self.pointer),
        }
    }
}

/// Fields that we describe. Kubernetes' own types have no descriptions in our CRDs, and are checked by nobody but Kubernetes.
fn described(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let all = schema["properties"].as_object().into_iter().flatten();
    all.filter(|(_, property)| property.get("description").is_some())
}

/// What is outside of a bound, and how the server says so.
fn outside(schema: &Value, bound: &str, value: Option<&Value>) -> Option<(Value, &'static str)> {
    let limit = || schema[bound].as_i64();
    let above = || usize::try_from(limit()? + 1).ok();
    Some(match bound {
        "enum" => (json!("none-of-them"), "Unsupported value"),
        "pattern" => (json!("\u{1}\n?"), "should match"),
        "minimum" => (json!(limit()? - 1), "should be greater than or equal to"),
        "maximum" => (json!(limit()? + 1), "should be less than or equal to"),
        "minLength" => (json!(""), "should be at least"),
        "maxLength" => (json!("x".repeat(above()?)), "may not be more than"),
        "minItems" => (json!([]), "should have at least"),
        "maxItems" => (json!(vec![value?.get(0)?; above()?]), "must have at most"),
        "minProperties" => (required_of(schema, value?), "should have at least"),
        "x-kubernetes-list-type" => (json!([value?.get(0)?, value?.get(0)?]), "Duplicate value"),
        _ => return None,
    })
}

const BOUNDS: [&str; 10] = [
    "enum",
    "pattern",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "x-kubernetes-list-type",
];

/// Whether the schema has this bound. An atomic list may hold anything twice.
fn has_bound(schema: &Value, bound: &str) -> bool {
    schema.get(bound).is_some_and(|value| value != "atomic")
}

fn required(schema: &Value) -> impl Iterator<Item = &str> {
    schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// An object with no more than it must have.
fn required_of(schema: &Value, object: &Value) -> Value {
    required(schema).map(|name| (name.to_owned(), object[name].clone())).collect()
}

/// Calls `see` with every bound of the schema: its name, and what breaks it if the sample has the object around it.
fn walk(schema: &Value, value: Option<&Value>, place: &Place, see: &mut impl FnMut(String, Option<Breach>)) {
    for (name, property) in described(schema) {
        let inner = place.field(name);
        if required(schema).any(|required| required == name) && property.get("default").is_none() {
            see(format!("{} required", inner.schema), value.map(|_| inner.breach(None, "Required value")));
        }
        inside(property, value, value.and_then(|value| value.get(name)), &inner, see);
    }
    if let Some(items) = schema.get("items") {
        let first = value.and_then(|value| value.get(0));
        inside(items, first, first, &place.first(), see);
    }
}

fn inside(
    schema: &Value,
    around: Option<&Value>,
    value: Option<&Value>,
    place: &Place,
    see: &mut impl FnMut(String, Option<Breach>),
) {
    // Boolean or object, told apart by bounds that nothing meets.
    if schema.get("type").is_none() && schema["x-kubernetes-int-or-string"] != true {
        return;
    }
    for bound in BOUNDS.into_iter().filter(|bound| has_bound(schema, bound)) {
        let breach = around.and_then(|_| {
            let (outside, words) = outside(schema, bound, value)?;
            Some(place.breach(Some(outside), words))
        });
        see(format!("{} {bound}", place.schema), breach);
    }
    walk(schema, value, place, see);
}

fn broken(mut object: Value, breach: &Breach) -> Value {
    let (parent, name) = breach.pointer.rsplit_once('/').unwrap_or_default();
    match object.pointer_mut(parent) {
        Some(Value::Array(items)) => items[0] = breach.value.clone().unwrap_or_default(),
        Some(Value::Object(fields)) => match &breach.value {
            Some(value) => drop(fields.insert(name.to_owned(), value.clone())),
            None => drop(fields.remove(name)),
        },
        _ => {}
    }
    object
}

/// What no sample shows, since it is old or in place of something else, so that its bounds are looked at too.
fn shown_nowhere(sample: &str) -> Value {
    let key = json!({ "name": "jwt", "key": "jwt.key" });
    let image = json!({ "image": "old" });
    match sample {
        "slinky.slurm.net/accounting-full" | "slinky.slurm.net/controller-full" => {
            json!({ "externalConfig": { "host": "slurm", "port": 1 }, "jwtHs256KeyRef": key })
        }
        "slinky.slurm.net/token-full" => json!({ "jwtHs256KeyRef": key }),
        "slurm.nebius.ai/nodeconfigurator-full" => {
            json!({ "nodeConfigurator": { "enabled": true, "image": { "repository": "old" } } })
        }
        "slurm.nebius.ai/nodeset-full" => json!({ "sssd": { "security": {} } }),
        "slurm.nebius.ai/slurmcluster-full" => json!({ "slurmNodes": { "exporter": {
            "exporter": image, "munge": image, "volumes": { "jail": {} },
        } } }),
        _ => json!({}),
    }
}

#[test]
fn every_bound_refuses_what_is_outside_of_it() -> Result<()> {
    testkit::run(async {
        let (plane, client) = ours().await?;
        let namespace = plane.namespace("bounds").await?;
        let (mut all, mut tried, mut wrong) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
        for crd in api::crds() {
            let group = crd["spec"]["group"].as_str().unwrap_or_default();
            let kind = crd["spec"]["names"]["kind"].as_str().unwrap_or_default().to_lowercase();
            let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
            for file in yaml_files(&workspace().join("deploy/samples").join(group))? {
                let name = format!("{group}/{}", file.file_stem().unwrap_or_default().to_string_lossy());
                if !name.starts_with(&format!("{group}/{kind}-")) {
                    continue;
                }
                let mut object = sample(&name)?;
                merge(&mut object["spec"], &shown_nowhere(&name));
                create(&client, &namespace, &object, true).await?.map_err(anyhow::Error::msg)?;
                let mut breaches = Vec::new();
                walk(schema, Some(&object["spec"]), &Place::spec(), &mut |bound, breach| {
                    let bound = format!("{group} {kind} {bound}");
                    all.insert(bound.clone());
                    breaches.extend(breach.map(|breach| (bound, breach)));
                });
                breaches.retain(|(bound, _)| tried.insert(bound.clone()));
                for (bound, breach) in breaches {
                    let answer = create(&client, &namespace, &broken(object.clone(), &breach), true).await?;
                    let refusal = answer.err().unwrap_or_default();
                    if !refusal.contains(&breach.field) || !refusal.contains(breach.words) {
                        wrong.push(format!("{bound}: {} {}: {refusal:?}", breach.field, breach.words));
                    }
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        let untried: Vec<&String> = all.difference(&tried).collect();
        assert!(untried.is_empty(), "no sample shows these of {} bounds: {untried:#?}", all.len());
        Ok(())
    })
}
