//! Why a reconcile did not get to its end, and what helps: the disposition. The queue turns it into time.

use std::error::Error;
use std::time::Duration;

use crate::queue::{Backoff, Next};

/// What helps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Disposition {
    /// An edit by the user.
    InvalidSpec,
    /// A change of something else, which the message names.
    Blocked { on: String },
    /// Another try.
    Transient,
    /// Another try as soon as the cache has caught up.
    Conflict,
    /// A new release.
    Bug,
}

impl Disposition {
    /// When to look again. Blocked objects are woken by what they wait for; the pause is for what cannot be watched.
    #[must_use]
    pub fn next(&self) -> Next {
        let backoff = |first, longest| Next::Retry(Backoff { first, longest });
        match self {
            Self::InvalidSpec => Next::Rest,
            Self::Blocked { .. } => backoff(Duration::from_secs(2), Duration::from_secs(300)),
            Self::Transient => backoff(Duration::from_millis(500), Duration::from_secs(60)),
            Self::Conflict => backoff(Duration::from_millis(50), Duration::from_secs(5)),
            Self::Bug => backoff(Duration::from_secs(10), Duration::from_secs(600)),
        }
    }

    /// As metrics name it.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::InvalidSpec => "InvalidSpec",
            Self::Blocked { .. } => "Blocked",
            Self::Transient => "Transient",
            Self::Conflict => "Conflict",
            Self::Bug => "Bug",
        }
    }

    /// Of several failures the one that needs help most speaks for all.
    const fn weight(&self) -> u8 {
        match self {
            Self::Bug => 4,
            Self::InvalidSpec => 3,
            Self::Blocked { .. } => 2,
            Self::Transient => 1,
            Self::Conflict => 0,
        }
    }
}

/// A step that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    pub disposition: Disposition,
    /// One CamelCase word, stable: the reason of conditions and events.
    pub reason: &'static str,
    /// For people: what was attempted, what is wrong, what to do.
    pub message: String,
    /// A deadline passed: this is no longer a delay.
    pub stalled: bool,
}

impl Failure {
    fn new(disposition: Disposition, reason: &'static str, message: impl Into<String>) -> Self {
        Self { disposition, reason, message: message.into(), stalled: false }
    }

    /// A mistake in the object; the message names the field and the fix.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(Disposition::InvalidSpec, "InvalidSpec", message)
    }

    /// Something else has to happen first.
    pub fn blocked(reason: &'static str, on: impl Into<String>) -> Self {
        let on = on.into();
        Self::new(Disposition::Blocked { on: on.clone() }, reason, format!("waiting for {on}"))
    }

    /// Worth another try.
    pub fn transient(reason: &'static str, message: impl Into<String>) -> Self {
        Self::new(Disposition::Transient, reason, message)
    }

    /// The cache is behind, or somebody else was faster.
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(Disposition::Conflict, "Conflict", message)
    }

    /// Our mistake.
    pub fn bug(message: impl Into<String>) -> Self {
        Self::new(Disposition::Bug, "Bug", message)
    }

    /// A deadline passed while waiting for `what`.
    pub fn deadline(what: &str, limit: Duration) -> Self {
        let message = format!("no answer within {} s: {what}", limit.as_secs());
        Self { stalled: true, ..Self::new(Disposition::Transient, "DeadlineExceeded", message) }
    }

    /// The API server's answer to `what`, or the lack of one.
    pub fn api(what: &str, error: &kube::Error) -> Self {
        let kube::Error::Api(status) = error else {
            let reason = if crate::fence::is_fenced(error) { "LeaseLost" } else { "ApiServerUnreachable" };
            return Self::transient(reason, format!("{what}: {}", causes(error)));
        };
        let message = format!("{what}: {}", status.message);
        let blocked = |reason, on: &str| {
            Self::new(Disposition::Blocked { on: format!("{on}: {what}") }, reason, message.clone())
        };
        match status.code {
            409 => Self::conflict(message),
            400 | 422 => blocked("Rejected", "the API server to accept this"),
            401 | 403 => blocked("Forbidden", "permission"),
            404 => blocked("NotServed", "its namespace or kind to exist"),
            _ => Self::transient("ApiServerError", message),
        }
    }

    /// One failure of several.
    #[must_use]
    pub fn all(failures: Vec<Self>) -> Option<Self> {
        let worst =
            failures.iter().enumerate().max_by_key(|(at, one)| (one.disposition.weight(), usize::MAX - at));
        let Self { disposition, reason, .. } = worst?.1.clone();
        let stalled = failures.iter().any(|one| one.stalled);
        let message = failures.into_iter().map(|one| one.message).collect::<Vec<_>>().join("; ");
        Some(Self { disposition, reason, message, stalled })
    }
}

/// An error with what lies behind it. kube's errors repeat their cause, so a cause that was said is not said again.
pub(crate) fn causes(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let words = cause.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    fn answer(code: u16) -> kube::Error {
        kube::Error::Api(Box::new(Status { code, message: "no".into(), ..Status::default() }))
    }

    #[test]
    fn answers_of_the_server_are_sorted_by_what_helps() {
        for (code, name) in [
            (409, "Conflict"),
            (422, "Blocked"),
            (403, "Blocked"),
            (404, "Blocked"),
            (429, "Transient"),
            (500, "Transient"),
            (503, "Transient"),
        ] {
            let failure = Failure::api("apply ConfigMap a/b", &answer(code));
            assert_eq!(failure.disposition.name(), name, "{code}");
            assert_eq!(failure.message, "apply ConfigMap a/b: no", "{code}");
        }
    }

    #[test]
    fn the_worst_of_several_speaks_for_all_and_all_are_told() {
        let all = Failure::all(vec![
            Failure::conflict("one"),
            Failure::invalid("two"),
            Failure::transient("X", "three"),
        ]);
        let all = all.unwrap();
        assert_eq!((all.reason, all.message.as_str()), ("InvalidSpec", "one; two; three"));
        assert_eq!(Failure::all(vec![]), None);
    }

    #[test]
    fn what_only_an_edit_helps_is_not_tried_again() {
        assert_eq!(Disposition::InvalidSpec.next(), Next::Rest);
        assert!(
            matches!(Disposition::Bug.next(), Next::Retry(backoff) if backoff.first >= Duration::from_secs(10))
        );
    }
}
