//! The differences that are meant: a YAML list of entries, each with its reason.
//!
//! ```yaml
//! - kind: SlurmCluster        # or "*"
//!   group: slurm.nebius.ai    # optional: NodeSet exists in two groups
//!   path: spec.slurmNodes.*   # or paths, a list; see path_pattern.rs
//!   what: [default, enum]     # one word, a list of them, or "*"
//!   theirs: 1                 # optional: only if theirs has this value; null is for absent
//!   ours: 2                   # optional, likewise
//!   reason: At least twenty characters that say why.
//! ```

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Map, Value};
use serde_saphyr::Spanned;

use super::crd_set::with_plain_numbers;
use super::difference::Difference;
use super::path_pattern::PathPattern;
use crate::workspace;

/// Where the list of the workspace is.
const OF_WORKSPACE: &str = "deploy/crd-differences.yaml";
const KEYS: [&str; 8] = ["kind", "group", "path", "paths", "what", "theirs", "ours", "reason"];
/// Below this a reason is a word, and a word explains nothing.
const SHORTEST_REASON: usize = 20;

#[derive(Debug, Default)]
pub(crate) struct AllowList {
    pub(super) entries: Vec<Entry>,
}

#[derive(Debug)]
pub(super) struct Entry {
    /// File and line.
    pub(super) at: String,
    kind: OneOf,
    group: Option<String>,
    pub(super) paths: Vec<PathPattern>,
    what: OneOf,
    /// `Some(None)`: it must be absent.
    theirs: Option<Option<Value>>,
    ours: Option<Option<Value>>,
    pub(super) reason: String,
}

/// A choice of words.
#[derive(Debug, PartialEq, Eq)]
enum OneOf {
    All,
    These(Vec<String>),
}

impl AllowList {
    /// The list in the workspace. Without the file nothing is allowed: who differs nowhere needs none.
    pub(crate) fn of_workspace() -> Result<Self> {
        let path = workspace().join(OF_WORKSPACE);
        if path.exists() { Self::read(&path) } else { Ok(Self::default()) }
    }

    pub(crate) fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
        let shown = path.strip_prefix(workspace()).unwrap_or(path);
        Self::parse(&shown.display().to_string(), &text)
    }

    /// `source` is what errors and reports call the file.
    pub(super) fn parse(source: &str, text: &str) -> Result<Self> {
        let attempt = || format!("read {source}: a list of differences that are meant");
        // A file of comments alone is an empty list.
        let lists: Vec<Vec<Spanned<Value>>> = serde_saphyr::from_multiple(text).with_context(attempt)?;
        let entries = lists.into_iter().flatten().enumerate().map(|(index, entry)| {
            let at = format!("{source}:{}", entry.referenced.line());
            let name = entry_name(index, &entry.value);
            Entry::parse(&at, entry.value).with_context(|| format!("{at}: {name}"))
        });
        Ok(Self { entries: entries.collect::<Result<_>>()? })
    }
}

/// How errors call an entry that may lack anything.
fn entry_name(index: usize, entry: &Value) -> String {
    let words: Vec<_> = ["kind", "path"].iter().filter_map(|key| entry[*key].as_str()).collect();
    let words = if words.is_empty() { String::new() } else { format!(" ({})", words.join(" ")) };
    format!("entry {}{words}", index + 1)
}

