//! Objects that a schema accepts, made up at random.

use proptest::prelude::*;
use proptest::strategy::Union;
use serde_json::{Map, Value, json};

/// Any value that the schema accepts, its rules in CEL left aside.
pub(crate) fn value(schema: &Value) -> BoxedStrategy<Value> {
    if let Some(values) = schema["enum"].as_array() {
        return Union::new(values.clone().into_iter().map(Just)).boxed();
    }
    if schema["x-kubernetes-int-or-string"] == true {
        let text = if schema.get("pattern").is_some() { "[1-9][0-9]{0,3}(m|Gi)?" } else { "[1-9][0-9]?%" };
        return prop_oneof![(0..i64::from(i32::MAX)).prop_map(Value::from), text.prop_map(Value::from)]
            .boxed();
    }
    match schema["type"].as_str() {
        Some("boolean") => any::<bool>().prop_map(Value::from).boxed(),
        Some("integer") => integer(schema),
        Some("string") => string(schema),
        Some("array") => array(schema),
        Some("object") => object(schema),
        // Boolean or object: the one kind of field without a type.
        _ if schema.get("maxItems").is_some() => {
            prop_oneof![any::<bool>().prop_map(Value::from), object(schema)].boxed()
        }
        _ => Just(json!({})).boxed(),
    }
}

fn integer(schema: &Value) -> BoxedStrategy<Value> {
    let bounds =
        if schema["format"] == "int32" { (i32::MIN.into(), i32::MAX.into()) } else { (i64::MIN, i64::MAX) };
    let least = schema["minimum"].as_i64().unwrap_or(bounds.0);
    let most = schema["maximum"].as_i64().unwrap_or(bounds.1);
    prop_oneof![least..=most, Just(least), Just(most)].prop_map(Value::from).boxed()
}

fn string(schema: &Value) -> BoxedStrategy<Value> {
    if schema["format"] == "date-time" {
        return moment(schema.get("pattern").is_some());
    }
    if let Some(pattern) = schema["pattern"].as_str() {
        // Anchors are implied here.
        let bare = pattern.trim_start_matches('^').trim_end_matches('$');
        if let Ok(strategy) = proptest::string::string_regex(bare) {
            let most = schema["maxLength"].as_u64().unwrap_or(u64::MAX);
            let fits = move |text: &String| !text.is_empty() && (text.len() as u64) <= most;
            return strategy.prop_filter("length", fits).prop_map(Value::from).boxed();
        }
    }
    let least = usize::from(schema["minLength"].as_u64().is_some_and(|least| least > 0));
    proptest::string::string_regex(&format!("[ -~äß]{{{least},12}}"))
        .map_or_else(|_| Just(Value::from("text")).boxed(), |strategy| strategy.prop_map(Value::from).boxed())
}

/// A point in time as the API server lets it through: with a pattern only what clocks read, without one also what none can.
fn moment(readable: bool) -> BoxedStrategy<Value> {
    let time = "[12][0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]";
    let readable_end = r"([.][0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])";
    let end = if readable { readable_end } else { "(x[0-9]{1,12})?(z|[+-]99:99)" };
    let strategy = proptest::string::string_regex(&format!("{time}{end}"));
    strategy.map_or_else(
        |_| Just(Value::from("2026-11-18T06:48:00Z")).boxed(),
        |strategy| strategy.prop_map(Value::from).boxed(),
    )
}

fn array(schema: &Value) -> BoxedStrategy<Value> {
    let least = usize::from(schema["minItems"].as_u64().is_some_and(|least| least > 0));
    // A set or map must not hold two of a kind.
    let unique = ["set", "map"].iter().any(|kind| schema["x-kubernetes-list-type"] == *kind);
    let most = if unique { 1 } else { 2 };
    prop::collection::vec(value(&schema["items"]), least..=most.max(least)).prop_map(Value::from).boxed()
}

fn object(schema: &Value) -> BoxedStrategy<Value> {
    if schema["additionalProperties"].is_object() {
        let entries = prop::collection::btree_map("[a-z]{1,8}", value(&schema["additionalProperties"]), 0..3);
        return entries.prop_map(|entries| Value::Object(entries.into_iter().collect())).boxed();
    }
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let open = schema["x-kubernetes-preserve-unknown-fields"] == true;
    let mut fields: Vec<BoxedStrategy<Option<(String, Value)>>> = Vec::new();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let name = name.clone();
        // Deep in Kubernetes' own types few fields are enough, and many are slow.
        let likely = if open { 0.05 } else { 0.5 };
        let needed = required.contains(&name.as_str());
        let field = value(property).prop_map(move |value| (name.clone(), value));
        fields.push(if needed {
            field.prop_map(Some).boxed()
        } else {
            prop::option::weighted(likely, field).boxed()
        });
    }
    if open && schema["type"] == "object" {
        let unknown = json!({ "a": [1, "b", null], "c": false, "d": 0, "e": "" });
        let unknown = Just(("aFieldOfTomorrow".to_owned(), unknown));
        fields.push(prop::option::weighted(0.3, unknown).boxed());
    }
    let least = schema["minProperties"].as_u64().unwrap_or_default();
    let whole = move |fields: Vec<Option<(String, Value)>>| {
        let mut fields: Map<String, Value> = fields.into_iter().flatten().collect();
        // The one kind of object that needs more than it names: a volume needs a source.
        if (fields.len() as u64) < least {
            fields.insert("emptyDir".to_owned(), json!({}));
        }
        Value::Object(fields)
    };
    fields.prop_map(whole).boxed()
}
