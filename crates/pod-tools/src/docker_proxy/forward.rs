//! One call on its way to dockerd and back. Bodies are passed on as they come, in both directions; only that of a
//! container to create is read as a whole. Every call has its own connection to dockerd: unix sockets are cheap, and a
//! connection may turn into a stream that belongs to that call alone (`docker attach`, `exec`, builds).

use std::convert::Infallible;
use std::path::Path;

use http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, HOST, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, Version};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Body, Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tracing::{debug, warn};

use super::{Tasks, create};

/// The largest description of a container that is accepted.
pub(super) const MOST_CREATE_BYTES: usize = 4 << 20;

type Streamed = BoxBody<Bytes, hyper::Error>;

/// Answers with what dockerd answers, or with why it was not asked.
pub(super) async fn forward(
    request: Request<Incoming>,
    upstream: &Path,
    tasks: &Tasks,
) -> Result<Response<Streamed>, Infallible> {
    let answer = match prepare(request).await {
        Ok((request, client)) => ask(request, client, upstream, tasks).await,
        Err(refusal) => Err(refusal),
    };
    Ok(answer.unwrap_or_else(Refusal::into_response))
}

/// The request as dockerd is to see it, and the client's end of a stream that it may become.
async fn prepare(mut request: Request<Incoming>) -> Result<(Request<Streamed>, Option<OnUpgrade>), Refusal> {
    let client = request.headers().contains_key(UPGRADE).then(|| hyper::upgrade::on(&mut request));
    let (mut parts, body) = request.into_parts();
    let parent = if create::is_create(&parts.method, parts.uri.path()) {
        create::cgroup_parent(&parts.headers).map_err(Refusal::bad_request)?
    } else {
        None
    };
    // Clients send the header with every call: the prolog can only set one for all.
    parts.headers.remove(create::HEADER);
    // Answered by this server when it reads the body.
    parts.headers.remove(EXPECT);
    strip_hop_by_hop(&mut parts.headers, client.is_some());
    // Every connection to dockerd speaks 1.1, which wants a host.
    parts.version = Version::HTTP_11;
    parts.headers.entry(HOST).or_insert(HeaderValue::from_static("docker"));
    let body = match parent {
        None => body.boxed(),
        Some(parent) => {
            let read = read_limited(body).await?;
            let body = create::with_cgroup_parent(&read, &parent).map_err(Refusal::bad_request)?;
            parts.headers.remove(TRANSFER_ENCODING);
            parts.headers.insert(CONTENT_LENGTH, body.len().into());
            debug!(parent, "creating a container");
            whole(body)
        }
    };
    Ok((Request::from_parts(parts, body), client))
}

/// What concerns a single connection stays on it, unless both connections become one stream.
fn strip_hop_by_hop(headers: &mut HeaderMap, becomes_stream: bool) {
    const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
    headers.remove(KEEP_ALIVE);
    if !becomes_stream {
        headers.remove(CONNECTION);
        headers.remove(UPGRADE);
    }
}

async fn read_limited(body: Incoming) -> Result<Bytes, Refusal> {
    let too_large = || Refusal {
        status: StatusCode::PAYLOAD_TOO_LARGE,
        message: format!("the description of a container is larger than {} MiB", MOST_CREATE_BYTES >> 20),
    };
    if body.size_hint().lower() > MOST_CREATE_BYTES as u64 {
        return Err(too_large());
    }
    match Limited::new(body, MOST_CREATE_BYTES).collect().await {
        Ok(read) => Ok(read.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(too_large()),
        Err(error) => Err(Refusal::bad_request(format!("the request ended early: {error}"))),
    }
}

async fn ask(
    request: Request<Streamed>,
    client: Option<OnUpgrade>,
    upstream: &Path,
    tasks: &Tasks,
) -> Result<Response<Streamed>, Refusal> {
    let no_answer = |error: &dyn std::fmt::Display| {
        warn!(%error, upstream = %upstream.display(), "no answer from dockerd");
        let message = format!("no answer from dockerd at {}: {error}; is it running?", upstream.display());
        Refusal { status: StatusCode::BAD_GATEWAY, message }
    };
    let stream = UnixStream::connect(upstream).await.map_err(|error| no_answer(&error))?;
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| no_answer(&error))?;
    tasks.spawn(async {
        if let Err(error) = connection.with_upgrades().await {
            debug!(%error, "a connection to dockerd ended early");
        }
    });
    let mut response = sender.send_request(request).await.map_err(|error| no_answer(&error))?;
    let becomes_stream = response.status() == StatusCode::SWITCHING_PROTOCOLS;
    strip_hop_by_hop(response.headers_mut(), becomes_stream);
    if becomes_stream {
        let Some(client) = client else {
            return Err(no_answer(&"it changed the protocol without having been asked to"));
        };
        let server = hyper::upgrade::on(&mut response);
        tasks.spawn(tunnel(client, server));
    }
    Ok(response.map(BodyExt::boxed))
}

/// Joins the two connections until both directions have ended; the end of one is passed on, as `docker attach` closes
/// the input of a container and goes on reading.
async fn tunnel(client: OnUpgrade, server: OnUpgrade) {
    let ended = async {
        let (client, server) = tokio::try_join!(client, server).map_err(std::io::Error::other)?;
        tokio::io::copy_bidirectional(&mut TokioIo::new(client), &mut TokioIo::new(server)).await
    };
    if let Err(error) = ended.await {
        debug!(%error, "a stream ended early");
    }
}

/// Why a call did not get to dockerd, in the form in which dockerd itself reports errors.
struct Refusal {
    status: StatusCode,
    message: String,
}

impl Refusal {
    fn bad_request(message: String) -> Self {
        Self { status: StatusCode::BAD_REQUEST, message }
    }

    fn into_response(self) -> Response<Streamed> {
        let message = format!("docker-proxy: {}", self.message);
        let mut response = Response::new(whole(serde_json::json!({ "message": message }).to_string()));
        *response.status_mut() = self.status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response
    }
}

fn whole(body: impl Into<Bytes>) -> Streamed {
    Full::new(body.into()).map_err(|never| match never {}).boxed()
}
