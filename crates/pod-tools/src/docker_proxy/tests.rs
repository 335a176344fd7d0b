//! Tests over real sockets, with a dockerd that tells what it was asked.

use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Poll};

use http::header::{CONNECTION, CONTENT_LENGTH, UPGRADE};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::client::conn::http1::{SendRequest, handshake};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::*;

type Body = BoxBody<Bytes, hyper::Error>;

const SOON: Duration = Duration::from_secs(10);
/// Longer than any test waits: nothing is cut.
const NO_CUT: Duration = Duration::from_secs(60);

fn full(text: impl Into<Bytes>) -> Body {
    Full::new(text.into()).map_err(|never| match never {}).boxed()
}

/// A body that the test writes piece by piece.
fn piecewise() -> (mpsc::Sender<&'static str>, Body) {
    let (sender, receiver) = mpsc::channel(1);
    (sender, Pieces(receiver).boxed())
}

struct Pieces(mpsc::Receiver<&'static str>);

impl hyper::body::Body for Pieces {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        self.0.poll_recv(context).map(|piece| Some(Ok(Frame::data(piece?.into()))))
    }
}

/// A running proxy with a dockerd behind it.
struct Rig {
    dir: tempfile::TempDir,
    shutdown: CancellationToken,
    proxy: JoinHandle<Result<(), Error>>,
    /// What dockerd receives at `/upload`, piece by piece, and the body of its next `/stream`.
    uploaded: mpsc::Receiver<Bytes>,
}

struct Dockerd {
    uploaded: mpsc::Sender<Bytes>,
    stream: Mutex<Option<Body>>,
}

impl Rig {
    async fn start() -> Self {
        Self::with_stream(full(""), NO_CUT).await
    }

    async fn with_stream(stream: Body, grace: Duration) -> Self {
        let (uploads, uploaded) = mpsc::channel(8);
        let rig = Self::without_dockerd(uploaded, grace).await;
        let listener = UnixListener::bind(rig.dir.path().join("dockerd.sock")).unwrap();
        let dockerd = Arc::new(Dockerd { uploaded: uploads, stream: Mutex::new(Some(stream)) });
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let dockerd = Arc::clone(&dockerd);
                let service = service_fn(move |request| {
                    let dockerd = Arc::clone(&dockerd);
                    async move { Ok::<_, std::convert::Infallible>(dockerd.answer(request).await) }
                });
                let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
                tokio::spawn(connection.with_upgrades());
            }
        });
        rig
    }

    async fn without_dockerd(uploaded: mpsc::Receiver<Bytes>, grace: Duration) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let listen = dir.path().join("docker.sock");
        let args =
            Args { listen: listen.clone(), upstream: dir.path().join("dockerd.sock"), socket_mode: 0o660 };
        let shutdown = CancellationToken::new();
        let proxy = tokio::spawn(run_with_grace(args, shutdown.clone(), grace));
        timeout(SOON, async {
            while UnixStream::connect(&listen).await.is_err() {
                tokio::task::yield_now().await;
            }
        })
        .await
        .unwrap();
        Self { dir, shutdown, proxy, uploaded }
    }

    async fn connect(&self) -> UnixStream {
        UnixStream::connect(self.dir.path().join("docker.sock")).await.unwrap()
    }

    async fn client(&self) -> SendRequest<Body> {
        let (client, connection) = handshake(TokioIo::new(self.connect().await)).await.unwrap();
        tokio::spawn(connection.with_upgrades());
        client
    }

    async fn send(&self, request: Request<Body>) -> Response<Incoming> {
        timeout(SOON, self.client().await.send_request(request)).await.unwrap().unwrap()
    }

    /// The status and the JSON of the answer.
    async fn ask(&self, request: Request<Body>) -> (StatusCode, Value) {
        let response = self.send(request).await;
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice(&body).unwrap())
    }
}

