//! Waiting that can be followed: when to look again, when to say something, and when to give up. The decisions are
//! made from times that are handed in.

use std::time::Duration;

use anyhow::{Result, bail};

use super::pod::Effects;

/// Often enough that, with the time a look may take, half a minute never passes without a line.
pub(super) const SAY_EVERY: Duration = Duration::from_secs(20);

const FIRST_PAUSE: Duration = Duration::from_millis(200);
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);

/// What a look at the thing waited for has shown.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Probe<T> {
    Ready(T),
    /// Why not. A change is worth a line, so this has no counters and no latencies.
    NotYet(String),
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    LookAgainIn(Duration),
    GiveUp,
}

#[derive(Debug)]
pub(super) struct Wait {
    what: String,
    patience: Duration,
    longest_pause: Duration,
    pause: Duration,
    attempt: u64,
    attempts: u64,
    said: Option<(Duration, String)>,
}

impl Wait {
    pub(super) fn new(what: impl Into<String>, patience: Duration, longest_pause: Duration) -> Self {
        let longest_pause = longest_pause.clamp(SHORTEST_PAUSE, SAY_EVERY);
        Self {
            what: what.into(),
            patience,
            longest_pause,
            pause: FIRST_PAUSE.min(longest_pause),
            attempt: 0,
            attempts: attempts_within(patience, longest_pause),
            said: None,
        }
    }

    /// Takes in that a look `elapsed` after the start found `state`; answers what to say, and what to do.
    pub(super) fn not_yet(&mut self, elapsed: Duration, state: &str) -> (Option<String>, Next) {
        self.attempt += 1;
        let left = self.patience.saturating_sub(elapsed);
        if left.is_zero() {
            return (None, Next::GiveUp);
        }
        let pause = self.pause.min(left);
        self.pause = (self.pause * 2).min(self.longest_pause);
        let due =
            self.said.as_ref().is_none_or(|(at, said)| said != state || elapsed + pause > *at + SAY_EVERY);
        let line = due.then(|| {
            self.said = Some((elapsed, state.to_owned()));
            format!(
                "waiting for {}: {state} ({:.1} s of at most {} s, attempt {} of {})",
                self.what,
                elapsed.as_secs_f64(),
                self.patience.as_secs(),
                self.attempt,
                self.attempts
            )
        });
        (line, Next::LookAgainIn(pause))
    }
}

/// How many looks there are if none of them takes any time: the pauses double up to the longest.
fn attempts_within(patience: Duration, longest_pause: Duration) -> u64 {
    let (mut attempts, mut time, mut pause) = (1, Duration::ZERO, FIRST_PAUSE.min(longest_pause));
    while pause < longest_pause && time < patience {
        (attempts, time, pause) = (attempts + 1, time + pause, pause * 2);
    }
    let rest = patience.saturating_sub(time).as_nanos().div_ceil(longest_pause.as_nanos().max(1));
    attempts + u64::try_from(rest).unwrap_or(u64::MAX - attempts)
}

/// Looks until there is something. `look_at` ends the error that says there never was.
pub(super) fn until<E: Effects, T>(
    effects: &mut E,
    mut wait: Wait,
    look_at: &str,
    mut probe: impl FnMut(&mut E) -> Result<Probe<T>>,
) -> Result<T> {
    let start = effects.now();
    loop {
        let state = match probe(effects)? {
            Probe::Ready(found) => {
                let elapsed = effects.now().saturating_sub(start).as_secs_f64();
                effects.say(&format!("done waiting for {} after {elapsed:.1} s", wait.what));
                return Ok(found);
            }
            Probe::NotYet(state) => state,
        };
        let elapsed = effects.now().saturating_sub(start);
        let (line, next) = wait.not_yet(elapsed, &state);
        if let Some(line) = line {
            effects.say(&line);
        }
        match next {
            Next::LookAgainIn(pause) => effects.pause(pause)?,
            Next::GiveUp => {
                let (what, seconds, attempt) = (&wait.what, elapsed.as_secs(), wait.attempt);
                bail!("waited {seconds} s ({attempt} attempts) for {what}: {state}; {look_at}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// Waits in vain, with looks that take `look`; answers when lines were said, and when the wait was given up.
    fn in_vain(
        patience: Duration,
        longest: Duration,
        look: Duration,
    ) -> (Vec<(Duration, String)>, Duration, u64) {
        let mut wait = Wait::new("it", patience, longest);
        let (mut now, mut lines) = (Duration::ZERO, vec![]);
        loop {
            now += look;
            let (line, next) = wait.not_yet(now, "absent");
            lines.extend(line.map(|line| (now, line)));
            match next {
                Next::LookAgainIn(pause) => now += pause,
                Next::GiveUp => return (lines, now, wait.attempt),
            }
        }
    }

    #[test]
    fn pauses_double_up_to_the_interval() {
        let mut wait = Wait::new("it", s(300), s(5));
        let pauses: Vec<_> = (0..8)
            .map(|_| match wait.not_yet(s(0), "absent").1 {
                Next::LookAgainIn(pause) => pause.as_millis(),
                Next::GiveUp => 0,
            })
            .collect();
        assert_eq!(pauses, [200, 400, 800, 1600, 3200, 5000, 5000, 5000]);
    }

    #[test]
    fn it_gives_up_when_patience_ends_and_has_counted_right() {
        for (patience, longest) in [(s(300), s(5)), (s(1), s(5)), (s(0), s(5)), (s(3), Duration::ZERO)] {
            let (lines, end, attempts) = in_vain(patience, longest, Duration::ZERO);
            assert_eq!(end, patience);
            assert_eq!(attempts, attempts_within(patience, longest.clamp(SHORTEST_PAUSE, SAY_EVERY)));
            if let Some((_, line)) = lines.first() {
                assert!(line.ends_with(&format!("attempt 1 of {attempts})")), "{line}");
            }
        }
    }

    #[test]
    fn no_half_minute_passes_without_a_line() {
        for longest in [1, 5, 60] {
            let (lines, end, _) = in_vain(s(600), s(longest), s(9));
            let times: Vec<_> = lines.iter().map(|(at, _)| *at).chain([end]).collect();
            assert!(times.windows(2).all(|pair| pair[1] - pair[0] <= s(30)), "{longest}: {times:?}");
            assert!(times.len() < 60, "too much to read: {times:?}");
        }
    }

    #[test]
    fn a_change_is_said_at_once_and_only_once() {
        let mut wait = Wait::new("it", s(300), s(5));
        assert!(wait.not_yet(s(0), "absent").0.is_some());
        assert_eq!(wait.not_yet(s(1), "absent").0, None);
        let line = wait.not_yet(s(2), "half there").0.unwrap();
        assert_eq!(line, "waiting for it: half there (2.0 s of at most 300 s, attempt 3 of 65)");
        assert_eq!(wait.not_yet(s(3), "half there").0, None);
    }

    #[test]
    fn absurd_patience_does_not_overflow() {
        let wait = Wait::new("it", Duration::MAX, Duration::ZERO);
        assert!(wait.attempts > 1_000_000);
    }
}
