//! The two questions to the API server: whose token is this, and may they read metrics?

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::http::StatusCode;
use k8s_openapi::api::authentication::v1::{TokenReviewStatus, UserInfo};
use k8s_openapi::api::authorization::v1::SubjectAccessReviewStatus;
use kube::Client;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tracing::debug;

use super::answers::{Digest, digest};

/// Someone whom the API server knows.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct User {
    name: String,
    uid: String,
    groups: Vec<String>,
    extra: BTreeMap<String, Vec<String>>,
    digest: Digest,
}

impl User {
    fn new(info: UserInfo) -> Option<Self> {
        let UserInfo { username, uid, groups, extra } = info;
        let name = username.filter(|name| !name.is_empty())?;
        let (uid, groups) = (uid.unwrap_or_default(), groups.unwrap_or_default());
        let extra = extra.unwrap_or_default();
        let digest = digest(json!([name, uid, groups, extra]).to_string().as_bytes());
        Some(Self { name, uid, groups, extra, digest })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Stands for all that access may depend on.
    pub(super) fn digest(&self) -> Digest {
        self.digest
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Access {
    Allowed,
    /// With the authoriser's reason, which may be empty.
    Denied(Arc<str>),
}

#[derive(Debug, thiserror::Error)]
pub(super) enum ReviewError {
    #[error("create {resource}")]
    Ask { resource: &'static str, source: kube::Error },
    #[error("write the request to create {resource}")]
    Request { resource: &'static str, source: http::Error },
    #[error("read the answer to the creation of {resource}")]
    Read { resource: &'static str, source: serde_json::Error },
    #[error("the API server did not answer in time")]
    TooLate,
    #[error("too many tokens wait to be reviewed")]
    Busy,
}

impl ReviewError {
    /// A refusal by the API server comes back at every try; the rest may pass.
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::Ask { source: kube::Error::Api(status), .. } if status.code < 500 && status.code != 429 => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
            Self::Request { .. } | Self::Read { .. } => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Ask { .. } | Self::TooLate | Self::Busy => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// What may be told to someone who is not yet known. The log says more.
    pub(super) fn for_strangers(&self) -> &'static str {
        match self {
            Self::Busy => "too many requests wait for the API server",
            Self::TooLate => "the API server did not answer in time",
            Self::Ask { source: kube::Error::Api(_), .. } => "the API server refused to review the token",
            Self::Ask { .. } => "the API server could not be reached",
            Self::Request { .. } | Self::Read { .. } => "the API server could not be understood",
        }
    }
}

/// Whose token it is; `None` if nobody's.
pub(super) async fn who_is(client: &Client, token: &str) -> Result<Option<User>, ReviewError> {
    let review = json!({
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "spec": { "token": token },
    });
    let status: TokenReviewStatus =
        ask(client, "tokenreviews", "/apis/authentication.k8s.io/v1/tokenreviews", &review).await?;
    if let Some(reason) = status.error.filter(|reason| !reason.is_empty()) {
        debug!(reason, "token not accepted");
    }
    // Without an explicit yes it is a no.
    Ok(status.user.filter(|_| status.authenticated == Some(true)).and_then(User::new))
}

pub(super) async fn may_read_metrics(client: &Client, user: &User) -> Result<Access, ReviewError> {
    let User { name, uid, groups, extra, digest: _ } = user;
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": name, "uid": uid, "groups": groups, "extra": extra,
            "nonResourceAttributes": { "path": "/metrics", "verb": "get" },
        },
    });
    let status: SubjectAccessReviewStatus =
        ask(client, "subjectaccessreviews", "/apis/authorization.k8s.io/v1/subjectaccessreviews", &review)
            .await?;
    if status.allowed && status.denied != Some(true) {
        return Ok(Access::Allowed);
    }
    Ok(Access::Denied(status.reason.or(status.evaluation_error).unwrap_or_default().into()))
}

#[derive(Deserialize)]
struct Reviewed<S> {
    status: S,
}

/// Not by `Api::create`: the answer repeats the token, and kube logs an answer that it cannot decode.
async fn ask<S: DeserializeOwned>(
    client: &Client,
    resource: &'static str,
    path: &str,
    review: &Value,
) -> Result<S, ReviewError> {
    let request = http::Request::post(path)
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(review.to_string().into_bytes())
        .map_err(|source| ReviewError::Request { resource, source })?;
    let answer =
        client.request_text(request).await.map_err(|source| ReviewError::Ask { resource, source })?;
    let reviewed: Reviewed<S> =
        serde_json::from_str(&answer).map_err(|source| ReviewError::Read { resource, source })?;
    Ok(reviewed.status)
}
