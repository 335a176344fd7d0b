//! One slurmrestd: which calls it serves, with which token, within which time.
//!
//! A read is tried again when nobody answered, at most three times and never past the deadline. A write is tried
//! again only if it never left, since nobody can tell whether a lost answer was a yes.

#[cfg(test)]
mod tests;
mod trouble;

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use http::{Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body as _, Bytes};
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::time::Instant;
use tower::util::BoxCloneSyncService;
use tower::{Service, ServiceExt};
use tracing::warn;

use crate::call::Call;
use crate::decode::{Decoded, Decoder, Envelope, Keep, Limits, Sink, Warning};
use crate::endpoint::{Connector, Endpoint};
use crate::error::RestError;
use crate::metrics::Metrics;
use crate::record::{Json, Record};
use crate::served::{ApiVersion, Paths, Served};
use crate::token::{Secret, TokenSource, Tokens};
use trouble::Trouble;

/// A connection that stays unused so long is closed.
const IDLE: Duration = Duration::from_secs(60);
const DEADLINE: Duration = Duration::from_secs(30);
const RETRIES: u32 = 3;
/// What the question for what the server has is called in metrics.
const DESCRIPTION: &str = "description";
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// An answer that is an error has no list to it.
const ERROR_LIMITS: Limits = Limits { record: 1 << 20, total: 1 << 20, records: 0 };
/// So many warnings are logged, each once. Should there be more, they are no news any more.
const KNOWN_WARNINGS: usize = 256;
/// A warning that is longer is cut, in characters.
const LONGEST_WARNING: usize = 500;

/// An answer's body as it arrives.
pub type Body = UnsyncBoxBody<Bytes, BoxError>;
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
/// What carries requests; anything that is a tower `Service` of this form.
pub type Transport = BoxCloneSyncService<Request<Full<Bytes>>, Response<Body>, SendError>;

/// A request that brought no answer.
#[derive(Debug, thiserror::Error)]
#[error("{source}")]
pub struct SendError {
    /// It never left.
    pub unsent: bool,
    pub source: BoxError,
}

/// How a client is made.
#[derive(Debug, Clone)]
pub struct Options {
    /// In metrics and logs.
    pub cluster: Arc<str>,
    /// `X-SLURM-USER-NAME`; needed only where the token does not name its user, as on a UNIX socket.
    pub user: Option<Arc<str>>,
    pub metrics: Metrics,
    /// For one call, retries included.
    pub deadline: Duration,
    pub limits: Limits,
    /// Of the API versions that both sides know, none newer than this.
    pub newest: ApiVersion,
}

impl Options {
    pub fn new(cluster: impl Into<Arc<str>>) -> Self {
        Self {
            cluster: cluster.into(),
            user: None,
            metrics: Metrics::default(),
            deadline: DEADLINE,
            limits: Limits::default(),
            newest: ApiVersion::V0_0_45,
        }
    }
}

/// A client of one slurmrestd. Clones share connections, token and what is known of the server.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
    deadline: Duration,
}

struct Shared {
    base: String,
    transport: Transport,
    tokens: Tokens,
    options: Options,
    /// Held while the server is asked, so that all wait for the one question.
    served: tokio::sync::Mutex<Option<Known>>,
    warned: Mutex<HashSet<u64>>,
}

/// What is known of the server, and of which release that is.
#[derive(Debug, Clone)]
struct Known {
    served: Arc<Served>,
    release: Option<Box<str>>,
}

impl fmt::Debug for Client {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Client")
            .field("cluster", &self.shared.options.cluster)
            .field("server", &self.shared.base)
            .finish_non_exhaustive()
    }
}

/// A list, and what is known of it as a whole.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed<T> {
    pub records: Vec<T>,
    /// By slurmctld's clock; what to ask for changes since.
    pub last_update: Option<u64>,
    /// Of slurmrestd.
    pub release: Option<Box<str>>,
    /// Records that could not be understood and are missing, and what was odd about the first.
    pub odd: Option<(u64, String)>,
}

