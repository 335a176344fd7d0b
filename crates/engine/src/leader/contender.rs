//! One replica at the API server: it asks what the [`Candidate`] wants to know, writes what it decides, and opens and
//! closes the fence accordingly.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::Settings;
use super::decision::{Candidate, Known, Step};
use super::standing::Report;
use crate::fence::Gate;

/// A write that meets another's is tried once more on what the other left.
const TRIES: usize = 2;

#[derive(Debug)]
pub(super) struct Contender {
    leases: Api<Lease>,
    settings: Settings,
    candidate: Candidate,
    gate: Gate,
    report: Report,
    /// When the last round began.
    began: Instant,
}

/// How an attempt to hold the lease came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Round {
    Held,
    /// Not to be had before this moment; or just now, if somebody was quicker.
    Waiting(Option<Instant>),
    Lost,
    Stopped,
}

/// Why a request did not do what it should.
enum Failure {
    /// The Lease is not as we knew it, or not there.
    Outdated,
    Other(String),
}

impl Contender {
    pub(super) fn new(client: Client, settings: Settings, gate: Gate, report: Report) -> Self {
        let now = Instant::now();
        let Settings { identity, lease_duration, renew_deadline, .. } = &settings;
        Self {
            leases: Api::namespaced(client, &settings.namespace),
            candidate: Candidate::new(identity, *lease_duration, *renew_deadline, now),
            settings,
            gate,
            report,
            began: now,
        }
    }

    pub(super) fn holds(&self) -> bool {
        self.candidate.ends().is_some()
    }

    /// Waits for the lease. False: shutdown came first.
    pub(super) async fn acquire(&mut self, shutdown: &CancellationToken) -> bool {
        while !shutdown.is_cancelled() {
            self.candidate.look_again();
            let round = self.round(shutdown).await;
            let mut next = self.began + jittered(self.settings.retry_period);
            match round {
                Ok(Round::Held) => {
                    self.report.leading();
                    return true;
                }
                Ok(Round::Stopped) => return false,
                Ok(Round::Waiting(until)) => {
                    self.report.following(self.candidate.holder());
                    next = until.map_or(next, |until| next.min(until));
                }
                Ok(Round::Lost) => {}
                Err(text) => self.report.failing(text),
            }
            shutdown.run_until_cancelled(sleep_until(next)).await;
        }
        false
    }

    /// Renews the lease until it is lost, which it tells by `lost`, or `stop` is cancelled.
    pub(super) async fn keep(mut self, lost: CancellationToken, stop: CancellationToken) -> Self {
        while let Some(ends) = self.candidate.ends() {
            let next = self.began + self.settings.retry_period;
            if stop.run_until_cancelled(sleep_until(next.min(ends))).await.is_none() {
                break;
            }
            match timeout_at(ends, self.round(&stop)).await {
                Ok(Ok(Round::Held)) => self.report.renewed(),
                Ok(Ok(Round::Stopped)) => break,
                // Another was quicker to make it after it was deleted, or wrote between: the next round reads it.
                Ok(Ok(Round::Waiting(_))) => {}
                Ok(Err(text)) => self.report.not_renewed(text),
                Ok(Ok(Round::Lost)) | Err(_) => {
                    self.gate.close();
                    lost.cancel();
                    let others =
                        Some(self.candidate.holder()).filter(|holder| *holder != self.settings.identity);
                    self.report.lost(others.unwrap_or_default());
                    self.candidate.resign();
                }
            }
        }
        self
    }

    /// Gives the lease back, so that nobody has to wait for its end.
    pub(super) async fn release(mut self) {
        // Before the request: whoever sees the lease free may lead the same moment.
        self.gate.close();
        self.report.stopped();
        for _ in 0..TRIES {
            let Some((version, spec)) = self.candidate.release(Timestamp::now()) else { return };
            let failure = match self.change(&version, spec).await {
                Ok(_) => return,
                Err(Failure::Outdated) => match self.read().await {
                    Ok(lease) => {
                        self.candidate.observe(lease, Instant::now());
                        continue;
                    }
                    Err(text) => text,
                },
                Err(Failure::Other(text)) => text,
            };
            self.report.not_released(&failure);
            return;
        }
    }

