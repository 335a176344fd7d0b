//! The engine on a real API server.

#[path = "api/metrics.rs"]
mod metrics;