impl<T> Listed<T> {
    fn map<R>(self, into: impl Fn(T) -> R) -> Listed<R> {
        let Self { records, last_update, release, odd } = self;
        Listed { records: records.into_iter().map(into).collect(), last_update, release, odd }
    }
}

/// What is to be told of a call if its time is up.
#[derive(Debug, Default)]
struct Course {
    bytes: u64,
    /// Why the last try failed, while there is no other one.
    failed: Option<RestError>,
    /// Since when the server is asked what it has.
    describing: Option<Instant>,
}

/// Why asking was given up.
struct Failed {
    error: RestError,
    /// The server has no such path, so that nothing was done.
    no_such_path: bool,
}

impl From<RestError> for Failed {
    fn from(error: RestError) -> Self {
        Self { error, no_such_path: false }
    }
}

impl From<Failed> for RestError {
    fn from(failed: Failed) -> Self {
        failed.error
    }
}

impl Client {
    #[must_use]
    pub fn new(endpoint: Endpoint, tokens: Arc<dyn TokenSource>, options: Options) -> Self {
        let base = endpoint.base();
        let client = legacy::Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .build::<_, Full<Bytes>>(Connector(endpoint));
        let transport = client
            .map_response(|response| response.map(|body| body.map_err(BoxError::from).boxed_unsync()))
            .map_err(|error: legacy::Error| SendError {
                unsent: error.is_connect(),
                source: chain(&error).into(),
            });
        Self::with_transport(BoxCloneSyncService::new(transport), base, tokens, options)
    }

    /// Over a transport of the caller's. `base` is scheme and authority.
    #[must_use]
    pub fn with_transport(
        transport: Transport,
        base: String,
        tokens: Arc<dyn TokenSource>,
        options: Options,
    ) -> Self {
        let deadline = options.deadline;
        let shared = Shared {
            base,
            transport,
            tokens: Tokens::new(tokens),
            options,
            served: tokio::sync::Mutex::default(),
            warned: Mutex::default(),
        };
        Self { shared: Arc::new(shared), deadline }
    }

    /// The same client with another deadline for its calls.
    #[must_use]
    pub fn within(&self, deadline: Duration) -> Self {
        Self { deadline, ..self.clone() }
    }

    /// For a call that is made of several: what is left of the deadline of one that began at `begin`.
    pub(crate) fn rest_of(&self, begin: Instant) -> Self {
        self.within(self.deadline.saturating_sub(begin.elapsed()))
    }

    /// The API version that calls use.
    pub async fn version(&self) -> Result<ApiVersion, RestError> {
        self.version_for("version").await
    }

    /// The same on behalf of a call.
    pub(crate) async fn version_for(&self, name: &'static str) -> Result<ApiVersion, RestError> {
        let call = Call::read(name, String::new());
        let mut course = Course::default();
        self.in_time(&call, &mut course, async |course| Ok(self.served(&call, course).await?.version)).await
    }

    /// Whether the server has a call at all.
    pub(crate) async fn serves(&self, call: &Call) -> Result<bool, RestError> {
        let mut course = Course::default();
        self.in_time(call, &mut course, async |course| {
            Ok(self.served(call, course).await?.has(call.family, &call.method, call.template))
        })
        .await
    }

    /// A list, whole. Records that `keep` does not want are dropped while the answer is read.
    pub(crate) async fn list<T: Record>(
        &self,
        call: &Call,
        keep: impl Fn(&T) -> bool,
    ) -> Result<Listed<T>, RestError> {
        match self.list_if_changed(call, keep).await? {
            Some(listed) => Ok(listed),
            None => Err(RestError::Garbage {
                call: call.name,
                why: "it says 304 and was not asked for changes".to_owned(),
            }),
        }
    }

    /// None if nothing has changed since the time in the query.
    pub(crate) async fn list_if_changed<T: Record>(
        &self,
        call: &Call,
        keep: impl Fn(&T) -> bool,
    ) -> Result<Option<Listed<T>>, RestError> {
        self.timed(call, async |course| {
            let path = self.path(call, course).await?;
            match self.ask(call, &path, &keep, course).await {
                // It may have become another release since it said what it serves.
                Err(Failed { no_such_path: true, .. }) => {
                    let path = self.path(call, course).await?;
                    Ok(self.ask(call, &path, &keep, course).await?)
                }
                answer => Ok(answer?),
            }
        })
        .await
    }

