//! Tokens for slurmrestd: where they come from, and one place that keeps the newest.
//!
//! Many callers share one renewal. A token is renewed before it ends, and at once when it was refused. Keys and
//! tokens are never printed.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde::Serialize;
use tokio::time::Instant;

/// Something that must not be printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Without blanks and line breaks around it, which files end with.
    pub fn new(text: impl AsRef<str>) -> Self {
        Self(text.as_ref().trim().into())
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Secret(…)")
    }
}

#[derive(Debug, Clone, thiserror::Error)]
pub enum TokenError {
    #[error("sign it: {0}")]
    Sign(String),
    #[error("`scontrol token`: {0}")]
    Scontrol(String),
    #[error("{0}")]
    Other(String),
}

/// A new token.
#[derive(Debug, Clone)]
pub struct Minted {
    /// None: requests carry no token, as on a socket that knows its peer.
    pub token: Option<Secret>,
    /// None: it does not end.
    pub lifetime: Option<Duration>,
}

/// Where tokens come from.
pub trait TokenSource: fmt::Debug + Send + Sync {
    fn mint(&self) -> BoxFuture<'_, Result<Minted, TokenError>>;
}

/// What a signed token says beside its user and its time.
#[derive(Debug, Clone, Copy, Default)]
pub struct Claims {
    pub issuer: Option<&'static str>,
    /// `sub`: the user once more.
    pub subject: bool,
    /// `nbf`: the moment of signing.
    pub not_before: bool,
    /// `jti`: a random UUID.
    pub id: bool,
}

/// Signs tokens with slurmctld's own key, HS256. The raw bytes of the key are used.
#[derive(Clone)]
pub struct Signed {
    pub key: Arc<[u8]>,
    pub user: Box<str>,
    pub claims: Claims,
    pub lifetime: Duration,
}

impl fmt::Debug for Signed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key: _, user, claims, lifetime } = self;
        out.debug_struct("Signed")
            .field("user", user)
            .field("claims", claims)
            .field("lifetime", lifetime)
            .finish_non_exhaustive()
    }
}

#[derive(Serialize)]
struct Payload<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    iss: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sub: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    jti: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nbf: Option<u64>,
    iat: u64,
    exp: u64,
    sun: &'a str,
}

impl Signed {
    /// A token from `now` on.
    pub fn sign(&self, now: SystemTime) -> Result<Secret, TokenError> {
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let Claims { issuer, subject, not_before, id } = self.claims;
        let payload = Payload {
            iss: issuer,
            sub: subject.then_some(&*self.user),
            jti: id.then(uuid),
            nbf: not_before.then_some(now),
            iat: now,
            exp: now.saturating_add(self.lifetime.as_secs()),
            sun: &self.user,
        };
        let key = EncodingKey::from_secret(&self.key);
        jsonwebtoken::encode(&Header::new(Algorithm::HS256), &payload, &key)
            .map(Secret::new)
            .map_err(|error| TokenError::Sign(error.to_string()))
    }
}

/// A random UUID of version 4.
fn uuid() -> String {
    let bits = (fastrand::u128(..) & !(0xf << 76) & !(0x3 << 62)) | (0x4 << 76) | (0x2 << 62);
    let hex = format!("{bits:032x}");
    [(0, 8), (8, 12), (12, 16), (16, 20), (20, 32)]
        .map(|(from, to)| hex.get(from..to).unwrap_or_default().to_owned())
        .join("-")
}

impl TokenSource for Signed {
    fn mint(&self) -> BoxFuture<'_, Result<Minted, TokenError>> {
        Box::pin(async {
            let token = self.sign(SystemTime::now())?;
            Ok(Minted { token: Some(token), lifetime: Some(self.lifetime) })
        })
    }
}

/// Asks `scontrol token`, where that may: as root or SlurmUser, with a slurm.conf.
#[derive(Debug, Clone)]
pub struct Scontrol {
    /// The program, and what has to stand before `token`.
    pub command: Vec<String>,
    pub user: Box<str>,
    pub lifetime: Duration,
}

