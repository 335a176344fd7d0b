//! Which paths an entry of the allow-list is about.
//!
//! A pattern is segments joined by dots. `*` is any one segment, whatever its `[]` or `{}`. `**` is any
//! number of segments, also none. Every other segment is that segment, to the letter: `volumes` is not
//! `volumes[]`. So `spec.a.**` is `spec.a` and all below it, and `spec.a[].**` is its elements and all below
//! them. A name that has a dot is one segment, which only `*` and `**` match.

use anyhow::{Result, ensure};

use super::field_path::FieldPath;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PathPattern {
    text: String,
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    AnyNumber,
    AnyOne,
    This(String),
}

impl PathPattern {
    pub(super) fn parse(text: &str) -> Result<Self> {
        let parts = text.split('.').map(|segment| Self::part(text, segment)).collect::<Result<_>>()?;
        Ok(Self { text: text.to_owned(), parts })
    }

    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    pub(super) fn matches(&self, path: &FieldPath) -> bool {
        matches(&self.parts, path.segments())
    }

    fn part(text: &str, segment: &str) -> Result<Part> {
        match segment {
            "**" => Ok(Part::AnyNumber),
            "*" => Ok(Part::AnyOne),
            _ => {
                ensure!(!segment.is_empty(), "the path `{text}` has an empty segment");
                // `login*` would look as if it did something.
                ensure!(!segment.contains('*'), "the path `{text}`: `*` and `**` stand for whole segments");
                Ok(Part::This(segment.to_owned()))
            }
        }
    }
}

fn matches(parts: &[Part], segments: &[String]) -> bool {
    match parts {
        [] => segments.is_empty(),
        [Part::AnyNumber, rest @ ..] => (0..=segments.len())
            .any(|skipped| segments.get(skipped..).is_some_and(|left| matches(rest, left))),
        [part, rest @ ..] => match segments {
            [] => false,
            [segment, left @ ..] => {
                (*part == Part::AnyOne || matches!(part, Part::This(name) if name == segment))
                    && matches(rest, left)
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of these paths, those that the pattern matches.
    fn matched<'a>(pattern: &str, paths: &[&'a str]) -> Vec<&'a str> {
        let pattern = PathPattern::parse(pattern).unwrap();
        let path = |text: &str| text.split('.').fold(FieldPath::root(), |path, name| path.field(name));
        paths.iter().copied().filter(|text| pattern.matches(&path(text))).collect()
    }

    #[test]
    fn a_segment_is_that_segment_to_the_letter() {
        assert_eq!(matched("spec.a", &["spec", "spec.a", "spec.a[]", "spec.a{}", "spec.a.b"]), ["spec.a"]);
        assert_eq!(matched("spec.a[].b", &["spec.a.b", "spec.a[].b", "spec.a[][].b"]), ["spec.a[].b"]);
    }

    #[test]
    fn one_star_is_one_segment_whatever_its_suffix() {
        let paths = ["spec", "spec.a", "spec.a[]", "spec.a{}", "spec.a.b", "status.a"];
        assert_eq!(matched("spec.*", &paths), ["spec.a", "spec.a[]", "spec.a{}"]);
        assert_eq!(matched("*", &paths), ["spec"]);
        assert_eq!(matched("*.a", &paths), ["spec.a", "status.a"]);
        assert_eq!(
            matched("spec.*.b", &["spec.b", "spec.a.b", "spec.a[].b", "spec.a.a.b"]),
            ["spec.a.b", "spec.a[].b"]
        );
    }

    #[test]
    fn two_stars_are_any_number_of_segments_also_none() {
        let paths = ["spec", "spec.a", "spec.a[]", "spec.a[].b", "spec.a.b.c", "status.a.c"];
        assert_eq!(matched("**", &paths), paths);
        assert_eq!(matched("spec.**", &paths), &paths[..5]);
        assert_eq!(matched("spec.a.**", &paths), ["spec.a", "spec.a.b.c"]);
        assert_eq!(matched("spec.a[].**", &paths), ["spec.a[]", "spec.a[].b"]);
        assert_eq!(matched("**.c", &paths), ["spec.a.b.c", "status.a.c"]);
        assert_eq!(matched("**.a.**.c", &paths), ["spec.a.b.c", "status.a.c"]);
        assert_eq!(matched("spec.**.*", &paths), &paths[1..5]);
    }

    #[test]
    fn the_object_itself_and_names_with_dots_are_matched_by_stars() {
        for pattern in ["$", "*", "**"] {
            assert!(PathPattern::parse(pattern).unwrap().matches(&FieldPath::root()), "{pattern}");
        }
        let column = FieldPath::of(["columns", "Ver. 1"]);
        assert!(PathPattern::parse("columns.*").unwrap().matches(&column));
        assert!(!PathPattern::parse("columns.Ver. 1").unwrap().matches(&column));
    }

    #[test]
    fn what_only_looks_like_a_pattern_is_refused() {
        for (text, complaint) in [
            ("spec.login*", "whole segments"),
            ("*[]", "whole segments"),
            ("spec..a", "empty"),
            ("", "empty"),
        ] {
            let error = PathPattern::parse(text).unwrap_err().to_string();
            assert!(error.contains(complaint), "{text}: {error}");
        }
    }
}
