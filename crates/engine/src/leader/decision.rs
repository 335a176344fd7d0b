//! Who may lead: pure decisions about a Lease, by the rules of client-go, so that both can share one.
//!
//! Times that others wrote are never compared with ours, because clocks differ. Another's lease has ended when its record
//! has not changed for its whole duration on our own monotonic clock. Ours counts from before the request that renewed
//! it was sent, and ends at `renew_deadline`, which is shorter: whatever is late or lost on the way, we stop before
//! anyone else can begin.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::LeaseSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use tokio::time::Instant;

/// What a replica should do about the Lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Nobody holds it: take it.
    Acquire,
    /// It is ours: say so again.
    Renew,
    /// Somebody else holds it, at least so long.
    Wait { until: Instant },
    /// We led, and must not any more.
    Lost,
}

/// The Lease as it was last seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen<'a> {
    /// There is none. If there was one before, whoever held it may go on for a while.
    Absent { lingers: Duration },
    /// It names nobody.
    Free,
    /// It names a holder.
    Held { by: &'a str, lasts: Duration },
}

/// Decides from what was seen, since when on our own clock it has looked like that, who we are, and, if we lead,
/// when that ends unless it is renewed.
#[must_use]
pub fn decide(seen: Seen<'_>, since: Instant, me: &str, ends: Option<Instant>, now: Instant) -> Decision {
    if let Some(ends) = ends {
        return match seen {
            _ if now >= ends => Decision::Lost,
            Seen::Held { by, .. } if by == me => Decision::Renew,
            // Somebody deleted it. Candidates that knew it hold back, so there is time to make it again.
            Seen::Absent { .. } => Decision::Renew,
            // Also when it names nobody: another may have seen that too and lead the next moment.
            Seen::Held { .. } | Seen::Free => Decision::Lost,
        };
    }
    match seen {
        // A write whose answer was lost, or our own former term: a renewal makes sure.
        Seen::Held { by, .. } if by == me => Decision::Renew,
        Seen::Held { lasts, .. } | Seen::Absent { lingers: lasts } if now < since + lasts => {
            Decision::Wait { until: since + lasts }
        }
        Seen::Held { .. } | Seen::Absent { .. } | Seen::Free => Decision::Acquire,
    }
}

/// A Lease at one of its versions.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Known {
    pub(super) version: String,
    pub(super) spec: LeaseSpec,
}

/// The next thing to ask the server for.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    Read,
    Create(LeaseSpec),
    /// Only if it still has this version.
    Change {
        version: String,
        spec: LeaseSpec,
    },
    Wait {
        until: Instant,
    },
    Lost,
}

/// What one replica knows, and what follows from it. Does no I/O; is told every answer.
#[derive(Debug)]
pub(super) struct Candidate {
    me: String,
    lease_duration: Duration,
    renew_deadline: Duration,
    lease: Option<Known>,
    since: Instant,
    lingers: Duration,
    /// When it was last looked at.
    looked: Instant,
    /// Whether `lease` may be decided on without reading it again.
    fresh: bool,
    /// When the last successful renewal of this term was sent.
    renewed: Option<Instant>,
}

impl Candidate {
    pub(super) fn new(me: &str, lease_duration: Duration, renew_deadline: Duration, now: Instant) -> Self {
        Self {
            me: me.to_owned(),
            lease_duration,
            // A deadline past the lease itself would be no deadline.
            renew_deadline: renew_deadline.min(lease_duration),
            lease: None,
            since: now,
            lingers: Duration::ZERO,
            looked: now,
            fresh: false,
            renewed: None,
        }
    }

    /// When we stop to lead unless renewed; `None` if we do not lead.
    pub(super) fn ends(&self) -> Option<Instant> {
        self.renewed.map(|sent| sent + self.renew_deadline)
    }

    /// Who was last seen to hold it; empty for nobody.
    pub(super) fn holder(&self) -> &str {
        self.lease.as_ref().and_then(|known| known.spec.holder_identity.as_deref()).unwrap_or_default()
    }

