//! The wish to stop: SIGTERM or SIGINT cancels a token that every component watches.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

/// A token that the first SIGTERM or SIGINT cancels. A second signal ends the process at once with code 1, for
/// whoever does not want to wait for an orderly end.
///
/// Must be called inside the runtime; the handlers are in place when it returns.
pub fn shutdown_signal() -> io::Result<CancellationToken> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let shutdown = CancellationToken::new();
    let cancelled = shutdown.clone();
    tokio::spawn(async move {
        let name = next(&mut terminate, &mut interrupt).await;
        info!(signal = name, "shutting down");
        cancelled.cancel();
        let name = next(&mut terminate, &mut interrupt).await;
        warn!(signal = name, "second signal, exiting at once");
        exit_now();
    });
    Ok(shutdown)
}

async fn next(terminate: &mut Signal, interrupt: &mut Signal) -> &'static str {
    tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    }
}

#[allow(clippy::exit, reason = "the second signal asks for exactly this: no waiting for anything")]
fn exit_now() -> ! {
    std::process::exit(1)
}