    /// Where the server has a call.
    async fn path(&self, call: &Call, course: &mut Course) -> Result<String, RestError> {
        let served = self.served(call, course).await?;
        let (method, family, version) = (&call.method, call.family.as_str(), served.version);
        if !served.has(call.family, method, call.template) {
            let why = format!("there is no {method} /{family}/{version}/{}", call.template);
            return Err(RestError::NotServed { call: call.name, why });
        }
        Ok(format!("/{family}/{version}/{}", call.path))
    }

    /// A list of records that serde reads.
    pub(crate) async fn list_json<T: serde::de::DeserializeOwned>(
        &self,
        call: &Call,
    ) -> Result<Listed<T>, RestError> {
        Ok(self.list::<Json<T>>(call, |_| true).await?.map(|Json(record)| record))
    }

    /// One value of an answer that is not large.
    pub(crate) async fn one<T: serde::de::DeserializeOwned>(&self, call: &Call) -> Result<T, RestError> {
        let mut listed = self.list_json::<T>(call).await?;
        match (listed.records.pop(), listed.odd) {
            (Some(value), _) => Ok(value),
            (None, Some((_, why))) => Err(RestError::Garbage { call: call.name, why }),
            (None, None) => {
                Err(RestError::Garbage { call: call.name, why: format!("it has no `{}`", call.key) })
            }
        }
    }

    /// A call whose answer says nothing but yes.
    pub(crate) async fn done(&self, call: &Call) -> Result<(), RestError> {
        self.list::<Json<serde::de::IgnoredAny>>(call, |_| false).await.map(drop)
    }

    /// Runs a call within the deadline and counts it.
    async fn timed<R>(
        &self,
        call: &Call,
        run: impl AsyncFnOnce(&mut Course) -> Result<R, RestError>,
    ) -> Result<R, RestError> {
        let (begin, mut course) = (Instant::now(), Course::default());
        let result = self.in_time(call, &mut course, run).await;
        self.count(call.name, &result, begin, course.bytes);
        result
    }

    fn count<R>(&self, call: &'static str, result: &Result<R, RestError>, begin: Instant, bytes: u64) {
        let class = result.as_ref().err().map_or("ok", RestError::class);
        let Options { metrics, cluster, .. } = &self.shared.options;
        metrics.called(cluster, call, class, begin.elapsed(), bytes);
    }

    /// Why the last try failed is a better reason than that time is up, unless another one was under way.
    async fn in_time<R>(
        &self,
        call: &Call,
        course: &mut Course,
        run: impl AsyncFnOnce(&mut Course) -> Result<R, RestError>,
    ) -> Result<R, RestError> {
        match tokio::time::timeout(self.deadline, run(course)).await {
            Ok(result) => result,
            Err(_) => {
                let timed_out = RestError::TimedOut { call: call.name, after: self.deadline };
                let result = Err(course.failed.take().unwrap_or(timed_out));
                if let Some(begin) = course.describing {
                    self.count(DESCRIPTION, &result, begin, 0);
                }
                result
            }
        }
    }

    /// What the server has, asked once, and again when it may be another one.
    async fn served(&self, call: &Call, course: &mut Course) -> Result<Arc<Served>, RestError> {
        let mut known = self.shared.served.lock().await;
        if let Some(known) = &*known {
            return Ok(known.served.clone());
        }
        let (begin, before) = (Instant::now(), course.bytes);
        course.describing = Some(begin);
        let asked = self.describe(call, course).await;
        course.describing = None;
        self.count(DESCRIPTION, &asked, begin, course.bytes - before);
        course.bytes = before;
        let served = Arc::new(asked?);
        *known = Some(Known { served: served.clone(), release: None });
        Ok(served)
    }

