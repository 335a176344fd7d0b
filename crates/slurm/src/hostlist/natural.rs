//! The order in which Slurm sorts names: numbers within a text by value, `rack2` before `rack10`.

use std::cmp::Ordering;

/// A run of digits that begins with a zero is compared digit by digit, as a fraction would be; two others by length and
/// then digit by digit. Bytes that are not ASCII come first, since Slurm compares a signed `char` on x86-64.
pub(super) fn compare(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a.as_bytes(), b.as_bytes());
    loop {
        let (Some((first_a, rest_a)), Some((first_b, rest_b))) = (a.split_first(), b.split_first()) else {
            return first(a).cmp(&first(b));
        };
        if first_a.is_ascii_digit() && first_b.is_ascii_digit() {
            let (digits_a, after_a) = a.split_at(count_digits(a));
            let (digits_b, after_b) = b.split_at(count_digits(b));
            let by_length = match [first_a, first_b].contains(&&b'0') {
                true => Ordering::Equal,
                false => digits_a.len().cmp(&digits_b.len()),
            };
            match by_length.then_with(|| digits_a.cmp(digits_b)) {
                Ordering::Equal => (a, b) = (after_a, after_b),
                unequal => return unequal,
            }
        } else {
            match signed(*first_a).cmp(&signed(*first_b)) {
                Ordering::Equal => (a, b) = (rest_a, rest_b),
                unequal => return unequal,
            }
        }
    }
}

/// The end of a text compares as a zero byte.
fn first(text: &[u8]) -> i8 {
    signed(text.first().copied().unwrap_or(0))
}

fn signed(byte: u8) -> i8 {
    i8::from_ne_bytes([byte])
}

fn count_digits(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_within_names_are_compared_by_value() {
        let sorted = ["", "a", "a0", "a00", "a01", "a1", "a2", "a10", "a10b", "a10c", "aa", "b"];
        for (at, smaller) in sorted.iter().enumerate() {
            assert_eq!(compare(smaller, smaller), Ordering::Equal);
            for larger in &sorted[at + 1..] {
                assert_eq!(compare(smaller, larger), Ordering::Less, "{smaller} {larger}");
                assert_eq!(compare(larger, smaller), Ordering::Greater, "{larger} {smaller}");
            }
        }
    }
}
