//! Whether a Slurm host list (`gpu-[0-3,008],login`) has a node. Nothing is expanded: a list may stand for more names
//! than there is memory.

/// `name` is one of the names that `list` stands for.
pub(crate) fn contains(list: &str, name: &str) -> bool {
    let (mut depth, mut start) = (0_usize, 0);
    for (at, byte) in list.bytes().enumerate() {
        match byte {
            b'[' => depth += 1,
            b']' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                if stands_for(&list[start..at], name) {
                    return true;
                }
                start = at + 1;
            }
            _ => {}
        }
    }
    stands_for(&list[start..], name)
}

fn stands_for(pattern: &str, name: &str) -> bool {
    let Some((before, rest)) = pattern.split_once('[') else { return pattern == name };
    let Some((ranges, after)) = rest.split_once(']') else { return false };
    let Some(name) = name.strip_prefix(before) else { return false };
    let digits = name.bytes().take_while(u8::is_ascii_digit).count();
    // What follows the brackets may begin with a digit, so fewer digits than there are may be the number.
    (1..=digits).any(|end| {
        let (number, tail) = name.split_at(end);
        ranges.split(',').any(|range| is_within(number, range)) && stands_for(after, tail)
    })
}

/// Zeros in front count: `[001-3]` has 002 and not 2.
fn is_within(number: &str, range: &str) -> bool {
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let (Ok(value), Ok(low), Ok(high)) = (number.parse::<u64>(), first.parse::<u64>(), last.parse::<u64>())
    else {
        return false;
    };
    let padded = format!("{value:0width$}", width = first.len());
    (low..=high).contains(&value) && padded == number
}

#[cfg(test)]
mod tests {
    use super::contains;

    #[test]
    fn names_and_ranges_are_found() {
        let list = "login,gpu-[0-3,8],cpu-[08-11]-x,r[1-2]n[0-9],last";
        for name in ["login", "gpu-0", "gpu-3", "gpu-8", "cpu-08-x", "cpu-11-x", "r2n7", "last"] {
            assert!(contains(list, name), "{name}");
        }
        for name in
            ["logi", "login2", "gpu-4", "gpu-08", "gpu-", "gpu-1-x", "cpu-8-x", "cpu-08", "r2n10", "", "0-3"]
        {
            assert!(!contains(list, name), "{name}");
        }
    }

    #[test]
    fn a_digit_after_the_brackets_is_not_part_of_the_number() {
        assert!(contains("n[1-20]5", "n125"));
        assert!(!contains("n[1-20]5", "n12"));
    }

    #[test]
    fn broken_lists_have_nobody() {
        for list in [
            "",
            "gpu-[",
            "gpu-[0-",
            "gpu-[]",
            "gpu-[x-y]",
            "gpu-]0[",
            "gpu-[3-1]",
            "gpu-[0-99999999999999999999]",
        ] {
            assert!(!contains(list, "gpu-2"), "{list}");
        }
        assert!(contains("gpu-[0-4000000000]", "gpu-3999999999"));
    }
}
