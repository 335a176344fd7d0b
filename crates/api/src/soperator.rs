//! `slurm.nebius.ai`, the API of Soperator: one `SlurmCluster` describes a cluster.
//!
//! The schema is the union of Soperator 1.22 and 5.0, so that objects of both are accepted and mean what they meant.

pub mod common;
mod dialect;
pub mod v1;
pub mod v1alpha1;

use serde_json::Value;

pub use dialect::Dialect;

/// Group of all kinds of this API.
pub const GROUP: &str = "slurm.nebius.ai";

pub(crate) fn crds() -> Vec<Value> {
    [vec![v1::crd()], v1alpha1::crds()].concat()
}
