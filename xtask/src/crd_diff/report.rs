//! What a comparison found, judged by the allow-list, and how it is shown.

use std::collections::BTreeSet;

use super::allow_list::AllowList;
use super::difference::Difference;

/// Longer paths push their own line, not all others.
const WIDEST_PATH: usize = 64;

/// What was found in one of theirs.
#[derive(Debug)]
pub(super) struct Comparison {
    pub(super) source: String,
    /// How many definitions both have.
    pub(super) compared: usize,
    pub(super) differences: Vec<Difference>,
}

#[derive(Debug)]
pub(crate) struct Report<'a> {
    allowed: &'a AllowList,
    /// Beside each difference the first entry that allows it.
    comparisons: Vec<(Comparison, Vec<Option<usize>>)>,
    stale: Vec<String>,
}

/// What is shown beside the unexplained differences and the summary.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Detail {
    pub(crate) allowed: bool,
    pub(crate) stale: bool,
}

impl<'a> Report<'a> {
    pub(super) fn new(comparisons: Vec<Comparison>, allowed: &'a AllowList) -> Self {
        let mut used: BTreeSet<(usize, usize)> = BTreeSet::new();
        let mut judge = |difference: &Difference| {
            let mut first = None;
            // All entries are asked: one that only others come before is not stale.
            for (number, entry) in allowed.entries.iter().enumerate() {
                let paths = entry.matching_paths(difference);
                if !paths.is_empty() {
                    first = first.or(Some(number));
                }
                used.extend(paths.into_iter().map(|path| (number, path)));
            }
            first
        };
        let mut judged = Vec::new();
        for comparison in comparisons {
            let verdicts = comparison.differences.iter().map(&mut judge).collect();
            judged.push((comparison, verdicts));
        }
        Self { allowed, comparisons: judged, stale: stale(allowed, &used) }
    }

    /// The differences that no entry allows.
    pub(crate) fn unexplained(&self) -> impl Iterator<Item = &Difference> {
        self.judged().filter(|(_, entry)| entry.is_none()).map(|(difference, _)| difference)
    }

    /// The entries of the allow-list that match nothing, and the paths of others that do. One line each.
    pub(crate) fn stale(&self) -> &[String] {
        &self.stale
    }

    /// All of it, one line each, the summary last.
    pub(crate) fn lines(&self, detail: Detail) -> Vec<String> {
        let mut lines = self.unexplained_lines();
        if detail.allowed {
            lines.extend(self.allowed_lines());
        }
        if detail.stale {
            lines.extend(self.stale.iter().map(|entry| format!("stale: {entry}")));
        }
        lines.push(self.summary(detail));
        lines
    }

    fn judged(&self) -> impl Iterator<Item = (&Difference, Option<usize>)> {
        self.comparisons
            .iter()
            .flat_map(|(comparison, verdicts)| comparison.differences.iter().zip(verdicts.iter().copied()))
    }

    /// Under the name of each of theirs, if there are several: two releases may both be compared with.
    fn unexplained_lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (comparison, verdicts) in &self.comparisons {
            let judged = comparison.differences.iter().zip(verdicts);
            let unexplained: Vec<_> =
                judged.filter(|(_, entry)| entry.is_none()).map(|(one, _)| one).collect();
            if self.comparisons.len() > 1 && !unexplained.is_empty() {
                lines.push(format!("{}:", comparison.source));
            }
            lines.extend(aligned(&unexplained));
        }
        lines
    }

    fn allowed_lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (number, entry) in self.allowed.entries.iter().enumerate() {
            let allowed = self.judged().filter(|(_, first)| *first == Some(number));
            let allowed: Vec<_> = allowed.map(|(difference, _)| difference).collect();
            if !allowed.is_empty() {
                lines.push(format!("allowed by {}: {}", entry.at, entry.reason.replace('\n', " ")));
                lines.extend(aligned(&allowed).into_iter().map(|line| format!("  {line}")));
            }
        }
        lines
    }

    fn summary(&self, detail: Detail) -> String {
        let compared = self.comparisons.iter().map(|(comparison, _)| comparison.compared).sum();
        let (all, unexplained) = (self.judged().count(), self.unexplained().count());
        let stale = if detail.stale { format!(", {} stale", self.stale.len()) } else { String::new() };
        format!(
            "compared {}: {}, {} allowed, {unexplained} unexplained{stale}",
            counted(compared, "CRD"),
            counted(all, "difference"),
            all - unexplained
        )
    }
}

