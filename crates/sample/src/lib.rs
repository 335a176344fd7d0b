//! The smallest product on the engine: a `Sample` becomes a ConfigMap, a generated Secret and a StatefulSet.
//!
//! It shows how a controller is written, and is what the engine's promises are tested with.

pub mod api;
mod controller;

use engine::process::{ProcessArgs, ProcessError};
use engine::{Manager, Options};

/// The lease of this product.
pub const LEASE: &str = "sample.slipway.hpc";

/// Adds the product to a process.
pub fn build(manager: &mut Manager, args: &ProcessArgs, identity: &str) -> Result<(), ProcessError> {
    manager.product("sample", args.lease(LEASE, identity)?)?;
    let concurrency = usize::from(args.max_concurrent_reconciles);
    manager.controller(Options { concurrency, ..Options::default() }, controller::SampleController::wire);
    Ok(())
}
