//! A proxy before the API server or slurmrestd that does what the real ones cannot be made to do on demand:
//! answer late, break off, refuse, or say 200 and mean no.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use futures::{StreamExt, stream};
use http::{Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use kube::Client;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::{CancellationToken, DropGuard};

type Plain = hyper_util::client::legacy::Client<HttpConnector, Full<Bytes>>;
type AnyBody = UnsyncBoxBody<Bytes, anyhow::Error>;

/// What happens to a request.
#[derive(Debug, Clone)]
pub enum Fault {
    /// It is passed on, late.
    Delay(Duration),
    /// The connection ends without an answer.
    Cut,
    /// The answer ends after this many bytes of its body.
    CutAfter(usize),
    /// It is answered here and never reaches the server.
    Answer(StatusCode, Value),
    /// The same with any text, as what claims to be JSON.
    Text(StatusCode, &'static str),
    /// It is answered here with this and then the second text for ever, as what claims to be JSON.
    Endless(&'static str, &'static str),
}

impl Fault {
    pub fn unauthorized() -> Self {
        Self::Answer(StatusCode::UNAUTHORIZED, status_object(StatusCode::UNAUTHORIZED, "Unauthorized"))
    }

    pub fn server_error(code: StatusCode) -> Self {
        Self::Answer(code, status_object(code, "InternalError"))
    }

    /// The API server's way to say that a watch has to begin with a new list.
    pub fn expired_watch() -> Self {
        Self::Answer(
            StatusCode::OK,
            json!({ "type": "ERROR", "object": status_object(StatusCode::GONE, "Expired") }),
        )
    }

    /// slurmrestd's way to fail with HTTP 200.
    pub fn slurm_errors(number: i32, text: &str) -> Self {
        let error = json!({ "error_number": number, "error": text, "description": text, "source": "chaos" });
        Self::Answer(StatusCode::OK, json!({ "errors": [error], "warnings": [] }))
    }
}

/// The Kubernetes `Status` that clients decode.
fn status_object(code: StatusCode, reason: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Status", "status": "Failure",
        "code": code.as_u16(), "reason": reason, "message": "injected by a test",
    })
}

struct Rule {
    path: String,
    fault: Fault,
    left: Option<usize>,
}

enum Upstream {
    Kubernetes(Client),
    Http(Plain, SocketAddr),
}

struct State {
    upstream: Upstream,
    rules: rules::Rules,
    injected: AtomicUsize,
    /// Cancelled and replaced by each cut.
    connections: std::sync::Mutex<CancellationToken>,
}

/// The proxy; ends when dropped.
pub struct Chaos {
    address: SocketAddr,
    state: Arc<State>,
    _stop: DropGuard,
}

impl std::fmt::Debug for Chaos {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Chaos").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Chaos {
    /// Before an API server: requests reach it as the user of `client`.
    pub async fn before_api_server(client: Client) -> Result<Self> {
        Self::start(Upstream::Kubernetes(client)).await
    }

    /// Before slurmrestd, or any other plain HTTP server on this machine.
    pub async fn before_http(server: SocketAddr) -> Result<Self> {
        let client =
            hyper_util::client::legacy::Client::builder(TokioExecutor::new()).build(HttpConnector::new());
        Self::start(Upstream::Http(client, server)).await
    }

    async fn start(upstream: Upstream) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let state = Arc::new(State {
            upstream,
            rules: rules::Rules::default(),
            injected: AtomicUsize::new(0),
            connections: Default::default(),
        });
        let stop = CancellationToken::new();
        tokio::spawn(stop.clone().run_until_cancelled_owned(accept(listener, state.clone(), stop.clone())));
        Ok(Self { address, state, _stop: stop.drop_guard() })
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A Kubernetes client that goes through the proxy, without retries of its own.
    pub fn client(&self) -> Result<Client> {
        crate::install_crypto_provider();
        let mut config = kube::Config::new(self.url().parse()?);
        config.default_retry = false;
        Ok(Client::try_from(config)?)
    }

    /// Every request whose path contains `path` fails from now on; `""` is all of them.
    pub fn inject(&self, path: &str, fault: Fault) {
        self.state.rules.push(Rule { path: path.to_owned(), fault, left: None });
    }

    /// The next `times` such requests fail.
    pub fn inject_times(&self, path: &str, fault: Fault, times: usize) {
        if times > 0 {
            self.state.rules.push(Rule { path: path.to_owned(), fault, left: Some(times) });
        }
    }

    /// How many requests have met a fault.
    pub fn injected(&self) -> usize {
        self.state.injected.load(Ordering::Relaxed)
    }

    /// No more faults.
    pub fn heal(&self) {
        self.state.rules.clear();
    }

    /// Breaks every open connection, and with it every watch.
    pub fn cut_connections(&self) {
        if let Ok(mut connections) = self.state.connections.lock() {
            std::mem::take(&mut *connections).cancel();
        }
    }
}

