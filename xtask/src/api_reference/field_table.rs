//! The table of an object's fields, and below it what is too long for a cell.

use serde_json::Value;

use super::field_type::{self, Choice};
use super::markdown::{Anchors, cell, code, first_sentence, in_table, table};
use super::sections::{Field, Section};

/// Above this many characters a value or a list of them is below the table.
const LONGEST_IN_CELL: usize = 60;

pub(super) fn blocks(section: &Section<'_>, anchors: &Anchors) -> Vec<String> {
    let fields = section.fields();
    if fields.is_empty() {
        return vec!["No fields are described.".to_owned()];
    }
    let rows = fields.iter().map(|field| row(field, anchors));
    let head = ["Field", "Type", "Constraints", "Description"];
    let below =
        fields.iter().flat_map(|field| [choices_below(field), pattern_below(field), default_below(field)]);
    let others = "All other fields are those of the Kubernetes type.".to_owned();
    let others = section.is_embedded().then_some(others);
    [table(&head, rows)].into_iter().chain(below.flatten()).chain(others).collect()
}

fn row(field: &Field<'_>, anchors: &Anchors) -> Vec<String> {
    let link = |word: &str| match &field.section {
        Some(section) => anchors.link(word, section),
        None => word.to_owned(),
    };
    let description = field.node["description"].as_str().unwrap_or_default();
    // The section has the whole of it.
    let description =
        if field.section.is_some() { first_sentence(description) } else { description.to_owned() };
    vec![
        in_table(&code(field.name)),
        in_table(&(field_type::of(field.node, &link) + &choices_in_cell(field))),
        in_table(&constraints(field).join(", ")),
        cell(&description),
    ]
}

fn choices_in_cell(field: &Field<'_>) -> String {
    let Some((of, values)) = field_type::choices(field.node) else { return String::new() };
    let each = match of {
        Choice::Value => "",
        Choice::Element => "each ",
    };
    let values = values.join(", ");
    if fits(&values) { format!(", {each}one of {values}") } else { format!(", {each}one of those below") }
}

fn choices_below(field: &Field<'_>) -> Option<String> {
    let (of, values) = field_type::choices(field.node)?;
    let values = values.join(", ");
    let each = match of {
        Choice::Value => "",
        Choice::Element => "Each of ",
    };
    (!fits(&values)).then(|| format!("{each}{} is one of {values}.", code(field.name)))
}

fn default_below(field: &Field<'_>) -> Option<String> {
    let default = field.node.get("default").filter(|default| !fits(&field_type::shown(default)))?;
    let yaml = serde_saphyr::to_string(default).unwrap_or_else(|_| default.to_string());
    Some(format!("Default of {}:\n\n```yaml\n{}\n```", code(field.name), yaml.trim_end()))
}

fn pattern_below(field: &Field<'_>) -> Option<String> {
    let (words, pattern) = pattern(field.node)?;
    (!fits(pattern)).then(|| format!("{} has {words} {}", code(field.name), code(pattern)))
}

/// What a value must be: first what a user must do, last the pattern, which is the hardest to read.
fn constraints(field: &Field<'_>) -> Vec<String> {
    let node = field.node;
    let mut words = Vec::new();
    if field.required {
        words.push("required".to_owned());
    }
    if let Some(default) = node.get("default") {
        let shown = field_type::shown(default);
        words.push(if fits(&shown) { format!("default {shown}") } else { "default below".to_owned() });
    }
    if node["nullable"] == true {
        words.push("may be null".to_owned());
    }
    words.extend(bounds(node));
    words.extend(uniqueness(node));
    if let Some(inner) = field_type::inner(node).filter(|_| field.section.is_none()) {
        words.extend(bounds(inner).into_iter().map(|bound| format!("each {bound}")));
    }
    if let Some((prefix, pattern)) = pattern(node) {
        words.push(if fits(pattern) {
            format!("{prefix} {}", code(pattern))
        } else {
            format!("{prefix} below")
        });
    }
    words
}

/// Of the value or of each element. Of a quantity or a time the type says enough.
fn pattern(node: &Value) -> Option<(&'static str, &str)> {
    let of = |node: &Value| !field_type::is_quantity(node) && node["format"] != "date-time";
    match field_type::inner(node) {
        Some(inner) if of(inner) => inner["pattern"].as_str().map(|pattern| ("each pattern", pattern)),
        None if of(node) => node["pattern"].as_str().map(|pattern| ("pattern", pattern)),
        _ => None,
    }
}

