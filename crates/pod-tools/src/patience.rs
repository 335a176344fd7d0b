//! Waiting, for a program that has nothing else to do: it says what it waits for, and gives up.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::say::say;

/// Often enough that nobody notices the wait, rare enough for a network file system.
const LOOK: Duration = Duration::from_millis(200);
const SAY: Duration = Duration::from_secs(30);

/// Looks until there is something; what is missing until then is said, and after `limit` is an error with `advice`.
pub(crate) fn until<T>(
    limit: Duration,
    advice: &str,
    mut look: impl FnMut() -> Result<Result<T, String>>,
) -> Result<T> {
    let started = Instant::now();
    let mut next_word = Duration::ZERO;
    loop {
        let missing = match look()? {
            Ok(found) => return Ok(found),
            Err(missing) => missing,
        };
        let waited = started.elapsed();
        if waited >= limit {
            bail!("{missing} after {} s: {advice}", limit.as_secs());
        }
        if waited >= next_word {
            say(&format!("waiting since {} s: {missing}", waited.as_secs()));
            next_word = waited + SAY;
        }
        pause();
    }
}

#[allow(clippy::disallowed_methods, reason = "a shared file system tells nobody of a new file")]
fn pause() {
    std::thread::sleep(LOOK);
}