    /// What to do now. `clock` is only written down, for people to read.
    pub(super) fn next(&self, now: Instant, clock: Timestamp) -> Step {
        if self.ends().is_some_and(|ends| now >= ends) {
            return Step::Lost;
        }
        // A holder writes over what it wrote last, which fails if anybody else did: reading first would tell no more.
        if !self.fresh {
            return Step::Read;
        }
        match decide(self.seen(), self.since, &self.me, self.ends(), now) {
            Decision::Wait { until } => Step::Wait { until },
            Decision::Lost => Step::Lost,
            Decision::Acquire | Decision::Renew => {
                let spec = self.claim(clock);
                match &self.lease {
                    None => Step::Create(spec),
                    Some(known) => Step::Change { version: known.version.clone(), spec },
                }
            }
        }
    }

    /// The Lease was read, or the server said that there is none.
    pub(super) fn observe(&mut self, lease: Option<Known>, now: Instant) {
        // Between two looks that are far apart a Lease may have been made, held and deleted again.
        let missed = now.duration_since(self.looked) > self.renew_deadline;
        let changed = match (&self.lease, &lease) {
            // Its metadata may be touched by anyone; the holder speaks through the record.
            (Some(old), Some(new)) => old.spec != new.spec,
            (None, None) => false,
            (Some(_), None) | (None, Some(_)) => true,
        };
        if changed {
            self.since = now;
            // Of a Lease that is gone it is not known who held it last, or until when.
            self.lingers = match self.seen() {
                Seen::Held { lasts, .. } => lasts.max(self.lease_duration),
                Seen::Free | Seen::Absent { .. } => self.lease_duration,
            };
        }
        if lease.is_none() && missed {
            self.since = now;
        }
        self.lease = lease;
        self.looked = now;
        self.fresh = true;
    }

    /// Our write has succeeded; `sent` is from before it was sent.
    pub(super) fn written(&mut self, lease: Known, sent: Instant, now: Instant) {
        self.observe(Some(lease), now);
        self.renewed = Some(sent);
    }

    /// What is known is out of date: somebody else wrote, or time has passed while we do not lead.
    pub(super) fn look_again(&mut self) {
        self.fresh = false;
    }

    /// We do not lead any more.
    pub(super) fn resign(&mut self) {
        self.renewed = None;
        self.fresh = false;
    }

    /// The record that gives the Lease back, if it is ours: as client-go does, free at once and short in any case.
    pub(super) fn release(&self, clock: Timestamp) -> Option<(String, LeaseSpec)> {
        let known = self.lease.as_ref()?;
        (self.holder() == self.me).then(|| {
            let spec = LeaseSpec {
                holder_identity: Some(String::new()),
                lease_duration_seconds: Some(1),
                acquire_time: Some(MicroTime(clock)),
                renew_time: Some(MicroTime(clock)),
                lease_transitions: known.spec.lease_transitions,
                ..LeaseSpec::default()
            };
            (known.version.clone(), spec)
        })
    }

    fn seen(&self) -> Seen<'_> {
        match &self.lease {
            None => Seen::Absent { lingers: self.lingers },
            Some(_) if self.holder().is_empty() => Seen::Free,
            Some(known) => {
                let seconds =
                    known.spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
                let lasts = seconds.map_or(self.lease_duration, Duration::from_secs);
                Seen::Held { by: self.holder(), lasts }
            }
        }
    }

    fn claim(&self, clock: Timestamp) -> LeaseSpec {
        let mine = self.holder() == self.me;
        let before = self.lease.as_ref().map(|known| &known.spec);
        let transitions = before.map_or(0, |spec| {
            spec.lease_transitions.unwrap_or_default().saturating_add(if mine { 0 } else { 1 })
        });
        let acquired = before.filter(|_| mine).and_then(|spec| spec.acquire_time.clone());
        LeaseSpec {
            holder_identity: Some(self.me.clone()),
            lease_duration_seconds: Some(whole_seconds(self.lease_duration)),
            acquire_time: Some(acquired.unwrap_or(MicroTime(clock))),
            renew_time: Some(MicroTime(clock)),
            lease_transitions: Some(transitions),
            ..LeaseSpec::default()
        }
    }
}

/// Rounded up: others must not think that it is shorter than we do.
fn whole_seconds(duration: Duration) -> i32 {
    let seconds = duration.as_secs().saturating_add(u64::from(duration.subsec_nanos() > 0));
    i32::try_from(seconds.max(1)).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests;
