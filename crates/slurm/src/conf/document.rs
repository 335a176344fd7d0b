//! Reading a file as Slurm's parser does, with the numbers of lines, and without giving up at the first mistake.

use std::fmt;

use super::keys::FileKind;
use super::quote;
use super::scan::{self, Logical, is_blank};

/// A file that was read. Nothing of it is lost: [`Document::text`] is what came in.
#[derive(Clone, PartialEq, Eq)]
pub struct Document {
    kind: FileKind,
    lines: Vec<Line>,
}

/// A line, or several that backslashes at the end join.
#[derive(Clone, PartialEq, Eq)]
pub struct Line {
    /// Of the first of its lines in the file, from 1.
    pub number: usize,
    raw: String,
    pub content: Content,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Nothing, or a comment.
    Blank,
    /// Another file, which is not read here.
    Include(String),
    Setting(Setting),
    Fault(Fault),
}

/// `Key=Value`, and the pairs after it on lines that have several.
#[derive(Clone, PartialEq, Eq)]
pub struct Setting {
    pub key: String,
    pub value: String,
    /// `+` if the line says `+=`.
    pub operator: Option<char>,
    pub more: Vec<Pair>,
}

#[derive(Clone, PartialEq, Eq)]
pub struct Pair {
    pub key: String,
    pub value: String,
    pub operator: Option<char>,
}

/// What is wrong with a line, and what to do about it. A daemon that meets one of these does not start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("{0} has no value: give it one, or remove the line")]
    NoValue(String),
    #[error("this is no setting: write Key=Value, or put a # before it")]
    NotASetting,
    #[error(
        "something follows the value of {0}: put it in quotes if it has blanks, and other keys on other lines"
    )]
    Trailing(String),
    #[error("Include must be the first word of its line: remove the blanks before it")]
    IndentedInclude,
    #[error("Include needs the path of one file, without blanks and without *")]
    Include,
    #[error("Slurm reads on in the comment behind the path of the included file: put a blank before the #")]
    IncludeComment,
    #[error("the line has a control character: take it out")]
    Control,
    #[error("the last line ends with a backslash, which would join what comes after it: take it away")]
    Unfinished,
}

/// Values are not shown, neither here nor of the lines: a password may be among them.
impl fmt::Debug for Document {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<_> = self.settings().map(|setting| &setting.1.key).collect();
        out.debug_struct("Document").field("kind", &self.kind).field("keys", &keys).finish_non_exhaustive()
    }
}

impl fmt::Debug for Line {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Line")
            .field("number", &self.number)
            .field("content", &self.content)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Setting {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Setting")
            .field("key", &self.key)
            .field("operator", &self.operator)
            .field("more", &self.more)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Pair {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Pair")
            .field("key", &self.key)
            .field("operator", &self.operator)
            .finish_non_exhaustive()
    }
}

impl Document {
    pub fn read(kind: FileKind, text: &str) -> Self {
        let line = |logical: Logical<'_>| Line {
            number: logical.number,
            content: content(kind, &logical),
            raw: logical.raw.to_owned(),
        };
        Self { kind, lines: scan::logical_lines(text).into_iter().map(line).collect() }
    }

    pub fn kind(&self) -> FileKind {
        self.kind
    }

    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// Whether there is nothing in it but comments.
    pub fn is_blank(&self) -> bool {
        self.lines.iter().all(|line| line.content == Content::Blank)
    }

    /// The text as it was, with a line break at its end.
    pub fn text(&self) -> String {
        self.lines.iter().flat_map(|line| [line.raw.as_str(), "\n"]).collect()
    }

    /// What Slurm makes of it, a line for each setting and include, without comments and without what is faulty.
    pub fn canonical(&self) -> String {
        self.lines.iter().filter_map(Line::canonical).fold(String::new(), |text, line| text + &line + "\n")
    }

    pub fn settings(&self) -> impl Iterator<Item = (usize, &Setting)> {
        self.lines.iter().filter_map(|line| match &line.content {
            Content::Setting(setting) => Some((line.number, setting)),
            Content::Blank | Content::Include(_) | Content::Fault(_) => None,
        })
    }

    pub fn includes(&self) -> impl Iterator<Item = (usize, &str)> {
        self.lines.iter().filter_map(|line| match &line.content {
            Content::Include(path) => Some((line.number, path.as_str())),
            Content::Blank | Content::Setting(_) | Content::Fault(_) => None,
        })
    }

    pub fn faults(&self) -> impl Iterator<Item = (usize, &Fault)> {
        self.lines.iter().filter_map(|line| match &line.content {
            Content::Fault(fault) => Some((line.number, fault)),
            Content::Blank | Content::Setting(_) | Content::Include(_) => None,
        })
    }

    /// The value that counts: the last one. What included files say is not known here.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.last(key).map(|(_, setting)| setting.value.as_str())
    }

    /// The setting that counts, and its line.
    pub(super) fn last(&self, key: &str) -> Option<(usize, &Setting)> {
        self.settings().filter(|(_, setting)| setting.key.eq_ignore_ascii_case(key)).last()
    }

    /// Every value of a key, for those of which each counts.
    pub fn get_all<'a>(&'a self, key: &str) -> impl Iterator<Item = &'a str> {
        self.settings()
            .filter(move |(_, setting)| setting.key.eq_ignore_ascii_case(key))
            .map(|(_, setting)| setting.value.as_str())
    }
}

