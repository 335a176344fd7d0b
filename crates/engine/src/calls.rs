//! Requests to the API server: each with a deadline and a name, and not too many at a time.

use std::fmt::Display;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kube::Client;
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;

use crate::failure::Failure;
use crate::meta::Key;
use crate::views::Kind;

/// How long one request may take, once it has its turn.
pub const DEADLINE: Duration = Duration::from_secs(10);

/// Makes requests for one reconcile, and knows which one it is waiting for.
#[derive(Clone)]
pub struct Calls {
    pub(crate) client: Client,
    in_flight: Arc<Semaphore>,
    waiting_for: Arc<Mutex<Option<String>>>,
}

impl std::fmt::Debug for Calls {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Calls(waiting for {:?})", self.waiting_for())
    }
}

impl Calls {
    /// `in_flight` is shared by all controllers of the process.
    #[must_use]
    pub fn new(client: Client, in_flight: Arc<Semaphore>) -> Self {
        Self { client, in_flight, waiting_for: Arc::default() }
    }

    /// The same for another reconcile.
    pub(crate) fn anew(&self) -> Self {
        Self::new(self.client.clone(), Arc::clone(&self.in_flight))
    }

    /// What is being waited for now.
    #[must_use]
    pub fn waiting_for(&self) -> Option<String> {
        self.waiting_for.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits for anything, under a name that a stalled reconcile is reported with.
    pub async fn wait<T>(
        &self,
        what: impl Display,
        limit: Duration,
        future: impl Future<Output = T>,
    ) -> Result<T, Failure> {
        let what = what.to_string();
        self.set(Some(what.clone()));
        let answer = tokio::time::timeout(limit, future).await;
        self.set(None);
        answer.map_err(|_| Failure::deadline(&what, limit))
    }

    /// One request.
    pub async fn call<T>(
        &self,
        what: impl Display,
        request: impl Future<Output = kube::Result<T>>,
    ) -> Result<kube::Result<T>, Failure> {
        let what = what.to_string();
        self.set(Some(format!("a turn to {what}")));
        // The semaphore is never closed; the deadline of the reconcile ends a wait that is too long.
        let _turn = self.in_flight.acquire().await;
        self.wait(what, DEADLINE, request).await
    }

    /// A named object, if it is there.
    pub async fn get<T: DeserializeOwned + Clone>(
        &self,
        kind: Kind,
        key: &Key,
    ) -> Result<Option<T>, Failure> {
        let what = format!("get {} {key}", kind.kind);
        let request =
            kube::api::Request::new(path(kind, key)).get(&key.name, &kube::api::GetParams::default());
        let request = request.map_err(|error| Failure::bug(format!("{what}: {error}")))?;
        match self.call(&what, self.client.request::<T>(request)).await? {
            Ok(found) => Ok(Some(found)),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(error) => Err(Failure::api(&what, &error)),
        }
    }

    fn set(&self, what: Option<String>) {
        *self.waiting_for.lock().unwrap_or_else(PoisonError::into_inner) = what;
    }
}

/// Where the objects of a kind are.
pub(crate) fn path(kind: Kind, key: &Key) -> String {
    let root = if kind.group.is_empty() { "api" } else { "apis" };
    let version = kind.api_version();
    let plural = kind.plural;
    if key.namespace.is_empty() {
        return format!("/{root}/{version}/{plural}");
    }
    format!("/{root}/{version}/namespaces/{}/{plural}", key.namespace)
}
