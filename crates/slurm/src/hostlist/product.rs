//! Brackets in several places of a name, `r[0-1]n[00-15]`, or with something behind: `n[1-9]-ib`.
//!
//! Kept folded, since a short text can stand for any number of ranges, and unfolded one by one in Slurm's order.

use super::run::{Range, Run, digits};

#[derive(Debug, Clone)]
pub(crate) struct Product {
    /// Each text with the brackets behind it. Never empty.
    pub(super) parts: Vec<Part>,
    /// What follows the last brackets.
    pub(super) suffix: String,
}

#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(super) text: String,
    pub(super) ranges: Vec<Range>,
}

impl Part {
    fn count(&self) -> u64 {
        self.ranges.iter().map(|range| range.count()).fold(0, u64::saturating_add)
    }

    /// The bytes of the longest text that this part becomes.
    pub(super) fn longest(&self) -> usize {
        let longest = self.ranges.iter().map(|range| range.width.max(digits(range.hi))).max();
        self.text.len() + longest.unwrap_or(0)
    }
}

impl Product {
    pub(super) fn count(&self) -> u64 {
        self.parts.iter().map(Part::count).fold(1, u64::saturating_mul)
    }

    pub(super) fn longest_range(&self) -> u64 {
        let ranges = self.parts.iter().flat_map(|part| &part.ranges);
        ranges.map(|range| range.count()).max().unwrap_or(0)
    }

    /// How many runs [`Self::unfold`] gives. With a suffix each name is a run of its own.
    pub(super) fn run_count(&self) -> u64 {
        let Some((last, head)) = self.parts.split_last() else { return 0 };
        let last = if self.suffix.is_empty() { last.ranges.len() as u64 } else { last.count() };
        head.iter().map(Part::count).fold(last, u64::saturating_mul)
    }

    /// Follows all ways to read `name` at once, so that numbers side by side do not take exponential time.
    pub(super) fn contains(&self, name: &str) -> bool {
        if name.len() > super::MAX_NAME {
            return false;
        }
        // The places in `name` that can be reached with the parts so far.
        let mut places = vec![0];
        for part in &self.parts {
            let mut next = Vec::new();
            for place in places {
                let rest = name.get(place..).and_then(|rest| rest.strip_prefix(&*part.text));
                let Some(rest) = rest else { continue };
                let start = name.len() - rest.len();
                let numbers = rest.bytes().take_while(u8::is_ascii_digit).count();
                let has = |end: &usize| rest.get(..*end).is_some_and(|number| part.has(number));
                next.extend((1..=numbers).filter(has).map(|end| start + end));
            }
            next.sort_unstable();
            next.dedup();
            places = next;
        }
        places.into_iter().any(|place| name.get(place..) == Some(&self.suffix))
    }

    pub(super) fn unfold(&self) -> Unfold<'_> {
        let head = self.parts.len().saturating_sub(1);
        let odometer = self.parts.iter().take(head).map(Wheel::new).collect();
        let last = self.parts.last().map(Wheel::new);
        Unfold { product: self, odometer, last }
    }
}

impl Part {
    fn has(&self, number: &str) -> bool {
        self.ranges.iter().any(|range| range.contains(number))
    }
}

/// A place in the numbers of one part.
#[derive(Debug)]
struct Wheel<'a> {
    ranges: &'a [Range],
    number: u64,
}

impl<'a> Wheel<'a> {
    fn new(part: &'a Part) -> Self {
        Self { ranges: &part.ranges, number: part.ranges.first().map_or(0, |range| range.lo) }
    }

    fn advance(&mut self) -> bool {
        let Some((range, rest)) = self.ranges.split_first() else { return false };
        if self.number < range.hi {
            self.number += 1;
            return true;
        }
        self.ranges = rest;
        self.number = rest.first().map_or(0, |range| range.lo);
        !rest.is_empty()
    }

    fn next_range(&mut self) -> bool {
        self.ranges = self.ranges.get(1..).unwrap_or_default();
        self.number = self.ranges.first().map_or(0, |range| range.lo);
        !self.ranges.is_empty()
    }

    fn width(&self) -> usize {
        self.ranges.first().map_or(0, |range| range.width)
    }
}

#[derive(Debug)]
pub(super) struct Unfold<'a> {
    product: &'a Product,
    /// The parts before the last one. The first turns fastest and the one before the last slowest: that is the order
    /// in which Slurm prints.
    odometer: Vec<Wheel<'a>>,
    last: Option<Wheel<'a>>,
}

impl<'a> Unfold<'a> {
    fn text_before_last(&self) -> String {
        let mut text = String::new();
        for (part, wheel) in self.product.parts.iter().zip(&self.odometer) {
            text += &part.text;
            text += &format!("{:0width$}", wheel.number, width = wheel.width());
        }
        text + self.product.parts.last().map_or("", |part| &part.text)
    }

    /// Turns to the next combination of the parts before the last, if there is one.
    fn turn(&mut self) -> Option<Wheel<'a>> {
        for (part, wheel) in self.product.parts.iter().zip(&mut self.odometer) {
            if wheel.advance() {
                return self.product.parts.last().map(Wheel::new);
            }
            *wheel = Wheel::new(part);
        }
        None
    }
}

impl<'a> Iterator for Unfold<'a> {
    type Item = Run<'a>;

    fn next(&mut self) -> Option<Run<'a>> {
        let prefix = self.text_before_last();
        let product = self.product;
        let last = self.last.as_mut()?;
        let range = *last.ranges.first()?;
        let (run, more) = if product.suffix.is_empty() {
            (Run { prefix: prefix.into(), range: Some(range) }, last.next_range())
        } else {
            let name = format!("{prefix}{:0width$}{}", last.number, product.suffix, width = range.width);
            (Run::single(name), last.advance())
        };
        if !more {
            self.last = self.turn();
        }
        Some(run)
    }
}
