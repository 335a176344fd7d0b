//! Writing a file, line after line, in the order of the caller.
//!
//! Every key is one of its file and of the release, every value one that Slurm reads back as it is. What does not fit
//! is collected, and the file is not made: half a configuration is none. The same calls give the same bytes.

use std::fmt;

use super::document::Document;
use super::kept::Replaced;
use super::keys::{self, FileKind, Key, slurm};
use super::line::{Cell, ConfLine};
use super::per_node;
use super::problem::{Problem, Problems, Reason};
use super::quote::{self, Unwritable};
use super::release::Release;
use super::value::Value;
use crate::hostlist::Hostlist;

/// A file of lines `Key=Value` that is being made.
#[derive(Clone, PartialEq, Eq)]
pub struct ConfFile {
    pub(super) kind: FileKind,
    release: Release,
    pub(super) items: Vec<Item>,
    pub(super) problems: Vec<Problem>,
    /// What [`Self::drop_overridden`] took away and must not be lost.
    pub(super) replaced: Vec<Replaced>,
}

#[derive(Clone, PartialEq, Eq)]
pub(super) enum Item {
    /// A comment, an empty line, an include: stays whatever a user writes.
    Other(String),
    /// With the name and the value as they were given, and the line that they make.
    Setting { key: &'static Key, value: String, line: String },
    /// A user's own text.
    Text(Document),
}

/// Values are not shown: a password may be among them.
impl fmt::Debug for ConfFile {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ConfFile")
            .field("kind", &self.kind)
            .field("release", &self.release)
            .field("problems", &self.problems)
            .finish_non_exhaustive()
    }
}

impl ConfFile {
    pub fn new(kind: FileKind, release: Release) -> Self {
        Self { kind, release, items: Vec::new(), problems: Vec::new(), replaced: Vec::new() }
    }

    pub fn kind(&self) -> FileKind {
        self.kind
    }

    pub fn release(&self) -> Release {
        self.release
    }

    /// Whether the release reads this key. One that it does not read must not be set.
    pub fn reads(&self, key: &Key) -> bool {
        key.support.is_known_in(self.release)
    }

    /// `#` and the text as it is; each line of it becomes a comment.
    pub fn comment(&mut self, text: &str) -> &mut Self {
        if text.chars().any(|letter| letter.is_control() && letter != '\n') {
            self.fail("a comment", Reason::Comment(Unwritable::Control));
            return self;
        }
        let lines = text.split('\n').map(|line| Item::Other(format!("#{line}")));
        self.items.extend(lines);
        self
    }

    pub fn empty_line(&mut self) -> &mut Self {
        self.items.push(Item::Other(String::new()));
        self
    }

    /// A key without a value is an error.
    pub fn set(&mut self, key: &Key, value: impl Into<Value>) -> &mut Self {
        let (key, text) = match self.checked(self.kind.keys(), key, &value.into()) {
            Ok(checked) => checked,
            Err(reason) => return self.fail(key.name, reason),
        };
        if key.kind.line().is_some() {
            return self.fail(key.name, Reason::IsLine);
        }
        match quote::quoted(&text) {
            Ok(quoted) => {
                let line = format!("{}={quoted}", key.name);
                self.items.push(Item::Setting { key, value: text, line });
                self
            }
            Err(unwritable) => self.fail(key.name, unwritable.into()),
        }
    }

    /// A key without a value, or with an empty one, is left out.
    pub fn set_opt(&mut self, key: &Key, value: Option<impl Into<Value>>) -> &mut Self {
        match value.map(Into::into) {
            Some(value) if !value.is_empty() => self.set(key, value),
            _ => self,
        }
    }

    /// A line with several keys: of a node, a partition, a switch.
    pub fn line(&mut self, line: impl Into<ConfLine>) -> &mut Self {
        let line = line.into();
        match self.line_item(&line) {
            Ok(item) => {
                self.items.push(item);
                self
            }
            Err(problem) => {
                self.problems.push(problem);
                self
            }
        }
    }

    pub fn include(&mut self, path: &str) -> &mut Self {
        let bad = |letter: &char| letter.is_whitespace() || *letter == '*';
        let fault = match path {
            "" => Some(Unwritable::Empty),
            _ if path.chars().any(char::is_control) => Some(Unwritable::Control),
            _ => path.chars().find(bad).map(Unwritable::Letter),
        };
        match fault {
            Some(fault) => self.fail("include", Reason::Include(fault)),
            None => {
                self.items.push(Item::Other(format!("include {}", quote::escaped(path))));
                self
            }
        }
    }

    /// A user's text as it is. One with faults is an error: it would end the daemons, or join lines after it.
    pub fn text(&mut self, text: &Document) -> &mut Self {
        if text.kind() != self.kind {
            return self.fail("text", Reason::OtherFile(text.kind().file_name()));
        }
        let faults = text.faults().map(|(line, fault)| Problem {
            place: "text".to_owned(),
            reason: Reason::Text { line, fault: fault.clone() },
        });
        self.problems.extend(faults);
        self.items.push(Item::Text(text.clone()));
        self
    }

