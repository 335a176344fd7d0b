//! A fence around writes: what a replica may do ends when its lease does, whatever its tasks believe.
//!
//! Whoever lost a lease while it was stopped, or cut off, learns of it late. A [`Fence`] is asked at every write and reads
//! the clock each time, so it is closed before any task of a resumed process runs: the monotonic clock goes on while a
//! process is stopped. Reads pass always, so caches stay warm.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures::FutureExt;
use futures::future::{BoxFuture, Either};
use http::{Method, Request};
use kube::client::{Body, ClientBuilder, retry::RetryPolicy};
use thiserror::Error;
use tokio::sync::watch;
use tokio::time::Instant;
use tower::buffer::BufferLayer;
use tower::retry::RetryLayer;
use tower::{BoxError, Layer, Service};

/// Requests that may wait for the connection pool; kube's own clients have the same bound.
const WAITING_REQUESTS: usize = 1024;

/// Whether a replica may write. Clones are the same fence.
#[derive(Debug, Clone)]
pub struct Fence {
    name: Arc<str>,
    state: watch::Receiver<State>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Always,
    Until(Instant),
    Closed,
}

impl State {
    fn is_open_at(self, now: Instant) -> bool {
        match self {
            Self::Always => true,
            Self::Until(end) => now < end,
            Self::Closed => false,
        }
    }
}

impl Fence {
    /// A fence that is always open: for leader election switched off.
    #[must_use]
    pub fn open() -> Self {
        Self { name: Arc::from("none"), state: watch::channel(State::Always).1 }
    }

    /// A closed fence that goes by the name of a lease, and the gate that opens it.
    #[must_use]
    pub fn closed(name: &str) -> (Self, Gate) {
        let (gate, state) = watch::channel(State::Closed);
        (Self { name: Arc::from(name), state }, Gate(gate))
    }

    /// Whether a write may begin now.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.is_open_at(Instant::now())
    }

    pub(crate) fn is_open_at(&self, now: Instant) -> bool {
        self.state.borrow().is_open_at(now)
    }

    /// Waits until the fence is closed.
    async fn closing(self) {
        let mut state = self.state;
        loop {
            let now = *state.borrow_and_update();
            match now {
                State::Always => std::future::pending().await,
                State::Until(end) if Instant::now() < end => {
                    // A renewal moves the end. The gate closes the fence before it goes, so this cannot spin.
                    let _ = tokio::time::timeout_at(end, state.changed()).await;
                }
                State::Until(_) | State::Closed => return,
            }
        }
    }

    fn fenced(&self, begun: bool) -> Fenced {
        Fenced { name: Arc::clone(&self.name), begun }
    }
}

/// The one that opens and closes a [`Fence`], which is closed when this is dropped.
#[derive(Debug)]
pub struct Gate(watch::Sender<State>);

impl Gate {
    /// Opens the fence up to a moment of the monotonic clock.
    pub fn open_until(&self, end: Instant) {
        self.0.send_replace(State::Until(end));
    }

    /// Closes the fence at once.
    pub fn close(&self) {
        self.0.send_replace(State::Closed);
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.close();
    }
}

/// A write that the fence held back.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the lease {name} is no longer held: {}", if *begun { "not waiting for the answer to a write" } else { "not writing" })]
pub struct Fenced {
    /// The lease.
    pub name: Arc<str>,
    /// The request had begun when the fence closed: it is not known whether the server has carried it out.
    pub begun: bool,
}

/// Whether a request failed because the fence was closed.
#[must_use]
pub fn is_fenced(error: &kube::Error) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if error.is::<Fenced>() {
            return true;
        }
        cause = error.source();
    }
    false
}

/// A client whose writes pass a fence.
///
/// The fence is asked before every attempt: kube repeats a refused request for minutes, and its own retries lie below
/// any layer that is added to a client.
pub fn fenced_client(mut config: kube::Config, fence: Fence) -> kube::Result<kube::Client> {
    let retries = std::mem::take(&mut config.default_retry);
    let builder = ClientBuilder::try_from(config)?.with_layer(&FenceLayer::new(fence));
    if !retries {
        return Ok(builder.build());
    }
    // A retry needs a service that can be cloned, as a buffer can.
    let buffer = BufferLayer::<Request<Body>>::new(WAITING_REQUESTS);
    Ok(builder.with_layer(&buffer).with_layer(&RetryLayer::new(RetryPolicy::server_retry())).build())
}

/// Refuses every request that is not a read while the fence is closed, and gives up those under way when it closes.
/// Watches are reads. Retries must lie above this layer; see [`fenced_client`].
#[derive(Debug, Clone)]
pub struct FenceLayer {
    fence: Fence,
}

impl FenceLayer {
    #[must_use]
    pub fn new(fence: Fence) -> Self {
        Self { fence }
    }
}

impl<S> Layer<S> for FenceLayer {
    type Service = FenceService<S>;

    fn layer(&self, inner: S) -> FenceService<S> {
        FenceService { fence: self.fence.clone(), inner }
    }
}