impl Scontrol {
    /// How long the command may take.
    const LIMIT: Duration = Duration::from_secs(10);

    pub fn new(user: impl Into<Box<str>>, lifetime: Duration) -> Self {
        Self { command: vec!["scontrol".to_owned()], user: user.into(), lifetime }
    }

    async fn ask(&self) -> Result<Secret, TokenError> {
        let fail = |why: String| TokenError::Scontrol(why);
        let (program, arguments) =
            self.command.split_first().ok_or_else(|| fail("no program given".to_owned()))?;
        let mut command = tokio::process::Command::new(program);
        command.args(arguments).arg("token").arg(format!("username={}", self.user));
        command.arg(format!("lifespan={}", self.lifetime.as_secs()));
        command.stdin(Stdio::null()).kill_on_drop(true);
        let output = match tokio::time::timeout(Self::LIMIT, command.output()).await {
            Ok(output) => output.map_err(|error| fail(format!("start {program}: {error}")))?,
            Err(_) => return Err(fail(format!("no answer within {} s", Self::LIMIT.as_secs()))),
        };
        if !output.status.success() {
            // Standard output could hold a token; what went wrong is on the other one.
            let told = String::from_utf8_lossy(&output.stderr);
            return Err(fail(format!("{}: {}", output.status, told.trim())));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let token = text.lines().find_map(|line| line.trim().strip_prefix("SLURM_JWT="));
        token
            .filter(|token| !token.is_empty())
            .map(Secret::new)
            .ok_or_else(|| fail("it printed no SLURM_JWT=".to_owned()))
    }
}

impl TokenSource for Scontrol {
    fn mint(&self) -> BoxFuture<'_, Result<Minted, TokenError>> {
        Box::pin(async { Ok(Minted { token: Some(self.ask().await?), lifetime: Some(self.lifetime) }) })
    }
}

/// One token that somebody else looks after.
#[derive(Debug, Clone)]
pub struct Static(pub Secret);

impl TokenSource for Static {
    fn mint(&self) -> BoxFuture<'_, Result<Minted, TokenError>> {
        Box::pin(async { Ok(Minted { token: Some(self.0.clone()), lifetime: None }) })
    }
}

/// No token.
#[derive(Debug, Clone, Copy)]
pub struct NoToken;

impl TokenSource for NoToken {
    fn mint(&self) -> BoxFuture<'_, Result<Minted, TokenError>> {
        Box::pin(async { Ok(Minted { token: None, lifetime: None }) })
    }
}

/// The newest token, for all callers.
#[derive(Clone)]
pub(crate) struct Tokens(Arc<Shelf>);

struct Shelf {
    source: Arc<dyn TokenSource>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    current: Option<Current>,
    /// All wait for the one that is under way, which goes on when they give up.
    renewal: Option<Renewal>,
    /// When the last renewal failed, and why.
    failed: Option<(Instant, TokenError)>,
}

type Renewal = Shared<BoxFuture<'static, Result<Option<Secret>, TokenError>>>;

struct Current {
    token: Option<Secret>,
    minted: Instant,
    lifetime: Option<Duration>,
    refused: bool,
}

impl Current {
    /// A fifth of the life before the end, so that a source that fails for a while harms nobody.
    fn is_due(&self) -> bool {
        self.refused || self.lifetime.is_some_and(|lifetime| self.minted.elapsed() >= lifetime * 4 / 5)
    }

    fn has_ended(&self) -> bool {
        self.lifetime.is_some_and(|lifetime| self.minted.elapsed() >= lifetime)
    }
}

/// A token that is refused so young is not the reason: another one would be refused as well.
const YOUNG: Duration = Duration::from_secs(1);
/// How long a source may take; less than a call may, so that calls can say what they waited for.
const LIMIT: Duration = Duration::from_secs(20);
/// A source that failed is left alone for so long; it may take seconds to fail.
const AFTER_FAILURE: Duration = Duration::from_secs(5);

