//! Who has to be looked at, and when: one entry per key, two lanes, backoff per key, bursts collapsed.
//!
//! [`Schedule`] is the decision: a state machine that is told the time. [`Queue`] is the same behind a lock, with a
//! wait until something is due. A key is never given out twice at the same time, and a change that comes while it is
//! being worked on brings it back afterwards.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::meta::Key;

/// After so many takes from the fast lane one from the slow lane: a busy cluster must not starve a resync.
const FAIRNESS: u32 = 8;

/// Which of two waiting keys comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// Somebody changed something and waits for it.
    Change,
    /// A list, a restart, a second look.
    Resync,
}

/// How soon a change has to be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    Now,
    /// When the burst that it belongs to is over.
    Settled,
}

/// How bursts collapse: look when it has been quiet for `quiet`, but no later than `most` after the first change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Burst {
    pub quiet: Duration,
    pub most: Duration,
}

impl Default for Burst {
    fn default() -> Self {
        Self { quiet: Duration::from_millis(200), most: Duration::from_secs(1) }
    }
}

/// Growing pauses between failed attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    pub first: Duration,
    pub longest: Duration,
}

impl Backoff {
    /// The pause after the given number of failures in a row, between half and the whole of the step, so that keys that
    /// failed together do not come back together. `jitter` is between 0 and 1.
    #[must_use]
    pub fn pause(&self, failures: u32, jitter: f64) -> Duration {
        let doubled = self.first.saturating_mul(1 << failures.saturating_sub(1).min(20));
        doubled.min(self.longest).mul_f64(0.5 + 0.5 * jitter.clamp(0.0, 1.0))
    }
}

/// What follows an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Nothing until something changes; failures are forgotten.
    Rest,
    /// Another look after this time; failures are forgotten.
    After(Duration),
    /// It failed: another attempt after a pause that grows.
    Retry(Backoff),
}

/// A key that was given out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    pub key: Key,
    pub lane: Lane,
    /// Since it was due.
    pub waited: Duration,
    /// Failed attempts in a row before this one.
    pub failures: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// In a lane, due since.
    Ready { lane: Lane, since: Instant },
    /// Not before; `first` is when the burst began, if this is one and no pause.
    Waiting { lane: Lane, at: Instant, first: Option<Instant> },
    /// Given out; `again` if something changed meanwhile.
    Running { since: Instant, again: Option<(Lane, When)> },
    /// Not wanted now; kept only to remember failures.
    Idle,
}

#[derive(Debug)]
struct Entry {
    state: State,
    failures: u32,
    /// What stands in a lane or among the waiting under another ticket is out of date.
    ticket: u64,
}

/// The decision, told the time.
#[derive(Debug, Default)]
pub struct Schedule {
    entries: HashMap<Key, Entry>,
    lanes: [VecDeque<(u64, Key)>; 2],
    waiting: BTreeSet<(Instant, u64, Key)>,
    tickets: u64,
    burst: Burst,
    favoured: u32,
    ready: usize,
}

impl Schedule {
    #[must_use]
    pub fn new(burst: Burst) -> Self {
        Self { burst, ..Self::default() }
    }

    /// Asks for a look at a key.
    pub fn add(&mut self, key: &Key, lane: Lane, when: When, now: Instant) {
        let settled = |first: Instant| (now + self.burst.quiet).min(first + self.burst.most);
        let state = match (self.entries.get(key).map_or(State::Idle, |entry| entry.state), when) {
            (State::Running { since, again }, _) => {
                let (lane, when) = again.map_or((lane, when), |(other, sooner)| {
                    (lane.min(other), if sooner == When::Now { sooner } else { when })
                });
                State::Running { since, again: Some((lane, when)) }
            }
            (State::Ready { lane: at, since }, _) if at <= lane => State::Ready { lane: at, since },
            (State::Ready { since, .. }, _) => State::Ready { lane, since },
            (State::Idle, When::Now) => State::Ready { lane, since: now },
            (State::Idle, When::Settled) => State::Waiting { lane, at: settled(now), first: Some(now) },
            (State::Waiting { lane: at, .. }, When::Now) => State::Ready { lane: lane.min(at), since: now },
            (State::Waiting { lane: other, at, first }, When::Settled) => {
                let begin = first.unwrap_or(now);
                let at = if first.is_some() { settled(begin).max(now) } else { settled(begin).min(at) };
                State::Waiting { lane: lane.min(other), at, first: Some(begin) }
            }
        };
        self.set(key, state);
    }