/// An entry with all its paths if nothing of it matches, else with those that do not.
fn stale(allowed: &AllowList, used: &BTreeSet<(usize, usize)>) -> Vec<String> {
    let entries = allowed.entries.iter().enumerate().filter_map(|(number, entry)| {
        let paths = entry.paths.iter().enumerate().filter(|(path, _)| !used.contains(&(number, *path)));
        let paths: Vec<_> = paths.map(|(_, pattern)| pattern.as_str()).collect();
        (!paths.is_empty()).then(|| format!("{} matches nothing", entry.shown_with(&paths)))
    });
    entries.collect()
}

/// `group/version Kind path  what: theirs a, ours b`, in columns.
fn aligned(differences: &[&Difference]) -> Vec<String> {
    let width = |text: String| text.chars().count();
    let place = differences.iter().map(|one| width(one.place.to_string())).max().unwrap_or_default();
    let path = differences.iter().map(|one| width(one.path.to_string())).max().unwrap_or_default();
    let path = path.min(WIDEST_PATH);
    let line = |one: &&Difference| format!("{:place$} {:path$}  {}", one.place, one.path, one.values());
    differences.iter().map(line).collect()
}

fn counted(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::difference::Place;
    use super::super::field_path::FieldPath;
    use super::*;

    fn difference(field: &str, what: &str) -> Difference {
        Difference {
            place: Place { group: "example.org".into(), version: Some("v1".into()), kind: "Boat".into() },
            path: FieldPath::root().field("spec").field(field),
            what: what.to_owned(),
            theirs: Some(json!("a")),
            ours: Some(json!("b")),
        }
    }

    fn comparison(source: &str, differences: &[Difference]) -> Comparison {
        Comparison { source: source.to_owned(), compared: 1, differences: differences.to_vec() }
    }

    #[test]
    fn unexplained_differences_are_aligned_and_counted() {
        let allowed = AllowList::default();
        let found = [difference("colour", "default"), difference("id", "type")];
        let report = Report::new(vec![comparison("theirs", &found)], &allowed);
        assert_eq!(
            report.lines(Detail::default()),
            [
                r#"example.org/v1 Boat spec.colour  default: theirs "a", ours "b""#,
                r#"example.org/v1 Boat spec.id      type: theirs "a", ours "b""#,
                "compared 1 CRD: 2 differences, 0 allowed, 2 unexplained",
            ]
        );
    }

    #[test]
    fn several_of_theirs_are_told_apart() {
        let allowed = AllowList::default();
        let found = [difference("id", "type")];
        let comparisons = vec![comparison("old", &[]), comparison("new", &found)];
        let lines = Report::new(comparisons, &allowed).lines(Detail::default());
        assert_eq!(lines[0], "new:");
        assert_eq!(lines[2], "compared 2 CRDs: 1 difference, 0 allowed, 1 unexplained");
    }

    #[test]
    fn allowed_differences_are_listed_by_entry_with_the_reason() {
        let list = "- {kind: Boat, path: spec.colour, what: default, reason: Red is easier to see at sea.}\n\
                    - {kind: Boat, path: spec.*, what: '*', reason: The rest comes with the next release.}\n";
        let allowed = AllowList::parse("list.yaml", list).unwrap();
        let found = [difference("colour", "default"), difference("id", "type")];
        let report = Report::new(vec![comparison("theirs", &found)], &allowed);
        assert_eq!(report.stale(), [""; 0]);
        assert_eq!(
            report.lines(Detail { allowed: true, stale: false }),
            [
                "allowed by list.yaml:1: Red is easier to see at sea.",
                r#"  example.org/v1 Boat spec.colour  default: theirs "a", ours "b""#,
                "allowed by list.yaml:2: The rest comes with the next release.",
                r#"  example.org/v1 Boat spec.id  type: theirs "a", ours "b""#,
                "compared 1 CRD: 2 differences, 2 allowed, 0 unexplained",
            ]
        );
    }

    #[test]
    fn an_entry_that_others_come_before_is_not_stale_but_a_path_without_a_match_is() {
        let list = "- {kind: Boat, path: spec.**, what: default, reason: Red is easier to see at sea.}\n\
                    - {kind: Boat, paths: [spec.colour, spec.smell], what: default, reason: Boats smell of tar alone.}\n";
        let allowed = AllowList::parse("list.yaml", list).unwrap();
        let report = Report::new(vec![comparison("theirs", &[difference("colour", "default")])], &allowed);
        assert_eq!(report.stale(), ["list.yaml:2: Boat spec.smell (default) matches nothing"]);
    }
}