impl Line {
    fn canonical(&self) -> Option<String> {
        match &self.content {
            Content::Blank | Content::Fault(_) => None,
            Content::Include(path) => Some(format!("Include {}", quote::escaped(path))),
            Content::Setting(setting) => setting.canonical(),
        }
    }
}

impl Setting {
    fn canonical(&self) -> Option<String> {
        let mut text = written(&self.key, self.operator, &self.value)?;
        for pair in &self.more {
            text.push(' ');
            text += &written(&pair.key, pair.operator, &pair.value)?;
        }
        Some(text)
    }
}

fn written(key: &str, operator: Option<char>, value: &str) -> Option<String> {
    let value = quote::as_read(value).ok()?;
    Some(format!("{key}{}={value}", operator.map(String::from).unwrap_or_default()))
}

fn content(kind: FileKind, line: &Logical<'_>) -> Content {
    read_content(kind, line).unwrap_or_else(Content::Fault)
}

fn read_content(kind: FileKind, line: &Logical<'_>) -> Result<Content, Fault> {
    if line.unfinished {
        return Err(Fault::Unfinished);
    }
    // Line breaks here are those that backslashes take away, and those of other systems before them. What is in
    // comments Slurm does not see, but for a NUL, which ends the line for it.
    let text = line.text.as_str();
    let control = |letter: char| letter.is_control() && !matches!(letter, '\t' | '\n' | '\r');
    if line.raw.contains('\0') || text.contains(control) || text.trim_end_matches(is_blank).contains('\r') {
        return Err(Fault::Control);
    }
    if text.trim_matches(is_blank).is_empty() {
        return Ok(Content::Blank);
    }
    if let Some(rest) = after_include(text) {
        let include = include(rest)?;
        return if line.commented && !rest.ends_with(is_blank) {
            Err(Fault::IncludeComment)
        } else {
            Ok(include)
        };
    }
    if after_include(text.trim_start_matches(is_blank)).is_some() && scan::key(text).is_none() {
        return Err(Fault::IndentedInclude);
    }
    setting(kind, text).map(Content::Setting)
}

/// What follows the word, in any case, at the very start.
fn after_include(text: &str) -> Option<&str> {
    const WORD: &str = "include";
    let (word, rest) = text.split_at_checked(WORD.len())?;
    (word.eq_ignore_ascii_case(WORD) && (rest.is_empty() || rest.starts_with(is_blank))).then_some(rest)
}

fn include(rest: &str) -> Result<Content, Fault> {
    let mut words = rest.split(is_blank).filter(|word| !word.is_empty());
    match (words.next(), words.next()) {
        (Some(path), None) if !path.contains('*') => Ok(Content::Include(path.to_owned())),
        _ => Err(Fault::Include),
    }
}

fn setting(kind: FileKind, text: &str) -> Result<Setting, Fault> {
    let first = scan::pair(text).ok_or_else(|| no_pair(text))?;
    let known = kind.key(first.key);
    let alone = known.is_some_and(|key| key.kind.line().is_none());
    let more = match known {
        Some(_) if alone => Vec::new(),
        Some(_) => pairs(first.rest)?,
        // That the key is unknown is worse than whatever follows it.
        None => pairs(first.rest).unwrap_or_default(),
    };
    if alone && !first.rest.trim_start_matches(is_blank).is_empty() {
        return Err(Fault::Trailing(first.key.to_owned()));
    }
    Ok(Setting { key: first.key.to_owned(), value: first.value.to_owned(), operator: first.operator, more })
}

/// The pairs after the first.
pub(super) fn pairs(text: &str) -> Result<Vec<Pair>, Fault> {
    let mut pairs: Vec<Pair> = Vec::new();
    let mut rest = text;
    // Blanks in front only: those at the end would be looked at again for every pair.
    while !rest.trim_start_matches(is_blank).is_empty() {
        let found = match (scan::pair(rest), pairs.last()) {
            (Some(found), _) => found,
            (None, Some(last)) if scan::key(rest).is_none() => return Err(Fault::Trailing(last.key.clone())),
            (None, _) => return Err(no_pair(rest)),
        };
        pairs.push(Pair {
            key: found.key.to_owned(),
            value: found.value.to_owned(),
            operator: found.operator,
        });
        rest = found.rest;
    }
    Ok(pairs)
}

