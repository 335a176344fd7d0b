//! What a keyword says, in one form for all ways to write the same thing to the API server.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde_json::{Map, Value};

/// False is the same as absent. Not so for `default` and `additionalProperties`.
const FLAGS: [&str; 12] = [
    "deprecated",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "nullable",
    "optionalOldSelf",
    "preserveUnknownFields",
    "served",
    "storage",
    "uniqueItems",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-preserve-unknown-fields",
];

/// Lists whose order says nothing.
const SETS: [&str; 4] = ["categories", "enum", "shortNames", "x-kubernetes-list-map-keys"];

/// What the keyword of this name says, or None if it says nothing: null is absent, and so is an empty set.
pub(super) fn meaning(of: &Map<String, Value>, name: &str) -> Option<Value> {
    match of.get(name)? {
        Value::Null => None,
        Value::Bool(false) if FLAGS.contains(&name) => None,
        Value::Array(list) if SETS.contains(&name) => {
            let set: BTreeSet<String> = list.iter().map(Value::to_string).collect();
            let sorted = set.iter().filter_map(|text| list.iter().find(|value| value.to_string() == *text));
            (!set.is_empty()).then(|| sorted.cloned().collect())
        }
        value => Some(value.clone()),
    }
}

/// The names of all that either has.
pub(super) fn names<'a>(one: &'a Map<String, Value>, other: &'a Map<String, Value>) -> BTreeSet<&'a str> {
    one.keys().chain(other.keys()).map(String::as_str).collect()
}

/// The map of this name; empty if it is absent, which says the same.
pub(super) fn map<'a>(of: &'a Map<String, Value>, name: &str) -> &'a Map<String, Value> {
    static EMPTY: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
    of.get(name).and_then(Value::as_object).unwrap_or(&EMPTY)
}

/// The list of this name; empty if it is absent.
pub(super) fn list<'a>(of: &'a Map<String, Value>, name: &str) -> &'a [Value] {
    of.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The text of this name; empty if it is absent.
pub(super) fn text<'a>(of: &'a Map<String, Value>, name: &str) -> &'a str {
    of.get(name).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn meaning_of(name: &str, value: Value) -> Option<Value> {
        meaning(&Map::from_iter([(name.to_owned(), value)]), name)
    }

    #[test]
    fn a_flag_that_is_false_says_nothing_but_a_default_of_false_does() {
        assert_eq!(meaning_of("nullable", json!(false)), None);
        assert_eq!(meaning_of("nullable", json!(true)), Some(json!(true)));
        assert_eq!(meaning_of("default", json!(false)), Some(json!(false)));
        assert_eq!(meaning_of("additionalProperties", json!(false)), Some(json!(false)));
    }

    #[test]
    fn the_order_of_a_set_says_nothing() {
        assert_eq!(meaning_of("enum", json!(["b", "a", "b"])), Some(json!(["a", "b"])));
        assert_eq!(meaning_of("default", json!(["b", "a"])), Some(json!(["b", "a"])));
        assert_eq!(meaning_of("enum", json!([])), None);
        assert_eq!(meaning_of("enum", json!([null])), Some(json!([null])));
    }

    #[test]
    fn null_says_nothing() {
        assert_eq!(meaning_of("default", json!(null)), None);
    }
}
