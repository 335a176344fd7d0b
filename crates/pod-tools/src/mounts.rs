//! The mount points of this process's mount namespace.

use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

const MOUNT_INFO: &str = "/proc/self/mountinfo";

/// Every mount point, in the order in which they were mounted.
pub(crate) fn mount_points() -> Result<Vec<PathBuf>> {
    let text = fs::read(MOUNT_INFO).with_context(|| format!("read {MOUNT_INFO}"))?;
    Ok(parse(&text))
}

/// The mount point is the fifth field of a line.
fn parse(text: &[u8]) -> Vec<PathBuf> {
    let lines = text.split(|byte| *byte == b'\n');
    lines.filter_map(|line| line.split(|byte| *byte == b' ').nth(4)).map(unescape).collect()
}

/// White space and backslashes are written as three octal digits.
fn unescape(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [first, tail @ ..] = rest {
        let code =
            tail.get(..3).filter(|_| *first == b'\\').and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[3..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    std::ffi::OsString::from_vec(bytes).into()
}

/// The mount points below a folder, the folder itself apart.
pub(crate) fn below<'a>(points: &'a [PathBuf], folder: &'a Path) -> impl Iterator<Item = &'a Path> {
    points.iter().map(PathBuf::as_path).filter(move |point| *point != folder && point.starts_with(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &[u8] = b"22 28 0:21 / /proc rw,nosuid - proc proc rw\n\
        31 28 8:1 /a/b /mnt/jail.upper/data\\040set rw,relatime master:1 - ext4 /dev/sda1 rw\n\
        32 28 8:1 / /mnt/jail.upperhand rw - ext4 /dev/sda1 rw\n";

    #[test]
    fn mount_points_are_read_with_their_escapes() {
        assert_eq!(
            parse(SAMPLE),
            ["/proc", "/mnt/jail.upper/data set", "/mnt/jail.upperhand"].map(PathBuf::from)
        );
        assert_eq!(unescape(b"/a\\134b\\"), PathBuf::from("/a\\b\\"));
    }

    #[test]
    fn a_longer_name_is_not_below() {
        let points = parse(SAMPLE);
        let found: Vec<_> = below(&points, Path::new("/mnt/jail.upper")).collect();
        assert_eq!(found, [Path::new("/mnt/jail.upper/data set")]);
    }

    #[test]
    fn this_process_has_a_proc() {
        assert!(mount_points().unwrap().contains(&PathBuf::from("/proc")));
    }
}
