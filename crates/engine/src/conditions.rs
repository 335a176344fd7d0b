//! Conditions: what is true of an object now, in the form that every tool of Kubernetes reads.
//!
//! The time of a transition is kept while the status stays the same; a message may change without one. Every condition
//! carries the generation that it speaks of.

use jiff::Timestamp;
pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::events::shortened;
use crate::failure::{Disposition, Failure};
pub use crate::views::Truth;

pub const READY: &str = "Ready";
pub const PROGRESSING: &str = "Progressing";
pub const DEGRADED: &str = "Degraded";
pub const STALLED: &str = "Stalled";

/// Refusals of the API server can hold whole objects; nobody reads those here.
const LONGEST_MESSAGE: usize = 2048;

/// Something that is waited for, and how long that is no cause for concern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// One CamelCase word, stable.
    pub reason: &'static str,
    /// What is waited for, for people, without numbers that change all the time.
    pub on: String,
    pub patience: std::time::Duration,
}

/// The new conditions of an object, made from the old ones.
#[derive(Debug)]
pub struct Conditions<'a> {
    old: &'a [Condition],
    generation: i64,
    now: Timestamp,
    new: Vec<Condition>,
}

impl<'a> Conditions<'a> {
    #[must_use]
    pub fn new(old: &'a [Condition], generation: i64, now: Timestamp) -> Self {
        Self { old, generation, now, new: Vec::new() }
    }

    /// Says what is so. The last word about a type counts.
    pub fn set(&mut self, kind: &str, truth: Truth, reason: &str, message: &str) -> &mut Self {
        let old = self.old.iter().find(|condition| condition.type_ == kind);
        let kept = old.filter(|condition| condition.status == truth.as_str());
        let since =
            kept.map_or_else(|| self.whole_second(), |condition| condition.last_transition_time.clone());
        self.new.retain(|condition| condition.type_ != kind);
        self.new.push(Condition {
            type_: kind.to_owned(),
            status: truth.as_str().to_owned(),
            reason: reason.to_owned(),
            message: shortened(message, LONGEST_MESSAGE),
            observed_generation: Some(self.generation),
            last_transition_time: since,
        });
        self
    }

    /// The four that every object of ours has.
    pub fn summary(&mut self, failure: Option<&Failure>, wait: Option<&Waiting>) -> &mut Self {
        let stalled = failure
            .is_some_and(|failure| failure.stalled || failure.disposition == Disposition::InvalidSpec)
            || (failure.is_none() && wait.is_some_and(|wait| wait.overdue));
        let (reason, message) = match (failure, wait) {
            (Some(failure), _) => (failure.reason, failure.message.clone()),
            (None, Some(wait)) => (wait.reason, wait.message()),
            (None, None) => ("AsWanted", String::new()),
        };
        let helpless = failure.is_some_and(|failure| failure.disposition == Disposition::InvalidSpec);
        let degraded = failure.is_some_and(|failure| {
            !matches!(failure.disposition, Disposition::Blocked { .. } | Disposition::Conflict)
        });
        let settled = failure.is_none() && wait.is_none();
        let or = |so: bool, yes: &'static str, no: &'static str| if so { yes } else { no };
        let said = |so: bool| if so { message.as_str() } else { "" };
        let moving = !settled && !helpless;
        self.set(READY, settled.into(), reason, &message)
            .set(PROGRESSING, moving.into(), or(moving, reason, "Settled"), said(moving))
            .set(DEGRADED, degraded.into(), or(degraded, reason, "NotDegraded"), said(degraded))
            .set(STALLED, stalled.into(), or(stalled, reason, "NotStalled"), said(stalled))
    }

    #[must_use]
    pub fn finish(self) -> Vec<Condition> {
        self.new
    }

    /// Kubernetes writes times of conditions in whole seconds; with a fraction they would never compare equal.
    fn whole_second(&self) -> Time {
        Time(Timestamp::from_second(self.now.as_second()).unwrap_or(self.now))
    }
}

/// A wait with its beginning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    pub reason: &'static str,
    pub on: String,
    pub since: Timestamp,
    pub overdue: bool,
}

impl Waiting {
    /// When a wait began that an old condition tells of.
    pub(crate) fn begun(condition: &Condition) -> Option<Timestamp> {
        condition.message.rsplit_once(" since ")?.1.parse().ok()
    }

    fn message(&self) -> String {
        format!("waiting for {} since {:.0}", self.on, self.since)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn status<'a>(conditions: &'a [Condition], kind: &str) -> &'a str {
        conditions.iter().find(|condition| condition.type_ == kind).map_or("", |condition| &condition.status)
    }

    fn summary(failure: Option<&Failure>, wait: Option<&Waiting>) -> [String; 4] {
        let mut conditions = Conditions::new(&[], 1, at(0));
        conditions.summary(failure, wait);
        let conditions = conditions.finish();
        [READY, PROGRESSING, DEGRADED, STALLED].map(|kind| status(&conditions, kind).to_owned())
    }

    #[test]
    fn the_summary_tells_apart_what_people_do_about_it() {
        let mut wait = Waiting { reason: "Pods", on: "pods".into(), since: at(0), overdue: false };
        assert_eq!(summary(None, None), ["True", "False", "False", "False"]);
        assert_eq!(summary(None, Some(&wait)), ["False", "True", "False", "False"]);
        wait.overdue = true;
        assert_eq!(summary(None, Some(&wait)), ["False", "True", "False", "True"]);
        assert_eq!(summary(Some(&Failure::invalid("x")), None), ["False", "False", "True", "True"]);
        assert_eq!(summary(Some(&Failure::blocked("X", "y")), None), ["False", "True", "False", "False"]);
        assert_eq!(summary(Some(&Failure::transient("X", "y")), None), ["False", "True", "True", "False"]);
        let late = Failure::deadline("x", std::time::Duration::from_secs(1));
        assert_eq!(summary(Some(&late), None), ["False", "True", "True", "True"]);
    }

    #[test]
    fn a_wait_names_what_for_and_since_when() {
        let wait = Waiting { reason: "Pods", on: "3 pods of a/b".into(), since: at(60), overdue: false };
        assert_eq!(wait.message(), "waiting for 3 pods of a/b since 1970-01-01T00:01:00Z");
    }

    fn truths() -> impl Strategy<Value = Truth> {
        prop_oneof![Just(Truth::True), Just(Truth::False), Just(Truth::Unknown)]
    }

    proptest! {
        /// Whatever is said one after the other: a transition is when the status last changed, and saying the same again
        /// changes nothing at all.
        #[test]
        fn transition_times_are_those_of_changes(said in prop::collection::vec((truths(), 0..3_u8), 1..20)) {
            let (mut old, mut since, mut last) = (Vec::new(), at(0), None);
            for (second, (truth, word)) in said.into_iter().enumerate() {
                let now = at(1_000 + second as i64);
                if last != Some(truth) {
                    (last, since) = (Some(truth), now);
                }
                let say = |old: &[Condition], now| {
                    let mut new = Conditions::new(old, second as i64, now);
                    new.set(READY, truth, "Word", &word.to_string());
                    new.finish()
                };
                let new = say(&old, now);
                prop_assert_eq!(new[0].last_transition_time.0, since);
                prop_assert_eq!(new[0].observed_generation, Some(second as i64));
                prop_assert_eq!(&say(&new, at(9_999)), &new);
                old = new;
            }
        }
    }
}
