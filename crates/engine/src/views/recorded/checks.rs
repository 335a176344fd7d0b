//! What is checked of every view, and how a recorded object is changed for it.

use std::fmt::Debug;
use std::path::Path;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::meta::{Meta, Pairs, Version};
use crate::views::{Condition, View};

/// Where something is in the recorded object, and what the view says of it. A `#` stands for the length of a list, a `?`
/// for a field that the recorded object may lack if the view says nothing either.
pub(super) type Facts = Vec<(String, Value)>;

/// Reads an object, finds all facts in it that the view has, and changes it in every way.
pub(super) fn check<V: View>(file: &str, facts: impl Fn(&V) -> Facts) {
    let object = recorded(file);
    let view: V = decode(&object).unwrap();
    let text: V = serde_json::from_str(&object.to_string()).unwrap();
    assert_eq!(view, text, "the same from bytes");
    let mut facts = facts(&view);
    facts.extend(meta_facts(view.meta()));
    for (pointer, kept) in &facts {
        facts_agree(file, &object, pointer, kept);
    }
    survives_mutations::<V>(file, &object);
    tells_changes_apart(file, &object, &view, &facts);
    overlooks_what_is_not_kept(&object, &view);
}

fn facts_agree(file: &str, object: &Value, pointer: &str, kept: &Value) {
    if let Some(list) = pointer.strip_suffix('#') {
        let length = object.pointer(list).and_then(Value::as_array).unwrap().len();
        assert_eq!(json!(length), *kept, "{pointer} of {file}");
    } else if let Some(told) = object.pointer(&pointer.replace('?', "")) {
        assert_eq!(told, kept, "{pointer} of {file}");
    } else {
        let nothing = [json!(null), json!(""), json!(0), json!(false), json!([]), json!({})];
        assert!(pointer.contains('?'), "{file} was recorded without {pointer}");
        assert!(nothing.contains(kept), "{pointer} of {file} is {kept}");
    }
}

/// Whatever is missing or null, it can be read; whatever is of the wrong type, nothing panics.
fn survives_mutations<V: View>(file: &str, object: &Value) {
    let mut object = object.clone();
    each_mutation(&mut object, |object, mutation| {
        if let Err(error) = decode::<V>(object) {
            assert!(!mutation.must_decode(), "{file}: {mutation:?}: {error}");
        }
    });
}

/// A change of any fact makes another view: what is kept is compared.
fn tells_changes_apart<V: View>(file: &str, object: &Value, view: &V, facts: &Facts) {
    for (pointer, _) in facts {
        let mut changed = object.clone();
        let Some(value) = changed.pointer_mut(pointer) else { continue };
        match value {
            Value::String(text) if text.parse::<Timestamp>().is_ok() => {
                *text = "2001-01-01T00:00:00Z".to_owned();
            }
            // The one word that unknown ones become.
            Value::String(text) if text == "Unknown" => *text = "True".to_owned(),
            Value::String(text) => text.push('1'),
            Value::Number(number) => *value = json!(number.as_i64().unwrap() + 1),
            Value::Bool(truth) => *truth = !*truth,
            Value::Array(_) | Value::Object(_) => *value = Value::Null,
            Value::Null => continue,
        }
        let changed: V = decode(&changed).unwrap();
        let same = *view == changed;
        let overlooked = pointer == "/metadata/resourceVersion" && !V::METADATA_ONLY;
        assert_eq!(same, overlooked, "{pointer} of {file}");
    }
}

fn overlooks_what_is_not_kept<V: View>(object: &Value, view: &V) {
    let mut changed = object.clone();
    changed["metadata"]["managedFields"] =
        json!([{ "manager": "someone", "fieldsV1": { "f:spec": { ".": {} } } }]);
    changed["metadata"]["selfLink"] = json!("/somewhere");
    changed["invented"] = json!({ "deep": [1, 2, { "er": null }] });
    for part in ["spec", "status"] {
        if let Some(fields) = changed.get_mut(part).and_then(Value::as_object_mut) {
            fields.insert("invented".to_owned(), json!([{ "name": 1.5 }]));
        }
    }
    assert_eq!(decode::<V>(&changed).unwrap(), *view);
    if let Some(metadata) = changed["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    assert_eq!(decode::<V>(&changed).unwrap(), *view);
}

#[derive(Debug)]
pub(super) struct Mutation<'a> {
    pub(super) path: &'a str,
    /// None if it was taken out.
    became: Option<Value>,
    in_list: bool,
}

impl Mutation<'_> {
    /// Servers leave fields out and write null for them; they do not write null into lists.
    pub(super) fn must_decode(&self) -> bool {
        match &self.became {
            None => true,
            Some(value) => value.is_null() && !self.in_list,
        }
    }
}

