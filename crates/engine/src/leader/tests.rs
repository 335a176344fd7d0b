//! The loop on paused time, against a Lease in memory: when it asks, when it stops, and what it leaves behind.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use anyhow::{Context, Result};
use http::{Method, Request, Response};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tower::{BoxError, service_fn};

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// An API server with room for one Lease.
#[derive(Clone)]
struct Server(Arc<Mutex<State>>);

struct State {
    lease: Option<Value>,
    version: u64,
    calls: Vec<(Instant, Method)>,
    mood: Mood,
}

#[derive(Clone, PartialEq)]
enum Mood {
    Well,
    Silent,
    /// Carries requests out and loses the answer.
    Forgetful,
    Refusing(u16, &'static str),
}

impl Server {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(State { lease: None, version: 0, calls: Vec::new(), mood: Mood::Well })))
    }

    fn client(&self) -> Client {
        let server = self.clone();
        let service = service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move {
                let (parts, body) = request.into_parts();
                let body = body.collect_bytes().await?;
                let (code, body) = server.answer(&parts.method, &body).context("no answer")?;
                let mood = server.mood();
                if matches!(mood, Mood::Silent | Mood::Forgetful) {
                    std::future::pending::<()>().await;
                }
                let body = Body::from(serde_json::to_vec(&body)?);
                Ok::<_, BoxError>(Response::builder().status(code).body(body)?)
            }
        });
        Client::new(service, "default")
    }

    fn mood(&self) -> Mood {
        self.0.lock().unwrap().mood.clone()
    }

    fn set_mood(&self, mood: Mood) {
        self.0.lock().unwrap().mood = mood;
    }

    fn answer(&self, method: &Method, body: &[u8]) -> Result<(u16, Value)> {
        let status = |code: u16, message: &str| {
            let reason = if message.starts_with("leases") && code == 404 { "NotFound" } else { "Other" };
            (code, json!({ "status": "Failure", "code": code, "message": message, "reason": reason }))
        };
        let mut state = self.0.lock().unwrap();
        state.calls.push((Instant::now(), method.clone()));
        match state.mood {
            Mood::Silent => return Ok(status(500, "")),
            Mood::Refusing(code, message) => return Ok(status(code, message)),
            Mood::Well | Mood::Forgetful => {}
        }
        let version = state.version.to_string();
        let spec = match (method.as_str(), &state.lease) {
            ("GET", Some(lease)) => return Ok((200, lease.clone())),
            ("GET" | "PATCH", None) => return Ok(status(404, "leases \"leader\" not found")),
            ("POST", Some(_)) => return Ok(status(409, "already exists")),
            ("POST" | "PATCH", _) => {
                let sent: Value = serde_json::from_slice(body)?;
                let known = sent.pointer("/metadata/resourceVersion");
                if method == Method::PATCH && known != Some(&Value::String(version)) {
                    return Ok(status(409, "the object has been modified"));
                }
                sent["spec"].clone()
            }
            _ => return Ok(status(405, "")),
        };
        Ok((200, state.write(&spec)))
    }

    /// A write by somebody else.
    fn write(&self, spec: &Value) {
        self.0.lock().unwrap().write(spec);
    }

    fn delete(&self) {
        self.0.lock().unwrap().lease = None;
    }

    fn holder(&self) -> String {
        let state = self.0.lock().unwrap();
        let holder = state.lease.as_ref().and_then(|lease| lease.pointer("/spec/holderIdentity"));
        holder.and_then(Value::as_str).unwrap_or("(no lease)").to_owned()
    }

    /// The calls since the last time, with the seconds since `start`.
    fn calls(&self, start: Instant) -> Vec<(u64, String)> {
        let calls = std::mem::take(&mut self.0.lock().unwrap().calls);
        calls.into_iter().map(|(at, method)| ((at - start).as_secs(), method.to_string())).collect()
    }
}

impl State {
    fn write(&mut self, spec: &Value) -> Value {
        self.version += 1;
        let metadata = json!({ "name": "leader", "resourceVersion": self.version.to_string() });
        let lease = json!({ "metadata": metadata, "spec": spec });
        self.lease = Some(lease.clone());
        lease
    }
}

