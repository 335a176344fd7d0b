//! Real Kubernetes and real Slurm for tests, and the faults that the real ones cannot be made to show.
//!
//! Every process here ends with the test process, also when that is killed. What can then be left is a folder in
//! memory, which the next test or the end of `cargo xtask test` removes.

pub mod api_calls;
pub mod by_hand;
pub mod cache;
pub mod chaos;
pub mod cluster;
pub mod control_plane;
pub mod fake_kubelet;
mod forward;
pub mod images;
pub mod layers;
pub mod mutate;
pub mod oci;
pub mod pki;
pub mod process;
mod sandbox;
pub mod scratch;
pub mod slurm;

pub use control_plane::ControlPlane;
pub use fake_kubelet::FakeKubelet;
pub use forward::Forward;
pub use sandbox::Sandbox;

use std::time::Duration;

use anyhow::{Result, bail};

/// How long a test may take unless it says otherwise.
pub const DEADLINE: Duration = Duration::from_secs(120);

/// Runs the body of a test, with the usual deadline.
pub fn run(test: impl Future<Output = Result<()>>) -> Result<()> {
    run_within(DEADLINE, test)
}

/// Runs the body of a test on a runtime of its own; past the deadline it fails.
pub fn run_within(deadline: Duration, test: impl Future<Output = Result<()>>) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let result = runtime.block_on(async {
        match tokio::time::timeout(deadline, test).await {
            Ok(result) => result,
            Err(_) => bail!("the test took longer than {deadline:?}"),
        }
    });
    // A task that hangs must not keep a failed test from ending.
    runtime.shutdown_timeout(Duration::from_secs(5));
    result
}

/// Namespaces and mounts need root; say so before anything else fails.
pub fn require_root(what: &str) -> Result<()> {
    if nix::unistd::geteuid().is_root() {
        return Ok(());
    }
    bail!("{what} need root: run as root (`sudo -E cargo xtask …`)")
}

/// rustls asks for one provider per process; the first caller decides, and all decide the same.
pub(crate) fn install_crypto_provider() {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
}