/// Takes out, empties and spoils each place once. What managedFields hold is nobody's to read.
pub(super) fn each_mutation(object: &mut Value, mut then: impl FnMut(&Value, &Mutation<'_>)) {
    let mut all = Vec::new();
    paths(object, &mut String::new(), &mut all);
    for path in &all {
        let (parent, key) = path.rsplit_once('/').unwrap();
        let key = key.replace("~1", "/").replace("~0", "~");
        let in_list = object.pointer(parent).unwrap().is_array();
        for became in [json!(null), json!(7), json!("text"), json!([{}])] {
            let whole = std::mem::replace(object.pointer_mut(path).unwrap(), became.clone());
            then(object, &Mutation { path, became: Some(became), in_list });
            *object.pointer_mut(path).unwrap() = whole;
        }
        let whole = match object.pointer_mut(parent).unwrap() {
            Value::Array(list) => list.remove(key.parse().unwrap()),
            parent => parent.as_object_mut().unwrap().remove(&key).unwrap(),
        };
        then(object, &Mutation { path, became: None, in_list });
        match object.pointer_mut(parent).unwrap() {
            Value::Array(list) => list.insert(key.parse().unwrap(), whole),
            parent => drop(parent.as_object_mut().unwrap().insert(key, whole)),
        }
    }
}

fn paths(value: &Value, at: &mut String, all: &mut Vec<String>) {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(map) => {
            map.iter().map(|(key, value)| (key.replace('~', "~0").replace('/', "~1"), value)).collect()
        }
        Value::Array(list) => {
            list.iter().enumerate().map(|(index, value)| (index.to_string(), value)).collect()
        }
        _ => Vec::new(),
    };
    for (key, child) in children {
        let length = at.len();
        at.push('/');
        at.push_str(&key);
        all.push(at.clone());
        if key != "managedFields" {
            paths(child, at, all);
        }
        at.truncate(length);
    }
}

fn meta_facts(meta: &Meta) -> Facts {
    assert_ne!(meta.version, Version::default());
    let mut facts = facts_of([
        ("/metadata/name", json!(meta.name())),
        ("?/metadata/namespace", json!(meta.namespace())),
        ("/metadata/uid", json!(meta.uid)),
        ("/metadata/resourceVersion", json!(meta.version.0.to_string())),
        ("?/metadata/generation", json!(meta.generation)),
        ("?/metadata/labels", map(&meta.labels)),
        ("?/metadata/annotations", map(&meta.annotations)),
        ("?/metadata/finalizers", json!(meta.finalizers)),
        ("/metadata/creationTimestamp", json!(meta.created)),
    ]);
    if !meta.owners.is_empty() {
        facts.extend(list_facts("/metadata/ownerReferences", &meta.owners, |owner| {
            vec![
                ("apiVersion", json!(owner.api_version)),
                ("kind", json!(owner.kind)),
                ("name", json!(owner.name)),
                ("uid", json!(owner.uid)),
                ("controller", json!(owner.controller)),
            ]
        }));
    }
    facts
}

pub(super) fn condition_facts(conditions: &[Condition]) -> Facts {
    list_facts("/status/conditions", conditions, |condition| {
        vec![
            ("type", json!(condition.kind)),
            ("status", word(condition.status)),
            ("?reason", json!(condition.reason)),
            ("lastTransitionTime", json!(condition.since)),
        ]
    })
}

pub(super) fn list_facts<T>(
    pointer: &str,
    list: &[T],
    facts: impl Fn(&T) -> Vec<(&'static str, Value)>,
) -> Facts {
    assert!(!list.is_empty(), "nothing was recorded at {pointer}");
    let mut all = vec![(format!("{pointer}#"), json!(list.len()))];
    for (index, item) in list.iter().enumerate() {
        all.extend(facts(item).into_iter().map(|(field, kept)| (format!("{pointer}/{index}/{field}"), kept)));
    }
    all
}

pub(super) fn facts_of<const N: usize>(facts: [(&str, Value); N]) -> Facts {
    facts.into_iter().map(|(pointer, kept)| (pointer.to_owned(), kept)).collect()
}

pub(super) fn map(pairs: &Pairs) -> Value {
    pairs.iter().map(|(key, value)| (key.to_string(), json!(value))).collect::<serde_json::Map<_, _>>().into()
}

/// A variant of an enum, as the server writes it.
pub(super) fn word(variant: impl Debug) -> Value {
    json!(format!("{variant:?}"))
}

pub(super) fn decode<V: View>(object: &Value) -> serde_json::Result<V> {
    V::deserialize(object)
}

pub(super) fn recorded(file: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/recorded/{file}.json"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}
