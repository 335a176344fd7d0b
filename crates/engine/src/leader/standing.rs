//! How it stands with a lease, told three ways at once: to whoever asks, to the log once per change, and as a metric.

use std::fmt;

use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use telemetry::Registry;
use tokio::sync::watch;
use tracing::{info, warn};

/// How it stands with a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// Nobody has been asked yet.
    Starting,
    /// This replica leads.
    Leading,
    /// Another leads; empty while nobody does.
    Following(String),
    /// It cannot be told, and why.
    Failing(String),
}

impl fmt::Display for Standing {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Starting => out.write_str("starting"),
            Self::Leading => out.write_str("leading"),
            Self::Following(holder) if holder.is_empty() => out.write_str("nobody leads"),
            Self::Following(holder) => write!(out, "following {holder}"),
            Self::Failing(text) => write!(out, "failing: {text}"),
        }
    }
}

/// A handle on how it stands; outlives the election.
#[derive(Debug, Clone)]
pub struct Status(watch::Receiver<Standing>);

impl Status {
    #[must_use]
    pub fn get(&self) -> Standing {
        self.0.borrow().clone()
    }

    /// Waits until it stands like that; false if it never will, because the election is over.
    pub async fn wait_for(&mut self, wanted: impl FnMut(&Standing) -> bool) -> bool {
        self.0.wait_for(wanted).await.is_ok()
    }
}

/// The one that says how it stands.
#[derive(Debug)]
pub(super) struct Report {
    lease: String,
    standing: watch::Sender<Standing>,
    master: Gauge,
    /// The error that was logged last, until something succeeds.
    error: Option<String>,
}

impl Report {
    /// `name` is what client-go's metric calls the lease.
    pub(super) fn new(lease: String, name: &str, registry: &Registry) -> Self {
        let masters: Family<[(&'static str, String); 1], Gauge> = registry.shared(
            "leader_election_master_status",
            "Whether this process leads for the lease: 1 if it does, 0 if it stands by",
        );
        let master = masters.get_or_create_owned(&[("name", name.to_owned())]);
        Self { lease, standing: watch::Sender::new(Standing::Starting), master, error: None }
    }

    pub(super) fn status(&self) -> Status {
        Status(self.standing.subscribe())
    }

    pub(super) fn leading(&mut self) {
        self.error = None;
        self.master.set(1);
        info!(lease = self.lease, "leading");
        self.standing.send_replace(Standing::Leading);
    }

    pub(super) fn renewed(&mut self) {
        if self.error.take().is_some() {
            info!(lease = self.lease, "the lease is renewed again");
        }
    }

    pub(super) fn not_renewed(&mut self, error: String) {
        self.log_error("the lease is not renewed", error);
    }

    pub(super) fn lost(&self, holder: &str) {
        self.master.set(0);
        warn!(lease = self.lease, holder, "the lease is lost");
        self.standing.send_replace(Standing::Following(holder.to_owned()));
    }

    pub(super) fn following(&mut self, holder: &str) {
        self.error = None;
        let now = Standing::Following(holder.to_owned());
        if *self.standing.borrow() != now {
            info!(lease = self.lease, holder, "standing by");
            self.standing.send_replace(now);
        }
    }

    pub(super) fn failing(&mut self, error: String) {
        self.log_error("the lease cannot be read or taken", error.clone());
        self.standing.send_if_modified(|standing| {
            let now = Standing::Failing(error);
            let changed = *standing != now;
            *standing = now;
            changed
        });
    }

    pub(super) fn stopped(&self) {
        self.master.set(0);
        info!(lease = self.lease, "not leading any more");
        self.standing.send_replace(Standing::Following(String::new()));
    }

    pub(super) fn not_released(&self, error: &str) {
        warn!(lease = self.lease, error, "the lease is not released: others wait for its end");
    }

    /// Once per text: what goes on for hours is one line.
    fn log_error(&mut self, message: &'static str, error: String) {
        if self.error.as_ref() != Some(&error) {
            warn!(lease = self.lease, error, "{message}");
            self.error = Some(error);
        }
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        self.master.set(0);
    }
}
