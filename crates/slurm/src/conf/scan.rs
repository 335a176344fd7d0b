//! Lines and pairs as Slurm's parser takes them apart.
//!
//! Comments go first, on each line of the file. A backslash at the end joins the next line on. Then backslashes are
//! taken away, and what is left is pairs of `Key=Value`, where quotes keep blanks together.

/// A line for Slurm: one of the file, or several that backslashes join.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Logical<'a> {
    /// The number of its first line in the file, from 1.
    pub(super) number: usize,
    /// As it stands in the file, without the last line break.
    pub(super) raw: &'a str,
    /// Without comments and backslashes.
    pub(super) text: String,
    /// It ends with a backslash, and the file with it.
    pub(super) unfinished: bool,
    /// A comment was cut off at its end.
    pub(super) commented: bool,
}

pub(super) fn logical_lines(text: &str) -> Vec<Logical<'_>> {
    let mut lines = Vec::new();
    let mut number = 1;
    let mut rest = text;
    while !rest.is_empty() {
        let mut joined = String::new();
        let mut length = 0;
        let mut count = 0;
        let mut unfinished = false;
        let mut commented = false;
        for physical in rest.split_inclusive('\n') {
            length += physical.len();
            count += 1;
            let content = without_comment(physical);
            let continued = without_continuation(content);
            joined += continued.unwrap_or(content);
            unfinished = continued.is_some();
            commented = content.len() < physical.len();
            if !unfinished {
                break;
            }
        }
        let (raw, after) = rest.split_at(length);
        let raw = raw.strip_suffix('\n').unwrap_or(raw);
        lines.push(Logical { number, raw, text: without_escapes(&joined), unfinished, commented });
        rest = after;
        number += count;
    }
    lines
}

/// Up to a `#` that no backslash protects; quotes do not.
fn without_comment(line: &str) -> &str {
    let mut escaped = false;
    let end = line.find(|letter| {
        let comment = letter == '#' && !escaped;
        escaped = letter == '\\' && !escaped;
        comment
    });
    end.and_then(|end| line.get(..end)).unwrap_or(line)
}

/// The line without the backslash that joins the next one on; None if there is none.
fn without_continuation(line: &str) -> Option<&str> {
    let line = line.trim_end_matches(is_blank);
    let backslashes = line.len() - line.trim_end_matches('\\').len();
    if backslashes % 2 == 1 { line.strip_suffix('\\') } else { None }
}

fn without_escapes(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        if letter == '\\' { text.extend(letters.next()) } else { text.push(letter) }
    }
    text
}

/// What separates words for Slurm.
pub(super) fn is_blank(letter: char) -> bool {
    matches!(letter, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c')
}

/// `Key=Value`, and what follows it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Found<'a> {
    pub(super) key: &'a str,
    /// `+` of `+=`, which Slurm reads as `=` nearly everywhere.
    pub(super) operator: Option<char>,
    pub(super) value: &'a str,
    pub(super) rest: &'a str,
}

/// The pair that a text starts with.
pub(super) fn pair(text: &str) -> Option<Found<'_>> {
    let (key, operator, after) = key_and_operator(text)?;
    let after = after.trim_start_matches(is_blank);
    let (value, rest) = in_quotes(after).unwrap_or_else(|| {
        let end = after.find(is_blank).unwrap_or(after.len());
        after.split_at(end)
    });
    // Quotes with nothing in them are a value, nothing at all is none.
    let nothing = value.is_empty() && rest.len() == after.len();
    (!nothing).then_some(Found { key, operator, value, rest })
}

/// The key of a text that starts with `Key=`, with a value or not.
pub(super) fn key(text: &str) -> Option<&str> {
    key_and_operator(text).map(|(key, ..)| key)
}

fn key_and_operator(text: &str) -> Option<(&str, Option<char>, &str)> {
    let text = text.trim_start_matches(is_blank);
    let end = text.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_' && letter != '.')?;
    let (key, after) = text.split_at(end);
    if key.is_empty() {
        return None;
    }
    let after = after.trim_start_matches(is_blank);
    let operator = after.chars().next().filter(|letter| "-*+/".contains(*letter));
    let after = operator.map_or(Some(after), |operator| after.strip_prefix(operator))?;
    Some((key, operator, after.strip_prefix('=')?))
}

/// A value in quotes, which only counts as one if a blank or the end follows.
fn in_quotes(text: &str) -> Option<(&str, &str)> {
    let (value, rest) = text.strip_prefix('"')?.split_once('"')?;
    (rest.is_empty() || rest.starts_with(is_blank)).then_some((value, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<(usize, String)> {
        logical_lines(text).into_iter().map(|line| (line.number, line.text)).collect()
    }

    #[test]
    fn a_comment_starts_at_a_sign_without_a_backslash_also_in_quotes() {
        assert_eq!(texts("A=\"b#c\"\n"), [(1, "A=\"b".into())]);
        assert_eq!(texts("A=b\\#c # d\n"), [(1, "A=b#c ".into())]);
        assert_eq!(texts("A=b\\\\#c\n"), [(1, "A=b\\".into())]);
    }

    #[test]
    fn a_backslash_at_the_end_joins_lines_and_their_number_is_the_first() {
        let text = "A=1,\\\n2\nB=3,\\  \r\n 4\nC=5\\\\\nD=6\n";
        let expected = [(1, "A=1,2\n"), (3, "B=3, 4\n"), (5, "C=5\\\n"), (6, "D=6\n")];
        assert_eq!(texts(text), expected.map(|(number, text)| (number, text.to_owned())));
    }

    #[test]
    fn a_backslash_before_a_comment_joins_too_and_one_in_it_does_not() {
        assert_eq!(texts("A=1,\\ # x\n2\n"), [(1, "A=1,2\n".into())]);
        assert_eq!(texts("# x \\\nA=1\n"), [(1, String::new()), (2, "A=1\n".into())]);
    }

    #[test]
    fn a_backslash_at_the_end_of_the_file_is_noticed() {
        assert!(logical_lines("A=1\\").iter().any(|line| line.unfinished));
        assert!(logical_lines("A=1\\\n").iter().any(|line| line.unfinished));
        assert!(!logical_lines("A=1\\\n2").iter().any(|line| line.unfinished));
    }

    fn read(text: &str) -> Option<(&str, &str, &str)> {
        pair(text).map(|found| (found.key, found.value, found.rest))
    }

    #[test]
    fn pairs_are_read_as_slurm_reads_them() {
        assert_eq!(read("  Key = value rest"), Some(("Key", "value", " rest")));
        assert_eq!(read("Key=\"a b\" rest"), Some(("Key", "a b", " rest")));
        assert_eq!(read("Key=\"\""), Some(("Key", "", "")));
        assert_eq!(read("Key=a=b"), Some(("Key", "a=b", "")));
        assert_eq!(read("Key==b"), Some(("Key", "=b", "")));
        // Quotes count only around all of the value.
        assert_eq!(read("Key=\"a\"b"), Some(("Key", "\"a\"b", "")));
        assert_eq!(read("Key=\"a b\"c"), Some(("Key", "\"a", " b\"c")));
        assert_eq!(read("Key=a\"b"), Some(("Key", "a\"b", "")));
        assert_eq!(pair("Key+=a").unwrap().operator, Some('+'));
    }

    #[test]
    fn a_key_without_a_value_is_no_pair() {
        for text in ["Key=", "Key= \n", "Key", "=value", "", "a-b=c", "Ké=a"] {
            assert_eq!(pair(text), None, "{text}");
        }
        assert_eq!(key(" Key ="), Some("Key"));
    }
}
