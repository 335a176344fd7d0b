//! How a value is written so that Slurm reads the same value back.
//!
//! Slurm first cuts a line at a `#`, also within quotes, then takes away backslashes, and only then looks for
//! `Key=Value`, where quotes keep blanks together. So `#` and `\` need a backslash everywhere, blanks need quotes,
//! and a quote cannot be escaped: some values with quotes cannot be written at all.

use super::scan::is_blank;

/// Why a text cannot stand in a file. Never holds the text, which may be a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unwritable {
    #[error("is empty, which ends Slurm's daemons: leave the key out")]
    Empty,
    #[error("has a line break or another control character: take it out")]
    Control,
    #[error("has quotes in a way that Slurm cannot read back: do without \", or without blanks beside it")]
    Quotes,
    #[error("has a {0:?}, which Slurm would take for something else: take it out")]
    Letter(char),
}

/// The value as it stands after `Key=` when nothing follows on the line.
pub(super) fn quoted(value: &str) -> Result<String, Unwritable> {
    if value.is_empty() {
        return Err(Unwritable::Empty);
    }
    if value.chars().any(char::is_control) {
        return Err(Unwritable::Control);
    }
    as_read(value)
}

/// The same where other keys follow on the line: a lone quote would pair with the next one there.
pub(super) fn quoted_among_others(value: &str) -> Result<String, Unwritable> {
    if value.contains('"') { Err(Unwritable::Quotes) } else { quoted(value) }
}

/// The value where no file is read, as in `slurmd --conf`: pairs are looked for, comments and backslashes are not.
pub(super) fn unescaped(value: &str) -> Result<String, Unwritable> {
    if value.chars().any(char::is_control) {
        return Err(Unwritable::Control);
    }
    if value.contains('"') {
        return Err(Unwritable::Quotes);
    }
    let blanks = value.is_empty() || value.contains(char::is_whitespace);
    Ok(if blanks { format!("\"{value}\"") } else { value.to_owned() })
}

/// For values that Slurm has read from a file, which may be empty or have a tab.
pub(super) fn as_read(value: &str) -> Result<String, Unwritable> {
    let quotes = value.contains('"');
    let blanks = value.is_empty() || value.contains(is_blank);
    if is_quoted(value) || (blanks && quotes) {
        return Err(Unwritable::Quotes);
    }
    // Slurm does not take the blanks of Unicode for blanks, but a locale might.
    let wrapped = blanks || (!quotes && value.contains(char::is_whitespace));
    let escaped = escaped(value);
    Ok(if wrapped { format!("\"{escaped}\"") } else { escaped })
}

/// With a backslash before each letter that would not be read as itself.
pub(super) fn escaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len() + 2);
    for letter in value.chars() {
        if letter == '#' || letter == '\\' {
            text.push('\\');
        }
        text.push(letter);
    }
    text
}

/// What Slurm would take the quotes off.
fn is_quoted(value: &str) -> bool {
    value
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
        .is_some_and(|content| !content.contains('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_values_stay_as_they_are() {
        for value in
            ["auth/munge", "a=b", "jwt_key=/a/b,jwks=/c", "x\"y", "\"half", "1-00:00:00", "pä$$'wörd"]
        {
            assert_eq!(quoted(value).unwrap(), value);
        }
    }

    #[test]
    fn blanks_get_quotes_and_comment_signs_a_backslash() {
        assert_eq!(quoted("a b").unwrap(), "\"a b\"");
        assert_eq!(quoted("a#b").unwrap(), "a\\#b");
        assert_eq!(quoted("a \\ #b\\").unwrap(), "\"a \\\\ \\#b\\\\\"");
        assert_eq!(quoted("a\u{2003}b").unwrap(), "\"a\u{2003}b\"");
    }

    #[test]
    fn what_cannot_be_read_back_is_refused() {
        assert_eq!(quoted(""), Err(Unwritable::Empty));
        for value in ["a\nb", "a\rb", "a\0b", "a\tb", "\u{85}"] {
            assert_eq!(quoted(value), Err(Unwritable::Control), "{value:?}");
        }
        for value in ["\"a\"", "\"\"", "a \"b", "a \"b\""] {
            assert_eq!(quoted(value), Err(Unwritable::Quotes), "{value:?}");
        }
        assert_eq!(quoted_among_others("a\"b"), Err(Unwritable::Quotes));
    }

    #[test]
    fn where_no_file_is_read_nothing_is_escaped() {
        assert_eq!(unescaped("a#b\\c").unwrap(), "a#b\\c");
        assert_eq!(unescaped("a #").unwrap(), "\"a #\"");
        assert_eq!(unescaped("").unwrap(), "\"\"");
        assert_eq!(unescaped("a\"b"), Err(Unwritable::Quotes));
        assert_eq!(unescaped("a\nb"), Err(Unwritable::Control));
    }

    #[test]
    fn no_error_shows_the_value() {
        for value in ["geheim\n", "geheim \"", "\"geheim\""] {
            assert!(!quoted(value).unwrap_err().to_string().contains("geheim"));
        }
    }
}
