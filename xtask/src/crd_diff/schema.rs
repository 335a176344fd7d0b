//! Compares two schemas, node by node. Descriptions say nothing to the API server and are not looked at; a
//! keyword that is not known here is compared as it stands, so that none is passed over.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::difference::Found;
use super::field_path::FieldPath;
use super::{keyword, rules};

/// For people only.
const DOCUMENTATION: [&str; 4] = ["description", "example", "externalDocs", "title"];

const RULES: &str = "x-kubernetes-validations";
/// Keywords that have a comparison of their own.
const WITH_PARTS: [&str; 5] = ["additionalProperties", "items", "properties", "required", RULES];

pub(super) fn compare(theirs: &Value, ours: &Value, path: &FieldPath, found: &mut Found) {
    let (Value::Object(theirs), Value::Object(ours)) = (theirs, ours) else {
        found.note_unless_equal(path, "schema", Some(theirs.clone()), Some(ours.clone()));
        return;
    };
    for name in keyword::names(theirs, ours) {
        if DOCUMENTATION.contains(&name) || WITH_PARTS.contains(&name) {
            continue;
        }
        let what = name.strip_prefix("x-kubernetes-").unwrap_or(name);
        let [theirs, ours] = [theirs, ours].map(|node| match name {
            "default" => filled_default(node),
            _ => keyword::meaning(node, name),
        });
        found.note_unless_equal(path, what, theirs, ours);
    }
    rules::compare(keyword::list(theirs, RULES), keyword::list(ours, RULES), path, found);
    compare_properties(theirs, ours, path, found);
    compare_inner("items", theirs, ours, path, &path.elements(), found);
    compare_inner("additionalProperties", theirs, ours, path, &path.values(), found);
}

/// A property that only one side has is one difference, whatever is in it and whether or not it is required.
fn compare_properties(
    theirs: &Map<String, Value>,
    ours: &Map<String, Value>,
    path: &FieldPath,
    found: &mut Found,
) {
    let (their_required, our_required) = (required(theirs), required(ours));
    let (theirs, ours) = (keyword::map(theirs, "properties"), keyword::map(ours, "properties"));
    let mut names = keyword::names(theirs, ours);
    // Nothing keeps a schema from requiring what it does not describe.
    names.extend(their_required.union(&our_required));
    for name in names {
        let path = path.field(name);
        let (they, we) = (their_required.contains(name), our_required.contains(name));
        match (theirs.get(name), ours.get(name)) {
            (Some(property), None) => found.note(&path, "missing property", outline(property, they), None),
            (None, Some(property)) => found.note(&path, "added property", None, outline(property, we)),
            (theirs, ours) => {
                found.note_unless_equal(&path, "required", Some(they.into()), Some(we.into()));
                if let (Some(theirs), Some(ours)) = (theirs, ours) {
                    compare(theirs, ours, &path, found);
                }
            }
        }
    }
}

/// The schema of a list's elements or of a map's values.
fn compare_inner(
    name: &str,
    theirs: &Map<String, Value>,
    ours: &Map<String, Value>,
    outside: &FieldPath,
    inside: &FieldPath,
    found: &mut Found,
) {
    match (theirs.get(name), ours.get(name)) {
        (Some(theirs @ Value::Object(_)), Some(ours @ Value::Object(_))) => {
            compare(theirs, ours, inside, found);
        }
        _ => found.note_unless_equal(
            outside,
            name,
            keyword::meaning(theirs, name),
            keyword::meaning(ours, name),
        ),
    }
}

/// What must be given. A property with a default cannot be missing, whether or not it is called required.
fn required(node: &Map<String, Value>) -> BTreeSet<&str> {
    let properties = keyword::map(node, "properties");
    let has_default =
        |name: &str| properties.get(name).is_some_and(|property| property.get("default").is_some());
    let names = keyword::list(node, "required").iter().filter_map(Value::as_str);
    names.filter(|name| !has_default(name)).collect()
}

/// The default as it is stored: the API server fills what it leaves out with the defaults of the properties.
fn filled_default(node: &Map<String, Value>) -> Option<Value> {
    keyword::meaning(node, "default").map(|default| filled(default, node))
}

