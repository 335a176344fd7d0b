//! How long to rest between two questions, by what the last ones cost.

use std::time::Duration;

/// Nine parts of rest to one of work: a tenth of the server's time.
const REST: u32 = 9;

pub(super) fn rest(cost: Duration) -> Duration {
    cost.saturating_mul(REST)
}

/// What the last few questions of a kind cost. Of one that took long most of the time can be somebody else's, for which
/// it is not to pay: the least of the last ones is its own. Until there are as many, nothing is known.
#[derive(Debug, Default)]
pub(super) struct Recent([Duration; 4]);

impl Recent {
    pub(super) fn add(&mut self, cost: Duration) -> &Self {
        self.0.rotate_right(1);
        self.0[0] = cost;
        self
    }

    /// What counts of them.
    pub(super) fn least(&self) -> Duration {
        self.0.iter().min().copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn one_slow_answer_is_forgiven_and_four_are_not() {
        let mut recent = Recent::default();
        for _ in 0..3 {
            assert_eq!(recent.add(SECOND).least(), Duration::ZERO, "it can be somebody else's");
        }
        assert_eq!(recent.add(SECOND).least(), SECOND);
        for _ in 0..4 {
            assert_eq!(recent.add(SECOND / 10).least(), SECOND / 10);
        }
        for _ in 0..3 {
            assert_eq!(recent.add(SECOND).least(), SECOND / 10);
        }
        assert_eq!(recent.add(SECOND).least(), SECOND);
    }

    #[test]
    fn a_tenth_of_the_servers_time_at_most() {
        for cost in [Duration::from_millis(5), SECOND, 30 * SECOND] {
            assert_eq!(cost * 10, cost + rest(cost));
        }
        assert_eq!(rest(Duration::MAX), Duration::MAX);
    }
}
