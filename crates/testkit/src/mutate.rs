//! A small fuzzer for tests: a fixed number of inputs, the same ones in every run.
//!
//! It finds what a few thousand damaged inputs find, in a second and without a tool. The targets in `fuzz/`, which call
//! the same checks, look further.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Longer inputs find nothing more.
const LONGEST: usize = 4096;

/// Values at which numbers, lengths and texts change their nature.
const INTERESTING: [u8; 22] = [
    0, 1, 9, 10, 13, 0x1b, 0x7f, 0x80, 0xc3, 0xff, b' ', b'"', b'#', b'\'', b',', b'-', b'0', b'=', b'[',
    b'\\', b']', b'{',
];

/// Calls `check` with the seed inputs and then with damaged ones, `count` calls in all. `check` panics to fail, and the
/// input that it failed with is printed.
#[expect(clippy::print_stderr, reason = "what a test failed with")]
pub fn cases(seed_inputs: &[&[u8]], count: usize, mut check: impl FnMut(&[u8])) {
    let mut random = Random::default();
    for number in 0..count {
        let input = match seed_inputs.get(number) {
            Some(seed) => seed.to_vec(),
            None => mutated(seed_inputs, &mut random),
        };
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| check(&input))) {
            eprintln!("case {number} of testkit::mutate failed: b\"{}\"", input.escape_ascii());
            resume_unwind(panic);
        }
    }
}

fn mutated(seeds: &[&[u8]], random: &mut Random) -> Vec<u8> {
    let seed = |random: &mut Random| seeds.get(random.below(seeds.len())).copied().unwrap_or_default();
    let mut input = seed(random).to_vec();
    for _ in 0..=random.below(6) {
        let other = seed(random);
        mutate(&mut input, other, random);
        input.truncate(LONGEST);
    }
    input
}

fn mutate(input: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let at = random.below(input.len() + 1);
    let chunk = chunk(input, random);
    match random.below(8) {
        0 => {
            if let Some(byte) = input.get_mut(at) {
                *byte ^= 1 << random.below(8);
            }
        }
        1 => {
            if let Some(byte) = input.get_mut(at) {
                *byte = random.byte();
            }
        }
        2 => input.insert(at, random.byte()),
        3 => drop(input.splice(chunk, [])),
        4 => {
            let copy = input.get(chunk).unwrap_or_default().repeat(1 + random.below(4));
            drop(input.splice(at..at, copy));
        }
        5 => {
            let piece = other.get(self::chunk(other, random)).unwrap_or_default();
            drop(input.splice(chunk, piece.iter().copied()));
        }
        6 => {
            // One text that goes over into another.
            input.truncate(at);
            input.extend_from_slice(other.get(random.below(other.len() + 1)..).unwrap_or_default());
        }
        _ => {
            // A number that is larger, or too large.
            let digits = (0..=random.below(24)).map(|_| b'0' + random.below(10) as u8);
            let digits: Vec<u8> = digits.collect();
            drop(input.splice(at..at, digits));
        }
    }
}

/// A short piece, usually.
fn chunk(input: &[u8], random: &mut Random) -> std::ops::Range<usize> {
    let start = random.below(input.len() + 1);
    let longest = if random.below(4) == 0 { input.len() } else { 8 };
    start..input.len().min(start + random.below(longest + 1))
}

/// xorshift64: the standard library has no random numbers, and these must be the same ones everywhere.
#[derive(Debug)]
pub struct Random(u64);

impl Default for Random {
    fn default() -> Self {
        Self(0x9e37_79b9_7f4a_7c15)
    }
}

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// One of the items, of which there must be some.
    pub fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    /// A number below `end`; zero if there is none.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() >> 16).checked_rem(end as u64).unwrap_or(0) as usize
    }

    fn byte(&mut self) -> u8 {
        match self.below(2) {
            0 => self.pick(&INTERESTING),
            _ => self.below(256) as u8,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(seeds: &[&[u8]], count: usize) -> Vec<Vec<u8>> {
        let mut seen = Vec::new();
        cases(seeds, count, |input| seen.push(input.to_vec()));
        seen
    }

    #[test]
    fn every_run_has_the_same_cases_and_the_seeds_are_the_first() {
        let seeds: [&[u8]; 2] = [b"first[1-3]", b"second"];
        let cases = all(&seeds, 1000);
        assert_eq!(cases, all(&seeds, 1000));
        assert_eq!(cases.len(), 1000);
        assert_eq!(cases[..2], seeds);
    }

    #[test]
    fn cases_differ_and_stay_short() {
        let long = vec![b'x'; LONGEST];
        let cases = all(&[b"abc[1-3],def=7", &long], 2000);
        assert!(cases.iter().all(|case| case.len() <= LONGEST));
        let different: std::collections::BTreeSet<_> = cases.iter().collect();
        assert!(different.len() > 1800, "{}", different.len());
        assert!(cases.iter().any(Vec::is_empty) || cases.iter().any(|case| case.len() < 3));
    }

    #[test]
    fn nothing_to_start_from_is_something_too() {
        assert_eq!(all(&[], 100).len(), 100);
        assert_eq!(all(&[b""], 100).len(), 100);
    }

    #[test]
    #[should_panic(expected = "found")]
    fn a_failed_check_fails_the_test() {
        cases(&[b"n[1-3]"], 5000, |input| assert!(!input.contains(&0xff), "found"));
    }
}
