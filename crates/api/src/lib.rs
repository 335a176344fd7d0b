//! Custom resources of both APIs that Slipway speaks, and the few fields it writes of other operators' kinds.
//!
//! The types are the source of everything: the CRDs in `deploy/crds`, the reference in `docs/reference/api` and
//! `kubectl explain` come from their fields, defaults, rules and doc comments. Any object that the CRDs accept decodes.
//!
//! Defaults stand in the schema, so that the stored object says what will happen. The exception is a field whose default differs
//! between Soperator 1.x and 5.x: it has none here, and is filled in when the dialect of the cluster is known.

pub mod condition;
pub mod foreign;
pub mod merge;
pub mod open;
pub mod scalar;
pub mod schema;
pub mod slinky;
pub mod soperator;

use serde_json::Value;

pub use open::Open;

/// All kinds of both groups as CRDs, in the order in which they are best read.
pub fn crds() -> Vec<Value> {
    [soperator::crds(), slinky::crds()].concat()
}