    /// The next key that is due, if there is one. It must come back by [`Schedule::done`].
    pub fn take(&mut self, now: Instant) -> Option<Taken> {
        while let Some((at, ticket, key)) = self.waiting.pop_first() {
            if at > now {
                self.waiting.insert((at, ticket, key));
                break;
            }
            if let Some(Entry { state: State::Waiting { lane, .. }, .. }) = self.entries.get(&key) {
                self.set(&key, State::Ready { lane: *lane, since: at });
            }
        }
        let slow_first = self.favoured >= FAIRNESS;
        let order = if slow_first { [Lane::Resync, Lane::Change] } else { [Lane::Change, Lane::Resync] };
        for lane in order {
            while let Some((ticket, key)) = self.lanes[lane as usize].pop_front() {
                let Some(entry) = self.entries.get(&key).filter(|entry| entry.ticket == ticket) else {
                    continue;
                };
                let State::Ready { since, .. } = entry.state else { continue };
                let failures = entry.failures;
                self.favoured = if lane == Lane::Change { self.favoured + 1 } else { 0 };
                self.set(&key, State::Running { since: now, again: None });
                return Some(Taken { key, lane, waited: now.saturating_duration_since(since), failures });
            }
        }
        None
    }

    /// A key comes back. `jitter` is between 0 and 1.
    pub fn done(&mut self, key: &Key, next: Next, jitter: f64, now: Instant) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let State::Running { again, .. } = entry.state else { return };
        entry.failures = match next {
            Next::Rest | Next::After(_) => 0,
            Next::Retry(_) => entry.failures.saturating_add(1),
        };
        let failures = entry.failures;
        let later = |pause: Duration| State::Waiting { lane: Lane::Resync, at: now + pause, first: None };
        let state = match next {
            Next::Rest => State::Idle,
            Next::After(pause) => later(pause),
            Next::Retry(backoff) => later(backoff.pause(failures, jitter)),
        };
        self.set(key, state);
        if let Some((lane, when)) = again {
            self.add(key, lane, when, now);
        }
    }

    /// Whoever worked is gone: what was given out has to be looked at again.
    pub fn release(&mut self, now: Instant) {
        let running: Vec<Key> = self.running().map(|(key, _)| key.clone()).collect();
        for key in running {
            self.set(&key, State::Ready { lane: Lane::Resync, since: now });
        }
    }

    /// When the next waiting key is due.
    #[must_use]
    pub fn next_due(&self) -> Option<Instant> {
        if self.ready > 0 {
            return None;
        }
        self.waiting.first().map(|(at, ..)| *at)
    }

    /// How many keys are due and not given out, in each lane together.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.ready
    }

    /// Since when each key is being worked on.
    pub fn running(&self) -> impl Iterator<Item = (&Key, Instant)> {
        self.entries.iter().filter_map(|(key, entry)| match entry.state {
            State::Running { since, .. } => Some((key, since)),
            _ => None,
        })
    }

    fn set(&mut self, key: &Key, state: State) {
        let old = self.entries.get(key).map_or(State::Idle, |entry| entry.state);
        if old == state {
            return;
        }
        let failures = self.entries.get(key).map_or(0, |entry| entry.failures);
        if let (State::Waiting { at, .. }, Some(entry)) = (old, self.entries.get(key)) {
            self.waiting.remove(&(at, entry.ticket, key.clone()));
        }
        self.ready -= usize::from(matches!(old, State::Ready { .. }));
        self.ready += usize::from(matches!(state, State::Ready { .. }));
        if state == State::Idle && failures == 0 {
            self.entries.remove(key);
            return;
        }
        self.tickets += 1;
        let ticket = self.tickets;
        match state {
            State::Ready { lane, .. } => self.lanes[lane as usize].push_back((ticket, key.clone())),
            State::Waiting { at, .. } => drop(self.waiting.insert((at, ticket, key.clone()))),
            State::Running { .. } | State::Idle => {}
        }
        self.entries.insert(key.clone(), Entry { state, failures, ticket });
    }
}

/// The schedule of one controller, shared by those who add and the one who takes.
#[derive(Debug, Default)]
pub struct Queue {
    schedule: Mutex<Schedule>,
    changed: Notify,
    adds: Counter,
}

impl Queue {
    #[must_use]
    pub fn new(burst: Burst, adds: Counter) -> Self {
        Self { schedule: Mutex::new(Schedule::new(burst)), changed: Notify::new(), adds }
    }

    pub fn add(&self, key: &Key, lane: Lane, when: When) {
        self.adds.inc();
        self.schedule().add(key, lane, when, Instant::now());
        self.changed.notify_one();
    }

    /// Waits for the next key that is due. For one caller at a time.
    pub async fn next(&self) -> Taken {
        loop {
            let due = {
                let mut schedule = self.schedule();
                if let Some(taken) = schedule.take(Instant::now()) {
                    return taken;
                }
                schedule.next_due()
            };
            match due {
                Some(at) => {
                    tokio::select! {
                        () = self.changed.notified() => {}
                        () = tokio::time::sleep_until(at) => {}
                    }
                }
                None => self.changed.notified().await,
            }
        }
    }

    pub fn done(&self, key: &Key, next: Next, jitter: f64) {
        self.schedule().done(key, next, jitter, Instant::now());
        self.changed.notify_one();
    }

    pub fn schedule(&self) -> MutexGuard<'_, Schedule> {
        self.schedule.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