/// What [`FenceLayer`] makes of a service.
#[derive(Debug, Clone)]
pub struct FenceService<S> {
    fence: Fence,
    inner: S,
}

impl<S, B> Service<Request<B>> for FenceService<S>
where
    S: Service<Request<B>>,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
    S::Response: 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<S::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        if matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS) {
            return self.inner.call(request).map(|answer| answer.map_err(Into::into)).boxed();
        }
        if !self.fence.is_open() {
            let error = self.fence.fenced(false);
            return async move { Err(error.into()) }.boxed();
        }
        let fence = self.fence.clone();
        let answer = self.inner.call(request);
        // A connection that is slow to come must not carry the write when another leads already.
        async move {
            let closing = std::pin::pin!(fence.clone().closing());
            match futures::future::select(closing, Box::pin(answer)).await {
                Either::Left(((), _)) => Err(fence.fenced(true).into()),
                Either::Right((answer, _)) => answer.map_err(Into::into),
            }
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use http::Response;
    use tower::{ServiceExt, service_fn};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    async fn send(fence: &Fence, method: Method, takes: Duration) -> Result<(), BoxError> {
        let server = service_fn(move |_: Request<()>| async move {
            tokio::time::sleep(takes).await;
            Ok::<_, Infallible>(Response::new(()))
        });
        let request = Request::builder().method(method).body(())?;
        FenceLayer::new(fence.clone()).layer(server).oneshot(request).await.map(|_| ())
    }

    fn refusal(answer: Result<(), BoxError>) -> Fenced {
        *answer.expect_err("it passed").downcast().expect("another error")
    }

    #[tokio::test(start_paused = true)]
    async fn writes_pass_until_the_deadline_and_reads_always() {
        let (fence, gate) = Fence::closed("default/lease");
        for method in [Method::GET, Method::HEAD, Method::OPTIONS] {
            send(&fence, method, SECOND).await.unwrap();
        }
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            let refused = refusal(send(&fence, method, SECOND).await);
            assert_eq!(refused.to_string(), "the lease default/lease is no longer held: not writing");
        }
        gate.open_until(Instant::now() + 10 * SECOND);
        send(&fence, Method::POST, SECOND).await.unwrap();
        tokio::time::advance(8 * SECOND).await;
        assert!(fence.is_open());
        tokio::time::advance(SECOND).await;
        assert!(!fence.is_open());
        assert!(!refusal(send(&fence, Method::POST, SECOND).await).begun);
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_under_way_is_given_up_when_the_fence_closes() {
        let (fence, gate) = Fence::closed("lease");
        let began = Instant::now();
        gate.open_until(began + 10 * SECOND);
        let (answer, ()) = tokio::join!(send(&fence, Method::PATCH, 60 * SECOND), async {
            tokio::time::sleep(5 * SECOND).await;
            gate.open_until(began + 15 * SECOND);
        });
        assert!(refusal(answer).begun);
        assert_eq!(began.elapsed(), 15 * SECOND, "the renewal counts");
    }

    #[tokio::test(start_paused = true)]
    async fn closing_and_dropping_the_gate_end_a_write_at_once() {
        for drop_it in [false, true] {
            let (fence, gate) = Fence::closed("lease");
            let began = Instant::now();
            gate.open_until(began + 10 * SECOND);
            let (answer, ()) = tokio::join!(send(&fence, Method::PATCH, 60 * SECOND), async {
                tokio::time::sleep(SECOND).await;
                if drop_it { drop(gate) } else { gate.close() }
            });
            assert!(refusal(answer).begun);
            assert_eq!(began.elapsed(), SECOND);
            assert!(!fence.is_open());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn without_election_everything_passes() {
        send(&Fence::open(), Method::DELETE, 3600 * SECOND).await.unwrap();
    }

    /// kube's retry policy around a server that is overloaded until the lease is long gone.
    #[tokio::test(start_paused = true)]
    async fn a_retry_passes_the_fence_again() {
        let (fence, gate) = Fence::closed("lease");
        gate.open_until(Instant::now() + 10 * SECOND);
        let attempts = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&attempts);
        let server = service_fn(move |_: Request<Body>| {
            counted.fetch_add(1, Ordering::Relaxed);
            let answer = Response::builder().status(503).header("retry-after", "4").body(Body::empty());
            async move { answer.map_err(BoxError::from) }
        });
        let client = ClientBuilder::new(server, "default")
            .with_layer(&FenceLayer::new(fence))
            .with_layer(&BufferLayer::<Request<Body>>::new(WAITING_REQUESTS))
            .with_layer(&RetryLayer::new(RetryPolicy::server_retry()))
            .build();
        let error = client.request_text(Request::post("/api").body(Vec::new()).unwrap()).await.unwrap_err();
        assert!(is_fenced(&error), "{error:?}");
        assert_eq!(attempts.load(Ordering::Relaxed), 3, "at 0, 4 and 8 seconds");
    }
}
