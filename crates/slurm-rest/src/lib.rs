//! Talking to slurmrestd: API versions v0.0.41 to v0.0.45, tokens, tolerant decoding, and a [`View`](view::View) that
//! keeps the facts of a cluster fresh.
//!
//! Slurm answers in many ways that are not an answer: HTTP 200 with errors in it, an empty list when slurmctld is
//! away, a connection that closes in the middle. Here each of them is an error of its own kind, and none looks like
//! an empty cluster.

mod call;
mod calls;
mod client;
pub mod decode;
mod endpoint;
mod error;
#[cfg(test)]
mod fake;
mod metrics;
pub mod record;
mod scan;
mod served;
pub mod token;
pub mod view;
pub mod wire;

pub use calls::*;
pub use client::{Body, BoxError, Client, Listed, Options, SendError, Transport};
pub use endpoint::{Endpoint, EndpointError, PORT};
pub use error::RestError;
pub use metrics::Metrics;
pub use served::ApiVersion;
