//! What every Slipway program needs around its work: logging, a metrics registry, health endpoints, build info, the
//! command line's outer layer, and an orderly stop.
//!
//! It knows nothing of Kubernetes or Slurm, and nothing here decides what a component does: a component is a
//! function `run(args, shutdown)`, and [`cli::service`] starts it.

pub mod bind_address;
pub mod build_info;
pub mod certificates;
pub mod cli;
pub mod endpoints;
pub mod health;
pub mod log;
mod process_metrics;
pub mod registry;
pub mod shutdown;
mod tls_server;

pub use bind_address::BindAddress;
pub use endpoints::{EndpointArgs, EndpointError, Server, serve, serve_guarded};
pub use health::Health;
pub use log::{LogArgs, LogDefaults, LogSettings};
pub use registry::Registry;
pub use shutdown::shutdown_signal;