    /// The value that a key has so far, of those that this file sets itself.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.items.iter().rev().find_map(|item| match item {
            Item::Setting { key, value, .. } if key.name.eq_ignore_ascii_case(name) => Some(value.as_str()),
            _ => None,
        })
    }

    /// The file, or everything that is wrong with it. It ends with a line break: Slurm's parser reads on behind an
    /// include that ends the file without one.
    pub fn render(&self) -> Result<String, Problems> {
        let mut problems = self.problems.clone();
        problems.extend(self.nodes_and_sets().into_iter().chain(self.lost()));
        if !problems.is_empty() {
            return Err(Problems { file: self.kind.file_name(), problems });
        }
        let mut text = String::new();
        for item in &self.items {
            match item {
                Item::Other(line) | Item::Setting { line, .. } => {
                    text += line;
                    text.push('\n');
                }
                Item::Text(user) => text += &user.text(),
            }
        }
        Ok(text)
    }

    /// The names of our own that are those of a node and of a set of nodes.
    fn nodes_and_sets(&self) -> Vec<Problem> {
        let named = |wanted: &'static Key| {
            self.items.iter().filter_map(move |item| match item {
                Item::Setting { key, value, .. } if key.name == wanted.name => Some(value.as_str()),
                _ => None,
            })
        };
        let sets = || named(&slurm::NodeSet);
        if self.kind != FileKind::Slurm || sets().next().is_none() {
            return Vec::new();
        }
        let nodes: Vec<Hostlist> = named(&slurm::NodeName).filter_map(|name| name.parse().ok()).collect();
        let both = sets().filter(|set| nodes.iter().any(|nodes| nodes.contains(set)));
        let problem = |set: &str| Problem {
            place: format!("NodeSet={set}"),
            reason: Reason::NodeAndSet(set.to_owned()),
        };
        both.map(problem).collect()
    }

    fn fail(&mut self, place: &str, reason: Reason) -> &mut Self {
        self.problems.push(Problem { place: place.to_owned(), reason });
        self
    }

    /// The key as the tables have it, and the value as Slurm is to read it.
    fn checked(
        &self,
        keys: &'static [Key],
        key: &Key,
        value: &Value,
    ) -> Result<(&'static Key, String), Reason> {
        let unknown = || Reason::UnknownKey { file: self.kind.file_name() };
        let key = keys::find(keys, key.name).ok_or_else(unknown)?;
        let text = value.text(key.kind)?;
        if !text.is_empty() {
            key.kind.check(&text)?;
        }
        let release = self.release;
        let refusal = keys::refusal(self.kind, key.name, &text, release).map(|rule| rule.support);
        match refusal.into_iter().chain([key.support]).find(|support| !support.is_known_in(release)) {
            Some(support) => Err(Reason::Refused { release, support }),
            None => Ok((key, text)),
        }
    }

    fn line_item(&self, line: &ConfLine) -> Result<Item, Problem> {
        let line = self.checked_line(line)?;
        let quoted = |value: &str| match value {
            "" => Ok("\"\"".to_owned()),
            _ => quote::quoted_among_others(value),
        };
        let CheckedLine { key, value, pairs, .. } = &line;
        let first = quoted(value)
            .map_err(|unwritable| Problem { place: key.name.to_owned(), reason: unwritable.into() })?;
        let mut text = format!("{}={first}", key.name);
        for (key, value) in pairs {
            let value = quoted(value).map_err(|unwritable| line.problem(key, unwritable.into()))?;
            text += &format!(" {}={value}", key.name);
        }
        Ok(Item::Setting { key, value: value.clone(), line: text })
    }

    /// What stands on a line, as Slurm is to read it.
    pub(super) fn checked_line(&self, line: &ConfLine) -> Result<CheckedLine, Problem> {
        let (first, value) = &line.first;
        let at = |reason| Problem { place: first.name.to_owned(), reason };
        let (key, value) = self.checked(self.kind.keys(), first, value).map_err(at)?;
        let Some(keys) = key.kind.line() else {
            return Err(at(Reason::UnknownKey { file: self.kind.file_name() }));
        };
        if value.is_empty() {
            return Err(at(Unwritable::Empty.into()));
        }
        if key.is_defaults(&value) && value != "DEFAULT" {
            return Err(at(Reason::Defaults));
        }
        if key.is_reserved(self.kind, &value) {
            return Err(at(Reason::Reserved));
        }
        let nodes = per_node::nodes(self.kind, key, &value);
        let mut checked = CheckedLine { key, value, nodes, pairs: Vec::new() };
        if let Some((key, reason)) = &line.refused {
            return Err(checked.problem(key, reason.clone()));
        }
        for (key, cell) in line.pairs() {
            let text =
                self.cell(keys, &checked, &key, &cell).map_err(|reason| checked.problem(&key, reason))?;
            checked.pairs.push((key, text));
        }
        Ok(checked)
    }

    fn cell(
        &self,
        keys: &'static [Key],
        line: &CheckedLine,
        key: &Key,
        cell: &Cell,
    ) -> Result<String, Reason> {
        if key.name == line.key.name {
            return Err(Reason::Twice);
        }
        if line.key.is_defaults(&line.value) && key.is_of_one_node() {
            return Err(Reason::OfOneNode);
        }
        let (_, text) = match cell {
            Cell::Value(value) if value.is_empty() => return Err(Unwritable::Empty.into()),
            Cell::Value(value) => self.checked(keys, key, value)?,
            Cell::Empty => {
                key.kind.check("")?;
                self.checked(keys, key, &Value::from(""))?
            }
        };
        per_node::check(line.nodes, key, &text)?;
        Ok(text)
    }
}

/// A line of which every key is one of the release, and every value one of its key.
pub(super) struct CheckedLine {
    key: &'static Key,
    value: String,
    /// How many, on a line of nodes.
    nodes: Option<u64>,
    /// What follows. A value that is empty is one in quotes.
    pub(super) pairs: Vec<(Key, String)>,
}

impl CheckedLine {
    pub(super) fn problem(&self, key: &Key, reason: Reason) -> Problem {
        Problem { place: format!("{} on the line {}={}", key.name, self.key.name, self.value), reason }
    }
}