    /// Asks and writes until it is clear who holds the lease.
    async fn round(&mut self, stop: &CancellationToken) -> Result<Round, String> {
        self.began = Instant::now();
        let mut tries = TRIES;
        while tries > 0 {
            let sent = Instant::now();
            let answer = match self.candidate.next(sent, Timestamp::now()) {
                Step::Wait { until } => return Ok(Round::Waiting(Some(until))),
                Step::Lost => return Ok(Round::Lost),
                Step::Read => {
                    let Some(lease) = stop.run_until_cancelled(self.read()).await else {
                        return Ok(Round::Stopped);
                    };
                    self.candidate.observe(lease?, Instant::now());
                    continue;
                }
                // A write is not broken off by a stop: it may have been carried out, and we would not know its version.
                Step::Create(spec) => self.create(spec).await,
                Step::Change { version, spec } => self.change(&version, spec).await,
            };
            match answer {
                Ok(lease) => {
                    self.candidate.written(lease, sent, Instant::now());
                    if let Some(ends) = self.candidate.ends() {
                        self.gate.open_until(ends);
                    }
                    return Ok(Round::Held);
                }
                Err(Failure::Outdated) => self.candidate.look_again(),
                Err(Failure::Other(text)) => return Err(text),
            }
            tries -= 1;
        }
        Ok(Round::Waiting(None))
    }

    async fn read(&self) -> Result<Option<Known>, String> {
        match self.call(self.leases.get_opt(&self.settings.name)).await? {
            Ok(lease) => Ok(lease.map(known)),
            Err(error) => Err(describe(&error)),
        }
    }

    async fn create(&self, spec: LeaseSpec) -> Result<Known, Failure> {
        let metadata = ObjectMeta { name: Some(self.settings.name.clone()), ..ObjectMeta::default() };
        let lease = Lease { metadata, spec: Some(spec) };
        let answer = self.call(self.leases.create(&PostParams::default(), &lease)).await;
        match answer.map_err(Failure::Other)? {
            Ok(lease) => Ok(known(lease)),
            Err(kube::Error::Api(status)) if status.code == 409 => Err(Failure::Outdated),
            Err(error) => Err(Failure::Other(describe(&error))),
        }
    }

    async fn change(&self, version: &str, spec: LeaseSpec) -> Result<Known, Failure> {
        let patch = Patch::Merge(json!({ "metadata": { "resourceVersion": version }, "spec": spec }));
        let parameters = PatchParams::default();
        let answer = self.call(self.leases.patch(&self.settings.name, &parameters, &patch)).await;
        match answer.map_err(Failure::Other)? {
            Ok(lease) => Ok(known(lease)),
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Err(Failure::Outdated),
            Err(error) => Err(Failure::Other(describe(&error))),
        }
    }

    /// A call that hangs leaves time for another before the deadline.
    async fn call<T>(&self, call: impl Future<Output = kube::Result<T>>) -> Result<kube::Result<T>, String> {
        let limit = self.settings.renew_deadline / 2;
        timeout(limit, call).await.map_err(|_| format!("no answer within {limit:?}"))
    }
}

fn known(lease: Lease) -> Known {
    Known {
        version: lease.metadata.resource_version.unwrap_or_default(),
        spec: lease.spec.unwrap_or_default(),
    }
}

/// What the server said, or the whole chain of what went wrong on the way to it.
fn describe(error: &kube::Error) -> String {
    if let kube::Error::Api(status) = error
        && !status.message.is_empty()
    {
        return status.message.clone();
    }
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        let part = error.to_string();
        if !text.contains(&part) {
            text = format!("{text}: {part}");
        }
        cause = error.source();
    }
    text
}

/// A little less than a period, so that replicas do not ask in step and nobody waits longer than a period.
fn jittered(period: Duration) -> Duration {
    // Every state is seeded by the operating system.
    let percent = 80 + RandomState::new().hash_one(()) % 20;
    period.mul_f64(percent as f64 / 100.0)
}