    async fn describe(&self, call: &Call, course: &mut Course) -> Result<Served, RestError> {
        let discover = Call::description(call.name);
        let paths = match self.ask::<Paths>(&discover, "/openapi/v3", &|_| true, course).await? {
            Some(Listed { odd: Some((_, why)), .. }) => {
                return Err(RestError::Garbage { call: call.name, why });
            }
            listed => listed.and_then(|mut listed| listed.records.pop()).unwrap_or_default(),
        };
        Served::choose(&paths, self.shared.options.newest)
            .map_err(|why| RestError::NotServed { call: call.name, why })
    }

    async fn forget_server(&self) {
        *self.shared.served.lock().await = None;
    }

    /// An answer of another release than the last one is of another server, with perhaps more calls. Where somebody is
    /// asking what the server has, that is found out anyway, and an answer that is there does not wait for it.
    fn note_release(&self, release: Option<&str>) {
        let (Some(release), Ok(mut known)) = (release, self.shared.served.try_lock()) else { return };
        match known.as_mut().map(|known| &mut known.release) {
            Some(Some(before)) if **before != *release => *known = None,
            Some(unknown @ None) => *unknown = Some(release.into()),
            _ => {}
        }
    }

    /// Sends until there is an answer, or no use in another try. None: 304.
    async fn ask<T: Record>(
        &self,
        call: &Call,
        path: &str,
        keep: &impl Fn(&T) -> bool,
        course: &mut Course,
    ) -> Result<Option<Listed<T>>, Failed> {
        let (mut tried, mut renewed) = (0, false);
        loop {
            let token = self
                .shared
                .tokens
                .get()
                .await
                .map_err(|source| RestError::Token { call: call.name, source })?;
            course.failed = None;
            let trouble = match self.exchange(call, path, token.as_ref(), keep, &mut course.bytes).await {
                Ok(listed) => {
                    if !call.is_description() {
                        self.note_release(listed.release.as_deref());
                    }
                    return Ok(Some(listed));
                }
                Err(Trouble::Unchanged) => return Ok(None),
                Err(trouble) => trouble,
            };
            let no_such_path = matches!(trouble, Trouble::NoSuchPath);
            if (no_such_path || matches!(trouble, Trouble::Unsent(_) | Trouble::Lost(_)))
                && !call.is_description()
            {
                // It may come back as another release.
                self.forget_server().await;
            }
            if !renewed && trouble.may_be_the_token(call) && self.shared.tokens.refused(token.as_ref()) {
                renewed = true;
                continue;
            }
            let again = trouble.may_be_tried_again(call);
            let error = trouble.into_error(call);
            if !again || tried == RETRIES {
                return Err(Failed { error, no_such_path });
            }
            let pause =
                (FIRST_PAUSE * 2_u32.pow(tried)).min(LONGEST_PAUSE).mul_f64(0.75 + 0.5 * fastrand::f64());
            tracing::debug!(cluster = %self.shared.options.cluster, %error, ?pause, "trying again");
            self.shared.options.metrics.retried(&self.shared.options.cluster, call.name);
            course.failed = Some(error);
            tried += 1;
            tokio::time::sleep(pause).await;
        }
    }