impl fmt::Debug for Tokens {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Tokens").field(&self.0.source).finish_non_exhaustive()
    }
}

impl Tokens {
    pub(crate) fn new(source: Arc<dyn TokenSource>) -> Self {
        Self(Arc::new(Shelf { source, state: Mutex::default() }))
    }

    /// Waits only where there is no token that still holds.
    pub(crate) async fn get(&self) -> Result<Option<Secret>, TokenError> {
        let renewal = {
            let mut state = self.state();
            if let Some(current) = state.current.as_ref().filter(|current| !current.is_due()) {
                return Ok(current.token.clone());
            }
            if let Some((_, error)) = state.failed.as_ref().filter(|(at, _)| at.elapsed() < AFTER_FAILURE) {
                return state.old_or(error.clone());
            }
            let renewal = state.renewal.get_or_insert_with(|| self.renew()).clone();
            match &state.current {
                Some(old) if !old.refused && !old.has_ended() => return Ok(old.token.clone()),
                _ => renewal,
            }
        };
        renewal.await
    }

    fn renew(&self) -> Renewal {
        let this = self.clone();
        let renewing = tokio::spawn(async move {
            let minting = AssertUnwindSafe(this.0.source.mint()).catch_unwind();
            let minted = match tokio::time::timeout(LIMIT, minting).await {
                Ok(Ok(minted)) => minted,
                Ok(Err(_)) => Err(TokenError::Other("its source panicked".to_owned())),
                Err(_) => {
                    Err(TokenError::Other(format!("its source says nothing for {} s", LIMIT.as_secs())))
                }
            };
            this.state().renewed(minted)
        });
        // It only ends early with the runtime.
        let ended = |error: tokio::task::JoinError| Err(TokenError::Other(error.to_string()));
        async move { renewing.await.unwrap_or_else(ended) }.boxed().shared()
    }