fn bounds(node: &Value) -> Vec<String> {
    let mut words = Vec::new();
    if field_type::is_boolean_or_object(node) {
        return words;
    }
    let number = |name: &str| node.get(name).filter(|value| value.is_number());
    let exclusive = |name: &str| node[name] == true;
    match (number("minimum"), number("maximum")) {
        (Some(least), Some(most)) if !exclusive("exclusiveMinimum") && !exclusive("exclusiveMaximum") => {
            words.push(format!("{least} to {most}"));
        }
        (least, most) => {
            let below = if exclusive("exclusiveMinimum") { "more than" } else { "at least" };
            let above = if exclusive("exclusiveMaximum") { "less than" } else { "at most" };
            words.extend(least.map(|least| format!("{below} {least}")));
            words.extend(most.map(|most| format!("{above} {most}")));
        }
    }
    words.extend(number("multipleOf").map(|step| format!("a multiple of {step}")));
    for (least, most, noun) in [
        ("minLength", "maxLength", "character"),
        ("minItems", "maxItems", "item"),
        ("minProperties", "maxProperties", "entry"),
    ] {
        let nouns = |number: &Value| match (number.as_u64(), noun) {
            (Some(1), noun) => format!("{number} {noun}"),
            (_, "entry") => format!("{number} entries"),
            (_, noun) => format!("{number} {noun}s"),
        };
        match (number(least), number(most)) {
            (Some(least), Some(most)) if least == most => words.push(format!("exactly {}", nouns(most))),
            (Some(least), Some(most)) => words.push(format!("{least} to {}", nouns(most))),
            (Some(least), None) => words.push(format!("at least {}", nouns(least))),
            (None, Some(most)) => words.push(format!("at most {}", nouns(most))),
            (None, None) => {}
        }
    }
    words
}

/// Which elements of a list may be there once only.
fn uniqueness(node: &Value) -> Option<String> {
    match node["x-kubernetes-list-type"].as_str() {
        Some("map") => {
            let keys = node["x-kubernetes-list-map-keys"].as_array().into_iter().flatten();
            let keys: Vec<_> = keys.filter_map(Value::as_str).map(code).collect();
            Some(format!("one for each {}", keys.join(" and ")))
        }
        Some("set") => Some("each once".to_owned()),
        _ => (node["uniqueItems"] == true).then(|| "each once".to_owned()),
    }
}

fn fits(text: &str) -> bool {
    text.chars().count() <= LONGEST_IN_CELL && !text.contains('\n')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::sections;
    use super::*;

    /// The blocks for an object with one field `x`.
    fn of(node: &Value) -> Vec<String> {
        let root = json!({"properties": {"x": node}});
        blocks(&sections::of(&root)[0], &Anchors::default())
    }

    /// The cells of type and constraints.
    fn cells(node: &Value) -> (String, String) {
        let table = of(node).remove(0);
        let row: Vec<_> = table.lines().last().unwrap().split(" | ").map(str::to_owned).collect();
        (row[1].clone(), row[2].clone())
    }

    #[test]
    fn constraints_are_words() {
        let nodes = [
            (json!({"minimum": 0, "maximum": 5}), "0 to 5"),
            (json!({"minimum": 0}), "at least 0"),
            (json!({"minimum": 0, "exclusiveMinimum": true, "maximum": 5}), "more than 0, at most 5"),
            (json!({"minLength": 1, "maxLength": 63}), "1 to 63 characters"),
            (json!({"minLength": 1}), "at least 1 character"),
            (json!({"minItems": 2, "maxItems": 2}), "exactly 2 items"),
            (json!({"maxProperties": 2}), "at most 2 entries"),
            (json!({"multipleOf": 5}), "a multiple of 5"),
            (json!({"nullable": true, "default": 1}), "default `1`, may be null"),
            (json!({"pattern": "^a$"}), "pattern `^a$`"),
            (
                json!({"type": "array", "items": {"minLength": 1, "pattern": "^a$"}}),
                "each at least 1 character, each pattern `^a$`",
            ),
            (json!({"x-kubernetes-list-type": "set"}), "each once"),
            (
                json!({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a", "b"]}),
                "one for each `a` and `b`",
            ),
            (json!({"x-kubernetes-list-type": "atomic"}), ""),
        ];
        for (node, words) in nodes {
            assert_eq!(cells(&node).1, words, "{node}");
        }
    }

    #[test]
    fn short_choices_are_in_the_cell_and_long_ones_below() {
        assert_eq!(cells(&json!({"type": "string", "enum": ["a", "b"]})).0, "string, one of `a`, `b`");
        let many: Vec<_> = (0..30).map(|number| format!("choice{number}")).collect();
        let node = json!({"type": "array", "items": {"type": "string", "enum": many}});
        assert_eq!(cells(&node).0, "list of strings, each one of those below");
        assert!(of(&node)[1].starts_with("Each of `x` is one of `choice0`, `choice1`, "));
    }

    #[test]
    fn a_long_default_is_below_as_yaml() {
        let node =
            json!({"default": {"first": "a long value to be shown", "second": ["a long value", "and more"]}});
        assert_eq!(cells(&node).1, "default below");
        assert_eq!(
            of(&node)[1],
            "Default of `x`:\n\n```yaml\nfirst: a long value to be shown\nsecond:\n- a long value\n- and more\n```"
        );
    }

    #[test]
    fn a_long_pattern_is_below() {
        let pattern = "a".repeat(100);
        assert_eq!(cells(&json!({"pattern": pattern})).1, "pattern below");
        assert_eq!(of(&json!({"pattern": pattern}))[1], format!("`x` has pattern `{pattern}`"));
    }

    #[test]
    fn pipes_do_not_end_a_cell() {
        let node = json!({"type": "string", "enum": ["a|b"], "pattern": "a|b", "description": "a|b"});
        let table = of(&node).remove(0);
        assert_eq!(table.lines().last().unwrap(), r"| `x` | string, one of `a\|b` | pattern `a\|b` | a\|b |");
    }
}
