//! Compares the columns of `kubectl get`, by name. Their order counts too: people and scripts read columns by
//! place.

use serde_json::{Map, Value};

use super::difference::Found;
use super::field_path::FieldPath;
use super::keyword;

pub(super) fn compare(theirs: &[Value], ours: &[Value], found: &mut Found) {
    let (theirs, ours) = (columns(theirs), columns(ours));
    for their_column in &theirs {
        let path = path(their_column);
        match ours.iter().find(|column| name(column) == name(their_column)) {
            Some(our_column) => compare_column(their_column, our_column, &path, found),
            None => found.note(&path, "missing column", their_column.get("jsonPath").cloned(), None),
        }
    }
    for column in ours.iter().filter(|column| !has(&theirs, column)) {
        found.note(&path(column), "added column", None, column.get("jsonPath").cloned());
    }
    let common = |of: &[&Map<String, Value>], with: &[&Map<String, Value>]| {
        of.iter().filter(|column| has(with, column)).map(|column| Value::from(name(column))).collect()
    };
    let (theirs, ours) = (common(&theirs, &ours), common(&ours, &theirs));
    found.note_unless_equal(&FieldPath::of(["columns"]), "column order", Some(theirs), Some(ours));
}

/// One difference for a column, with what changed.
fn compare_column(
    theirs: &Map<String, Value>,
    ours: &Map<String, Value>,
    path: &FieldPath,
    found: &mut Found,
) {
    let names = keyword::names(theirs, ours).into_iter().filter(|name| *name != "description");
    let changed: Vec<_> = names.filter(|name| says(theirs, name) != says(ours, name)).collect();
    if changed.is_empty() {
        return;
    }
    let shown = |column: &Map<String, Value>| {
        Value::from_iter(changed.iter().filter_map(|name| Some(((*name).to_owned(), says(column, name)?))))
    };
    found.note(path, "column", Some(shown(theirs)), Some(shown(ours)));
}

fn says(column: &Map<String, Value>, name: &str) -> Option<Value> {
    let default = (name == "priority").then(|| Value::from(0));
    keyword::meaning(column, name).or(default)
}

fn columns(list: &[Value]) -> Vec<&Map<String, Value>> {
    list.iter().filter_map(Value::as_object).collect()
}

fn has(columns: &[&Map<String, Value>], column: &Map<String, Value>) -> bool {
    columns.iter().any(|other| name(other) == name(column))
}

fn name(column: &Map<String, Value>) -> &str {
    keyword::text(column, "name")
}

fn path(column: &Map<String, Value>) -> FieldPath {
    FieldPath::of(["columns", name(column)])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn differences(theirs: &Value, ours: &Value) -> Vec<String> {
        let list = |value: &Value| value.as_array().cloned().unwrap();
        let mut found = Found::for_test();
        compare(&list(theirs), &list(ours), &mut found);
        found.lines()
    }

    #[test]
    fn a_column_on_one_side_only_is_named() {
        let age = json!({"name": "Age", "type": "date", "jsonPath": ".a"});
        let size = json!({"name": "Size", "type": "integer", "jsonPath": ".s"});
        let colour = json!({"name": "Colour", "type": "string", "jsonPath": ".c"});
        assert_eq!(
            differences(&json!([size, age]), &json!([age, colour])),
            [
                r#"columns.Size missing column: theirs ".s", ours nothing"#,
                r#"columns.Colour added column: theirs nothing, ours ".c""#,
            ]
        );
    }

    #[test]
    fn what_changed_of_a_column_is_shown() {
        let theirs =
            json!([{"name": "Age", "type": "date", "jsonPath": ".a", "priority": 0, "description": "old"}]);
        let same = json!([{"name": "Age", "type": "date", "jsonPath": ".a", "description": "new"}]);
        assert_eq!(differences(&theirs, &same), [""; 0]);
        let other =
            json!([{"name": "Age", "type": "string", "jsonPath": ".b", "priority": 1, "format": "date"}]);
        assert_eq!(
            differences(&theirs, &other),
            [concat!(
                r#"columns.Age column: theirs {"jsonPath":".a","priority":0,"type":"date"}, "#,
                r#"ours {"format":"date","jsonPath":".b","priority":1,"type":"string"}"#
            )]
        );
    }

    #[test]
    fn another_order_is_a_difference() {
        let (a, b, c) = (json!({"name": "A"}), json!({"name": "B"}), json!({"name": "C"}));
        assert_eq!(
            differences(&json!([a, b]), &json!([b, c, a])),
            [
                "columns.C added column: theirs nothing, ours nothing",
                r#"columns column order: theirs ["A","B"], ours ["B","A"]"#
            ]
        );
    }
}
