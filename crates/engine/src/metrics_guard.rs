//! Who may read metrics: whoever shows a bearer token that the API server knows, of someone whom it lets `get` the
//! path `/metrics`. The same question, with the same lifetimes of its answers, as controller-runtime's
//! `filters.WithAuthenticationAndAuthorization`, so that roles written for that work here.
//!
//! It fails closed: without an answer of the API server nobody reads anything. Tokens are never logged, and never
//! kept: what is remembered about one is found by its SHA-256.

mod answers;
mod reviews;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use kube::Client;
use tokio::sync::Mutex;
use tokio::time::timeout;
use tracing::{debug, info, warn};

use answers::{Answers, Digest, digest};
use reviews::{Access, ReviewError, User};

/// What the program must be allowed to do for this: API group, resource, verb; all without a namespace.
pub const NEEDS: &[(&str, &str, &str)] = &[
    ("authentication.k8s.io", "tokenreviews", "create"),
    ("authorization.k8s.io", "subjectaccessreviews", "create"),
];

const REMEMBER_TOKEN: Duration = Duration::from_secs(60);
const REMEMBER_ALLOWED: Duration = Duration::from_secs(5 * 60);
const REMEMBER_DENIED: Duration = Duration::from_secs(30);

/// How long to wait for one answer of the API server, and for one's turn to ask.
const DEADLINE: Duration = Duration::from_secs(10);

/// How many tokens are asked about at once.
const TURNS: usize = 8;

/// The guard; clones share what it remembers.
#[derive(Clone)]
pub struct MetricsGuard {
    shared: Arc<Shared>,
}

struct Shared {
    client: Client,
    users: Answers<Arc<User>>,
    /// Apart from `users`, so that a flood of wrong tokens pushes out none that is right.
    strangers: Answers<()>,
    access: Answers<Access>,
    /// A token's turn is chosen by its digest: requests with the same token wait for the first one's answer, and
    /// there are never more reviews on their way than turns.
    turns: [Mutex<()>; TURNS],
    /// Whether the last review failed; said once, and not at every scrape.
    failing: AtomicBool,
}

impl MetricsGuard {
    #[must_use]
    pub fn new(client: Client) -> Self {
        let shared = Shared {
            client,
            users: Answers::default(),
            strangers: Answers::default(),
            access: Answers::default(),
            turns: std::array::from_fn(|_| Mutex::new(())),
            failing: AtomicBool::new(false),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Puts the guard before all that a router answers. Whatever path is asked for, the right to `get /metrics` is
    /// what counts: nothing else is served beside it.
    pub fn protect(&self, router: Router) -> Router {
        router.layer(from_fn_with_state(Arc::clone(&self.shared), check))
    }
}

impl fmt::Debug for MetricsGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetricsGuard").finish_non_exhaustive()
    }
}

async fn check(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let admitted = match bearer_token(request.headers()) {
        Some(token) => shared.admit(token).await,
        None => Err(Refusal::NoToken),
    };
    match admitted {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    }
}

/// The token of `Authorization: Bearer TOKEN`, read as Kubernetes reads it.
fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let (scheme, rest) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.trim().split_once(' ')?;
    let token = rest.split(' ').next().unwrap_or_default();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

impl Shared {
    async fn admit(&self, token: &str) -> Result<(), Refusal> {
        let key = digest(token.as_bytes());
        if let Some(verdict) = self.remembered(&key) {
            return verdict;
        }
        let turn = &self.turns[usize::from(key[0]) % TURNS];
        let _turn =
            timeout(DEADLINE, turn.lock()).await.map_err(|_| Refusal::Unanswered(ReviewError::Busy))?;
        // Whoever had the turn before may have asked the same.
        if let Some(verdict) = self.remembered(&key) {
            return verdict;
        }
        let verdict = self.ask(token, key).await;
        self.note(&verdict);
        verdict
    }

    /// What is known without asking.
    fn remembered(&self, key: &Digest) -> Option<Result<(), Refusal>> {
        if self.strangers.get(key).is_some() {
            return Some(Err(Refusal::Stranger));
        }
        let user = self.users.get(key)?;
        Some(verdict(&user, self.access.get(&user.digest())?))
    }

    async fn ask(&self, token: &str, key: Digest) -> Result<(), Refusal> {
        let user = match self.users.get(&key) {
            Some(user) => user,
            None => match self.in_time(reviews::who_is(&self.client, token)).await? {
                Some(user) => {
                    let user = Arc::new(user);
                    self.users.put(key, Arc::clone(&user), REMEMBER_TOKEN);
                    user
                }
                None => {
                    self.strangers.put(key, (), REMEMBER_TOKEN);
                    return Err(Refusal::Stranger);
                }
            },
        };
        // Another token of the same user may have brought the answer.
        let access = match self.access.get(&user.digest()) {
            Some(access) => access,
            None => {
                let access = self.in_time(reviews::may_read_metrics(&self.client, &user)).await?;
                let lifetime = match access {
                    Access::Allowed => REMEMBER_ALLOWED,
                    Access::Denied(_) => REMEMBER_DENIED,
                };
                self.access.put(user.digest(), access.clone(), lifetime);
                access
            }
        };
        verdict(&user, access)
    }

    async fn in_time<T>(&self, review: impl Future<Output = Result<T, ReviewError>>) -> Result<T, Refusal> {
        timeout(DEADLINE, review).await.unwrap_or(Err(ReviewError::TooLate)).map_err(Refusal::Unanswered)
    }

    fn note(&self, verdict: &Result<(), Refusal>) {
        let Err(Refusal::Unanswered(error)) = verdict else {
            if self.failing.swap(false, Ordering::Relaxed) {
                info!("the API server tells again who may read metrics");
            }
            return;
        };
        let error = error as &(dyn std::error::Error + 'static);
        if self.failing.swap(true, Ordering::Relaxed) {
            debug!(error, "metrics are refused to everyone");
        } else {
            warn!(error, "metrics are refused to everyone: the API server does not tell who may read them");
        }
    }
}

fn verdict(user: &User, access: Access) -> Result<(), Refusal> {
    match access {
        Access::Allowed => Ok(()),
        Access::Denied(reason) => Err(Refusal::Denied { user: user.name().to_owned(), reason }),
    }
}

/// Why a request is not answered with metrics.
#[derive(Debug)]
enum Refusal {
    NoToken,
    /// The API server does not know the token.
    Stranger,
    Denied {
        user: String,
        reason: Arc<str>,
    },
    Unanswered(ReviewError),
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let unauthorised =
            |text| (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Bearer")], text).into_response();
        match self {
            Self::NoToken => unauthorised("a bearer token is needed\n"),
            Self::Stranger => unauthorised("the bearer token is not accepted\n"),
            Self::Denied { user, reason } => {
                let because = if reason.is_empty() { String::new() } else { format!(": {reason}") };
                let text = format!(
                    "{user} may not get /metrics{because}\n\
                     It takes a ClusterRole with the nonResourceURL /metrics and the verb get.\n"
                );
                (StatusCode::FORBIDDEN, text).into_response()
            }
            Self::Unanswered(error) => {
                (error.status(), format!("{}\n", error.for_strangers())).into_response()
            }
        }
    }
}

#[cfg(test)]
mod tests;