fn no_pair(text: &str) -> Fault {
    scan::key(text).map_or(Fault::NotASetting, |key| Fault::NoValue(key.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Document {
        Document::read(FileKind::Slurm, text)
    }

    fn fault(text: &str) -> Option<(usize, Fault)> {
        read(text).faults().next().map(|(line, fault)| (line, fault.clone()))
    }

    #[test]
    fn the_last_value_counts_in_any_case() {
        let document = read("ClusterName=a\n# ClusterName=no\nclustername=b\nProlog=x\nprolog=y\n");
        assert_eq!(document.get("CLUSTERNAME"), Some("b"));
        assert_eq!(document.get_all("Prolog").collect::<Vec<_>>(), ["x", "y"]);
        assert_eq!(document.get("SlurmUser"), None);
    }

    #[test]
    fn lines_of_nodes_keep_their_pairs() {
        let document = read("NodeName=n[1-2] Reason=\"a b\" \\\n  State=DOWN\n");
        let (line, setting) = document.settings().next().unwrap();
        let more: Vec<_> = setting.more.iter().map(|pair| (pair.key.as_str(), pair.value.as_str())).collect();
        assert_eq!((line, setting.value.as_str()), (1, "n[1-2]"));
        assert_eq!(more, [("Reason", "a b"), ("State", "DOWN")]);
    }

    #[test]
    fn many_pairs_before_many_blanks_are_soon_read() {
        let text = format!("NodeName=n{}{}\n", " A=1".repeat(125_000), " ".repeat(500_000));
        assert_eq!(read(&text).settings().map(|(_, setting)| setting.more.len()).sum::<usize>(), 125_000);
    }

    #[test]
    fn faults_name_their_line() {
        let no_value = |key: &str| Fault::NoValue(key.into());
        assert_eq!(fault("A=1\n\nLaunchParameters=\n"), Some((3, no_value("LaunchParameters"))));
        assert_eq!(fault("NodeName=n1 State=\n"), Some((1, no_value("State"))));
        assert_eq!(fault("KillWait=1 WaitTime=2\n"), Some((1, Fault::Trailing("KillWait".into()))));
        assert_eq!(fault("NodeName=n1 Reason=a b\n"), Some((1, Fault::Trailing("Reason".into()))));
        assert_eq!(fault("KillWait=1,\\\n2 x\n"), Some((1, Fault::Trailing("KillWait".into()))));
        assert_eq!(fault("hello\n"), Some((1, Fault::NotASetting)));
        assert_eq!(fault("KillWait=1\0\n"), Some((1, Fault::Control)));
        assert_eq!(fault("KillWait=1\\"), Some((1, Fault::Unfinished)));
    }

    #[test]
    fn an_include_is_one_path_at_the_start_of_a_line() {
        let document = read("include a.conf\nINCLUDE\t/etc/b.conf \r\nIncludeX=1\n");
        assert_eq!(document.includes().collect::<Vec<_>>(), [(1, "a.conf"), (2, "/etc/b.conf")]);
        assert_eq!(fault(" include a.conf\n"), Some((1, Fault::IndentedInclude)));
        assert_eq!(read("include a.conf # b\n").includes().collect::<Vec<_>>(), [(1, "a.conf")]);
        assert_eq!(fault("A=1\ninclude a.conf# b\n"), Some((2, Fault::IncludeComment)));
        for text in ["include", "include \n", "include a b\n", "include conf.d/*.conf\n"] {
            assert_eq!(fault(text), Some((1, Fault::Include)), "{text}");
        }
    }

    #[test]
    fn a_comment_may_have_any_letter_but_the_one_that_ends_it() {
        assert_eq!(fault("# \u{1b}[1mbold\u{1b}[0m\nKillWait=1 # \u{7}\n"), None);
        for text in ["KillWait=\u{7}1\n", "KillWait=1 \u{b}# x\n", "# a\0b\n", "\\\u{7}\n"] {
            assert_eq!(fault(text), Some((1, Fault::Control)), "{text:?}");
        }
    }

    #[test]
    fn nothing_that_is_printed_to_debug_shows_a_value() {
        let text = "StoragePass=geheim\nNodeName=geheim Reason=geheim\n# geheim\n";
        for kind in [FileKind::Slurm, FileKind::Slurmdbd] {
            let document = Document::read(kind, text);
            let printed = format!("{document:?} {:?}", document.lines());
            assert!(printed.contains("StoragePass") && printed.contains("Reason"), "{printed}");
            assert!(!printed.contains("geheim"), "{printed}");
        }
    }

    #[test]
    fn lines_of_other_systems_are_read() {
        let document = read("KillWait=1\r\n\r\nWaitTime=2\r\n");
        assert_eq!((document.get("KillWait"), document.get("WaitTime")), (Some("1"), Some("2")));
    }

    #[test]
    fn the_text_is_what_came_in() {
        let text = "# a \\\n\n KillWait = 1 # b\nProlog=a,\\\n b\n";
        assert_eq!(read(text).text(), text);
        assert_eq!(read("KillWait=1").text(), "KillWait=1\n");
        assert_eq!(read("").text(), "");
    }

    #[test]
    fn the_canonical_text_says_the_same() {
        let text = "# a\n KillWait = 1\nPartitionName=a  Nodes=\"\" QOS=\"a\\#b\\\\ c\"\ninclude x\nbad\n";
        let canonical = read(text).canonical();
        assert_eq!(canonical, "KillWait=1\nPartitionName=a Nodes=\"\" QOS=\"a\\#b\\\\ c\"\nInclude x\n");
        assert_eq!(read(&canonical).canonical(), canonical);
    }
}
