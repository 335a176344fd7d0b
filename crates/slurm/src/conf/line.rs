//! Lines with several keys, ready to be written, and a user's own pairs on them.

use super::check::{Check, Finding};
use super::document::{self, Fault, Pair};
use super::keys::{self, FileKind, Key};
use super::problem::Reason;
use super::release::Release;
use super::scan;
use super::value::Value;

/// A line with several keys, ready to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfLine {
    pub(super) first: (Key, Value),
    more: Vec<(Key, Cell)>,
    extra: Extra,
    /// What makes no line of it, and where.
    pub(super) refused: Option<(Key, Reason)>,
}

/// What stands after a key on a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Cell {
    Value(Value),
    /// Written as `""`. Slurm takes that for a text: `Nodes=""` is a partition without nodes.
    Empty,
}

impl ConfLine {
    pub(super) fn new(key: Key, value: impl Into<Value>) -> Self {
        Self { first: (key, value.into()), more: Vec::new(), extra: Extra::default(), refused: None }
    }

    /// One without a value, or with an empty one, is left out.
    pub(super) fn set(mut self, key: Key, value: Option<impl Into<Value>>) -> Self {
        let value = value.map(Into::into).filter(|value: &Value| !value.is_empty());
        self.more.extend(value.map(|value| (key, Cell::Value(value))));
        self
    }

    /// One without which the line makes no sense: an empty value is an error.
    pub(super) fn require(mut self, key: Key, value: impl Into<Value>) -> Self {
        self.more.push((key, Cell::Value(value.into())));
        self
    }

    pub(super) fn empty(mut self, key: Key) -> Self {
        self.more.push((key, Cell::Empty));
        self
    }

    pub(super) fn refuse(mut self, key: Key, reason: Reason) -> Self {
        self.refused = Some((key, reason));
        self
    }

    pub(super) fn extra(mut self, extra: Extra) -> Self {
        self.extra = extra;
        self
    }

    /// The pairs after the first. Those go that the user's text sets, also in other words: Slurm might take ours.
    pub(super) fn pairs(&self) -> Vec<(Key, Cell)> {
        let has = |name: &str| self.extra.0.iter().any(|own| own.key.name == name);
        let theirs = |name: &'static str| keys::and_siblings(name).any(has);
        let ours = self.more.iter().filter(|(key, _)| !theirs(key.name)).cloned();
        let cell = |value: &str| if value.is_empty() { Cell::Empty } else { Cell::Value(value.into()) };
        ours.chain(self.extra.0.iter().map(|own| (own.key, cell(&own.value)))).collect()
    }
}

/// A user's own pairs for a line: `Weight=5 Gres=gpu:8`. What they set wins over what the operator says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Extra(Vec<Own>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Own {
    key: Key,
    value: String,
    operator: Option<char>,
}

/// What is wrong with a user's pairs for a line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExtraError {
    #[error(transparent)]
    Fault(#[from] Fault),
    #[error("it must be one line, without # and without a backslash")]
    NotOneLine,
    #[error("{0} is not a key of this line")]
    UnknownKey(String),
    #[error("{0} is the operator's to set")]
    Owned(String),
}

impl Extra {
    /// Reads pairs of the given keys, such as [`slurm::node::ALL`], except those that are not the user's to set, by any of
    /// their names. White space around the text does not count.
    ///
    /// [`slurm::node::ALL`]: super::keys::slurm::node::ALL
    pub fn read(text: &str, keys: &[Key], owned: &[Key]) -> Result<Self, ExtraError> {
        let text = text.trim_matches(scan::is_blank);
        if text
            .chars()
            .any(|letter| letter == '#' || letter == '\\' || (letter.is_control() && letter != '\t'))
        {
            return Err(ExtraError::NotOneLine);
        }
        if let (None, false) = (scan::key(text), text.is_empty()) {
            return Err(Fault::NotASetting.into());
        }
        let known = |pair: Pair| match keys::find(keys, &pair.key).copied() {
            _ if says_one_of(&pair.key, owned) => Err(ExtraError::Owned(pair.key)),
            Some(key) => Ok(Own { key, value: pair.value, operator: pair.operator }),
            None => Err(ExtraError::UnknownKey(pair.key)),
        };
        document::pairs(text)?.into_iter().map(known).collect::<Result<_, _>>().map(Self)
    }

    /// Takes away what is there of these keys, also by other names for the same, which the operator sets itself and lets
    /// a user's text name. What is given back are the keys that were there, to be warned of.
    pub fn take(&mut self, keys: &[Key]) -> Vec<&'static str> {
        self.0.extract_if(.., |own| says_one_of(own.key.name, keys)).map(|own| own.key.name).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value of a key; the last one counts.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter().filter(|(key, _)| key.eq_ignore_ascii_case(name)).last().map(|(_, value)| value)
    }

    /// Every pair in the order of the text, also those of keys that are there twice.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|own| (own.key.name, own.value.as_str()))
    }

    /// What [`Document::check`] would say of the pairs on a line of this file.
    ///
    /// [`Document::check`]: super::Document::check
    pub fn check(&self, file: FileKind, release: Release) -> Vec<Finding> {
        let check = Check { file, release, line: 1 };
        self.0.iter().flat_map(|own| check.pair(&own.key, &own.value, own.operator)).collect()
    }
}

/// Whether this name is that of one of the keys, or another one for the same.
fn says_one_of(name: &str, keys: &[Key]) -> bool {
    let mut names = keys.iter().flat_map(|key| keys::and_siblings(key.name));
    names.any(|other| other.eq_ignore_ascii_case(name))
}
