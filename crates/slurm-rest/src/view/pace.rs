//! How long to pause between two questions, by what the last one cost.

use std::time::Duration;

/// Nine parts of rest to one of work: a tenth of the server's time.
const REST: u32 = 9;
/// The end of a failure should be noticed soon, also of one that took long.
const LONGEST_AFTER_FAILURE: Duration = Duration::from_secs(10);

/// What the last question cost, and whether it was answered.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    pub(super) cost: Duration,
    pub(super) failed: bool,
}

impl Pace {
    pub(super) fn pause(self, least: Duration) -> Duration {
        if self.failed {
            // Most of it was spent waiting for nobody.
            return least.max(self.cost.min(LONGEST_AFTER_FAILURE));
        }
        least.max(self.cost.saturating_mul(REST))
    }
}

/// What the last few questions cost. Of small questions most of the time can be that of a large one before them, for which they
/// are not to pay: the least of the last ones is their own.
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
        let pause = |cost, failed| Pace { cost, failed }.pause(SECOND);
        assert_eq!(pause(Duration::from_millis(5), false), SECOND);
        for cost in [SECOND / 5, SECOND, 30 * SECOND] {
            assert!(cost * 10 <= cost + pause(cost, false), "{cost:?}");
        }
        assert_eq!((pause(SECOND / 2, true), pause(2 * SECOND, true)), (SECOND, 2 * SECOND));
        assert_eq!(pause(Duration::MAX, true), LONGEST_AFTER_FAILURE);
        assert_eq!(pause(Duration::MAX, false), Duration::MAX);
    }
}
