//! The CRDs on a real API server: what it accepts, defaults and refuses, and what becomes of stored objects.

#[path = "api/arbitrary.rs"]
mod arbitrary;
#[path = "api/bounds.rs"]
mod bounds;
#[path = "api/decode.rs"]
mod decode;
#[path = "api/kinds.rs"]
mod kinds;
#[path = "api/kubernetes_types.rs"]
mod kubernetes_types;
#[path = "api/peers.rs"]
mod peers;
#[path = "api/rule_cases.rs"]
mod rule_cases;
#[path = "api/rules.rs"]
mod rules;
#[path = "api/samples.rs"]
mod samples;
#[path = "api/server.rs"]
mod server;
#[path = "api/stored.rs"]
mod stored;
