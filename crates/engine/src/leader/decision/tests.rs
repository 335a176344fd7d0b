//! The rules one by one, and a simulated world in which everything goes wrong that can.

mod simulation;

use proptest::prelude::*;

use super::*;

const LEASE: Duration = Duration::from_secs(15);
const DEADLINE: Duration = Duration::from_secs(10);

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn clock(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn held(by: &str, renewed: i64) -> LeaseSpec {
    LeaseSpec {
        holder_identity: Some(by.to_owned()),
        lease_duration_seconds: Some(15),
        acquire_time: Some(MicroTime(clock(1))),
        renew_time: Some(MicroTime(clock(renewed))),
        lease_transitions: Some(4),
        ..LeaseSpec::default()
    }
}

fn known(version: u32, spec: LeaseSpec) -> Option<Known> {
    Some(Known { version: version.to_string(), spec })
}

fn candidate(now: Instant) -> Candidate {
    Candidate::new("me", LEASE, DEADLINE, now)
}

fn change(step: Step) -> (String, LeaseSpec) {
    match step {
        Step::Change { version, spec } => (version, spec),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_lease_that_was_never_there_is_made_at_once() {
    let start = Instant::now();
    let mut me = candidate(start);
    assert_eq!(me.next(start, clock(9)), Step::Read);
    me.observe(None, start);
    let Step::Create(spec) = me.next(start, clock(9)) else { panic!("no create") };
    assert_eq!((spec.holder_identity.as_deref(), spec.lease_transitions), (Some("me"), Some(0)));
    assert_eq!(spec.lease_duration_seconds, Some(15));
    assert_eq!((spec.acquire_time.clone(), spec.renew_time), (spec.acquire_time, Some(MicroTime(clock(9)))));
}

#[test]
fn anothers_lease_ends_when_it_has_not_changed_for_its_duration_on_our_clock() {
    let start = Instant::now();
    let mut me = candidate(start);
    // Renewed long ago, or in the future, by its clock: both say nothing.
    for (version, renewed) in [(1, 1), (2, 4_000_000_000)] {
        let now = start + seconds(u64::from(version) * 7);
        me.observe(known(version, held("other", renewed)), now);
        assert_eq!(me.next(now, clock(9)), Step::Wait { until: now + LEASE });
    }
    let changed = start + seconds(14);
    // A touched label gives it a new version and the holder no more time.
    me.observe(known(3, held("other", 4_000_000_000)), changed + seconds(14));
    assert_eq!(me.next(changed + seconds(14), clock(9)), Step::Wait { until: changed + LEASE });
    let (version, spec) = change(me.next(changed + LEASE, clock(9)));
    assert_eq!((version.as_str(), spec.holder_identity.as_deref()), ("3", Some("me")));
    assert_eq!((spec.lease_transitions, spec.acquire_time), (Some(5), Some(MicroTime(clock(9)))));
}

#[test]
fn a_record_without_a_duration_is_given_ours() {
    let start = Instant::now();
    let mut me = candidate(start);
    me.observe(known(1, LeaseSpec { lease_duration_seconds: None, ..held("other", 1) }), start);
    assert_eq!(me.next(start, clock(9)), Step::Wait { until: start + LEASE });
}

#[test]
fn a_released_lease_is_taken_at_once() {
    let start = Instant::now();
    let mut me = candidate(start);
    for holder in [Some(String::new()), None] {
        me.observe(known(1, LeaseSpec { holder_identity: holder, ..held("", 1) }), start);
        assert_eq!(change(me.next(start, clock(9))).1.lease_transitions, Some(5));
    }
}

#[test]
fn a_holder_renews_over_its_own_version_without_reading() {
    let start = Instant::now();
    let mut me = candidate(start);
    me.observe(None, start);
    me.written(known(7, held("me", 1)).unwrap(), start, start + seconds(1));
    let (version, spec) = change(me.next(start + seconds(2), clock(9)));
    assert_eq!((version.as_str(), spec.lease_transitions), ("7", Some(4)));
    assert_eq!((spec.acquire_time, spec.renew_time), (Some(MicroTime(clock(1))), Some(MicroTime(clock(9)))));
}

#[test]
fn a_term_ends_at_the_deadline_counted_from_before_the_renewal_was_sent() {
    let start = Instant::now();
    let mut me = candidate(start);
    me.written(known(7, held("me", 1)).unwrap(), start, start + seconds(6));
    assert_eq!(me.ends(), Some(start + DEADLINE));
    assert!(matches!(me.next(start + DEADLINE - Duration::from_nanos(1), clock(9)), Step::Change { .. }));
    assert_eq!(me.next(start + DEADLINE, clock(9)), Step::Lost);
    me.look_again();
    assert_eq!(me.next(start + DEADLINE, clock(9)), Step::Lost, "there is nothing to read for");
}

#[test]
fn a_holder_that_sees_another_or_nobody_has_lost() {
    let start = Instant::now();
    for holder in ["other", ""] {
        let mut me = candidate(start);
        me.written(known(7, held("me", 1)).unwrap(), start, start);
        me.look_again();
        assert_eq!(me.next(start, clock(9)), Step::Read);
        me.observe(known(8, held(holder, 2)), start);
        assert_eq!(me.next(start, clock(9)), Step::Lost);
        assert_eq!(me.release(clock(9)), None, "it is not ours to give back");
    }
}

#[test]
fn a_deleted_lease_is_made_again_by_its_holder_and_left_alone_by_others() {
    let start = Instant::now();
    let (mut holder, mut other) = (candidate(start), candidate(start));
    holder.written(known(7, held("me", 1)).unwrap(), start, start);
    other.observe(known(7, held("somebody", 1)), start);
    let gone = start + seconds(3);
    holder.observe(None, gone);
    other.observe(None, gone);
    assert!(matches!(holder.next(gone, clock(9)), Step::Create(_)));
    assert_eq!(other.next(gone, clock(9)), Step::Wait { until: gone + LEASE });
    for look in [7, 14] {
        other.observe(None, gone + seconds(look));
        assert_eq!(other.next(gone + seconds(look), clock(9)), Step::Wait { until: gone + LEASE });
    }
    assert!(matches!(other.next(gone + LEASE, clock(9)), Step::Create(_)));
    // Standing still, it may have missed one that was made, held and deleted too.
    let thawed = gone + seconds(60);
    other.observe(None, thawed);
    assert_eq!(other.next(thawed, clock(9)), Step::Wait { until: thawed + LEASE });
}

#[test]
fn what_is_given_back_is_free_and_short() {
    let start = Instant::now();
    let mut me = candidate(start);
    me.written(known(7, held("me", 1)).unwrap(), start, start);
    let (version, spec) = me.release(clock(9)).unwrap();
    assert_eq!((version.as_str(), spec.holder_identity.as_deref()), ("7", Some("")));
    assert_eq!((spec.lease_duration_seconds, spec.lease_transitions), (Some(1), Some(4)));
}

#[test]
fn the_written_duration_is_never_shorter_than_ours() {
    for (ours, written) in [(1, 1), (999, 1), (1000, 1), (1001, 2), (15_000, 15)] {
        assert_eq!(whole_seconds(Duration::from_millis(ours)), written);
    }
    assert_eq!(whole_seconds(Duration::MAX), i32::MAX);
}

fn any_seen() -> impl Strategy<Value = Seen<'static>> {
    let lasts = (0..40u64).prop_map(seconds);
    prop_oneof![
        lasts.clone().prop_map(|lingers| Seen::Absent { lingers }),
        Just(Seen::Free),
        (prop_oneof![Just("me"), Just("other")], lasts).prop_map(|(by, lasts)| Seen::Held { by, lasts }),
    ]
}

proptest! {
    #[test]
    fn decisions_keep_their_promises(
        seen in any_seen(),
        since in 0..100u64,
        ends in proptest::option::of(0..100u64),
        now in 0..100u64,
    ) {
        let start = Instant::now();
        let at = |second: u64| start + seconds(second);
        let ends = ends.map(at);
        match decide(seen, at(since), "me", ends, at(now)) {
            Decision::Wait { until } => {
                prop_assert!(ends.is_none(), "a holder does not wait");
                prop_assert!(until > at(now), "a wait that is over is no wait");
                // Waiting is enough: nothing else has to happen for the lease to be taken.
                prop_assert_eq!(decide(seen, at(since), "me", None, until), Decision::Acquire);
            }
            Decision::Lost => prop_assert!(ends.is_some(), "only a holder can lose"),
            Decision::Renew => prop_assert!(ends.is_none_or(|ends| at(now) < ends)),
            Decision::Acquire => {
                prop_assert!(ends.is_none());
                let busy = matches!(seen, Seen::Held { by: "other", lasts } if at(now) < at(since) + lasts);
                prop_assert!(!busy, "taken from a holder");
            }
        }
    }
}
