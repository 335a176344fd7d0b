//! How long to rest between two questions, by what the last one cost.

use std::time::Duration;

use crate::error::RestError;

/// Nine parts of rest to one of work: a tenth of the server's time.
const REST: u32 = 9;
/// The end of a failure should be noticed soon, also of one that took long.
pub(super) const LONGEST_AFTER_FAILURE: Duration = Duration::from_secs(10);

/// What a question cost, and what it brought.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    pub(super) cost: Duration,
    pub(super) brought: Brought,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Brought {
    Answer,
    /// The server may have worked for it all the time.
    Failure,
    /// Nobody did any work.
    Nothing,
}

impl Brought {
    pub(super) fn by<T>(answer: &Result<T, RestError>) -> Self {
        match answer {
            Ok(_) => Self::Answer,
            Err(RestError::TimedOut { .. } | RestError::Cut { .. } | RestError::Garbage { .. }) => {
                Self::Failure
            }
            Err(_) => Self::Nothing,
        }
    }
}

impl Pace {
    pub(super) fn pause(self, least: Duration) -> Duration {
        let pause = match self.brought {
            Brought::Answer | Brought::Failure => self.cost.saturating_mul(REST),
            // Most of it was spent waiting for nobody.
            Brought::Nothing => self.cost.min(LONGEST_AFTER_FAILURE),
        };
        least.max(pause)
    }
}

/// What the last few questions of a kind cost. Of one that took long most of the time can be somebody else's, for which
/// it is not to pay: the least of the last ones is its own.
#[derive(Debug, Default)]
pub(super) struct Recent([Option<Duration>; 4]);

impl Recent {
    /// Adds a cost, and says what counts.
    pub(super) fn least_with(&mut self, cost: Duration) -> Duration {
        self.0.rotate_right(1);
        self.0[0] = Some(cost);
        self.0.iter().flatten().min().copied().unwrap_or(cost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slow_answer_is_forgiven_and_four_are_not() {
        let mut recent = Recent::default();
        assert_eq!(recent.least_with(SECOND), SECOND);
        assert_eq!(recent.least_with(SECOND / 10), SECOND / 10);
        for _ in 0..3 {
            assert_eq!(recent.least_with(SECOND), SECOND / 10);
        }
        assert_eq!(recent.least_with(SECOND), SECOND);
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_tenth_of_the_servers_time_at_most() {
        let pause = |cost, brought| Pace { cost, brought }.pause(SECOND);
        assert_eq!(pause(Duration::from_millis(5), Brought::Answer), SECOND);
        for cost in [SECOND / 5, SECOND, 30 * SECOND] {
            for brought in [Brought::Answer, Brought::Failure] {
                assert!(cost * 10 <= cost + pause(cost, brought), "{cost:?} {brought:?}");
            }
        }
        let nothing = |cost| pause(cost, Brought::Nothing);
        assert_eq!((nothing(SECOND / 2), nothing(2 * SECOND)), (SECOND, 2 * SECOND));
        assert_eq!(nothing(Duration::MAX), LONGEST_AFTER_FAILURE);
        assert_eq!(pause(Duration::MAX, Brought::Answer), Duration::MAX);
    }

    #[test]
    fn only_who_did_nothing_is_asked_again_soon() {
        let call = "nodes";
        let late = RestError::TimedOut { call, after: SECOND };
        let away = RestError::NoAnswer { call, why: "connection refused".into() };
        assert_eq!(Brought::by(&Err::<(), _>(late)), Brought::Failure);
        assert_eq!(Brought::by(&Err::<(), _>(away)), Brought::Nothing);
        assert_eq!(Brought::by(&Ok(())), Brought::Answer);
    }
}
