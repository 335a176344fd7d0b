//! A reconfigure that failed. The process that read the bad file had nowhere to write why: a daemon has no standard error,
//! and takes up its log only after it has read its configuration. So the file is read once more, by a command.

use std::io::Read;
use std::process::{Command, Stdio};
use std::thread;

use crate::say::say;

/// What slurmctld logs when it goes on with the old configuration, in every release since reconfigures can fail.
const FAILED: &[u8] = b"reconfigure failed";

const REFUSED: &str = "error: slurmctld cannot use the new slurm.conf and goes on with the old one";

/// Listens to a log that comes in pieces.
#[derive(Default)]
pub(super) struct Failures {
    /// The end of what was heard, where a phrase may have begun.
    end: Vec<u8>,
    heard: bool,
}

impl Failures {
    pub(super) fn hear(&mut self, piece: &[u8]) {
        self.end.extend_from_slice(piece);
        self.heard |= self.end.windows(FAILED.len()).any(|window| window == FAILED);
        let keep = self.end.len().min(FAILED.len() - 1);
        self.end.drain(..self.end.len() - keep);
    }

    /// Whether there was one since the last time.
    pub(super) fn take(&mut self) -> bool {
        std::mem::take(&mut self.heard)
    }
}

/// Says what a command of Slurm says of the same file. Beside the watch: a command may take its time.
pub(super) fn explain() {
    thread::spawn(|| {
        // It reads the configuration before it does anything, and needs no answer to fail there.
        let mut command = Command::new("scontrol");
        command.arg("ping").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut said = String::new();
        if let Some(mut errors) = command.spawn().ok().and_then(|mut child| child.stderr.take()) {
            let _ = errors.read_to_string(&mut said);
        }
        // The watch reaps it, as it does with every process.
        for line in explanation(&said) {
            say(&line);
        }
    });
}

fn explanation(said: &str) -> Vec<String> {
    let reasons: Vec<_> =
        said.lines().filter(|line| line.contains("error:") || line.contains("fatal:")).collect();
    if reasons.is_empty() {
        let hint =
            "scontrol finds no fault in it: look for what only slurmctld checks, plugins, partitions, nodes";
        return vec![format!("{REFUSED}: {hint}")];
    }
    reasons.iter().map(|reason| format!("{REFUSED}: {reason}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phrase_is_heard_across_pieces_and_once() {
        let mut failures = Failures::default();
        failures.hear(b"[2026] Resuming operation, reconf");
        assert!(!failures.take());
        failures.hear(b"igure failed.\n[2026] Running as primary");
        assert!(failures.take() && !failures.take());
        failures.hear(b"reconfigure done, backup failed");
        assert!(!failures.take());
    }

    #[test]
    fn the_reason_is_that_of_the_command() {
        let said = "scontrol: error: _parse_next_key: Parsing error at unrecognized key: NoSuchKey\nsome other line\n";
        let lines = explanation(said);
        assert_eq!(lines.len(), 1);
        assert!(lines[0].ends_with("unrecognized key: NoSuchKey"), "{lines:?}");
        assert!(explanation("")[0].contains("only slurmctld checks"));
    }
}
