//! The last step: what came of a reconcile, told in the status, once and only if it is different, and in an event if
//! it is news.

use std::hash::{DefaultHasher, Hasher};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use tracing::info;

use super::{Runner, Walk};
use crate::apply::Applier;
use crate::child::hash_json;
use crate::conditions::{Condition, Conditions, DEGRADED, PROGRESSING, READY, STALLED, Wait, Waiting};
use crate::controller::{Controller, Primary, Report};
use crate::failure::{Disposition, Failure};
use crate::memory::Memory;
use crate::queue::Next;
use crate::views::View;

/// Children that are in the way get this long before somebody should look.
const CHILD_PATIENCE: Duration = Duration::from_secs(120);

/// How often it is looked whether they still are.
const IN_THE_WAY: Duration = Duration::from_secs(60);
/// So long something else may be missing.
const BLOCKED_PATIENCE: Duration = Duration::from_secs(300);

/// What came of a reconcile.
#[derive(Default)]
pub(super) struct Told {
    /// There is nothing left to look after.
    pub gone: bool,
    pub failure: Option<Failure>,
    pub stalled: Option<&'static str>,
    /// When a wait becomes a stall.
    pub again: Option<Duration>,
}

impl Told {
    pub(super) fn gone() -> Self {
        Self { gone: true, ..Self::default() }
    }
}

impl<C: Controller> Runner<C> {
    pub(super) async fn tell(
        &self,
        object: &C::Object,
        mut walk: Walk<C>,
        applier: &Applier,
        memory: &mut Memory,
    ) -> Told {
        let now = Timestamp::now();
        let Report { fields, conditions, mut waits } = self.controller.report(&self.seen(object, &walk, now));
        waits.extend(walk.applied.waits.iter().map(|on| Wait {
            reason: "ChildInTheWay",
            on: on.clone(),
            patience: CHILD_PATIENCE,
        }));
        if let Some(Failure { disposition: Disposition::Blocked { on }, reason, .. }) = &walk.failure {
            waits = vec![Wait { reason, on: on.clone(), patience: BLOCKED_PATIENCE }];
        }
        let old_status = object.status();
        let old = old_conditions(&old_status);
        let (waiting, mut again) = wait_since(&waits, walk.failure.is_some(), &old, memory, now);
        if !walk.applied.waits.is_empty() {
            // Not everything that is in the way wakes us when it goes.
            again = Some(again.unwrap_or(IN_THE_WAY).min(IN_THE_WAY));
        }
        if let (Some(failure), Some(waiting)) = (&mut walk.failure, &waiting) {
            failure.stalled |= waiting.overdue;
        }

        let mut new = Conditions::new(&old, object.meta().generation, now);
        new.summary(walk.failure.as_ref(), waiting.as_ref());
        for (kind, truth, reason, message) in &conditions {
            new.set(kind, *truth, reason, message);
        }
        let new = new.finish();
        let stalled = stalled_reason(walk.failure.as_ref(), waiting.as_ref());

        let mut status = Value::Object(fields);
        status["conditions"] = serde_json::to_value(&new).unwrap_or_default();
        let hash = hash_of(&status);
        let differs = !contains(&old_status, &status) || memory.status.is_some_and(|known| known != hash);
        if differs && C::TELLS {
            match applier.status(C::Object::kind(), &object.meta().key, &status).await {
                Ok(written) => {
                    memory.status = Some(hash);
                    memory.written.extend(written);
                    self.tell_news(object, &old, &new).await;
                }
                // What could not be told has to be tried again, also where nothing else would be.
                Err(failure) => {
                    let tried = |failure: &Failure| failure.disposition.next() != Next::Rest;
                    walk.failure = walk.failure.filter(tried).or(Some(failure));
                }
            }
        }
        for recreated in &walk.applied.recreated {
            self.events.normal(C::Object::kind(), object.meta(), "Recreating", recreated).await;
        }
        if !walk.applied.done.is_empty() {
            let done = walk.applied.done.join(", ");
            info!(controller = C::NAME, object = %object.meta().key, done, "reconciled");
        }
        Told { gone: false, failure: walk.failure, stalled, again }
    }

    /// An event when an object becomes ready, or is no longer, or for another reason.
    async fn tell_news(&self, object: &C::Object, old: &[Condition], new: &[Condition]) {
        let of = |conditions: &[Condition], kind: &str| {
            conditions.iter().find(|condition| condition.type_ == kind).cloned()
        };
        let (kind, meta) = (C::Object::kind(), object.meta());
        let Some(ready) = of(new, READY) else { return };
        let was = of(old, READY);
        let same = |was: &Condition| (&was.status, &was.reason) == (&ready.status, &ready.reason);
        if was.as_ref().is_some_and(same) {
            return;
        }
        let degraded = of(new, DEGRADED).is_some_and(|condition| condition.status == "True");
        let stalled = of(new, STALLED).is_some_and(|condition| condition.status == "True");
        if ready.status == "True" {
            self.events.normal(kind, meta, "Ready", "everything is as wanted").await;
        } else if degraded || stalled {
            self.events.warning(kind, meta, &ready.reason, &ready.message).await;
        }
    }
}

fn old_conditions(status: &Value) -> Vec<Condition> {
    let items = status.get("conditions").and_then(Value::as_array);
    items.into_iter().flatten().filter_map(|one| serde_json::from_value(one.clone()).ok()).collect()
}