impl Entry {
    fn parse(at: &str, entry: Value) -> Result<Self> {
        let Value::Object(mut entry) = entry else { bail!("an entry is a map with {}", KEYS.join(", ")) };
        if let Some(unknown) = entry.keys().find(|key| !KEYS.contains(&key.as_str())) {
            bail!("unknown key `{unknown}`: an entry has {}", KEYS.join(", "));
        }
        let mut value = |key: &str| {
            entry.remove(key).map(|value| Some(with_plain_numbers(value)).filter(|value| !value.is_null()))
        };
        let (theirs, ours) = (value("theirs"), value("ours"));
        let reason = text(&entry, "reason")?.unwrap_or_default().trim().to_owned();
        ensure!(
            reason.chars().count() >= SHORTEST_REASON,
            "`reason` must say why, in at least {SHORTEST_REASON} characters"
        );
        let either = (words(&entry, "path")?, words(&entry, "paths")?);
        let ((Some(paths), None) | (None, Some(paths))) = either else {
            bail!("an entry has either `path` or `paths`");
        };
        Ok(Self {
            at: at.to_owned(),
            kind: OneOf::parse(&entry, "kind")?,
            group: text(&entry, "group")?,
            paths: paths.iter().map(|path| PathPattern::parse(path)).collect::<Result<_>>()?,
            what: OneOf::parse(&entry, "what")?,
            theirs,
            ours,
            reason,
        })
    }

    /// Which of its paths match the difference; none if it is about something else.
    pub(super) fn matching_paths(&self, difference: &Difference) -> Vec<usize> {
        let Difference { place, path, what, theirs, ours } = difference;
        let about_it = self.kind.has(&place.kind)
            && self.group.as_ref().is_none_or(|group| *group == place.group)
            && self.what.has(what)
            && self.theirs.as_ref().is_none_or(|value| value == theirs)
            && self.ours.as_ref().is_none_or(|value| value == ours);
        let paths = self.paths.iter().enumerate().filter(|(_, pattern)| about_it && pattern.matches(path));
        paths.map(|(index, _)| index).collect()
    }

    /// The entry with one of its paths, for people.
    pub(super) fn shown_with(&self, paths: &[&str]) -> String {
        let group = self.group.as_ref().map(|group| format!("{group} ")).unwrap_or_default();
        format!("{}: {group}{} {} ({})", self.at, self.kind.shown(), paths.join(", "), self.what.shown())
    }
}

impl OneOf {
    fn parse(entry: &Map<String, Value>, key: &str) -> Result<Self> {
        let words = words(entry, key)?.with_context(|| format!("`{key}` is missing"))?;
        Ok(if words.iter().any(|word| word == "*") { Self::All } else { Self::These(words) })
    }

    fn has(&self, word: &str) -> bool {
        match self {
            Self::All => true,
            Self::These(words) => words.iter().any(|one| one == word),
        }
    }

    fn shown(&self) -> String {
        match self {
            Self::All => "*".to_owned(),
            Self::These(words) => words.join(", "),
        }
    }
}

fn text(entry: &Map<String, Value>, key: &str) -> Result<Option<String>> {
    match entry.get(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => bail!("`{key}` must be text, it is {other}"),
    }
}

