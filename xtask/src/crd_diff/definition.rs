//! Compares what a definition says around its schemas: names, versions, subresources, columns.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::crd_set::Crd;
use super::difference::{Difference, Found, Place};
use super::field_path::FieldPath;
use super::{columns, keyword, schema};

/// Keys that have a comparison of their own.
const OF_SPEC: [&str; 3] = ["conversion", "names", "versions"];
const OF_VERSION: [&str; 4] = ["additionalPrinterColumns", "name", "schema", "subresources"];

pub(super) fn compare(theirs: &Crd, ours: &Crd) -> Vec<Difference> {
    let place = |version: Option<&str>| Place {
        group: theirs.group.clone(),
        version: version.map(str::to_owned),
        kind: theirs.kind.clone(),
    };
    let mut found = Found::in_place(place(None));
    compare_spec(&theirs.spec, &ours.spec, &mut found);
    let mut differences = found.into_differences();
    let (their_versions, our_versions) = (versions(&theirs.spec), versions(&ours.spec));
    let both: BTreeMap<_, _> = their_versions.iter().chain(&our_versions).collect();
    for name in both.into_keys() {
        let mut found = Found::in_place(place(Some(name)));
        let path = FieldPath::of(["versions", name]);
        match (their_versions.get(name), our_versions.get(name)) {
            (Some(theirs), Some(ours)) => compare_version(theirs, ours, &path, &mut found),
            (Some(_), None) => found.note(&path, "missing version", Some((*name).into()), None),
            (None, _) => found.note(&path, "added version", None, Some((*name).into())),
        }
        differences.extend(found.into_differences());
    }
    differences
}

fn compare_spec(theirs: &Map<String, Value>, ours: &Map<String, Value>, found: &mut Found) {
    for name in keyword::names(theirs, ours).into_iter().filter(|name| !OF_SPEC.contains(name)) {
        let path = FieldPath::of([name]);
        found.note_unless_equal(&path, name, keyword::meaning(theirs, name), keyword::meaning(ours, name));
    }
    let (their_names, our_names) = (names(theirs), names(ours));
    for name in keyword::names(&their_names, &our_names) {
        let (theirs, ours) = (keyword::meaning(&their_names, name), keyword::meaning(&our_names, name));
        found.note_unless_equal(&FieldPath::of(["names", name]), "names", theirs, ours);
    }
    // Only the strategy: the address and the certificate of a webhook belong to an installation.
    let strategy = |spec: &Map<String, Value>| {
        Some(keyword::meaning(keyword::map(spec, "conversion"), "strategy").unwrap_or_else(|| "None".into()))
    };
    found.note_unless_equal(&FieldPath::of(["conversion"]), "strategy", strategy(theirs), strategy(ours));
}

/// With those that the API server makes of the kind where they are absent.
fn names(spec: &Map<String, Value>) -> Map<String, Value> {
    let mut names = keyword::map(spec, "names").clone();
    let kind = keyword::text(&names, "kind").to_owned();
    names.entry("singular").or_insert_with(|| kind.to_lowercase().into());
    names.entry("listKind").or_insert_with(|| format!("{kind}List").into());
    names
}

fn versions(spec: &Map<String, Value>) -> BTreeMap<&str, &Map<String, Value>> {
    let versions = keyword::list(spec, "versions").iter().filter_map(Value::as_object);
    versions.map(|version| (keyword::text(version, "name"), version)).collect()
}

fn compare_version(
    theirs: &Map<String, Value>,
    ours: &Map<String, Value>,
    path: &FieldPath,
    found: &mut Found,
) {
    for name in keyword::names(theirs, ours).into_iter().filter(|name| !OF_VERSION.contains(name)) {
        found.note_unless_equal(path, name, keyword::meaning(theirs, name), keyword::meaning(ours, name));
    }
    compare_subresources(keyword::map(theirs, "subresources"), keyword::map(ours, "subresources"), found);
    let columns = "additionalPrinterColumns";
    columns::compare(keyword::list(theirs, columns), keyword::list(ours, columns), found);
    let schema =
        |version: &Map<String, Value>| keyword::meaning(keyword::map(version, "schema"), "openAPIV3Schema");
    match (schema(theirs), schema(ours)) {
        (Some(theirs), Some(ours)) => schema::compare(&theirs, &ours, &FieldPath::root(), found),
        (theirs, ours) => found.note_unless_equal(path, "schema", theirs, ours),
    }
}

