//! Text as Markdown that means what the text means: in a table, in a paragraph, as code, as the target of a
//! link.

use std::collections::{BTreeMap, BTreeSet};

/// Text in one cell of a table: no line breaks, no bare pipes. Paragraphs and points of a list stay apart.
pub(super) fn cell(text: &str) -> String {
    let lines: Vec<_> = blocks(text).into_iter().flatten().collect();
    in_table(&lines.iter().map(|line| safe(line)).collect::<Vec<_>>().join("<br>"))
}

/// Text as paragraphs and lists.
pub(super) fn prose(text: &str) -> Vec<String> {
    let paragraph = |lines: Vec<String>| lines.iter().map(|line| safe(line)).collect::<Vec<_>>().join("\n");
    blocks(text).into_iter().map(paragraph).collect()
}

/// The first sentence, where the rest is said elsewhere.
pub(super) fn first_sentence(text: &str) -> String {
    let line = blocks(text).into_iter().flatten().next().unwrap_or_default();
    let ends = line.match_indices(". ").find(|(end, _)| {
        let (before, after) = (line.get(..*end).unwrap_or_default(), line.get(end + 2..).unwrap_or_default());
        !["e.g", "i.e", "etc", "vs"].iter().any(|short| before.ends_with(short))
            && after.starts_with(|next: char| !next.is_lowercase())
    });
    match ends {
        Some((end, _)) => line.get(..=end).unwrap_or(&line).to_owned(),
        None => line,
    }
}

/// Text to the letter. A longer row of backticks outside lets it have backticks inside.
pub(super) fn code(text: &str) -> String {
    let longest = text.split(|letter| letter != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest + 1);
    let space = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{fence}{space}{text}{space}{fence}")
}

/// Rows of cells that are Markdown already.
pub(super) fn table(head: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let line = |cells: &[String]| format!("| {} |", cells.join(" | "));
    let head_line = format!("| {} |", head.join(" | "));
    let rule = format!("|{}", "---|".repeat(head.len()));
    [head_line, rule].into_iter().chain(rows.map(|row| line(&row))).collect::<Vec<_>>().join("\n")
}

/// Markdown that goes into a table: a pipe ends a cell there even inside of code.
pub(super) fn in_table(markdown: &str) -> String {
    markdown.replace('|', "\\|")
}

/// Where a heading can be linked to. As GitHub and mdBook make them: letters, digits and hyphens of the
/// heading, and a number if that was there before.
#[derive(Debug, Default)]
pub(super) struct Anchors {
    taken: BTreeSet<String>,
    by_heading: BTreeMap<String, String>,
}

impl Anchors {
    /// Headings are added in the order of the page.
    pub(super) fn add(&mut self, heading: &str) {
        let kept = |letter: &char| letter.is_alphanumeric() || [' ', '-', '_'].contains(letter);
        let base: String = heading.to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-");
        let numbered = (1..).map(|number| format!("{base}-{number}"));
        let anchor = [base.clone()].into_iter().chain(numbered).find(|anchor| !self.taken.contains(anchor));
        if let Some(anchor) = anchor {
            self.taken.insert(anchor.clone());
            self.by_heading.insert(heading.to_owned(), anchor);
        }
    }

    pub(super) fn link(&self, text: &str, heading: &str) -> String {
        match self.by_heading.get(heading) {
            Some(anchor) => format!("[{text}](#{anchor})"),
            None => text.to_owned(),
        }
    }
}

/// Paragraphs, each of lines that must stay lines: points of a list. All other lines are joined, to a point
/// only if they are indented below it.
fn blocks(text: &str) -> Vec<Vec<String>> {
    let mut blocks: Vec<Vec<String>> = vec![Vec::new()];
    for line in text.lines() {
        let indented = line.starts_with(char::is_whitespace);
        let line = line.trim();
        let before = blocks.last().and_then(|block| block.last());
        let ends_list = before.is_some_and(|before| is_point(before)) && !is_point(line) && !indented;
        if line.is_empty() || ends_list {
            blocks.push(Vec::new());
        }
        let Some(block) = blocks.last_mut().filter(|_| !line.is_empty()) else { continue };
        match block.last_mut() {
            Some(before) if !is_point(line) => {
                before.push(' ');
                before.push_str(line);
            }
            _ => block.push(line.to_owned()),
        }
    }
    blocks.retain(|block| !block.is_empty());
    blocks
}

