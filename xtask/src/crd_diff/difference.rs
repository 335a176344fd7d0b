//! One thing that ours has otherwise than theirs.

use std::fmt;

use serde_json::Value;

use super::field_path::FieldPath;

/// Values are cut at this number of characters, so that a line stays a line.
const LONGEST_VALUE: usize = 120;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Difference {
    pub(super) place: Place,
    pub(super) path: FieldPath,
    /// A short word that is always the same for the same kind of difference. Keywords of the schema are
    /// themselves, without `x-kubernetes-`.
    pub(super) what: String,
    pub(super) theirs: Option<Value>,
    pub(super) ours: Option<Value>,
}

/// The definition that a difference is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) group: String,
    /// None for what all versions share.
    pub(super) version: Option<String>,
    pub(super) kind: String,
}

impl Difference {
    /// What it is about, without where it is.
    pub(super) fn values(&self) -> String {
        format!("{}: theirs {}, ours {}", self.what, short(self.theirs.as_ref()), short(self.ours.as_ref()))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = self.version.as_ref().map(|version| format!("/{version}")).unwrap_or_default();
        formatter.pad(&format!("{}{version} {}", self.group, self.kind))
    }
}

fn short(value: Option<&Value>) -> String {
    let text = value.map_or_else(|| "nothing".to_owned(), Value::to_string);
    match text.char_indices().nth(LONGEST_VALUE) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

/// The differences of one definition, as they are found.
#[derive(Debug)]
pub(super) struct Found {
    place: Place,
    differences: Vec<Difference>,
}

impl Found {
    pub(super) fn in_place(place: Place) -> Self {
        Self { place, differences: Vec::new() }
    }

    pub(super) fn note(&mut self, path: &FieldPath, what: &str, theirs: Option<Value>, ours: Option<Value>) {
        let (place, path, what) = (self.place.clone(), path.clone(), what.to_owned());
        self.differences.push(Difference { place, path, what, theirs, ours });
    }

    pub(super) fn note_unless_equal(
        &mut self,
        path: &FieldPath,
        what: &str,
        theirs: Option<Value>,
        ours: Option<Value>,
    ) {
        if theirs != ours {
            self.note(path, what, theirs, ours);
        }
    }

    pub(super) fn into_differences(self) -> Vec<Difference> {
        self.differences
    }
}

/// What was found, one short line each, for the tests beside this file.
#[cfg(test)]
impl Found {
    pub(super) fn for_test() -> Self {
        let place = Place { group: "example.org".to_owned(), version: None, kind: "Boat".to_owned() };
        Self::in_place(place)
    }

    pub(super) fn lines(&self) -> Vec<String> {
        let line = |difference: &Difference| format!("{} {}", difference.path, difference.values());
        self.differences.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn absent_and_null_look_different_and_long_values_are_cut() {
        assert_eq!(short(None), "nothing");
        assert_eq!(short(Some(&Value::Null)), "null");
        assert_eq!(short(Some(&json!({"a": [1, "b"]}))), r#"{"a":[1,"b"]}"#);
        let long = short(Some(&json!("ü".repeat(200))));
        assert_eq!(long.chars().count(), LONGEST_VALUE + 1);
        assert!(long.ends_with("ü…"));
    }
}
