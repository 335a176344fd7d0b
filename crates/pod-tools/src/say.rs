//! How the tools of this crate tell what they do: lines on standard output, which end up in the log of the pod.

use std::io::Write;

/// Writes one line. A reader that has gone away is no reason to stop: the work matters more than its description.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