fn is_point(line: &str) -> bool {
    let after_number = line.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let numbered = after_number.len() < line.len() && after_number.starts_with(". ");
    numbered || ["- ", "* "].iter().any(|mark| line.starts_with(mark))
}

/// What a reader of the plain text sees, a reader of the page sees too: `<name>` is no HTML, a backtick alone
/// opens no code, `#` no heading. Other Markdown is meant.
fn safe(line: &str) -> String {
    let mut safe = String::new();
    let mut rest = line;
    if rest.starts_with('#') {
        safe.push('\\');
    }
    while let Some(letter) = rest.chars().next() {
        let taken = match letter {
            '`' => {
                let run = rest.len() - rest.trim_start_matches('`').len();
                let span = code_span(rest, run);
                match span {
                    Some(span) => safe.push_str(span),
                    None => safe.push_str(&"\\`".repeat(run)),
                }
                span.map_or(run, str::len)
            }
            '<' if !rest.starts_with("<http") => {
                safe.push_str("&lt;");
                1
            }
            letter => {
                safe.push(letter);
                letter.len_utf8()
            }
        };
        rest = rest.get(taken..).unwrap_or_default();
    }
    safe
}

/// The code that starts here with a row of `run` backticks and ends with as many.
fn code_span(text: &str, run: usize) -> Option<&str> {
    let mut at = run;
    loop {
        let start = at + text.get(at..)?.find('`')?;
        let after = text.get(start..)?;
        let length = after.len() - after.trim_start_matches('`').len();
        at = start + length;
        if length == run {
            return text.get(..at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_one_line_and_keeps_its_pipes_and_code() {
        assert_eq!(cell("one\ntwo `a|b` | three"), "one two `a\\|b` \\| three");
        assert_eq!(cell("one\n\ntwo"), "one<br>two");
        assert_eq!(cell("either:\n- a\n  or b\n- c\n1. d"), "either:<br>- a or b<br>- c<br>1. d");
        assert_eq!(cell(""), "");
    }

    #[test]
    fn prose_keeps_paragraphs_and_lists() {
        assert_eq!(prose("one\ntwo\n\n\nthree:\n- a\n- b\n"), ["one two", "three:\n- a\n- b"]);
        assert_eq!(prose("- a\n  still a\nafter"), ["- a still a", "after"]);
        assert_eq!(prose(" \n"), [""; 0]);
    }

    #[test]
    fn what_would_vanish_or_change_the_page_is_escaped() {
        assert_eq!(cell("a <name> and `<name>`"), "a &lt;name> and `<name>`");
        assert_eq!(cell("see <https://a.b>"), "see <https://a.b>");
        assert_eq!(cell("``two ` three``, one ` alone"), "``two ` three``, one \\` alone");
        assert_eq!(cell("``` open"), "\\`\\`\\` open");
        assert_eq!(cell("# title"), "\\# title");
    }

    #[test]
    fn code_may_have_backticks() {
        assert_eq!(code("a"), "`a`");
        assert_eq!(code("a``b"), "```a``b```");
        assert_eq!(code("`"), "`` ` ``");
    }

    #[test]
    fn a_sentence_ends_at_a_full_stop_that_is_no_abbreviation() {
        assert_eq!(first_sentence("One. Two."), "One.");
        assert_eq!(
            first_sentence("One, e.g. Two, v1.2 and\n`three`. Four"),
            "One, e.g. Two, v1.2 and `three`."
        );
        assert_eq!(first_sentence("No end\n\nOther"), "No end");
        assert_eq!(first_sentence("Default is. not this"), "Default is. not this");
        assert_eq!(first_sentence(""), "");
    }

    #[test]
    fn anchors_are_unique_and_those_of_the_renderer() {
        let mut anchors = Anchors::default();
        for heading in ["Boat (example.org/v1)", "spec.a.b[]", "spec.ab", "spec.a_b-c"] {
            anchors.add(heading);
        }
        assert_eq!(anchors.link("boat", "Boat (example.org/v1)"), "[boat](#boat-exampleorgv1)");
        assert_eq!(anchors.link("x", "spec.a.b[]"), "[x](#specab)");
        assert_eq!(anchors.link("x", "spec.ab"), "[x](#specab-1)");
        assert_eq!(anchors.link("x", "spec.a_b-c"), "[x](#speca_b-c)");
        assert_eq!(anchors.link("x", "spec.nowhere"), "x");
    }
}
