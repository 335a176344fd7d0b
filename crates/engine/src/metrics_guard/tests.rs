//! Tests of the guard against an API server that answers as it is told.

use std::future::pending;
use std::sync::atomic::AtomicUsize;

use axum::body::Body;
use axum::routing::get;
use kube::client::Body as KubeBody;
use serde_json::{Value, json};
use tower::{BoxError, ServiceExt, service_fn};

use super::*;

/// Counts what it is asked. Tokens begin with what they are: `reader…`, `outsider…`, anything else is unknown.
#[derive(Debug, Default)]
struct Api {
    tokens: AtomicUsize,
    access: AtomicUsize,
    behaviour: std::sync::Mutex<Behaviour>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Behaviour {
    #[default]
    Answers,
    Silent,
    Unreachable,
    Refuses(u16),
    Babbles,
}

impl Api {
    fn guard(self: &Arc<Self>) -> Router {
        let api = Arc::clone(self);
        let service = service_fn(move |request: http::Request<KubeBody>| {
            let api = Arc::clone(&api);
            async move { api.answer(request).await }
        });
        let router = Router::new().route("/metrics", get(async || "metrics"));
        MetricsGuard::new(Client::new(service, "default")).protect(router)
    }

    fn behave(&self, behaviour: Behaviour) {
        *self.behaviour.lock().unwrap() = behaviour;
    }

    async fn answer(&self, request: http::Request<KubeBody>) -> Result<http::Response<KubeBody>, BoxError> {
        let path = request.uri().path().to_owned();
        let asked: Value = serde_json::from_slice(&request.into_body().collect_bytes().await?)?;
        let behaviour = *self.behaviour.lock().unwrap();
        // Others get their turn, as they do while a real server works.
        tokio::task::yield_now().await;
        let (code, body) = match behaviour {
            Behaviour::Silent => pending().await,
            Behaviour::Unreachable => return Err("connection refused".into()),
            Behaviour::Refuses(code) => (
                code,
                json!({ "kind": "Status", "status": "Failure", "message": "no", "reason": "", "code": code }),
            ),
            Behaviour::Babbles => (201, json!({ "spec": asked["spec"], "status": "fine" })),
            Behaviour::Answers => {
                (201, json!({ "spec": asked["spec"], "status": self.review(&path, &asked) }))
            }
        };
        Ok(http::Response::builder().status(code).body(KubeBody::from(body.to_string().into_bytes()))?)
    }

    fn review(&self, path: &str, asked: &Value) -> Value {
        if path.ends_with("/tokenreviews") {
            self.tokens.fetch_add(1, Ordering::Relaxed);
            let token = asked["spec"]["token"].as_str().unwrap();
            let role = token.split('-').next().unwrap();
            if !["reader", "outsider"].contains(&role) {
                return json!({ "authenticated": false, "error": "invalid bearer token" });
            }
            return json!({ "authenticated": true, "user": {
                "username": role, "uid": "u1", "groups": ["g1"], "extra": { "k": ["v"] } } });
        }
        assert_eq!(path, "/apis/authorization.k8s.io/v1/subjectaccessreviews");
        self.access.fetch_add(1, Ordering::Relaxed);
        let spec = &asked["spec"];
        assert_eq!(spec["nonResourceAttributes"], json!({ "path": "/metrics", "verb": "get" }));
        assert_eq!(
            (&spec["uid"], &spec["groups"], &spec["extra"]),
            (&json!("u1"), &json!(["g1"]), &json!({ "k": ["v"] }))
        );
        let allowed = spec["user"] == "reader";
        json!({ "allowed": allowed, "reason": if allowed { "" } else { "not on the list" } })
    }

    /// How many reviews of tokens and of access there were.
    fn asked(&self) -> (usize, usize) {
        (self.tokens.load(Ordering::Relaxed), self.access.load(Ordering::Relaxed))
    }
}

async fn scrape_as(guard: &Router, authorization: Option<&str>) -> (StatusCode, HeaderMap, String) {
    let mut request = http::Request::get("/metrics");
    if let Some(authorization) = authorization {
        request = request.header(header::AUTHORIZATION, authorization);
    }
    let reply = guard.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    let (head, body) = reply.into_parts();
    let body = axum::body::to_bytes(body, 10_000).await.unwrap();
    (head.status, head.headers, String::from_utf8(body.to_vec()).unwrap())
}

async fn scrape(guard: &Router, token: &str) -> (u16, String) {
    let (status, _, body) = scrape_as(guard, Some(&format!("Bearer {token}"))).await;
    (status.as_u16(), body)
}

#[test]
fn tokens_are_read_as_kubernetes_reads_them() {
    for (header, token) in [
        ("Bearer abc", Some("abc")),
        ("bearer abc", Some("abc")),
        (" BEARER abc ", Some("abc")),
        ("Bearer abc def", Some("abc")),
        ("Bearer", None),
        ("Bearer ", None),
        ("Bearer  abc", None),
        ("Basic abc", None),
        ("abc", None),
        ("", None),
    ] {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, header.parse().unwrap());
        assert_eq!(bearer_token(&headers), token, "{header:?}");
    }
    assert_eq!(bearer_token(&HeaderMap::new()), None);
}

