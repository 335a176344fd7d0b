//! Where in a custom resource something is: `spec.volumes[].name`, `spec.limits{}`.
//!
//! Segments are joined by dots. The elements of a list are `[]`, the values of a map `{}`; both belong to the
//! segment of the list or the map. The object itself is `$`. Kept as segments: the name of a column may have
//! a dot.

use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FieldPath(Vec<String>);

impl FieldPath {
    pub(super) fn root() -> Self {
        Self(vec!["$".to_owned()])
    }

    pub(super) fn of<const N: usize>(segments: [&str; N]) -> Self {
        Self(segments.map(str::to_owned).to_vec())
    }

    /// The field with this name. Fields of the object itself have no `$` in front: one writes `spec.size`.
    pub(super) fn field(&self, name: &str) -> Self {
        let parents = if *self == Self::root() { &[] } else { self.0.as_slice() };
        Self(parents.iter().cloned().chain([name.to_owned()]).collect())
    }

    /// The elements of this list.
    pub(super) fn elements(&self) -> Self {
        self.with_suffix("[]")
    }

    /// The values of this map.
    pub(super) fn values(&self) -> Self {
        self.with_suffix("{}")
    }

    pub(super) fn segments(&self) -> &[String] {
        &self.0
    }

    fn with_suffix(&self, suffix: &str) -> Self {
        let mut segments = self.0.clone();
        if let Some(last) = segments.last_mut() {
            last.push_str(suffix);
        }
        Self(segments)
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.0.join("."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_reads_as_one_writes_it() {
        let spec = FieldPath::root().field("spec");
        assert_eq!(FieldPath::root().to_string(), "$");
        assert_eq!(spec.field("volumes").elements().field("name").to_string(), "spec.volumes[].name");
        assert_eq!(spec.field("limits").values().elements().to_string(), "spec.limits{}[]");
        assert_eq!(FieldPath::of(["columns", "Login"]).to_string(), "columns.Login");
    }
}
