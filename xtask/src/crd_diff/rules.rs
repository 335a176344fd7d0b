//! Compares validation rules. A rule is its expression; the rest of it is what the user is told.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::difference::Found;
use super::field_path::FieldPath;
use super::keyword;

pub(super) fn compare(theirs: &[Value], ours: &[Value], path: &FieldPath, found: &mut Found) {
    let (theirs, ours) = (by_expression(theirs), by_expression(ours));
    let expressions: BTreeSet<_> = theirs.keys().chain(ours.keys()).collect();
    for rule @ (expression, _) in expressions {
        let text = Some(Value::from(*expression));
        match (theirs.get(rule), ours.get(rule)) {
            (Some(_), None) => found.note(path, "missing rule", text, None),
            (None, Some(_)) => found.note(path, "added rule", None, text),
            (Some(theirs), Some(ours)) => compare_rule(theirs, ours, path, found),
            (None, None) => {}
        }
    }
}

/// By expression and by how often it occurred before: nothing keeps a schema from having one twice.
fn by_expression(rules: &[Value]) -> BTreeMap<(&str, usize), &Map<String, Value>> {
    let mut found = BTreeMap::new();
    for rule in rules.iter().filter_map(Value::as_object) {
        let expression = keyword::text(rule, "rule").trim();
        let before = found.keys().filter(|(other, _)| *other == expression).count();
        found.insert((expression, before), rule);
    }
    found
}

/// Shows what changed, and the expression so that one knows of which rule.
fn compare_rule(theirs: &Map<String, Value>, ours: &Map<String, Value>, path: &FieldPath, found: &mut Found) {
    let changed: Vec<_> = keyword::names(theirs, ours)
        .into_iter()
        .filter(|name| *name != "rule" && keyword::meaning(theirs, name) != keyword::meaning(ours, name))
        .collect();
    if changed.is_empty() {
        return;
    }
    let shown = |rule: &Map<String, Value>| {
        let names = changed.iter().copied().chain(["rule"]);
        Value::from_iter(names.filter_map(|name| Some((name.to_owned(), keyword::meaning(rule, name)?))))
    };
    found.note(path, "rule", Some(shown(theirs)), Some(shown(ours)));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn differences(theirs: Value, ours: Value) -> Vec<String> {
        let rules = |value: Value| value.as_array().cloned().unwrap();
        let mut found = Found::for_test();
        compare(&rules(theirs), &rules(ours), &FieldPath::of(["spec"]), &mut found);
        found.lines()
    }

    #[test]
    fn rules_are_known_by_their_expression_in_any_order() {
        let theirs = json!([{"rule": "a", "message": "no"}, {"rule": "b"}, {"rule": "c"}]);
        let ours = json!([{"rule": "d"}, {"rule": "b"}, {"rule": "a", "message": "no"}]);
        assert_eq!(
            differences(theirs, ours),
            [
                r#"spec missing rule: theirs "c", ours nothing"#,
                r#"spec added rule: theirs nothing, ours "d""#
            ]
        );
    }

    #[test]
    fn what_a_user_is_told_is_compared() {
        for name in ["message", "messageExpression", "reason", "fieldPath"] {
            assert_eq!(
                differences(json!([{"rule": "z", name: "a"}]), json!([{"rule": "z", name: "b"}])),
                [format!(
                    r#"spec rule: theirs {{"{name}":"a","rule":"z"}}, ours {{"{name}":"b","rule":"z"}}"#
                )]
            );
        }
        assert_eq!(
            differences(json!([{"rule": "z", "optionalOldSelf": true}]), json!([{"rule": "z"}])),
            [r#"spec rule: theirs {"optionalOldSelf":true,"rule":"z"}, ours {"rule":"z"}"#]
        );
        assert_eq!(
            differences(json!([{"rule": "z", "optionalOldSelf": false}]), json!([{"rule": "z"}])),
            [""; 0]
        );
    }

    #[test]
    fn a_rule_that_is_there_twice_is_compared_twice() {
        assert_eq!(
            differences(json!([{"rule": "a"}, {"rule": "a"}]), json!([{"rule": "a"}])),
            [r#"spec missing rule: theirs "a", ours nothing"#]
        );
    }
}