async fn accept(listener: TcpListener, state: Arc<State>, stop: CancellationToken) {
    while let Ok((stream, _)) = listener.accept().await {
        let cut = state.connections.lock().map(|token| token.clone()).unwrap_or_default();
        let serving = serve(stream, state.clone());
        tokio::spawn(stop.clone().run_until_cancelled_owned(cut.run_until_cancelled_owned(serving)));
    }
}

async fn serve(stream: TcpStream, state: Arc<State>) {
    let service = service_fn(move |request| {
        let state = state.clone();
        async move { answer(&state, request).await }
    });
    // An error of the service is a cut connection, which is what it is for.
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn answer(state: &State, request: Request<Incoming>) -> Result<Response<AnyBody>> {
    let mut limit = None;
    let fault = state.rules.fault_for(request.uri().path());
    if fault.is_some() {
        state.injected.fetch_add(1, Ordering::Relaxed);
    }
    match fault {
        None => {}
        Some(Fault::Delay(time)) => tokio::time::sleep(time).await,
        Some(Fault::Cut) => return Err(anyhow!("cut")),
        Some(Fault::CutAfter(bytes)) => limit = Some(bytes),
        Some(Fault::Answer(code, body)) => {
            return answer_here(request, code, serde_json::to_vec(&body)?).await;
        }
        Some(Fault::Text(code, text)) => return answer_here(request, code, text.into()).await,
        Some(Fault::Endless(begin, again)) => {
            request.into_body().collect().await?;
            // In pieces as large as those of a server in a hurry.
            let again = Bytes::from(again.repeat(1 + 64 * 1024 / again.len().max(1)));
            let pieces = stream::once(async move { Bytes::from(begin) }).chain(stream::repeat(again));
            let frames = pieces.map(|piece| anyhow::Ok(Frame::data(piece)));
            return json(StatusCode::OK, StreamBody::new(frames).boxed_unsync());
        }
    }
    let response = pass_on(&state.upstream, request).await?;
    Ok(match limit {
        Some(bytes) => response.map(|body| cut_after(body, bytes)),
        None => response,
    })
}

async fn answer_here(
    request: Request<Incoming>,
    code: StatusCode,
    body: Vec<u8>,
) -> Result<Response<AnyBody>> {
    // Read to its end, or the connection is closed after the answer and whoever uses it again is cut off.
    request.into_body().collect().await?;
    json(code, Full::from(body).map_err(|never| match never {}).boxed_unsync())
}

fn json(code: StatusCode, body: AnyBody) -> Result<Response<AnyBody>> {
    Ok(Response::builder().status(code).header("content-type", "application/json").body(body)?)
}

async fn pass_on(upstream: &Upstream, request: Request<Incoming>) -> Result<Response<AnyBody>> {
    let (mut parts, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let target = parts.uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
    parts.headers.remove("host");
    match upstream {
        Upstream::Kubernetes(client) => {
            parts.uri = target.parse()?;
            let request = Request::from_parts(parts, kube::client::Body::from(body.to_vec()));
            Ok(client
                .send(request)
                .await
                .context("API server")?
                .map(|body| body.map_err(Into::into).boxed_unsync()))
        }
        Upstream::Http(client, server) => {
            parts.uri = format!("http://{server}{target}").parse()?;
            let response = client.request(Request::from_parts(parts, Full::from(body))).await?;
            Ok(response.map(|body| body.map_err(Into::into).boxed_unsync()))
        }
    }
}

/// The first bytes of a body, then an error.
fn cut_after(body: AnyBody, limit: usize) -> AnyBody {
    let frames = stream::unfold((body.into_data_stream(), Some(limit)), |(mut data, left)| async move {
        match left? {
            0 => {
                // The server drops what it holds back when a body fails; it flushes while a body is not ready.
                tokio::task::yield_now().await;
                Some((Err(anyhow!("cut")), (data, None)))
            }
            left => {
                let frame = data.next().await?.map(|mut bytes| {
                    bytes.truncate(left);
                    bytes
                });
                let left = frame.as_ref().ok().map(|bytes| left - bytes.len());
                Some((frame.map(Frame::data), (data, left)))
            }
        }
    });
    StreamBody::new(frames).boxed_unsync()
}

mod rules {
    //! The rules behind their lock: the only place that holds it, and never across an await.

    use std::sync::Mutex;

    use super::{Fault, Rule};

    #[derive(Default)]
    pub(super) struct Rules(Mutex<Vec<Rule>>);

    impl Rules {
        pub(super) fn push(&self, rule: Rule) {
            if let Ok(mut rules) = self.0.lock() {
                rules.push(rule);
            }
        }

        pub(super) fn clear(&self) {
            if let Ok(mut rules) = self.0.lock() {
                rules.clear();
            }
        }

        /// The fault for a path, if there is one; a rule that is used up goes away.
        pub(super) fn fault_for(&self, path: &str) -> Option<Fault> {
            let mut rules = self.0.lock().ok()?;
            let at = rules.iter().position(|rule| path.contains(&rule.path))?;
            let fault = rules[at].fault.clone();
            if let Some(left) = &mut rules[at].left {
                *left -= 1;
                if *left == 0 {
                    rules.remove(at);
                }
            }
            Some(fault)
        }
    }
}
