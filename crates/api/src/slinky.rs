//! `slinky.slurm.net`, the API of Slinky: a Controller is a cluster, and all else names the Controller that
//! it belongs to.
//!
//! The schema is that of Slinky 1.3, and what 1.0 had beside it, so that objects of both are accepted.

pub mod v1beta1;

use serde_json::Value;

/// Group of all kinds of this API.
pub const GROUP: &str = "slinky.slurm.net";

pub(crate) fn crds() -> Vec<Value> {
    v1beta1::crds()
}
