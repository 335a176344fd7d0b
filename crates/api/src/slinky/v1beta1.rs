//! `slinky.slurm.net/v1beta1`: one kind for each of Slurm's daemons, and one for tokens.
//!
//! Containers and pods are given as Kubernetes has them, without a schema, and are laid over those of the
//! operator.

mod accounting;
mod common;
mod controller;
mod login_set;
mod node_set;
mod rest_api;
mod rules;
mod token;
mod warnings;

pub use accounting::*;
pub use common::*;
pub use controller::*;
pub use login_set::*;
pub use node_set::*;
pub use rest_api::*;
pub use token::*;

use serde_json::Value;

pub(crate) fn crds() -> Vec<Value> {
    vec![
        controller::crd(),
        node_set::crd(),
        login_set::crd(),
        accounting::crd(),
        rest_api::crd(),
        token::crd(),
    ]
}
