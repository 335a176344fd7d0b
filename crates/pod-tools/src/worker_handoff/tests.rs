//! Tests of the decision, and of faults that a real API server does not show on demand: a server of a few lines
//! plays them.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use super::*;

fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn only_a_pod_that_is_stopping_is_marked() {
    let operation = || "rev-7".to_owned();
    let of = |pairs: &[(&str, &str)]| decide(&labels(pairs));
    assert_eq!(of(&[(OPERATION, "rev-7"), (PHASE, STOPPING)]), Decision::Patch { operation: operation() });
    assert_eq!(of(&[(OPERATION, "rev-7"), (PHASE, READY)]), Decision::Done { operation: operation() });
    for (pairs, why) in [
        (&[][..], "no operation asks for this pod (no label slurm.nebius.ai/worker-operation-id)"),
        (&[(PHASE, STOPPING)], "no operation asks"),
        (&[(OPERATION, ""), (PHASE, STOPPING)], "no operation asks"),
        (&[(OPERATION, "rev-7")], "(label slurm.nebius.ai/worker-operation-phase is '' and not 'stopping')"),
        (&[(OPERATION, "rev-7"), (PHASE, "paused")], "is 'paused' and not 'stopping'"),
    ] {
        let Decision::Refuse(text) = of(pairs) else { panic!("{pairs:?} is not refused") };
        assert!(text.starts_with("nothing was done: ") && text.contains(why), "{text}");
    }
}

#[test]
fn what_is_written_depends_on_what_was_read() {
    let id = "/metadata/labels/slurm.nebius.ai~1worker-operation-id";
    let phase = "/metadata/labels/slurm.nebius.ai~1worker-operation-phase";
    let expected = json!([
        { "op": "test", "path": id, "value": "rev-7" },
        { "op": "test", "path": phase, "value": "stopping" },
        { "op": "replace", "path": phase, "value": "ready" },
    ]);
    assert_eq!(patch_for("rev-7"), expected);
}

#[test]
fn arguments_that_slurmd_adds_do_no_harm() {
    use clap::{Args as _, FromArgMatches};
    let command = Args::augment_args(clap::Command::new("handoff")).args_override_self(true);
    let matches = command.try_get_matches_from(["handoff", "--pod-name=w-0", "node", "-x", "now"]).unwrap();
    let args = Args::from_arg_matches(&matches).unwrap();
    assert_eq!((args.pod_name.as_deref(), args.ignored.len()), (Some("w-0"), 3));
}

type Labels = BTreeMap<String, String>;

/// One pod and the faults of its next calls: the status to answer with, and what becomes of the labels then.
#[derive(Default)]
struct Server {
    labels: Labels,
    faults: VecDeque<(Method, u16, Option<Labels>)>,
    calls: Vec<Method>,
}

impl Server {
    fn stopping() -> Self {
        Self { labels: labels(&[(OPERATION, "rev-7"), (PHASE, STOPPING)]), ..Self::default() }
    }

    fn answer(&mut self, method: &Method, body: &[u8]) -> (u16, Value) {
        self.calls.push(method.clone());
        if let Some((_, code, changed)) = self.faults.pop_front_if(|(of, ..)| of == method) {
            self.labels = changed.unwrap_or_else(|| self.labels.clone());
            let status = json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "a fault",
                                 "reason": "Fault", "code": code });
            return (code, status);
        }
        if method == Method::PATCH {
            let operation = self.labels.get(OPERATION).cloned().unwrap_or_default();
            assert_eq!(serde_json::from_slice::<Value>(body).unwrap(), patch_for(&operation));
            self.labels.insert(PHASE.to_owned(), READY.to_owned());
        }
        let pod = json!({ "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
                          "metadata": { "name": "w-0", "namespace": "ns", "labels": self.labels } });
        (200, pod)
    }
}

/// Hands the pod of this server over; answers how that went, and what the server has seen.
async fn handed_over(server: Server) -> (Result<Outcome>, Server) {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut config = Config::new(format!("http://{}", listener.local_addr().unwrap()).parse().unwrap());
    config.default_retry = false;
    let server = Arc::new(Mutex::new(server));
    let shared = Arc::clone(&server);
    let serving = tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let server = Arc::clone(&shared);
            let service = service_fn(move |request: Request<Incoming>| {
                let server = Arc::clone(&server);
                async move {
                    assert_eq!(request.uri().path(), "/api/v1/namespaces/ns/pods/w-0");
                    let method = request.method().clone();
                    let body = request.into_body().collect().await.unwrap().to_bytes();
                    let (code, answer) = server.lock().unwrap().answer(&method, &body);
                    let response =
                        Response::builder().status(code).header("content-type", "application/json");
                    Ok::<_, Infallible>(response.body(Full::new(Bytes::from(answer.to_string()))).unwrap())
                }
            });
            tokio::spawn(
                hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service),
            );
        }
    });
    let client = Client::try_from(config).unwrap();
    let outcome = hand_off_with_pauses(client, "ns", "w-0", Duration::from_millis(1)).await;
    serving.abort();
    let server = std::mem::take(&mut *server.lock().unwrap());
    (outcome, server)
}

#[tokio::test]
async fn conflict_and_outage_are_tried_again() {
    let mut server = Server::stopping();
    server.faults = [(Method::GET, 503, None), (Method::PATCH, 409, None), (Method::PATCH, 422, None)].into();
    let (outcome, server) = handed_over(server).await;
    assert_eq!(outcome.unwrap(), Outcome::HandedOver { operation: "rev-7".to_owned() });
    assert_eq!(server.labels[PHASE], READY);
    let patches = server.calls.iter().filter(|method| *method == Method::PATCH).count();
    assert_eq!((patches, server.calls.len()), (3, 7), "every attempt reads the pod anew");
}

#[tokio::test]
async fn operation_that_is_called_off_meanwhile_is_not_answered() {
    let mut server = Server::stopping();
    server.faults = [(Method::PATCH, 422, Some(BTreeMap::new()))].into();
    let (outcome, server) = handed_over(server).await;
    let error = format!("{:#}", outcome.unwrap_err());
    assert!(error.starts_with("hand over pod ns/w-0: nothing was done: no operation asks"), "{error}");
    assert!(server.labels.is_empty());
}

#[tokio::test]
async fn second_call_for_the_same_operation_succeeds_and_writes_nothing() {
    let server = Server { labels: labels(&[(OPERATION, "rev-7"), (PHASE, READY)]), ..Server::default() };
    let (outcome, server) = handed_over(server).await;
    assert_eq!(outcome.unwrap(), Outcome::AlreadyReady { operation: "rev-7".to_owned() });
    assert_eq!(server.calls, [Method::GET]);
}

#[tokio::test]
async fn it_gives_up_after_five_attempts_and_at_once_when_forbidden() {
    let mut server = Server::stopping();
    server.faults = std::iter::repeat_n((Method::PATCH, 409, None), 9).collect();
    let (outcome, server) = handed_over(server).await;
    let error = format!("{:#}", outcome.unwrap_err());
    assert_eq!(error, "hand over pod ns/w-0, 5 attempts in vain: mark the pod as ready: a fault (409)");
    assert_eq!(server.calls.len(), 10);

    let mut server = Server::stopping();
    server.faults = [(Method::GET, 403, None)].into();
    let (outcome, server) = handed_over(server).await;
    assert_eq!(format!("{:#}", outcome.unwrap_err()), "hand over pod ns/w-0: read the pod: a fault (403)");
    assert_eq!(server.calls.len(), 1);
}