fn compare_subresources(theirs: &Map<String, Value>, ours: &Map<String, Value>, found: &mut Found) {
    for name in keyword::names(theirs, ours) {
        let path = FieldPath::of(["subresources", name]);
        let (theirs, ours) = (keyword::meaning(theirs, name), keyword::meaning(ours, name));
        if let (Some(Value::Object(theirs)), Some(Value::Object(ours))) = (&theirs, &ours) {
            for part in keyword::names(theirs, ours) {
                let (theirs, ours) = (keyword::meaning(theirs, part), keyword::meaning(ours, part));
                found.note_unless_equal(&path.field(part), "subresource", theirs, ours);
            }
        } else {
            found.note_unless_equal(&path, "subresource", theirs, ours);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn boat() -> Value {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "boats.example.org", "annotations": {"made-by": "hand"}},
            "spec": {
                "group": "example.org",
                "names": {"kind": "Boat", "plural": "boats", "shortNames": ["b", "bt"]},
                "scope": "Namespaced",
                "versions": [{
                    "name": "v1",
                    "served": true,
                    "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object"}},
                    "subresources": {"status": {}, "scale": {
                        "specReplicasPath": ".spec.size",
                        "statusReplicasPath": ".status.size",
                        "labelSelectorPath": ".status.selector",
                    }},
                    "additionalPrinterColumns": [{"name": "Age", "type": "date", "jsonPath": ".age"}],
                }],
            },
        })
    }

    /// What is found when this part of our definition is something else.
    fn differences(pointer: &str, ours: Value) -> Vec<String> {
        let mut changed = boat();
        match changed.pointer_mut(pointer) {
            Some(part) => *part = ours,
            None => {
                let (parent, name) = pointer.rsplit_once('/').unwrap();
                changed.pointer_mut(parent).unwrap()[name] = ours;
            }
        }
        let crd = |value: Value| Crd::of("test", value).unwrap();
        let line = |difference: &Difference| {
            format!("{} {} {}", difference.place, difference.path, difference.values())
        };
        compare(&crd(boat()), &crd(changed)).iter().map(line).collect()
    }

    #[test]
    fn a_definition_is_equal_to_itself_and_metadata_says_nothing() {
        assert_eq!(differences("/metadata/annotations", json!({})), [""; 0]);
    }

    #[test]
    fn scope_and_group_are_compared() {
        assert_eq!(
            differences("/spec/scope", json!("Cluster")),
            [r#"example.org Boat scope scope: theirs "Namespaced", ours "Cluster""#]
        );
        assert_eq!(
            differences("/spec/group", json!("example.com")),
            [r#"example.org Boat group group: theirs "example.org", ours "example.com""#]
        );
    }

    #[test]
    fn names_are_compared_each() {
        let changes = [
            ("kind", json!("Ship")),
            ("plural", json!("boatses")),
            ("singular", json!("one-boat")),
            ("listKind", json!("Boats")),
            ("shortNames", json!(["b"])),
            ("categories", json!(["all"])),
        ];
        for (name, ours) in changes {
            let lines = differences(&format!("/spec/names/{name}"), ours);
            let expected = format!("example.org Boat names.{name} names: theirs ");
            assert!(lines.iter().any(|line| line.starts_with(&expected)), "{name}: {lines:?}");
        }
    }

    #[test]
    fn names_that_say_the_same_are_no_difference() {
        assert_eq!(differences("/spec/names/shortNames", json!(["bt", "b"])), [""; 0]);
        assert_eq!(differences("/spec/names/singular", json!("boat")), [""; 0]);
        assert_eq!(differences("/spec/names/listKind", json!("BoatList")), [""; 0]);
        assert_eq!(differences("/spec/names/categories", json!([])), [""; 0]);
    }

    #[test]
    fn conversion_is_compared_by_its_strategy() {
        assert_eq!(differences("/spec/conversion", json!({"strategy": "None"})), [""; 0]);
        assert_eq!(
            differences("/spec/conversion", json!({"strategy": "Webhook", "webhook": {"clientConfig": {}}})),
            [r#"example.org Boat conversion strategy: theirs "None", ours "Webhook""#]
        );
    }

    #[test]
    fn what_else_a_definition_or_a_version_says_is_compared_too() {
        assert_eq!(
            differences("/spec/preserveUnknownFields", json!(true)),
            ["example.org Boat preserveUnknownFields preserveUnknownFields: theirs nothing, ours true"]
        );
        assert_eq!(
            differences("/spec/versions/0/deprecationWarning", json!("old")),
            [r#"example.org/v1 Boat versions.v1 deprecationWarning: theirs nothing, ours "old""#]
        );
    }

    #[test]
    fn flags_of_a_version_are_compared() {
        for (name, ours, shown) in [
            ("served", false, "theirs true, ours nothing"),
            ("storage", false, "theirs true, ours nothing"),
            ("deprecated", true, "theirs nothing, ours true"),
        ] {
            assert_eq!(
                differences(&format!("/spec/versions/0/{name}"), json!(ours)),
                [format!("example.org/v1 Boat versions.v1 {name}: {shown}")]
            );
        }
        assert_eq!(differences("/spec/versions/0/deprecated", json!(false)), [""; 0]);
    }

    #[test]
    fn versions_are_compared_by_name() {
        assert_eq!(
            differences("/spec/versions/0/name", json!("v2")),
            [
                r#"example.org/v1 Boat versions.v1 missing version: theirs "v1", ours nothing"#,
                r#"example.org/v2 Boat versions.v2 added version: theirs nothing, ours "v2""#,
            ]
        );
    }

    #[test]
    fn subresources_are_compared_with_their_paths() {
        assert_eq!(
            differences("/spec/versions/0/subresources", json!({})).len(),
            2,
            "status and scale are missing"
        );
        for name in ["specReplicasPath", "statusReplicasPath", "labelSelectorPath"] {
            let lines = differences(&format!("/spec/versions/0/subresources/scale/{name}"), json!(".x"));
            assert_eq!(lines.len(), 1, "{lines:?}");
            let expected = format!("example.org/v1 Boat subresources.scale.{name} subresource: theirs ");
            assert!(lines[0].starts_with(&expected), "{lines:?}");
        }
    }

    #[test]
    fn columns_and_schema_are_compared_in_their_version() {
        assert_eq!(
            differences("/spec/versions/0/additionalPrinterColumns", json!([])),
            [r#"example.org/v1 Boat columns.Age missing column: theirs ".age", ours nothing"#]
        );
        assert_eq!(
            differences("/spec/versions/0/schema/openAPIV3Schema/default", json!({})),
            ["example.org/v1 Boat $ default: theirs nothing, ours {}"]
        );
        assert_eq!(
            differences("/spec/versions/0/schema", json!({})),
            [r#"example.org/v1 Boat versions.v1 schema: theirs {"type":"object"}, ours nothing"#]
        );
    }
}
