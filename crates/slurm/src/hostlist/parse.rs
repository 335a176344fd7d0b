//! From a text to a host list.

use super::error::excerpt;
use super::product::{Part, Product};
use super::run::{Range, Run, number};
use super::{Hostlist, HostlistError, Item, MAX_NAME, MOST_NUMBERS, Problem};

pub(super) fn parse(text: &str) -> Result<Hostlist, HostlistError> {
    let mut list = Hostlist::default();
    let mut rest = Rest { text, at: 0, left: MOST_NUMBERS };
    loop {
        rest.skip_separators();
        if rest.left().is_empty() {
            return Ok(list);
        }
        rest.entry(&mut list)?;
    }
}

/// Whether `name` can be a name and nothing but one.
pub(super) fn check_name(name: &str) -> Result<(), HostlistError> {
    if name.is_empty() {
        return Err(Problem::Empty.at(0));
    }
    if name.len() > MAX_NAME {
        return Err(Problem::TooLong.at(0));
    }
    match name.char_indices().find(|(_, letter)| ends_text(*letter)) {
        Some((at, letter)) => Err(Problem::NotInAName(letter).at(at)),
        None => Ok(()),
    }
}

/// What cannot be in the text of a name. Some white space Slurm would take as part of one, a carriage return for
/// example; no name has any.
fn ends_text(letter: char) -> bool {
    matches!(letter, ',' | '[' | ']' | '{' | '}') || letter.is_whitespace() || letter.is_control()
}

fn is_separator(letter: char) -> bool {
    matches!(letter, ',' | ' ' | '\t' | '\n')
}

struct Rest<'a> {
    text: &'a str,
    at: usize,
    /// How many names and ranges there may yet be: each becomes a text of its own, with all that is before its bracket.
    left: u64,
}

impl<'a> Rest<'a> {
    fn left(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn skip_separators(&mut self) {
        self.at = self.text.len() - self.left().trim_start_matches(is_separator).len();
    }

    /// Takes what is before the first letter that `ends`.
    fn until(&mut self, ends: impl Fn(char) -> bool) -> &'a str {
        let left = self.left();
        let taken = left.get(..left.find(ends).unwrap_or(left.len())).unwrap_or_default();
        self.at += taken.len();
        taken
    }

    fn count(&mut self, at: usize) -> Result<(), HostlistError> {
        self.left = self.left.checked_sub(1).ok_or_else(|| Problem::TooMany.at(at))?;
        Ok(())
    }

    /// Reads up to the next separator outside of brackets.
    fn entry(&mut self, list: &mut Hostlist) -> Result<(), HostlistError> {
        let start = self.at;
        let mut parts = Vec::new();
        let suffix = loop {
            let text = self.until(ends_text);
            match self.left().chars().next() {
                Some('[') => parts.push(Part { text: text.to_owned(), ranges: self.ranges()? }),
                None => break text,
                Some(letter) if is_separator(letter) => break text,
                Some(']') => return Err(Problem::Unopened.at(self.at)),
                Some('{' | '}') => return Err(Problem::Function.at(self.at)),
                Some(letter) => return Err(Problem::NotInAName(letter).at(self.at)),
            }
        };
        if parts.iter().map(Part::longest).sum::<usize>() + suffix.len() > MAX_NAME {
            return Err(Problem::TooLong.at(start));
        }
        if parts.is_empty() {
            self.count(start)?;
        }
        match &mut *parts {
            [] => list.push_run(Run::of_name(suffix).into_owned()),
            [part] if suffix.is_empty() => {
                for range in &part.ranges {
                    list.push_run(Run { prefix: part.text.clone().into(), range: Some(*range) });
                }
            }
            _ => list.items.push(Item::Product(Product { parts, suffix: suffix.to_owned() })),
        }
        Ok(())
    }

    /// Reads brackets and what is in them.
    fn ranges(&mut self) -> Result<Vec<Range>, HostlistError> {
        let opened = self.at;
        self.at += 1;
        let mut at = self.at;
        let inside = self.until(|letter| matches!(letter, '[' | ']'));
        match self.left().chars().next() {
            Some(']') => self.at += 1,
            Some(_) => return Err(Problem::Nested.at(self.at)),
            None => return Err(Problem::Unclosed.at(opened)),
        }
        let mut ranges = Vec::new();
        for text in inside.split(',') {
            self.count(at)?;
            ranges.push(range(text).map_err(|problem| problem.at(at))?);
            at += text.len() + 1;
        }
        Ok(ranges)
    }
}

fn range(text: &str) -> Result<Range, Problem> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    for part in [first, last] {
        if part.is_empty() || !part.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(Problem::NotARange(excerpt(text)));
        }
    }
    let read = |part: &str| number(part).ok_or_else(|| Problem::TooLarge(excerpt(part)));
    let (lo, hi) = (read(first)?, read(last)?);
    if lo > hi {
        return Err(Problem::Backwards(excerpt(text)));
    }
    Ok(Range::new(lo, hi, first.len()))
}
