//! The engine on a real API server.

#[path = "api/leader.rs"]
mod leader;
#[path = "api/metrics.rs"]
mod metrics;
#[path = "api/recorded.rs"]
mod recorded;
