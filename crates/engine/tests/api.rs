//! The engine on a real API server.

#[path = "api/recorded.rs"]
mod recorded;
