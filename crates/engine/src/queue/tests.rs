//! The schedule against its promises, and the queue in paused time.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

const MS: Duration = Duration::from_millis(1);

fn key(number: u8) -> Key {
    Key::new("a", &number.to_string())
}

fn burst() -> Burst {
    Burst { quiet: 20 * MS, most: 100 * MS }
}

fn backoff() -> Backoff {
    Backoff { first: 10 * MS, longest: 1000 * MS }
}

#[derive(Debug, Clone)]
enum Happens {
    Add(u8, Lane, When),
    Take,
    Done(u8, bool),
    Wait(u8),
}

fn happens() -> impl Strategy<Value = Happens> {
    let lane = prop_oneof![Just(Lane::Change), Just(Lane::Resync)];
    let when = prop_oneof![Just(When::Now), Just(When::Settled)];
    prop_oneof![
        3 => (0..6_u8, lane, when).prop_map(|(key, lane, when)| Happens::Add(key, lane, when)),
        3 => Just(Happens::Take),
        2 => (0..6_u8, any::<bool>()).prop_map(|(key, well)| Happens::Done(key, well)),
        2 => (1..40_u8).prop_map(Happens::Wait),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    /// No key is given out twice at a time, none that was asked for is forgotten, and none waits longer than it may.
    #[test]
    fn nothing_is_lost_doubled_or_late(events in prop::collection::vec(happens(), 1..120)) {
        let mut now = Instant::now();
        let mut schedule = Schedule::new(burst());
        let mut running = BTreeSet::new();
        // Since when somebody waits for a key that is not being worked on, and how long that may take.
        let mut wanted: BTreeMap<u8, Instant> = BTreeMap::new();
        let mut again = BTreeSet::new();
        for event in events {
            match event {
                Happens::Add(number, lane, when) => {
                    schedule.add(&key(number), lane, when, now);
                    if running.contains(&number) {
                        again.insert(number);
                    } else {
                        let latest = if when == When::Now { now } else { now + burst().most };
                        let due = wanted.entry(number).or_insert(latest);
                        *due = latest.min(*due);
                    }
                }
                Happens::Take => {
                    if let Some(taken) = schedule.take(now) {
                        let number: u8 = taken.key.name.parse().unwrap();
                        prop_assert!(running.insert(number), "given out twice");
                        wanted.remove(&number);
                    } else {
                        for (number, due) in &wanted {
                            prop_assert!(*due > now, "{number} is due and was not given out");
                        }
                    }
                }
                Happens::Done(number, well) => {
                    let next = if well { Next::Rest } else { Next::Retry(backoff()) };
                    schedule.done(&key(number), next, 0.5, now);
                    if running.remove(&number) {
                        if again.remove(&number) {
                            wanted.insert(number, now + burst().most);
                        } else if !well {
                            wanted.insert(number, now + backoff().longest);
                        }
                    }
                }
                Happens::Wait(time) => now += u32::from(time) * MS,
            }
            prop_assert_eq!(schedule.running().count(), running.len());
        }
        // Left to itself, everything that was asked for comes.
        for number in running {
            schedule.done(&key(number), Next::Rest, 0.5, now);
            if again.contains(&number) {
                wanted.insert(number, now + burst().most);
            }
        }
        now += 10 * backoff().longest;
        let mut came = BTreeSet::new();
        while let Some(taken) = schedule.take(now) {
            let number: u8 = taken.key.name.parse().unwrap();
            prop_assert!(came.insert(number), "given out twice");
        }
        prop_assert_eq!(came, wanted.into_keys().collect::<BTreeSet<_>>());
        prop_assert_eq!(schedule.depth(), 0);
        prop_assert_eq!(schedule.next_due(), None);
    }

    #[test]
    fn pauses_grow_up_to_the_longest_and_are_never_less_than_half_of_it(failures in 1..1000_u32, jitter in 0.0..1.0_f64) {
        let pause = backoff().pause(failures, jitter);
        let step = (backoff().first * 2_u32.saturating_pow(failures - 1).min(1000)).min(backoff().longest);
        prop_assert!(pause <= step && pause >= step / 2, "{pause:?} of {step:?}");
    }
}

#[test]
fn a_change_comes_before_a_resync_but_does_not_starve_it() {
    let (now, mut schedule) = (Instant::now(), Schedule::new(burst()));
    schedule.add(&key(200), Lane::Resync, When::Now, now);
    for number in 0..30 {
        schedule.add(&key(number), Lane::Change, When::Now, now);
    }
    let order: Vec<_> = std::iter::from_fn(|| schedule.take(now)).map(|taken| taken.key).collect();
    assert_eq!(order.len(), 31);
    assert_eq!(order[0], key(0));
    let place = order.iter().position(|taken| *taken == key(200)).unwrap();
    assert_eq!(place, FAIRNESS as usize);
}

#[test]
fn a_change_overtakes_its_own_resync() {
    let (now, mut schedule) = (Instant::now(), Schedule::new(burst()));
    schedule.add(&key(1), Lane::Resync, When::Now, now);
    schedule.add(&key(2), Lane::Resync, When::Now, now);
    schedule.add(&key(2), Lane::Change, When::Now, now);
    let taken: Vec<_> = std::iter::from_fn(|| schedule.take(now)).collect();
    assert_eq!(
        taken.iter().map(|taken| (taken.key.clone(), taken.lane)).collect::<Vec<_>>(),
        [(key(2), Lane::Change), (key(1), Lane::Resync)]
    );
}

#[test]
fn a_burst_is_one_look_and_has_an_end() {
    let (begin, mut schedule) = (Instant::now(), Schedule::new(burst()));
    let mut looks = Vec::new();
    // A change every 10 ms never leaves 20 ms of quiet.
    for step in 0..30_u32 {
        let now = begin + step * 10 * MS;
        if step <= 25 {
            schedule.add(&key(1), Lane::Change, When::Settled, now);
        }
        if schedule.take(now).is_some() {
            looks.push(now - begin);
            // At rest, but for another look in an hour.
            schedule.done(&key(1), Next::After(Duration::from_secs(3600)), 0.5, now);
        }
    }
    // At the limit after each first change, and when the changes end.
    assert_eq!(looks, [100 * MS, 210 * MS, 270 * MS]);
}

#[test]
fn success_forgets_failures() {
    let (mut now, mut schedule) = (Instant::now(), Schedule::new(burst()));
    let mut pauses = Vec::new();
    schedule.add(&key(1), Lane::Change, When::Now, now);
    for well in [false, false, false, true, false] {
        let taken = schedule.take(now).unwrap();
        schedule.done(&taken.key, if well { Next::After(5 * MS) } else { Next::Retry(backoff()) }, 1.0, now);
        let due = schedule.next_due().unwrap();
        pauses.push(due - now);
        now = due;
    }
    assert_eq!(pauses, [10 * MS, 20 * MS, 40 * MS, 5 * MS, 10 * MS]);
}

#[test]
fn a_change_does_not_wait_for_the_end_of_a_pause() {
    let (now, mut schedule) = (Instant::now(), Schedule::new(burst()));
    schedule.add(&key(1), Lane::Change, When::Now, now);
    let taken = schedule.take(now).unwrap();
    schedule.done(&taken.key, Next::Retry(backoff()), 1.0, now);
    assert_eq!(schedule.take(now), None);
    schedule.add(&key(1), Lane::Change, When::Now, now);
    assert_eq!(schedule.take(now).map(|taken| taken.failures), Some(1));
}

#[test]
fn what_was_given_out_to_somebody_who_is_gone_comes_again() {
    let (now, mut schedule) = (Instant::now(), Schedule::new(burst()));
    schedule.add(&key(1), Lane::Change, When::Now, now);
    assert!(schedule.take(now).is_some());
    assert_eq!(schedule.take(now), None);
    schedule.release(now);
    assert_eq!(schedule.take(now).map(|taken| taken.lane), Some(Lane::Resync));
}

#[tokio::test(start_paused = true)]
async fn the_queue_wakes_for_what_is_added_and_for_what_is_due() {
    let queue = std::sync::Arc::new(Queue::new(burst(), Counter::default()));
    let begin = Instant::now();
    let adding = std::sync::Arc::clone(&queue);
    tokio::spawn(async move {
        tokio::time::sleep(30 * MS).await;
        adding.add(&key(1), Lane::Change, When::Now);
    });
    assert_eq!(queue.next().await.key, key(1));
    assert_eq!(begin.elapsed(), 30 * MS);
    queue.done(&key(1), Next::After(500 * MS), 0.5);
    queue.add(&key(2), Lane::Change, When::Settled);
    assert_eq!(queue.next().await.key, key(2));
    assert_eq!(begin.elapsed(), 50 * MS);
    assert_eq!(queue.next().await.key, key(1));
    assert_eq!(begin.elapsed(), 530 * MS);
}
