//! Liveness and readiness: named checks that components register, and the text that answers a probe.
//!
//! A check runs on every probe, on the server's own thread: it reads state that the component keeps, and never
//! waits or calls out. The answers look like those of kube-apiserver, but say why a check fails.

use std::fmt::{self, Write};
use std::sync::{Arc, PoisonError, RwLock};

use axum::Router;
use axum::extract::{Path, RawQuery};
use axum::http::StatusCode;
use axum::routing::get;

#[derive(Clone)]
struct Check {
    probe: Probe,
    name: &'static str,
    run: Arc<dyn Fn() -> Result<(), String> + Send + Sync>,
}

/// Which question a probe asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Probe {
    /// `/healthz`: should this process be restarted?
    Liveness,
    /// `/readyz`: does this process do its work?
    Readiness,
}

impl Probe {
    const fn path(self) -> &'static str {
        match self {
            Self::Liveness => "healthz",
            Self::Readiness => "readyz",
        }
    }
}

/// A handle on the checks of this process; clones share them.
#[derive(Clone, Default)]
pub struct Health {
    checks: Arc<RwLock<Vec<Check>>>,
}

impl Health {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a check, whose error says why it fails. A name may be used twice; then both must pass.
    pub fn add(
        &self,
        probe: Probe,
        name: &'static str,
        check: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) {
        let mut checks = self.checks.write().unwrap_or_else(PoisonError::into_inner);
        checks.push(Check { probe, name, run: Arc::new(check) });
    }

    /// The outcome of all checks of a probe, in the order in which they were added.
    #[must_use]
    pub fn outcomes(&self, probe: Probe) -> Vec<(&'static str, Result<(), String>)> {
        // Checks run outside the lock, so that one may be added meanwhile.
        let checks = self.checks.read().unwrap_or_else(PoisonError::into_inner).clone();
        checks.iter().filter(|check| check.probe == probe).map(|check| (check.name, (check.run)())).collect()
    }

    /// `/healthz` and `/readyz`, each also with `?verbose` and `/NAME`.
    pub fn router(&self) -> Router {
        [Probe::Liveness, Probe::Readiness].into_iter().fold(Router::new(), |router, probe| {
            let (all, one) = (self.clone(), self.clone());
            router
                .route(
                    &format!("/{}", probe.path()),
                    get(async move |RawQuery(query)| {
                        answer(probe, &all.outcomes(probe), detail(query.as_deref()))
                    }),
                )
                .route(
                    &format!("/{}/{{check}}", probe.path()),
                    get(async move |Path(name): Path<String>, RawQuery(query)| {
                        let mut outcomes = one.outcomes(probe);
                        outcomes.retain(|(of, _)| *of == name);
                        if outcomes.is_empty() {
                            return (StatusCode::NOT_FOUND, format!("no check '{name}'\n"));
                        }
                        answer(probe, &outcomes, detail(query.as_deref()))
                    }),
                )
        })
    }
}

impl fmt::Debug for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let checks = self.checks.read().unwrap_or_else(PoisonError::into_inner);
        f.debug_list().entries(checks.iter().map(|check| (check.probe, check.name))).finish()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Detail {
    Failing,
    All,
}

/// As in Kubernetes, the parameter counts by being there, whatever its value.
fn detail(query: Option<&str>) -> Detail {
    let mut pairs = query.unwrap_or_default().split('&');
    let asked = pairs.any(|pair| pair.split('=').next() == Some("verbose"));
    if asked { Detail::All } else { Detail::Failing }
}

fn answer(probe: Probe, outcomes: &[(&str, Result<(), String>)], detail: Detail) -> (StatusCode, String) {
    let failed = outcomes.iter().any(|(_, outcome)| outcome.is_err());
    if !failed && detail == Detail::Failing {
        return (StatusCode::OK, "ok".to_owned());
    }
    let mut text = String::new();
    for (name, outcome) in outcomes {
        // Writing into a String cannot fail.
        let _ = match outcome {
            Err(reason) => writeln!(text, "[-]{name} failed: {reason}"),
            Ok(()) if detail == Detail::All => writeln!(text, "[+]{name} ok"),
            Ok(()) => Ok(()),
        };
    }
    let (status, verdict) =
        if failed { (StatusCode::SERVICE_UNAVAILABLE, "failed") } else { (StatusCode::OK, "passed") };
    let _ = writeln!(text, "{} check {verdict}", probe.path());
    (status, text)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    fn failing(reason: &str) -> Result<(), String> {
        Err(reason.to_owned())
    }

    #[test]
    fn passing_checks_answer_ok() {
        assert_eq!(answer(Probe::Liveness, &[], Detail::Failing), (StatusCode::OK, "ok".into()));
        assert_eq!(
            answer(Probe::Readiness, &[("caches", Ok(()))], Detail::Failing),
            (StatusCode::OK, "ok".into())
        );
    }

    #[test]
    fn failing_checks_are_listed_with_their_reasons() {
        let outcomes =
            [("caches", Ok(())), ("lease", failing("held by another")), ("slurm", failing("no answer"))];
        let (status, text) = answer(Probe::Readiness, &outcomes, Detail::Failing);
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(
            text,
            "[-]lease failed: held by another\n[-]slurm failed: no answer\nreadyz check failed\n"
        );
    }

    #[test]
    fn verbose_lists_what_passes_too() {
        let (status, text) = answer(Probe::Readiness, &[("caches", Ok(()))], Detail::All);
        assert_eq!((status, text.as_str()), (StatusCode::OK, "[+]caches ok\nreadyz check passed\n"));
        let outcomes = [("caches", Ok(())), ("lease", failing("lost"))];
        let (status, text) = answer(Probe::Readiness, &outcomes, Detail::All);
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(text, "[+]caches ok\n[-]lease failed: lost\nreadyz check failed\n");
    }

    #[test]
    fn verbose_counts_by_being_there() {
        for query in ["verbose", "verbose=", "verbose=1", "exclude=x&verbose=true"] {
            assert_eq!(detail(Some(query)), Detail::All, "{query}");
        }
        for query in [None, Some(""), Some("verbosely"), Some("a=verbose")] {
            assert_eq!(detail(query), Detail::Failing);
        }
    }

    #[test]
    fn checks_follow_the_state_they_watch() {
        let health = Health::new();
        let ready = Arc::new(AtomicBool::new(false));
        let watched = Arc::clone(&ready);
        health.add(Probe::Readiness, "caches", move || {
            if watched.load(Ordering::Relaxed) { Ok(()) } else { failing("not synced") }
        });
        assert_eq!(health.outcomes(Probe::Readiness), [("caches", failing("not synced"))]);
        ready.store(true, Ordering::Relaxed);
        assert_eq!(health.outcomes(Probe::Readiness), [("caches", Ok(()))]);
    }

    #[test]
    fn readiness_does_not_touch_liveness() {
        let health = Health::new();
        health.add(Probe::Readiness, "lease", || failing("lost"));
        assert_eq!(health.outcomes(Probe::Liveness), []);
    }

    #[test]
    fn a_check_may_add_a_check() {
        let health = Health::new();
        let again = health.clone();
        health.add(Probe::Liveness, "outer", move || {
            again.add(Probe::Liveness, "inner", || Ok(()));
            Ok(())
        });
        assert_eq!(health.outcomes(Probe::Liveness).len(), 1);
        assert_eq!(health.outcomes(Probe::Liveness).len(), 2);
    }
}