    /// One request and its answer.
    async fn exchange<T: Record>(
        &self,
        call: &Call,
        path: &str,
        token: Option<&Secret>,
        keep: &impl Fn(&T) -> bool,
        bytes: &mut u64,
    ) -> Result<Listed<T>, Trouble> {
        let request = self.request(call, path, token)?;
        let mut transport = self.shared.transport.clone();
        let sent = async { transport.ready().await?.call(request).await };
        let response = sent.await.map_err(|error| match error.unsent {
            true => Trouble::Unsent(error.to_string()),
            false => Trouble::Lost(error.to_string()),
        })?;
        let (head, mut body) = response.into_parts();
        let json = head
            .headers
            .get(CONTENT_TYPE)
            .is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
        match head.status {
            StatusCode::NOT_MODIFIED => return Err(Trouble::Unchanged),
            StatusCode::NOT_FOUND if !json => return Err(Trouble::NoSuchPath),
            status if status.is_success() => {}
            status => {
                let mut decoder = Decoder::<Json<serde::de::IgnoredAny>, _>::new("", ERROR_LIMITS, drop);
                // What cannot be read of an error leaves its status.
                let read = read(&mut body, &mut decoder, bytes).await;
                let Envelope { errors, warnings, .. } = read
                    .and_then(|()| Ok(decoder.finish()?))
                    .map(|decoded| decoded.envelope)
                    .unwrap_or_default();
                self.log_warnings(call, &warnings);
                return Err(Trouble::said(status, errors));
            }
        }
        let mut records = Vec::new();
        let kept = Keep { records: &mut records, wanted: keep };
        let limits = self.shared.options.limits;
        let limits = Limits { records: limits.records.min(call.most), ..limits };
        let decoder = Decoder::new(call.key, limits, kept).within(call.outer);
        let mut decoder = decoder.of_bytes(body.size_hint().exact());
        read(&mut body, &mut decoder, bytes).await?;
        let Decoded { envelope, odd, first_odd, found, says_errors, .. } = decoder.finish()?;
        self.log_warnings(call, &envelope.warnings);
        if !envelope.errors.is_empty() {
            return Err(Trouble::said(head.status, envelope.errors));
        }
        // Every answer of slurmrestd has a list of errors, if only an empty one.
        if !says_errors && !call.is_description() {
            return Err(Trouble::Garbage("it does not say whether there were errors".to_owned()));
        }
        // Of one thing that is not there some versions send nothing at all.
        if !found && !call.key.is_empty() && !call.one {
            return Err(Trouble::Garbage(format!("it has no `{}`", call.key)));
        }
        let odd = first_odd.map(|why| (odd, why));
        if let Some((count, why)) = &odd {
            self.warn_once(
                call,
                "records cannot be understood",
                &format!("{count} of them; the first: {why}"),
            );
        }
        Ok(Listed {
            records,
            last_update: envelope.last_update.to_u64(),
            release: envelope.release.map(|release| release.0),
            odd,
        })
    }

    fn request(
        &self,
        call: &Call,
        path: &str,
        token: Option<&Secret>,
    ) -> Result<Request<Full<Bytes>>, Trouble> {
        let mut request = Request::builder()
            .method(call.method.clone())
            .uri(format!("{}{path}", self.shared.base))
            .header(ACCEPT, "application/json");
        if let Some(token) = token {
            let mut value = HeaderValue::from_str(token.reveal())
                .map_err(|_| Trouble::Invalid("the token has letters that no header can have".to_owned()))?;
            value.set_sensitive(true);
            request = request.header("X-SLURM-USER-TOKEN", value);
        }
        if let Some(user) = &self.shared.options.user {
            request = request.header("X-SLURM-USER-NAME", &**user);
        }
        if call.body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        request
            .body(Full::from(call.body.clone().unwrap_or_default()))
            .map_err(|error| Trouble::Invalid(error.to_string()))
    }

    fn log_warnings(&self, call: &Call, warnings: &[Warning]) {
        for warning in warnings {
            self.warn_once(call, &warning.description, &warning.source);
        }
    }

    /// Slurm repeats its warnings with every answer.
    fn warn_once(&self, call: &Call, text: &str, about: &str) {
        use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
        let id = BuildHasherDefault::<DefaultHasher>::default().hash_one((call.name, text));
        let mut warned = self.shared.warned.lock().unwrap_or_else(PoisonError::into_inner);
        if warned.len() < KNOWN_WARNINGS && warned.insert(id) {
            let cut = |text: &str| text.chars().take(LONGEST_WARNING).collect::<String>();
            warn!(cluster = %self.shared.options.cluster, call = call.name, warning = cut(text), about = cut(about), "slurmrestd");
        }
    }
}

async fn read<T: Record, S: Sink<T>>(
    body: &mut Body,
    decoder: &mut Decoder<T, S>,
    bytes: &mut u64,
) -> Result<(), Trouble> {
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Trouble::Cut(error.to_string()))?;
        let Ok(chunk) = frame.into_data() else { continue };
        *bytes += chunk.len() as u64;
        decoder.push(&chunk)?;
    }
    Ok(())
}

/// An error with what it is about, which `Display` of hyper's leaves out.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
