//! `slipway-node docker-proxy`: a Docker socket for jobs. It passes everything on to dockerd, and puts new containers
//! under the cgroup that the client names in the header `Cgroup-Parent`, which the prolog of a task sets. Without it
//! the containers of a job would be children of dockerd, outside of the limits and of the end of the job.
//!
//! It is no wall: who may talk to dockerd is root on the node in the end, with or without this header.

mod create;
mod forward;
mod socket;

use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, info, warn};

/// What calls that are under way at the end may still take. A `docker attach` has no end of its own.
const GRACE: Duration = Duration::from_secs(5);
/// Until the next try when a connection could not be accepted: out of file descriptors, mostly.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// The socket that Docker clients of jobs use
    #[arg(long, env = "SOPERATOR_DOCKER_PROXY_LISTEN", default_value = "/run/docker.sock")]
    pub listen: PathBuf,
    /// The socket that dockerd listens on
    #[arg(long, env = "SOPERATOR_DOCKER_PROXY_UPSTREAM", default_value = "/run/dockerd.sock")]
    pub upstream: PathBuf,
    /// Permissions of the listening socket, in octal. As with dockerd itself only its owner and group may connect;
    /// 0666 lets every user of the node in, which makes every one of them root
    #[arg(long, env = "SOPERATOR_DOCKER_PROXY_SOCKET_MODE", default_value = "0660", value_parser = octal)]
    pub socket_mode: u32,
}

fn octal(text: &str) -> Result<u32, String> {
    let mode = u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o777);
    mode.ok_or_else(|| "not permissions in octal, such as 0660".to_owned())
}

/// Why the proxy could not start. What goes wrong later is told to the client of that call.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("listen on {}", path.display())]
    Listen { path: PathBuf, source: io::Error },
    #[error("{} is in use: something else listens there, stop it or choose another --listen", .0.display())]
    InUse(PathBuf),
    #[error("{} exists and is no socket: remove it or choose another --listen", .0.display())]
    NotASocket(PathBuf),
    #[error("--listen and --upstream are both {}: the proxy would talk to itself", .0.display())]
    Same(PathBuf),
}

/// Serves until `shutdown`, and then a little longer for calls that are under way.
pub async fn run(args: Args, shutdown: CancellationToken) -> Result<(), Error> {
    run_with_grace(args, shutdown, GRACE).await
}

async fn run_with_grace(args: Args, shutdown: CancellationToken, grace: Duration) -> Result<(), Error> {
    if args.listen == args.upstream {
        return Err(Error::Same(args.listen));
    }
    let listener = socket::bind(&args.listen, args.socket_mode).await?;
    info!(listen = %args.listen.display(), upstream = %args.upstream.display(), "serving");
    let upstream: Arc<Path> = args.upstream.into();
    let tasks = Tasks { tracker: TaskTracker::new(), cut: CancellationToken::new() };
    while let Some(accepted) = shutdown.run_until_cancelled(listener.accept()).await {
        match accepted {
            Ok((stream, _)) => {
                tasks.spawn(serve(stream, Arc::clone(&upstream), shutdown.clone(), tasks.clone()));
            }
            Err(error) => {
                warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    // Should this fail, the next start finds a stale socket and removes it.
    let _ = std::fs::remove_file(&args.listen);
    drop(listener);
    tasks.end(grace).await;
    Ok(())
}

/// What runs beside the accept loop: connections, and the streams that some of them turn into.
#[derive(Clone)]
struct Tasks {
    tracker: TaskTracker,
    cut: CancellationToken,
}

impl Tasks {
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let cut = self.cut.clone();
        self.tracker.spawn(async move {
            let _ = cut.run_until_cancelled(task).await;
        });
    }

    async fn end(self, grace: Duration) {
        self.tracker.close();
        if tokio::time::timeout(grace, self.tracker.wait()).await.is_err() {
            info!(tasks = self.tracker.len(), "cutting what did not end by itself");
            self.cut.cancel();
            self.tracker.wait().await;
        }
    }
}

async fn serve(stream: UnixStream, upstream: Arc<Path>, shutdown: CancellationToken, tasks: Tasks) {
    let service = service_fn(|request| forward::forward(request, &upstream, &tasks));
    let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service).with_upgrades();
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = &mut connection => ended,
        () = shutdown.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        debug!(%error, "a connection ended early");
    }
}

#[cfg(test)]
mod tests;