    /// A token was refused. True if there is, or will be, another one to try.
    pub(crate) fn refused(&self, token: Option<&Secret>) -> bool {
        match self.state().current.as_mut() {
            None => true,
            Some(known) if known.token.as_ref() != token => true,
            // Somebody else has had the same answer.
            Some(known) if known.refused => true,
            Some(known) if known.lifetime.is_none() || known.minted.elapsed() < YOUNG => false,
            Some(known) => {
                known.refused = true;
                true
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn renewed(&mut self, minted: Result<Minted, TokenError>) -> Result<Option<Secret>, TokenError> {
        self.renewal = None;
        match minted {
            Ok(Minted { token, lifetime }) => {
                self.failed = None;
                let minted = Instant::now();
                self.current = Some(Current { token: token.clone(), minted, lifetime, refused: false });
                Ok(token)
            }
            Err(error) => {
                tracing::warn!(%error, "no new token for slurmrestd");
                self.failed = Some((Instant::now(), error.clone()));
                self.old_or(error)
            }
        }
    }

    /// Without a new one the old one is used to its end, also if it was refused: slurmrestd says so as well where the
    /// database is away.
    fn old_or(&self, error: TokenError) -> Result<Option<Secret>, TokenError> {
        match self.current.as_ref().filter(|current| !current.has_ended()) {
            Some(old) => Ok(old.token.clone()),
            None => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use jsonwebtoken::{DecodingKey, Validation, decode};
    use serde_json::Value;

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    /// Numbers its tokens; fails while it is told to.
    #[derive(Debug, Default)]
    struct Numbered {
        tried: AtomicUsize,
        minted: AtomicUsize,
        broken: std::sync::atomic::AtomicBool,
    }

    impl TokenSource for Numbered {
        fn mint(&self) -> BoxFuture<'_, Result<Minted, TokenError>> {
            Box::pin(async {
                self.tried.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(10)).await;
                if self.broken.load(Ordering::Relaxed) {
                    return Err(TokenError::Other("broken".to_owned()));
                }
                let number = self.minted.fetch_add(1, Ordering::Relaxed) + 1;
                Ok(Minted { token: Some(Secret::new(number.to_string())), lifetime: Some(10 * MINUTE) })
            })
        }
    }

    fn tokens() -> (Arc<Numbered>, Arc<Tokens>) {
        let source = Arc::new(Numbered::default());
        (source.clone(), Arc::new(Tokens::new(source)))
    }

    async fn get(tokens: &Tokens) -> String {
        tokens.get().await.unwrap().unwrap().reveal().to_owned()
    }

    fn claims(token: &Secret, key: &[u8]) -> Value {
        let mut validation = Validation::new(Algorithm::HS256);
        validation.validate_exp = false;
        decode::<Value>(token.reveal(), &DecodingKey::from_secret(key), &validation).unwrap().claims
    }

    #[test]
    fn a_signed_token_says_what_it_should_and_nothing_else() {
        let now = UNIX_EPOCH + Duration::from_secs(1_000_000);
        let plain = Signed {
            key: (*b"key").into(),
            user: "slurm".into(),
            claims: Claims::default(),
            lifetime: 15 * MINUTE,
        };
        assert_eq!(
            claims(&plain.sign(now).unwrap(), b"key"),
            serde_json::json!({ "iat": 1_000_000, "exp": 1_000_900, "sun": "slurm" })
        );
        let all = Claims { issuer: Some("somebody"), subject: true, not_before: true, id: true };
        let full = Signed { claims: all, user: "root".into(), lifetime: 30 * 24 * 60 * MINUTE, ..plain };
        let mut said = claims(&full.sign(now).unwrap(), b"key");
        let id = said.as_object_mut().unwrap().remove("jti").unwrap();
        assert_eq!(
            said,
            serde_json::json!({
                "iss": "somebody", "sub": "root", "sun": "root", "nbf": 1_000_000, "iat": 1_000_000, "exp": 3_592_000 })
        );
        let groups: Vec<_> = id.as_str().unwrap().split('-').map(str::len).collect();
        assert_eq!(groups, [8, 4, 4, 4, 12]);
        assert_eq!(id.as_str().unwrap().as_bytes()[14], b'4', "{id}");
        assert_ne!(id, claims(&full.sign(now).unwrap(), b"key")["jti"]);
    }

    #[tokio::test]
    async fn nothing_secret_is_printed() {
        let signed = Signed {
            key: (*b"hush").into(),
            user: "root".into(),
            claims: Claims::default(),
            lifetime: MINUTE,
        };
        let token = signed.sign(SystemTime::now()).unwrap();
        let tokens = Tokens::new(Arc::new(Static(token.clone())));
        tokens.get().await.unwrap();
        let minted = Minted { token: Some(token.clone()), lifetime: None };
        for shown in
            [format!("{signed:?}"), format!("{token:?}"), format!("{tokens:?}"), format!("{minted:?}")]
        {
            assert!(
                !shown.contains("hush") && !shown.contains(token.reveal()) && !shown.contains("104, 117"),
                "{shown}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn many_callers_make_one_renewal() {
        let (source, tokens) = tokens();
        let asked = futures::future::join_all((0..100).map(|_| get(&tokens))).await;
        assert!(asked.iter().all(|token| token == "1"));
        assert_eq!(source.minted.load(Ordering::Relaxed), 1);
        // All are refused with the same token: one renewal again.
        tokio::time::advance(MINUTE).await;
        let old = Secret::new("1");
        let again = futures::future::join_all((0..100).map(|_| async {
            assert!(tokens.refused(Some(&old)));
            get(&tokens).await
        }));
        assert!(again.await.iter().all(|token| token == "2"));
        assert_eq!(source.minted.load(Ordering::Relaxed), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_is_renewed_before_it_ends() {
        let (source, tokens) = tokens();
        assert_eq!(get(&tokens).await, "1");
        tokio::time::advance(7 * MINUTE).await;
        assert_eq!(get(&tokens).await, "1");
        tokio::time::advance(MINUTE).await;
        assert_eq!(get(&tokens).await, "1", "nobody waits while the old one holds");
        tokio::time::sleep(YOUNG).await;
        assert_eq!(get(&tokens).await, "2");
        assert_eq!(source.minted.load(Ordering::Relaxed), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_source_that_fails_holds_nobody_up() {
        let (source, tokens) = tokens();
        get(&tokens).await;
        source.broken.store(true, Ordering::Relaxed);
        tokio::time::advance(8 * MINUTE).await;
        assert_eq!(get(&tokens).await, "1", "it still holds");
        assert!(tokens.refused(Some(&Secret::new("1"))));
        assert_eq!(get(&tokens).await, "1", "slurmrestd also refuses where the database is away");
        tokio::time::advance(3 * MINUTE).await;
        let tried = source.tried.load(Ordering::Relaxed);
        for _ in 0..10 {
            assert!(tokens.get().await.unwrap_err().to_string().contains("broken"));
        }
        assert_eq!(source.tried.load(Ordering::Relaxed), tried + 1);
        source.broken.store(false, Ordering::Relaxed);
        tokio::time::advance(AFTER_FAILURE).await;
        assert_eq!(get(&tokens).await, "2");
    }

    #[derive(Debug)]
    struct Silent;

    impl TokenSource for Silent {
        fn mint(&self) -> BoxFuture<'_, Result<Minted, TokenError>> {
            Box::pin(futures::future::pending())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_source_that_never_answers_is_an_error_of_its_own() {
        let tokens = Tokens::new(Arc::new(Silent));
        for _ in 0..2 {
            let error = tokio::time::timeout(2 * LIMIT, tokens.get()).await.unwrap().unwrap_err();
            assert!(error.to_string().contains("says nothing"), "{error}");
            tokio::time::advance(AFTER_FAILURE).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_renewal_goes_on_when_its_caller_gives_up() {
        let (source, tokens) = tokens();
        let hurried = tokio::time::timeout(Duration::from_millis(1), tokens.get());
        assert!(hurried.await.is_err());
        assert_eq!(get(&tokens).await, "1");
        assert_eq!(source.tried.load(Ordering::Relaxed), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_token_that_is_refused_is_not_made_again_at_once() {
        let (source, tokens) = tokens();
        get(&tokens).await;
        assert!(!tokens.refused(Some(&Secret::new("1"))));
        tokio::time::advance(YOUNG).await;
        assert!(tokens.refused(Some(&Secret::new("1"))));
        assert_eq!(get(&tokens).await, "2");
        assert!(tokens.refused(Some(&Secret::new("1"))), "there is a newer one by now");
        assert_eq!(source.minted.load(Ordering::Relaxed), 2);
    }

    fn scontrol(script: &str) -> Scontrol {
        let command = ["sh", "-c", script, "scontrol"].map(str::to_owned).to_vec();
        Scontrol { command, ..Scontrol::new("root", MINUTE) }
    }

    #[tokio::test]
    async fn scontrol_is_asked_for_user_and_lifetime() {
        let minted = scontrol(r#"echo "SLURM_JWT=$1.$2.$3""#).mint().await.unwrap();
        assert_eq!(minted.token.unwrap().reveal(), "token.username=root.lifespan=60");
        let error = scontrol("echo SLURM_JWT=hush; echo access denied >&2; exit 1")
            .mint()
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains("access denied") && !error.contains("hush"), "{error}");
        let error = scontrol("echo nothing").mint().await.unwrap_err().to_string();
        assert!(error.contains("SLURM_JWT="), "{error}");
        let missing = Scontrol { command: vec!["/nonexistent/scontrol".to_owned()], ..scontrol("") };
        assert!(missing.mint().await.unwrap_err().to_string().contains("/nonexistent/scontrol"));
    }
}