/// An election that runs, and what its `lead` has noticed.
struct Running {
    fence: Fence,
    status: Status,
    shutdown: CancellationToken,
    terms: Arc<AtomicUsize>,
    ended: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

/// What `lead` does when its term is over.
#[derive(Clone, Copy)]
enum Work {
    Drains(Duration),
    /// Ends by itself.
    Ends(Duration),
}

fn start(server: &Server, identity: &str, registry: &Registry, work: Work) -> Running {
    let election = Election::new(server.client(), Settings::new("default", "leader", identity), registry);
    let (fence, status) = (election.fence(), election.status());
    let shutdown = CancellationToken::new();
    let (terms, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (began, over) = (Arc::clone(&terms), Arc::clone(&ended));
    let task = tokio::spawn(election.run(shutdown.clone(), move |term| {
        let (began, over) = (Arc::clone(&began), Arc::clone(&over));
        async move {
            began.fetch_add(1, Ordering::Relaxed);
            match work {
                Work::Drains(takes) => {
                    term.cancelled().await;
                    sleep(takes).await;
                }
                Work::Ends(after) => sleep(after).await,
            }
            over.fetch_add(1, Ordering::Relaxed);
        }
    }));
    Running { fence, status, shutdown, terms, ended, task }
}

impl Running {
    async fn until(&mut self, wanted: Standing) {
        let reached = timeout(600 * SECOND, self.status.wait_for(|now| *now == wanted)).await;
        assert_eq!(reached, Ok(true), "{wanted}; it is {}", self.status.get());
    }

    fn ended(&self) -> usize {
        self.ended.load(Ordering::Relaxed)
    }
}

const AT_ONCE: Work = Work::Drains(Duration::ZERO);

#[tokio::test(start_paused = true)]
async fn a_leader_patches_once_per_period_and_does_nothing_else() {
    let (server, registry, begin) = (Server::new(), Registry::new(), Instant::now());
    let mut one = start(&server, "one", &registry, AT_ONCE);
    one.until(Standing::Leading).await;
    assert!(one.fence.is_open());
    assert_eq!(server.calls(begin), [(0, "GET".to_owned()), (0, "POST".to_owned())]);
    sleep(9 * SECOND).await;
    let renewals: Vec<_> = [2, 4, 6, 8].map(|at| (at, "PATCH".to_owned())).into();
    assert_eq!(server.calls(begin), renewals);
    let metrics = registry.encode().unwrap();
    assert!(metrics.contains("\nleader_election_master_status{name=\"leader\"} 1\n"), "{metrics}");
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_closes_the_fence_at_the_deadline_and_the_term_with_it() {
    let (server, registry) = (Server::new(), Registry::new());
    let mut one = start(&server, "one", &registry, AT_ONCE);
    one.until(Standing::Leading).await;
    sleep(5 * SECOND).await;
    // The last renewal was sent 1 s ago.
    server.set_mood(Mood::Silent);
    sleep(8900 * SECOND / 1000).await;
    assert!(one.fence.is_open() && one.ended() == 0);
    sleep(200 * SECOND / 1000).await;
    assert!(!one.fence.is_open());
    assert_eq!(one.ended(), 1);
    assert!(registry.encode().unwrap().contains("master_status{name=\"leader\"} 0\n"));
    one.until(Standing::Failing("no answer within 5s".to_owned())).await;

    server.set_mood(Mood::Well);
    one.until(Standing::Leading).await;
    assert_eq!(one.terms.load(Ordering::Relaxed), 2, "the process goes on");
}

#[tokio::test(start_paused = true)]
async fn lost_answers_do_not_cost_the_lease() {
    let (server, registry) = (Server::new(), Registry::new());
    let mut one = start(&server, "one", &registry, AT_ONCE);
    one.until(Standing::Leading).await;
    server.set_mood(Mood::Forgetful);
    sleep(4 * SECOND).await;
    server.set_mood(Mood::Well);
    sleep(60 * SECOND).await;
    assert!(one.fence.is_open() && one.ended() == 0);
    assert_eq!(one.status.get(), Standing::Leading);
}

#[tokio::test(start_paused = true)]
async fn a_stolen_or_emptied_lease_ends_the_term_at_the_next_renewal() {
    for thief in ["thief", ""] {
        let (server, registry) = (Server::new(), Registry::new());
        let mut one = start(&server, "one", &registry, AT_ONCE);
        one.until(Standing::Leading).await;
        sleep(SECOND).await;
        server.write(&json!({ "holderIdentity": thief, "leaseDurationSeconds": 15, "leaseTransitions": 1 }));
        sleep(SECOND + SECOND / 10).await;
        assert_eq!(one.ended(), 1, "{thief}");
        if !thief.is_empty() {
            assert!(!one.fence.is_open());
            assert_eq!(one.status.get(), Standing::Following("thief".to_owned()));
        }
        let begin = Instant::now();
        one.until(Standing::Leading).await;
        assert!(begin.elapsed() < 16 * SECOND, "an abandoned lease is taken after its duration");
        assert_eq!(server.holder(), "one");
    }
}

#[tokio::test(start_paused = true)]
async fn a_deleted_lease_is_made_again_by_the_leader() {
    let (server, registry) = (Server::new(), Registry::new());
    let mut one = start(&server, "one", &registry, AT_ONCE);
    one.until(Standing::Leading).await;
    let mut two = start(&server, "two", &registry, AT_ONCE);
    two.until(Standing::Following("one".to_owned())).await;
    for _ in 0..5 {
        server.delete();
        for _ in 0..200 {
            sleep(SECOND / 10).await;
            assert!(one.fence.is_open() && !two.fence.is_open());
        }
        assert_eq!(server.holder(), "one");
    }
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_drains_under_the_lease_and_then_gives_it_back() {
    let (server, registry) = (Server::new(), Registry::new());
    // Longer than the lease lasts without a renewal.
    let mut one = start(&server, "one", &registry, Work::Drains(19 * SECOND));
    one.until(Standing::Leading).await;
    let mut two = start(&server, "two", &registry, AT_ONCE);
    two.until(Standing::Following("one".to_owned())).await;
    one.shutdown.cancel();
    sleep(18 * SECOND).await;
    assert!(one.fence.is_open() && !two.fence.is_open(), "it drains as the leader");
    one.task.await.unwrap();
    assert_eq!(one.ended.load(Ordering::Relaxed), 1);
    assert!(!one.fence.is_open());
    let begin = Instant::now();
    two.until(Standing::Leading).await;
    assert!(begin.elapsed() <= 2 * SECOND, "{:?}", begin.elapsed());
}

#[tokio::test(start_paused = true)]
async fn work_that_does_not_drain_is_dropped_and_the_lease_given_back() {
    let (server, registry) = (Server::new(), Registry::new());
    let mut one = start(&server, "one", &registry, Work::Drains(3600 * SECOND));
    one.until(Standing::Leading).await;
    let begin = Instant::now();
    one.shutdown.cancel();
    one.task.await.unwrap();
    assert_eq!(begin.elapsed().as_secs(), DRAIN.as_secs());
    assert_eq!((one.ended.load(Ordering::Relaxed), server.holder().as_str()), (0, ""));
}

#[tokio::test(start_paused = true)]
async fn work_that_outlives_a_lost_lease_is_dropped_before_another_can_lead() {
    let (server, registry) = (Server::new(), Registry::new());
    let mut one = start(&server, "one", &registry, Work::Drains(3600 * SECOND));
    one.until(Standing::Leading).await;
    server.set_mood(Mood::Silent);
    let begin = Instant::now();
    one.until(Standing::Following(String::new())).await;
    assert_eq!(begin.elapsed().as_secs(), 10);
    let before = server.calls(begin).len();
    sleep(5 * SECOND + SECOND / 2).await;
    assert!(before > 0 && !server.calls(begin).is_empty(), "it is a candidate again");
}

#[tokio::test(start_paused = true)]
async fn work_that_ends_by_itself_ends_the_election() {
    let (server, registry) = (Server::new(), Registry::new());
    let one = start(&server, "one", &registry, Work::Ends(7 * SECOND));
    one.task.await.unwrap();
    assert_eq!((one.terms.load(Ordering::Relaxed), server.holder().as_str()), (1, ""));
}

#[tokio::test(start_paused = true)]
async fn a_candidate_stops_at_once_and_leaves_the_lease_alone() {
    let (server, registry) = (Server::new(), Registry::new());
    server.write(&json!({ "holderIdentity": "other", "leaseDurationSeconds": 15 }));
    let mut one = start(&server, "one", &registry, AT_ONCE);
    one.until(Standing::Following("other".to_owned())).await;
    server.set_mood(Mood::Silent);
    sleep(3 * SECOND).await;
    let begin = Instant::now();
    one.shutdown.cancel();
    one.task.await.unwrap();
    assert!(begin.elapsed() < SECOND / 10, "also while it reads");
    assert_eq!((one.terms.load(Ordering::Relaxed), server.holder().as_str()), (0, "other"));
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_the_status_until_it_passes() {
    let (server, registry) = (Server::new(), Registry::new());
    for (code, message) in [(403, "leases is forbidden"), (404, "namespaces \"default\" not found")] {
        server.set_mood(Mood::Refusing(code, message));
        let mut one = start(&server, "one", &registry, AT_ONCE);
        one.until(Standing::Failing(message.to_owned())).await;
        server.set_mood(Mood::Well);
        one.until(Standing::Leading).await;
        one.shutdown.cancel();
        one.task.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn an_election_that_is_dropped_closes_the_fence() {
    let (server, registry) = (Server::new(), Registry::new());
    let mut one = start(&server, "one", &registry, AT_ONCE);
    one.until(Standing::Leading).await;
    one.task.abort();
    let _ = one.task.await;
    tokio::task::yield_now().await;
    assert!(!one.fence.is_open());
    let begin = Instant::now();
    server.calls(begin);
    sleep(30 * SECOND).await;
    assert_eq!(server.calls(begin), [], "nobody renews");
}

/// What blocks a thread of the runtime for seconds must not cost the lease.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_that_does_not_yield_keeps_the_lease() {
    let server = Server::new();
    let settings = Settings {
        lease_duration: 2 * SECOND,
        renew_deadline: SECOND,
        retry_period: SECOND / 10,
        ..Settings::new("default", "leader", "one")
    };
    let election = Election::new(server.client(), settings, &Registry::new());
    let fence = election.fence();
    let held = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&held);
    election
        .run(CancellationToken::new(), move |_| {
            let (fence, seen) = (fence.clone(), Arc::clone(&seen));
            async move {
                let until = std::time::Instant::now() + 2 * SECOND;
                while std::time::Instant::now() < until {
                    std::hint::spin_loop();
                }
                seen.store(fence.is_open(), Ordering::Relaxed);
            }
        })
        .await;
    assert!(held.load(Ordering::Relaxed));
}

#[test]
fn settings_that_could_not_work_are_refused() {
    let good = Settings::new("a", "b", "c");
    assert_eq!(good.validate(), Ok(()));
    let late = Settings { renew_deadline: 15 * SECOND, ..good.clone() };
    assert_eq!(late.validate(), Err(SettingsError::DeadlineAfterLease));
    let slow = Settings { retry_period: 10 * SECOND, ..good.clone() };
    assert_eq!(slow.validate(), Err(SettingsError::PeriodAfterDeadline));
    assert_eq!(Settings { retry_period: Duration::ZERO, ..good }.validate(), Err(SettingsError::NoPeriod));
}

#[test]
fn identities_differ_and_name_the_host() {
    let (one, two) = (identity(), identity());
    assert_ne!(one, two);
    let (host, random) = one.rsplit_once('_').unwrap();
    assert!(!host.is_empty() && random.len() == 32, "{one}");
}
