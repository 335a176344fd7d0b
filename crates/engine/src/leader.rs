//! Leader election on a Lease, by the rules and in the fields of client-go: a Go program that holds the Lease keeps us
//! off, and we keep it off.
//!
//! [`Election::run`] waits for the lease and then runs the writers of a product beside renewing it. Whatever writes does
//! so through a client that passes the election's [`Fence`], which closes by the clock alone, before anyone else can
//! lead. A lease that is lost does not end the process: it may hold another, and goes on as a candidate for this one.
//!
//! Whoever deletes a Lease, or writes its holder, by hand can make two lead: until the old holder's next renewal, a
//! `retry_period` later. Our own candidates hold back when a Lease that they have seen disappears; those of client-go,
//! and processes that start just then, do not.

mod contender;
pub mod decision;
mod standing;
#[cfg(test)]
mod tests;

use std::hash::{BuildHasher, RandomState};
use std::pin::pin;
use std::time::Duration;

use kube::Client;
use telemetry::Registry;
use thiserror::Error;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::warn;

use crate::fence::Fence;
use contender::Contender;
use standing::Report;
pub use standing::{Standing, Status};

/// How long `lead` may take to end after a shutdown. The lease is renewed meanwhile.
const DRAIN: Duration = Duration::from_secs(20);

/// Which lease, who we are, and how fast.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    pub namespace: String,
    pub name: String,
    /// Unique among all candidates; see [`identity`].
    pub identity: String,
    /// For how long others leave a lease alone that does not change. Written in whole seconds, rounded up.
    pub lease_duration: Duration,
    /// After how long without a renewal we stop.
    pub renew_deadline: Duration,
    /// How often the lease is renewed, or asked for.
    pub retry_period: Duration,
}

/// Settings with which leaders could not keep a lease, or two could lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SettingsError {
    #[error("the lease duration must be longer than the renew deadline")]
    DeadlineAfterLease,
    #[error("the renew deadline must be longer than the retry period")]
    PeriodAfterDeadline,
    #[error("the retry period must be longer than zero")]
    NoPeriod,
}

impl Settings {
    /// With the durations that client-go and controller-runtime have by default.
    #[must_use]
    pub fn new(namespace: impl Into<String>, name: impl Into<String>, identity: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
            identity: identity.into(),
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }

    /// For durations that a user gave.
    pub fn validate(&self) -> Result<(), SettingsError> {
        if self.retry_period.is_zero() {
            return Err(SettingsError::NoPeriod);
        }
        if self.renew_deadline <= self.retry_period {
            return Err(SettingsError::PeriodAfterDeadline);
        }
        if self.lease_duration <= self.renew_deadline {
            return Err(SettingsError::DeadlineAfterLease);
        }
        Ok(())
    }

    /// From when we must have stopped until another can begin.
    fn margin(&self) -> Duration {
        self.lease_duration.saturating_sub(self.renew_deadline)
    }
}

/// A name that no other process has: the host's, and something random, since a restarted pod keeps its name.
#[must_use]
pub fn identity() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    // Both states are seeded by the operating system.
    let random = || RandomState::new().hash_one(std::process::id());
    format!("{}_{:016x}{:016x}", host.trim(), random(), random())
}

/// One candidate for one lease.
#[derive(Debug)]
pub struct Election {
    contender: Contender,
    fence: Fence,
    status: Status,
    margin: Duration,
}

impl Election {
    /// `client` must have retries switched off (`Config::default_retry = false`): a renewal that kube repeats for minutes
    /// is of no use, and keeps the next one from being sent. It must not be the fenced client either.
    #[must_use]
    pub fn new(client: Client, settings: Settings, registry: &Registry) -> Self {
        let lease = format!("{}/{}", settings.namespace, settings.name);
        let (fence, gate) = Fence::closed(&lease);
        let report = Report::new(lease, &settings.name, registry);
        let (status, margin) = (report.status(), settings.margin());
        Self { contender: Contender::new(client, settings, gate, report), fence, status, margin }
    }

    /// Open while this replica leads.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.fence.clone()
    }

    /// How it stands, for readiness.
    #[must_use]
    pub fn status(&self) -> Status {
        self.status.clone()
    }

    /// Waits for the lease and runs `lead` while it is held, again and again until `shutdown`, or until `lead` ends by
    /// itself; then gives the lease back.
    ///
    /// The token given to `lead` is cancelled when it has to end: after a shutdown it has 20 s to drain, still as the
    /// leader; after a loss the fence is closed already, and it has until another may lead. Then it is dropped.
    pub async fn run<F>(self, shutdown: CancellationToken, lead: impl Fn(CancellationToken) -> F)
    where
        F: Future<Output = ()>,
    {
        let Self { mut contender, margin, .. } = self;
        while contender.acquire(&shutdown).await {
            if shutdown.is_cancelled() {
                return contender.release().await;
            }
            let lost = CancellationToken::new();
            let stop = CancellationToken::new();
            // A task of its own: work in `lead` that does not yield for seconds must not cost the lease.
            let kept = tokio::spawn(contender.keep(lost.clone(), stop.clone()));
            let kept = AbortOnDropHandle::new(kept);
            let term = lost.child_token();
            serve_term(lead(term.clone()), &term, &lost, &shutdown, margin).await;
            stop.cancel();
            contender = match kept.await {
                Ok(contender) => contender,
                Err(error) => match error.try_into_panic() {
                    Ok(panic) => std::panic::resume_unwind(panic),
                    // The runtime ends.
                    Err(_) => return,
                },
            };
            if contender.holds() {
                return contender.release().await;
            }
        }
    }
}

/// Runs `lead` to its end, or to the end of the time that it has for it.
async fn serve_term(
    lead: impl Future<Output = ()>,
    term: &CancellationToken,
    lost: &CancellationToken,
    shutdown: &CancellationToken,
    margin: Duration,
) {
    let mut lead = pin!(lead);
    tokio::select! {
        () = &mut lead => return,
        () = lost.cancelled() => {}
        () = shutdown.cancelled() => {
            term.cancel();
            tokio::select! {
                () = &mut lead => return,
                () = lost.cancelled() => {}
                () = sleep(DRAIN) => {
                    warn!(limit = ?DRAIN, "the leader's work did not drain in time: dropped");
                    return;
                }
            }
        }
    }
    if timeout(margin, &mut lead).await.is_err() {
        warn!(limit = ?margin, "the leader's work did not end after the lease was lost: dropped");
    }
}
