//! The smallest product on the engine: a `Sample` becomes a ConfigMap, a generated Secret and a StatefulSet.
//!
//! It shows how a controller is written, and is what the engine's promises are tested with.

pub mod api;
mod controller;

use engine::manager::{access_of, lease_access, runtime_access};
use engine::process::{ProcessArgs, ProcessError};
use engine::{Access, Manager};

/// The lease of this product.
pub const LEASE: &str = "sample.slipway.hpc";

/// What the sample and the runtime do to the API server.
#[must_use]
pub fn access() -> Vec<Access> {
    [runtime_access(), lease_access(), access_of(controller::SampleController::wire)].concat()
}

/// Adds the product to a process.
pub fn build(manager: &mut Manager, args: &ProcessArgs, identity: &str) -> Result<(), ProcessError> {
    manager.product("sample", args.lease(LEASE, identity)?)?;
    manager.controller(args.options(), controller::SampleController::wire);
    Ok(())
}
