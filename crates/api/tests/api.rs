//! The CRDs on a real API server: what it accepts, defaults and refuses, and what becomes of stored objects.

#[path = "api/probe.rs"]
mod probe;