impl Dockerd {
    async fn answer(&self, mut request: Request<Incoming>) -> Response<Body> {
        match request.uri().path() {
            "/stream" => Response::new(self.stream.lock().unwrap().take().unwrap()),
            "/upload" => {
                while let Some(frame) = request.body_mut().frame().await {
                    self.uploaded.send(frame.unwrap().into_data().unwrap()).await.unwrap();
                }
                Response::new(full(r#"{"uploaded":true}"#))
            }
            "/attach" => {
                assert_eq!(request.headers()[UPGRADE], "tcp");
                assert_eq!(request.headers()[CONNECTION], "Upgrade");
                let stream = hyper::upgrade::on(&mut request);
                let body = request.into_body().collect().await.unwrap().to_bytes();
                assert_eq!(body, r#"{"Tty":true}"#);
                tokio::spawn(async move {
                    let mut stream = TokioIo::new(stream.await.unwrap());
                    stream.write_all(b"hello").await.unwrap();
                    let mut read = String::new();
                    stream.read_to_string(&mut read).await.unwrap();
                    // The input has ended, and the output goes on.
                    stream.write_all(read.to_uppercase().as_bytes()).await.unwrap();
                    stream.shutdown().await.unwrap();
                });
                let response = Response::builder().status(101).header(CONNECTION, "Upgrade");
                response.header(UPGRADE, "tcp").body(full("")).unwrap()
            }
            _ => {
                let (parts, body) = request.into_parts();
                let body = body.collect().await.unwrap().to_bytes();
                let echo = json!({ "call": format!("{} {}", parts.method, parts.uri), "headers": named(&parts.headers),
                                   "body": String::from_utf8_lossy(&body) });
                Response::new(full(echo.to_string()))
            }
        }
    }
}

fn named(headers: &HeaderMap) -> Value {
    headers.iter().map(|(name, value)| (name.to_string(), Value::from(value.to_str().unwrap()))).collect()
}

fn post(path: &str, body: impl Into<Bytes>) -> Request<Body> {
    let request = Request::post(path).header("host", "docker").header("Cgroup-Parent", "/job_7");
    request.body(full(body)).unwrap()
}

#[tokio::test]
async fn new_container_goes_under_the_cgroup_of_its_job() {
    let rig = Rig::start().await;
    let (_, echo) = rig.ask(post("/v1.47/containers/create?name=x", r#"{"Image":"ubuntu"}"#)).await;
    assert_eq!(echo["call"], "POST /v1.47/containers/create?name=x");
    let body = echo["body"].as_str().unwrap();
    let expected = json!({ "Image": "ubuntu", "HostConfig": { "CgroupParent": "/job_7" } });
    assert_eq!(serde_json::from_str::<Value>(body).unwrap(), expected);
    assert_eq!(echo["headers"][CONTENT_LENGTH.as_str()], body.len().to_string());
    assert_eq!(echo["headers"].get("cgroup-parent"), None);
}

#[tokio::test]
async fn everything_else_is_passed_on_as_it_is() {
    let rig = Rig::start().await;
    let (_, echo) = rig.ask(post("/v1.47/containers/x/update", "{ not even JSON")).await;
    assert_eq!(echo["body"], "{ not even JSON");
    assert_eq!(echo["headers"], json!({ "host": "docker", "content-length": "15" }), "but for the header");

    let request =
        Request::post("/containers/create").header("X-Registry-Auth", "e30=").body(full("{ }")).unwrap();
    let (_, echo) = rig.ask(request).await;
    assert_eq!(echo["body"], "{ }", "without the header nothing is read");
    assert_eq!(echo["headers"]["x-registry-auth"], "e30=");
    assert_eq!(echo["headers"]["host"], "docker", "dockerd wants one");
}

#[tokio::test]
async fn several_calls_share_a_connection() {
    let rig = Rig::start().await;
    let mut client = rig.client().await;
    for path in ["/a", "/b"] {
        client.ready().await.unwrap();
        let response = client.send_request(post(path, "")).await.unwrap();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(serde_json::from_slice::<Value>(&body).unwrap()["call"], format!("POST {path}"));
    }
}

#[tokio::test]
async fn what_cannot_be_changed_is_refused_as_docker_refuses() {
    let rig = Rig::start().await;
    let message = |answer: &Value| answer["message"].as_str().unwrap().to_owned();

    let (status, answer) = rig.ask(post("/containers/create", "{")).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(message(&answer).starts_with("docker-proxy: the container to create is not"), "{answer}");

    let mut escape = post("/containers/create", "{}");
    escape.headers_mut().insert("Cgroup-Parent", "/job_7/../job_8".parse().unwrap());
    let (status, answer) = rig.ask(escape).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(message(&answer).contains("has '..' in it"), "{answer}");
}

#[tokio::test]
async fn container_of_unreasonable_size_is_refused() {
    let rig = Rig::start().await;
    let too_many = forward::MOST_CREATE_BYTES + 1;
    // Once with a length that is told, and once as pieces without one.
    let told = format!(
        "POST /containers/create HTTP/1.1\r\nHost: x\r\nCgroup-Parent: /j\r\nContent-Length: {too_many}\r\n\r\n"
    );
    let untold = "POST /containers/create HTTP/1.1\r\nHost: x\r\nCgroup-Parent: /j\r\nTransfer-Encoding: chunked\r\n\r\n";
    let pieces = format!("{too_many:x}\r\n{}", " ".repeat(too_many));
    for (head, body) in [(told.as_str(), ""), (untold, pieces.as_str())] {
        let mut stream = rig.connect().await;
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(body.as_bytes()).await.unwrap();
        let mut answer = vec![0; 1024];
        let read = timeout(SOON, stream.read(&mut answer)).await.unwrap().unwrap();
        let answer = String::from_utf8_lossy(&answer[..read]);
        assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
        assert!(
            answer.contains(
                r#"{"message":"docker-proxy: the description of a container is larger than 4 MiB"}"#
            )
        );
    }
}

#[tokio::test]
async fn missing_dockerd_is_told_to_the_client() {
    let rig = Rig::without_dockerd(mpsc::channel(1).1, NO_CUT).await;
    let (status, answer) = rig.ask(post("/containers/create", "{}")).await;
    assert_eq!(status, StatusCode::BAD_GATEWAY);
    let message = answer["message"].as_str().unwrap();
    assert!(message.contains("no answer from dockerd at ") && message.contains("No such file"), "{message}");
}

#[tokio::test]
async fn attached_stream_runs_in_both_directions_and_ends_one_by_one() {
    let rig = Rig::start().await;
    let request = Request::post("/attach").header(CONNECTION, "Upgrade").header(UPGRADE, "tcp");
    let mut response = rig.send(request.body(full(r#"{"Tty":true}"#)).unwrap()).await;
    assert_eq!(response.status(), StatusCode::SWITCHING_PROTOCOLS);
    assert_eq!(response.headers()[UPGRADE], "tcp");
    let mut stream = TokioIo::new(hyper::upgrade::on(&mut response).await.unwrap());
    let mut hello = [0; 5];
    timeout(SOON, stream.read_exact(&mut hello)).await.unwrap().unwrap();
    assert_eq!(&hello, b"hello");
    stream.write_all(b"input").await.unwrap();
    stream.shutdown().await.unwrap();
    let mut rest = String::new();
    timeout(SOON, stream.read_to_string(&mut rest)).await.unwrap().unwrap();
    assert_eq!(rest, "INPUT");
}

#[tokio::test]
async fn output_that_comes_with_the_answer_itself_is_not_lost() {
    let rig = Rig::without_dockerd(mpsc::channel(1).1, NO_CUT).await;
    let dockerd = UnixListener::bind(rig.dir.path().join("dockerd.sock")).unwrap();
    let head = "POST /exec/x/start HTTP/1.1\r\nHost: docker\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n";
    let mut client = rig.connect().await;
    client.write_all(format!("{head}Content-Length: 2\r\n\r\n{{}}").as_bytes()).await.unwrap();

    let (mut server, _) = dockerd.accept().await.unwrap();
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n{}") {
        assert!(timeout(SOON, server.read_buf(&mut request)).await.unwrap().unwrap() > 0);
    }
    let head = "HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n";
    server
        .write_all(format!("{head}Content-Type: application/vnd.docker.raw-stream\r\n\r\nout").as_bytes())
        .await
        .unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\nout") {
        assert!(timeout(SOON, client.read_buf(&mut answer)).await.unwrap().unwrap() > 0);
    }
    client.write_all(b"in").await.unwrap();
    let mut input = [0; 2];
    timeout(SOON, server.read_exact(&mut input)).await.unwrap().unwrap();
    assert_eq!(&input, b"in");
    // The container has ended, and so has the stream.
    drop(server);
    assert_eq!(timeout(SOON, client.read(&mut input)).await.unwrap().unwrap(), 0);
}

#[tokio::test]
async fn answers_and_uploads_are_passed_on_while_they_come() {
    let (pieces, stream) = piecewise();
    let mut rig = Rig::with_stream(stream, NO_CUT).await;
    let mut answer = rig.send(Request::get("/stream").body(full("")).unwrap()).await.into_body();
    for piece in ["first", "second"] {
        pieces.send(piece).await.unwrap();
        let frame = timeout(SOON, answer.frame()).await.unwrap().unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), piece);
    }
    drop(pieces);
    assert!(timeout(SOON, answer.frame()).await.unwrap().is_none());

    let (pieces, body) = piecewise();
    let mut client = rig.client().await;
    let answer = tokio::spawn(client.send_request(Request::post("/upload").body(body).unwrap()));
    for piece in ["first", "second"] {
        pieces.send(piece).await.unwrap();
        assert_eq!(timeout(SOON, rig.uploaded.recv()).await.unwrap().unwrap(), piece);
    }
    drop(pieces);
    assert_eq!(timeout(SOON, answer).await.unwrap().unwrap().unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn client_that_leaves_ends_the_call_of_dockerd() {
    let (pieces, stream) = piecewise();
    let rig = Rig::with_stream(stream, NO_CUT).await;
    let mut client = rig.connect().await;
    client.write_all(b"GET /stream HTTP/1.1\r\nHost: docker\r\n\r\n").await.unwrap();
    pieces.send("first").await.unwrap();
    let mut some = [0; 64];
    assert!(timeout(SOON, client.read(&mut some)).await.unwrap().unwrap() > 0);
    drop(client);
    timeout(SOON, pieces.closed()).await.expect("dockerd goes on with `logs -f` for nobody");
}

#[tokio::test]
async fn shutdown_ends_it_and_removes_the_socket() {
    let rig = Rig::start().await;
    let mut idle = rig.client().await;
    idle.send_request(post("/a", "")).await.unwrap().into_body().collect().await.unwrap();
    rig.shutdown.cancel();
    timeout(SOON, rig.proxy).await.expect("it waits for an idle connection").unwrap().unwrap();
    assert!(!rig.dir.path().join("docker.sock").exists());
}

#[tokio::test]
async fn shutdown_cuts_streams_that_have_no_end() {
    let (pieces, stream) = piecewise();
    let rig = Rig::with_stream(stream, Duration::from_millis(50)).await;
    let mut answer = rig.send(Request::get("/stream").body(full("")).unwrap()).await.into_body();
    pieces.send("first").await.unwrap();
    answer.frame().await.unwrap().unwrap();
    rig.shutdown.cancel();
    timeout(SOON, rig.proxy).await.expect("it waits for ever").unwrap().unwrap();
    assert!(answer.frame().await.unwrap().is_err());
}

#[tokio::test]
async fn proxy_does_not_talk_to_itself() {
    let args = Args { listen: "/run/x.sock".into(), upstream: "/run/x.sock".into(), socket_mode: 0o660 };
    let error = run(args, CancellationToken::new()).await.unwrap_err();
    assert!(error.to_string().contains("both /run/x.sock"), "{error}");
}

#[test]
fn permissions_are_octal() {
    assert_eq!(octal("0660"), Ok(0o660));
    assert_eq!(octal("777"), Ok(0o777));
    for odd in ["", "0x1", "888", "7777", "-1"] {
        assert!(octal(odd).is_err(), "{odd}");
    }
}