#[tokio::test(start_paused = true)]
async fn without_a_token_nobody_is_asked() {
    let api = Arc::new(Api::default());
    let guard = api.guard();
    for authorization in [None, Some("Basic dTpw"), Some("Bearer ")] {
        let (status, headers, body) = scrape_as(&guard, authorization).await;
        assert_eq!((status, body.as_str()), (StatusCode::UNAUTHORIZED, "a bearer token is needed\n"));
        assert_eq!(headers[header::WWW_AUTHENTICATE], "Bearer");
    }
    assert_eq!(api.asked(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn readers_read_outsiders_are_told_why_not_and_strangers_nothing() {
    let api = Arc::new(Api::default());
    let guard = api.guard();
    assert_eq!(scrape(&guard, "reader-1").await, (200, "metrics".into()));
    let (code, body) = scrape(&guard, "outsider-1").await;
    assert_eq!(code, 403);
    assert!(body.starts_with("outsider may not get /metrics: not on the list\n"), "{body}");
    assert!(body.contains("nonResourceURL /metrics"), "{body}");
    assert_eq!(scrape(&guard, "stranger").await, (401, "the bearer token is not accepted\n".into()));
}

#[tokio::test(start_paused = true)]
async fn paths_that_do_not_exist_are_guarded_too() {
    let guard = Arc::new(Api::default()).guard();
    let request = http::Request::get("/nothing").body(Body::empty()).unwrap();
    assert_eq!(guard.oneshot(request).await.unwrap().status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test(start_paused = true)]
async fn answers_are_remembered_as_long_as_controller_runtime_does() {
    let api = Arc::new(Api::default());
    let guard = api.guard();
    for _ in 0..3 {
        scrape(&guard, "reader-1").await;
        scrape(&guard, "outsider-1").await;
        scrape(&guard, "stranger").await;
    }
    assert_eq!(api.asked(), (3, 2));
    tokio::time::advance(REMEMBER_DENIED).await;
    scrape(&guard, "reader-1").await;
    scrape(&guard, "outsider-1").await;
    assert_eq!(api.asked(), (3, 3), "only the denial is asked for again");
    tokio::time::advance(REMEMBER_TOKEN).await;
    scrape(&guard, "reader-1").await;
    assert_eq!(api.asked(), (4, 3), "the token is asked for again, its access not yet");
    tokio::time::advance(REMEMBER_ALLOWED).await;
    scrape(&guard, "reader-1").await;
    assert_eq!(api.asked(), (5, 4));
}

#[tokio::test(start_paused = true)]
async fn requests_with_one_token_ask_once_between_them() {
    let api = Arc::new(Api::default());
    let guard = api.guard();
    let all = futures::future::join_all((0..50).map(|_| scrape(&guard, "reader-1"))).await;
    assert!(all.iter().all(|(code, _)| *code == 200));
    assert_eq!(api.asked(), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_wrong_tokens_pushes_out_no_right_one() {
    let api = Arc::new(Api::default());
    let guard = api.guard();
    scrape(&guard, "reader-1").await;
    for number in 0..1000 {
        assert_eq!(scrape(&guard, &format!("stranger-{number}")).await.0, 401);
    }
    let (tokens, access) = api.asked();
    scrape(&guard, "reader-1").await;
    assert_eq!((tokens, access), (1001, 1));
    assert_eq!(api.asked(), (1001, 1));
}

#[tokio::test(start_paused = true)]
async fn without_an_answer_nobody_gets_in_and_nothing_is_remembered() {
    let api = Arc::new(Api::default());
    let guard = api.guard();
    for (behaviour, code, text) in [
        (Behaviour::Unreachable, 503, "the API server could not be reached\n"),
        (Behaviour::Refuses(403), 500, "the API server refused to review the token\n"),
        (Behaviour::Refuses(500), 503, "the API server refused to review the token\n"),
        (Behaviour::Babbles, 500, "the API server could not be understood\n"),
        (Behaviour::Silent, 503, "the API server did not answer in time\n"),
    ] {
        api.behave(behaviour);
        assert_eq!(scrape(&guard, "reader-1").await, (code, text.into()), "{behaviour:?}");
    }
    api.behave(Behaviour::Answers);
    assert_eq!(scrape(&guard, "reader-1").await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn a_silent_api_server_keeps_nobody_for_long() {
    let api = Arc::new(Api::default());
    let guard = api.guard();
    api.behave(Behaviour::Silent);
    let begin = tokio::time::Instant::now();
    let all = futures::future::join_all((0..20).map(|_| scrape(&guard, "reader-1"))).await;
    assert!(all.iter().all(|(code, _)| *code == 503));
    assert!(begin.elapsed() <= DEADLINE * 2, "{:?}", begin.elapsed());
}
