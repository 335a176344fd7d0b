//! What kind of value a field has, in words: `int32`, `list of strings`, `map of quantities`.

use serde_json::Value;

use super::markdown::code;
use super::sections::{has_section, is_embedded};

/// How many of them the sentence is about.
#[derive(Debug, Clone, Copy)]
enum Count {
    One,
    Many,
}

/// `link` makes a link of the word for an object that has a section of its own.
pub(super) fn of(node: &Value, link: &dyn Fn(&str) -> String) -> String {
    words(node, Count::One, link)
}

/// What a list of choices is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    Value,
    /// Of a list or a map.
    Element,
}

/// The values that a field or each of its elements may have, if they are listed.
pub(super) fn choices(node: &Value) -> Option<(Choice, Vec<String>)> {
    let listed = |node: &Value| node["enum"].as_array().map(|values| values.iter().map(shown).collect());
    match inner(node) {
        Some(inner) => listed(inner).map(|values| (Choice::Element, values)),
        None => listed(node).map(|values| (Choice::Value, values)),
    }
}

/// A value as one writes it in YAML, as code.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) if is_plain(text) => code(text),
        other => code(&other.to_string()),
    }
}

/// What a list or a map has in it.
pub(super) fn inner(node: &Value) -> Option<&Value> {
    [&node["items"], &node["additionalProperties"]].into_iter().find(|inner| inner.is_object())
}

/// A quantity has a pattern of its own, which nobody wants to read.
pub(super) fn is_quantity(node: &Value) -> bool {
    node["x-kubernetes-int-or-string"] == true
        && node["pattern"].as_str().is_some_and(|pattern| pattern.starts_with(r"^(\+|-)?(([0-9]+"))
}

/// A field of two types: a CRD says so by bounds that no other type can meet.
pub(super) fn is_boolean_or_object(node: &Value) -> bool {
    node.get("type").is_none() && node["maxItems"].as_u64() < node["minItems"].as_u64()
}

fn words(node: &Value, count: Count, link: &dyn Fn(&str) -> String) -> String {
    let word = |one: &str, many: &str| match count {
        Count::One => one.to_owned(),
        Count::Many => many.to_owned(),
    };
    let linked = |word: String| if has_section(node) { link(&word) } else { word };
    if is_embedded(node) {
        return linked(word("Kubernetes object", "Kubernetes objects"));
    }
    if is_boolean_or_object(node) {
        return format!("{} or {}", word("boolean", "booleans"), linked(word("object", "objects")));
    }
    if is_quantity(node) {
        return word("quantity", "quantities");
    }
    if node["x-kubernetes-int-or-string"] == true {
        return word("integer or string", "integers or strings");
    }
    let format = node["format"].as_str();
    match (node["type"].as_str(), inner(node)) {
        (Some("array"), Some(inner)) => {
            format!("{} of {}", word("list", "lists"), words(inner, Count::Many, link))
        }
        (Some("array"), None) => word("list", "lists"),
        (Some("object"), Some(inner)) => {
            format!("{} of {}", word("map", "maps"), words(inner, Count::Many, link))
        }
        (Some("object"), None) => linked(word("object", "objects")),
        (Some("boolean"), _) => word("boolean", "booleans"),
        (Some("integer" | "number"), _) if format.is_some() => format.unwrap_or_default().to_owned(),
        (Some("integer"), _) => word("integer", "integers"),
        (Some("number"), _) => word("number", "numbers"),
        (Some("string"), _) => match format {
            Some("date-time") => word("time", "times"),
            Some(format) => format!("{} ({format})", word("string", "strings")),
            None => word("string", "strings"),
        },
        _ => word("any value", "any values"),
    }
}

/// Whether YAML reads it as this text, without quotes.
fn is_plain(text: &str) -> bool {
    serde_saphyr::from_str::<Value>(text).is_ok_and(|value| value == text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn words_of(node: &Value) -> String {
        of(node, &|word| format!("[{word}]"))
    }

    #[test]
    fn types_are_words() {
        let quantity = json!({
            "x-kubernetes-int-or-string": true,
            "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE])?$",
        });
        let object = json!({"type": "object", "properties": {"a": {}}});
        let pod =
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"a": {}}});
        let volume = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
            "a": {"description": "One of ours."},
        }});
        let switch =
            json!({"minItems": 1, "maxItems": 0, "properties": {"a": {"description": "One of ours."}}});
        let types = [
            (json!({"type": "string"}), "string"),
            (json!({"type": "string", "format": "date-time"}), "time"),
            (json!({"type": "string", "format": "byte"}), "string (byte)"),
            (json!({"type": "integer"}), "integer"),
            (json!({"type": "integer", "format": "int64"}), "int64"),
            (json!({"type": "number", "format": "double"}), "double"),
            (json!({"type": "boolean"}), "boolean"),
            (json!({"x-kubernetes-int-or-string": true}), "integer or string"),
            (json!({"x-kubernetes-preserve-unknown-fields": true}), "any value"),
            (json!({"type": "object"}), "object"),
            (json!({"type": "object", "properties": {}}), "object"),
            (json!({"type": "array", "items": {"type": "string"}}), "list of strings"),
            (json!({"type": "array", "items": {"type": "integer", "format": "int32"}}), "list of int32"),
            (json!({"type": "array", "items": object}), "list of [objects]"),
            (json!({"type": "array", "items": pod}), "list of Kubernetes objects"),
            (json!({"type": "object", "additionalProperties": quantity}), "map of quantities"),
            (
                json!({"type": "object", "additionalProperties": {"type": "array", "items": {"type": "boolean"}}}),
                "map of lists of booleans",
            ),
            (object, "[object]"),
            (quantity, "quantity"),
            (pod, "Kubernetes object"),
            (volume, "[Kubernetes object]"),
            (switch, "boolean or [object]"),
        ];
        for (node, words) in types {
            assert_eq!(words_of(&node), words, "{node}");
        }
    }

    #[test]
    fn choices_are_found_in_lists_too() {
        let list = json!({"items": {"enum": ["a", 1]}});
        assert_eq!(choices(&list), Some((Choice::Element, vec!["`a`".to_owned(), "`1`".to_owned()])));
        assert_eq!(choices(&json!({"enum": ["a"]})), Some((Choice::Value, vec!["`a`".to_owned()])));
        assert_eq!(choices(&json!({"type": "string"})), None);
    }

    #[test]
    fn a_value_is_shown_as_one_writes_it() {
        let values = [
            (json!("Retain"), "`Retain`"),
            (json!("a: b"), "`\"a: b\"`"),
            (json!(""), "`\"\"`"),
            (json!("1"), "`\"1\"`"),
            (json!("true"), "`\"true\"`"),
            (json!(false), "`false`"),
            (json!({"a": []}), "`{\"a\":[]}`"),
        ];
        for (value, code) in values {
            assert_eq!(shown(&value), code);
        }
    }
}
