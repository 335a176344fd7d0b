//! A plain client for slurmrestd, for asking what a test wants to know.
//!
//! It is not the product's client on purpose: it interprets nothing.

use std::time::Duration;

use anyhow::{Context, Result};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;

use crate::Forward;

const LIMIT: Duration = Duration::from_secs(30);

/// What slurmrestd said. A body that is not JSON, as that of a 401, is a JSON string.
#[derive(Debug, Clone, PartialEq)]
pub struct RestAnswer {
    pub status: StatusCode,
    pub json: Value,
}

#[derive(Debug)]
pub(super) struct Rest {
    client: Client<HttpConnector, Full<Bytes>>,
    forward: Forward,
}

impl Rest {
    pub(super) fn new(forward: Forward) -> Self {
        // No connection is kept: one would not survive a restart of slurmrestd.
        let client = Client::builder(TokioExecutor::new()).pool_max_idle_per_host(0).build_http();
        Self { client, forward }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.forward.address())
    }

    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        token: Option<&str>,
    ) -> Result<RestAnswer> {
        let what = format!("{method} {path}");
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.url()));
        if let Some(token) = token {
            request = request.header("X-SLURM-USER-TOKEN", token);
        }
        if body.is_some() {
            request = request.header(http::header::CONTENT_TYPE, "application/json");
        }
        let body = body.map(Value::to_string).unwrap_or_default();
        let request = request.body(Full::from(body))?;
        let exchange = async {
            let response = self.client.request(request).await?;
            let status = response.status();
            let bytes = response.into_body().collect().await?.to_bytes();
            let json = serde_json::from_slice(&bytes)
                .unwrap_or_else(|_| String::from_utf8_lossy(&bytes).into_owned().into());
            anyhow::Ok(RestAnswer { status, json })
        };
        tokio::time::timeout(LIMIT, exchange)
            .await
            .with_context(|| format!("{what}: no answer within {LIMIT:?}"))?
            .context(what)
    }
}