fn filled(mut value: Value, node: &Map<String, Value>) -> Value {
    if let Value::Object(fields) = &mut value {
        for (name, property) in keyword::map(node, "properties") {
            let Value::Object(property) = property else { continue };
            let given = fields.remove(name).map(|value| filled(value, property));
            if let Some(value) = given.or_else(|| filled_default(property)) {
                fields.insert(name.clone(), value);
            }
        }
    }
    value
}

/// Enough of a property to see what kind of thing it is.
fn outline(property: &Value, required: bool) -> Option<Value> {
    let is = |keyword: &str| property.get(keyword).and_then(Value::as_bool).unwrap_or_default();
    let of_type = match property.get("type").and_then(Value::as_str) {
        Some(of_type) => of_type,
        None if is("x-kubernetes-int-or-string") => "int-or-string",
        None => "any",
    };
    Some(if required { format!("{of_type}, required").into() } else { of_type.into() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn differences(theirs: &Value, ours: &Value) -> Vec<String> {
        let mut found = Found::for_test();
        compare(theirs, ours, &FieldPath::root(), &mut found);
        found.lines()
    }

    /// The keyword in theirs and in ours, below a field `x`; null is absent.
    fn of_keyword(name: &str, theirs: &Value, ours: &Value) -> Vec<String> {
        let node = |value: &Value| {
            let mut x = json!({"type": "string"});
            if !value.is_null() {
                x[name] = value.clone();
            }
            json!({"properties": {"x": x}})
        };
        assert_eq!(differences(&node(theirs), &node(theirs)), [""; 0], "{name} is not equal to itself");
        differences(&node(theirs), &node(ours))
    }

    #[test]
    fn a_default_is_compared_as_it_is_stored() {
        let node = |default: Value| json!({ "default": default, "properties": { "a": { "default": 1 }, "b": { "properties": { "c": { "default": 2 } } } } });
        assert_eq!(
            differences(&node(json!({ "b": {} })), &node(json!({ "a": 1, "b": { "c": 2 } }))),
            [""; 0]
        );
        assert_eq!(differences(&node(json!({})), &node(json!({ "a": 2 }))).len(), 1);
    }

    #[test]
    fn what_has_a_default_is_not_required() {
        let node = |required: Value| json!({ "required": required, "properties": { "a": { "default": 1 } } });
        assert_eq!(differences(&node(json!(["a"])), &node(json!([]))), [""; 0]);
    }

    #[test]
    fn every_keyword_that_changes_is_one_difference_with_its_own_word() {
        let changes = [
            ("type", json!("integer"), json!("number")),
            ("format", json!("int32"), json!("int64")),
            ("pattern", json!("^a$"), json!("^b$")),
            ("minimum", json!(0), json!(1)),
            ("maximum", json!(5), json!(null)),
            ("exclusiveMinimum", json!(true), json!(null)),
            ("exclusiveMaximum", json!(null), json!(true)),
            ("minLength", json!(1), json!(2)),
            ("maxLength", json!(1), json!(2)),
            ("minItems", json!(null), json!(1)),
            ("maxItems", json!(1), json!(2)),
            ("minProperties", json!(1), json!(2)),
            ("maxProperties", json!(1), json!(2)),
            ("multipleOf", json!(2), json!(3)),
            ("uniqueItems", json!(true), json!(false)),
            ("nullable", json!(true), json!(null)),
            ("enum", json!(["a", "b"]), json!(["a", "c"])),
            ("default", json!(null), json!({"a": 1})),
            ("anyOf", json!([{"type": "integer"}]), json!(null)),
            ("oneOf", json!([{"required": ["a"]}]), json!([{"required": ["b"]}])),
            ("allOf", json!(null), json!([{"minLength": 1}])),
            ("not", json!({"required": ["a"]}), json!(null)),
        ];
        for (name, theirs, ours) in changes {
            let lines = of_keyword(name, &theirs, &ours);
            assert_eq!(lines.len(), 1, "{name}: {lines:?}");
            assert!(lines[0].starts_with(&format!("x {name}: theirs ")), "{lines:?}");
        }
    }

    #[test]
    fn extensions_of_kubernetes_have_their_word_without_the_prefix() {
        let changes = [
            ("int-or-string", json!(true), json!(null)),
            ("preserve-unknown-fields", json!(null), json!(true)),
            ("embedded-resource", json!(true), json!(false)),
            ("list-type", json!("atomic"), json!("map")),
            ("list-map-keys", json!(["name"]), json!(["name", "port"])),
            ("map-type", json!("atomic"), json!(null)),
        ];
        for (name, theirs, ours) in changes {
            let lines = of_keyword(&format!("x-kubernetes-{name}"), &theirs, &ours);
            assert_eq!(lines.len(), 1, "{name}: {lines:?}");
            assert!(lines[0].starts_with(&format!("x {name}: theirs ")), "{lines:?}");
        }
    }

    #[test]
    fn an_unknown_keyword_is_compared_too() {
        assert_eq!(
            of_keyword("x-future", &json!({"a": 1}), &json!({"a": 2})),
            [r#"x x-future: theirs {"a":1}, ours {"a":2}"#]
        );
    }

    #[test]
    fn what_says_the_same_is_no_difference() {
        let same = [
            ("nullable", json!(null), json!(false)),
            ("x-kubernetes-preserve-unknown-fields", json!(false), json!(null)),
            ("enum", json!(["a", "b"]), json!(["b", "a"])),
            ("required", json!(["a", "b"]), json!(["b", "a"])),
            ("required", json!(null), json!([])),
            ("properties", json!({}), json!(null)),
            ("description", json!("one"), json!("other")),
            ("title", json!("one"), json!(null)),
            ("example", json!(null), json!({"a": 1})),
            ("externalDocs", json!({"url": "a"}), json!(null)),
        ];
        for (name, theirs, ours) in same {
            assert_eq!(of_keyword(name, &theirs, &ours), [""; 0], "{name}");
        }
    }

    #[test]
    fn a_property_that_only_one_side_has_is_one_difference_without_its_inside() {
        let deep = json!({"type": "object", "required": ["b"], "properties": {"b": {"default": 1}}});
        let theirs = json!({"properties": {"a": deep, "both": {}}, "required": ["a", "both"]});
        let ours = json!({"properties": {"both": {}, "c": {"x-kubernetes-int-or-string": true}}, "required": ["both"]});
        assert_eq!(
            differences(&theirs, &ours),
            [
                r#"a missing property: theirs "object, required", ours nothing"#,
                r#"c added property: theirs nothing, ours "int-or-string""#,
            ]
        );
    }

    #[test]
    fn required_is_compared_per_property_also_without_a_description_of_it() {
        let theirs = json!({"properties": {"a": {}, "b": {}}, "required": ["b", "a"]});
        let ours = json!({"properties": {"a": {}, "b": {}}, "required": ["a", "ghost"]});
        assert_eq!(
            differences(&theirs, &ours),
            ["b required: theirs true, ours false", "ghost required: theirs false, ours true"]
        );
    }

    #[test]
    fn lists_and_maps_are_looked_into() {
        let node = |default: u8| {
            json!({"properties": {
                "list": {"items": {"properties": {"a": {"default": default}}}},
                "map": {"additionalProperties": {"items": {"default": default}}},
            }})
        };
        assert_eq!(
            differences(&node(1), &node(2)),
            ["list[].a default: theirs 1, ours 2", "map{}[] default: theirs 1, ours 2"]
        );
    }

    #[test]
    fn a_list_or_map_on_one_side_only_is_one_difference() {
        assert_eq!(
            of_keyword("items", &json!({"type": "string"}), &json!(null)),
            [r#"x items: theirs {"type":"string"}, ours nothing"#]
        );
        assert_eq!(
            of_keyword("additionalProperties", &json!({"type": "string"}), &json!(true)),
            [r#"x additionalProperties: theirs {"type":"string"}, ours true"#]
        );
    }

    #[test]
    fn the_object_itself_has_keywords_too() {
        assert_eq!(
            differences(&json!({"type": "object"}), &json!({})),
            [r#"$ type: theirs "object", ours nothing"#]
        );
    }
}
