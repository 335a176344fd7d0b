//! A run: one name, or a prefix with consecutive numbers. Slurm keeps a host list as a sequence of these, and what it
//! prints and how it sorts follows from where they begin and end.

use std::borrow::Cow;

/// The largest number in a name that is read as a number: each of 19 digits, so that no sum of ours overflows.
pub(crate) const MAX_NUMBER: u64 = 9_999_999_999_999_999_999;

/// Consecutive numbers, all padded with zeros to the same width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Range {
    pub(super) lo: u64,
    pub(super) hi: u64,
    /// The digits of `lo` at least; larger numbers may have more.
    pub(super) width: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Run<'a> {
    pub(super) prefix: Cow<'a, str>,
    /// Without, the prefix is the whole name.
    pub(super) range: Option<Range>,
}

impl Range {
    /// `width` is the number of digits that `lo` was written with.
    pub(super) fn new(lo: u64, hi: u64, width: usize) -> Self {
        Self { lo, hi, width: width.max(digits(lo)) }
    }

    pub(super) fn count(self) -> u64 {
        (self.hi - self.lo).saturating_add(1)
    }

    /// Whether `text` is one of the numbers as they are written out.
    pub(super) fn contains(self, text: &str) -> bool {
        let written = |number: &u64| self.width.max(digits(*number)) == text.len();
        number(text).filter(written).is_some_and(|number| (self.lo..=self.hi).contains(&number))
    }

    /// Whether zeros in front mean the same in both, so that one bracket entry can have both.
    pub(super) fn same_padding(self, other: Self) -> bool {
        let most_digits = digits(self.lo).max(digits(other.lo));
        self.width == other.width || self.width.max(other.width) <= most_digits
    }
}

impl<'a> Run<'a> {
    pub(super) fn single(name: impl Into<Cow<'a, str>>) -> Self {
        Self { prefix: name.into(), range: None }
    }

    /// The digits at the end are the number, if it is not too large for one.
    pub(super) fn of_name(name: &'a str) -> Self {
        let prefix = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
        let suffix = name.get(prefix.len()..).unwrap_or_default();
        let range = number(suffix).map(|number| Range::new(number, number, suffix.len()));
        Self { prefix: Cow::Borrowed(if range.is_some() { prefix } else { name }), range }
    }

    pub(super) fn borrowed(&'a self) -> Self {
        Self { prefix: Cow::Borrowed(&self.prefix), range: self.range }
    }

    pub(super) fn into_owned(self) -> Run<'static> {
        Run { prefix: Cow::Owned(self.prefix.into_owned()), range: self.range }
    }

    pub(super) fn count(&self) -> u64 {
        self.range.map_or(1, Range::count)
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        match self.range {
            None => self.prefix == name,
            Some(range) => name.strip_prefix(&*self.prefix).is_some_and(|rest| range.contains(rest)),
        }
    }

    /// Takes in what [`merges`].
    pub(super) fn extend_to(&mut self, next: &Run<'_>) {
        if let (Some(own), Some(next)) = (&mut self.range, next.range) {
            own.hi = next.hi;
        }
    }

    pub(super) fn into_names(self) -> RunNames<'a> {
        let next = Some(self.range.map_or(0, |range| range.lo));
        RunNames { run: self, next }
    }
}

/// Whether `next` continues `last` without a gap or a repeat.
pub(super) fn merges(last: &Run<'_>, next: &Run<'_>) -> bool {
    let (Some(a), Some(b)) = (last.range, next.range) else { return false };
    a.hi.checked_add(1) == Some(b.lo) && last.prefix == next.prefix && a.same_padding(b)
}

/// Joins neighbours that [`merges`].
pub(super) fn joined<'a>(runs: impl Iterator<Item = Run<'a>>) -> impl Iterator<Item = Run<'a>> {
    let mut runs = runs.peekable();
    std::iter::from_fn(move || {
        let mut run = runs.next()?;
        while let Some(next) = runs.next_if(|next| merges(&run, next)) {
            run.extend_to(&next);
        }
        Some(run)
    })
}

/// A text of digits alone as a number that is small enough.
pub(super) fn number(text: &str) -> Option<u64> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| is_number && *number <= MAX_NUMBER)
}

pub(super) fn digits(number: u64) -> usize {
    number.checked_ilog10().map_or(1, |log| log as usize + 1)
}

#[derive(Debug)]
pub(super) struct RunNames<'a> {
    run: Run<'a>,
    next: Option<u64>,
}

impl Iterator for RunNames<'_> {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        let number = self.next.take()?;
        let Some(Range { hi, width, .. }) = self.run.range else { return Some(self.run.prefix.to_string()) };
        self.next = (number < hi).then(|| number + 1);
        Some(format!("{}{number:0width$}", self.run.prefix))
    }
}