/// All waits as one, since when, and how long until it is too long. The beginning survives a restart in the condition, and a
/// failure in between, after which nobody could say what is waited for.
fn wait_since(
    waits: &[Wait],
    failed: bool,
    old: &[Condition],
    memory: &mut Memory,
    now: Timestamp,
) -> (Option<Waiting>, Option<Duration>) {
    let Some(first) = waits.first() else {
        if !failed {
            memory.waiting = None;
        }
        return (None, None);
    };
    let before = old.iter().find(|condition| {
        condition.type_ == PROGRESSING && condition.status == "True" && condition.reason == first.reason
    });
    let since = match &memory.waiting {
        Some((reason, since)) if reason == first.reason => *since,
        None => before.and_then(Waiting::begun).unwrap_or(now),
        Some(_) => now,
    };
    memory.waiting = Some((first.reason.to_owned(), since));
    let patience = waits.iter().map(|wait| wait.patience).min().unwrap_or_default();
    let waited = Duration::try_from(now.duration_since(since)).unwrap_or_default();
    let overdue = waited >= patience;
    let on = waits.iter().map(|wait| wait.on.as_str()).collect::<Vec<_>>().join("; ");
    let again = (!overdue).then(|| patience - waited);
    (Some(Waiting { reason: first.reason, on, since, overdue }), again)
}

fn stalled_reason(failure: Option<&Failure>, waiting: Option<&Waiting>) -> Option<&'static str> {
    match (failure, waiting) {
        (Some(failure), _) => {
            let helpless = failure.disposition == Disposition::InvalidSpec;
            (failure.stalled || helpless).then_some(failure.reason)
        }
        (None, Some(waiting)) => waiting.overdue.then_some(waiting.reason),
        (None, None) => None,
    }
}

fn hash_of(value: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    hash_json(value, &mut hasher);
    hasher.finish()
}

/// Whether everything in `part` is so in `whole`; lists have to be equal but for the order of conditions. What is empty
/// may be missing: types leave it out.
fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            part.iter().all(|(name, value)| match (whole.get(name), value) {
                (None, value) => is_empty(value),
                (Some(Value::Array(whole)), Value::Array(part)) if name == "conditions" => {
                    part.iter().all(|item| whole.iter().any(|found| contains(found, item)))
                }
                (Some(found), value) => contains(found, value),
            })
        }
        (whole, part) => whole == part || (is_empty(whole) && is_empty(part)),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_empty),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::conditions::Truth;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn wait(reason: &'static str, seconds: u64) -> Wait {
        Wait { reason, on: reason.to_lowercase(), patience: Duration::from_secs(seconds) }
    }

    #[test]
    fn a_wait_is_looked_at_again_when_patience_ends_and_is_then_a_stall() {
        let (mut memory, waits) = (Memory::default(), [wait("Pods", 60), wait("Claim", 100)]);
        let (waiting, again) = wait_since(&waits, false, &[], &mut memory, at(1000));
        assert_eq!(again, Some(Duration::from_secs(60)));
        assert_eq!(waiting.map(|waiting| (waiting.on, waiting.overdue)), Some(("pods; claim".into(), false)));
        let (waiting, again) = wait_since(&waits, false, &[], &mut memory, at(1020));
        assert_eq!((waiting.unwrap().since, again), (at(1000), Some(Duration::from_secs(40))));
        let (waiting, again) = wait_since(&waits, false, &[], &mut memory, at(1060));
        assert_eq!((waiting.unwrap().overdue, again), (true, None));
        // For something else it begins anew.
        let (waiting, _) = wait_since(&[wait("Claim", 60)], false, &[], &mut memory, at(1060));
        assert_eq!(waiting.map(|waiting| (waiting.since, waiting.overdue)), Some((at(1060), false)));
        // A failure, after which nobody can say what is waited for, does not end it.
        assert_eq!(wait_since(&[], true, &[], &mut memory, at(1065)), (None, None));
        let (waiting, _) = wait_since(&[wait("Claim", 60)], false, &[], &mut memory, at(1066));
        assert_eq!(waiting.unwrap().since, at(1060));
        assert_eq!(wait_since(&[], false, &[], &mut memory, at(1070)), (None, None));
        let (waiting, _) = wait_since(&waits, false, &[], &mut memory, at(1080));
        assert_eq!(waiting.unwrap().since, at(1080));
    }

    #[test]
    fn a_wait_goes_on_after_a_restart_where_it_was() {
        let mut before = Conditions::new(&[], 1, at(1000));
        before.set(PROGRESSING, Truth::True, "Pods", "waiting for pods since 1970-01-01T00:17:00Z");
        let before = before.finish();
        let (waiting, _) = wait_since(&[wait("Pods", 60)], false, &before, &mut Memory::default(), at(1100));
        assert_eq!(waiting.map(|waiting| (waiting.since, waiting.overdue)), Some((at(1020), true)));
        let (waiting, _) = wait_since(&[wait("Claim", 60)], false, &before, &mut Memory::default(), at(1100));
        assert_eq!(waiting.unwrap().since, at(1100));
    }

    #[test]
    fn a_status_is_written_only_for_a_difference() {
        let list = json!([{ "type": "a" }, { "type": "b" }]);
        let whole = json!({ "a": 1, "theirs": true, "list": list, "conditions": [{ "type": "X", "status": "True" }, { "type": "Y" }] });
        for same in [
            json!({}),
            json!({ "a": 1, "empty": [], "nothing": null, "none": {} }),
            json!({ "conditions": [{ "type": "Y" }, { "type": "X", "status": "True" }] }),
        ] {
            assert!(contains(&whole, &same), "{same}");
        }
        for other in [
            json!({ "a": 2 }),
            json!({ "b": 1 }),
            json!({ "conditions": [{ "type": "X", "status": "False" }] }),
            json!({ "conditions": [{ "type": "Z" }] }),
            json!({ "list": [] }),
            json!({ "list": [{ "type": "a" }] }),
        ] {
            assert!(!contains(&whole, &other), "{other}");
        }
    }
}