/// One text, or a list of them that is not empty.
fn words(entry: &Map<String, Value>, key: &str) -> Result<Option<Vec<String>>> {
    let Some(Value::Array(list)) = entry.get(key) else {
        return Ok(text(entry, key)?.map(|word| vec![word]));
    };
    ensure!(!list.is_empty(), "`{key}` is an empty list");
    let word = |value: &Value| match value {
        Value::String(word) => Ok(word.clone()),
        other => bail!("`{key}` must be a list of texts, {other} is none"),
    };
    list.iter().map(word).collect::<Result<_>>().map(Some)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::difference::Place;
    use super::super::field_path::FieldPath;
    use super::*;

    const REASON: &str = "reason: Because it is so in all tests.";

    fn entry(yaml: &str) -> Entry {
        let list = AllowList::parse("list.yaml", &format!("- {{{yaml}, {REASON}}}")).unwrap();
        list.entries.into_iter().next().unwrap()
    }

    fn error(yaml: &str) -> String {
        format!("{:#}", AllowList::parse("list.yaml", yaml).unwrap_err())
    }

    fn difference() -> Difference {
        let place = Place {
            group: "example.org".to_owned(),
            version: Some("v1".to_owned()),
            kind: "Boat".to_owned(),
        };
        let path = FieldPath::root().field("spec").field("sails").elements();
        Difference { place, path, what: "default".to_owned(), theirs: Some(json!(1)), ours: None }
    }

    fn allows(yaml: &str) -> bool {
        !entry(yaml).matching_paths(&difference()).is_empty()
    }

    #[test]
    fn an_entry_is_about_a_kind_in_a_group() {
        assert!(allows("kind: Boat, path: '**', what: default"));
        assert!(allows("kind: '*', path: '**', what: default"));
        assert!(allows("kind: Boat, group: example.org, path: '**', what: default"));
        assert!(!allows("kind: Ship, path: '**', what: default"));
        assert!(!allows("kind: Boat, group: example.com, path: '**', what: default"));
    }

    #[test]
    fn an_entry_is_about_words() {
        assert!(allows("kind: Boat, path: '**', what: '*'"));
        assert!(allows("kind: Boat, path: '**', what: [enum, default]"));
        assert!(!allows("kind: Boat, path: '**', what: [enum, type]"));
    }

    #[test]
    fn an_entry_is_about_paths() {
        assert!(allows("kind: Boat, path: 'spec.sails[]', what: default"));
        assert!(!allows("kind: Boat, path: spec.sails, what: default"));
        let paths = entry("kind: Boat, paths: [spec.masts, 'spec.*', 'spec.sails[]'], what: default");
        assert_eq!(paths.matching_paths(&difference()), [1, 2]);
    }

    #[test]
    fn values_are_exact_where_they_are_given_and_null_is_absent() {
        assert!(allows("kind: Boat, path: '**', what: default, theirs: 1"));
        assert!(allows("kind: Boat, path: '**', what: default, theirs: 1.0, ours: null"));
        assert!(!allows("kind: Boat, path: '**', what: default, theirs: '1'"));
        assert!(!allows("kind: Boat, path: '**', what: default, theirs: null"));
        assert!(!allows("kind: Boat, path: '**', what: default, ours: 1"));
    }

    #[test]
    fn an_entry_without_a_reason_is_an_error_that_names_it() {
        let good = format!("- {{kind: Boat, path: spec, what: default, {REASON}}}");
        assert_eq!(
            error(&format!("{good}\n- kind: Ship\n  path: spec.size\n  what: default\n")),
            "list.yaml:2: entry 2 (Ship spec.size): `reason` must say why, in at least 20 characters"
        );
        let short = "[{kind: Ship, path: spec.size, what: default, reason: It is so.}]";
        assert!(error(short).contains("at least 20 characters"));
    }

    #[test]
    fn what_an_entry_lacks_or_should_not_have_is_an_error() {
        let entries = [
            (
                "kind: Boat, path: spec, what: default, because: x",
                "unknown key `because`: an entry has kind,",
            ),
            ("path: spec, what: default", "`kind` is missing"),
            ("kind: Boat, path: spec", "`what` is missing"),
            ("kind: Boat, what: default", "either `path` or `paths`"),
            ("kind: Boat, path: spec, paths: [spec], what: default", "either `path` or `paths`"),
            ("kind: Boat, paths: [], what: default", "`paths` is an empty list"),
            ("kind: Boat, path: 'spec.a*', what: default", "whole segments"),
            ("kind: Boat, path: spec, what: [1]", "`what` must be a list of texts, 1 is none"),
            ("kind: Boat, path: spec, what: default, group: 1", "`group` must be text, it is 1"),
        ];
        for (entry, expected) in entries {
            let error = error(&format!("- {{{entry}, {REASON}}}"));
            assert!(error.starts_with("list.yaml:1: entry 1"), "{error}");
            assert!(error.contains(expected), "{error}");
        }
        assert!(error("- word").contains("an entry is a map"));
        assert!(error("kind: Boat").contains("read list.yaml: a list of differences"));
    }

    #[test]
    fn a_file_of_comments_allows_nothing() {
        assert!(AllowList::parse("list.yaml", "# later\n").unwrap().entries.is_empty());
    }
}
