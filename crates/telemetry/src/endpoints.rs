//! The HTTP servers beside a component's work: probes on one address, metrics on another.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info};

use crate::bind_address::BindAddress;
use crate::health::Health;
use crate::registry::Registry;

/// How long open connections may delay the end. A peer that never ends its request would else hold it for ever;
/// the charts grant ten seconds in all.
const DRAIN: Duration = Duration::from_secs(3);

const METRICS_FLAG: &str = "--metrics-bind-address";
const PROBE_FLAG: &str = "--health-probe-bind-address";

/// The address flags of a program that serves probes and metrics.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct EndpointArgs {
    /// Address that serves /metrics; 0 disables it
    #[arg(long, value_name = "ADDRESS", default_value = ":8080")]
    pub metrics_bind_address: BindAddress,
    /// Address that serves /healthz and /readyz; 0 disables it
    #[arg(long, value_name = "ADDRESS", default_value = ":8081")]
    pub health_probe_bind_address: BindAddress,
}

#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    #[error("listen on '{address}', given by {flag}")]
    Bind { address: BindAddress, flag: &'static str, source: io::Error },
    #[error("serve {server} on {address}")]
    Serve { server: &'static str, address: SocketAddr, source: io::Error },
}

/// Serves probes and metrics until `shutdown`. Both sockets are open before either answers, so a wrong address
/// ends the program before it looks alive.
pub async fn serve(
    args: &EndpointArgs,
    health: &Health,
    registry: &Registry,
    shutdown: &CancellationToken,
) -> Result<(), EndpointError> {
    let EndpointArgs { metrics_bind_address, health_probe_bind_address } = args;
    let metrics = Server::bind("metrics", METRICS_FLAG, metrics_bind_address).await?;
    let probes = Server::bind("probes", PROBE_FLAG, health_probe_bind_address).await?;
    tokio::try_join!(
        metrics.run(metrics_router(registry.clone()), shutdown),
        probes.run(health.router(), shutdown),
        async {
            // With both servers disabled there is still a shutdown to wait for.
            shutdown.cancelled().await;
            Ok(())
        }
    )?;
    Ok(())
}

/// One HTTP server: bound first, run later.
#[derive(Debug)]
pub struct Server {
    name: &'static str,
    open: Option<(TcpListener, SocketAddr)>,
}

impl Server {
    /// Opens the socket, unless the address disables the server; `flag` is what the user must change if that fails.
    pub async fn bind(
        name: &'static str,
        flag: &'static str,
        address: &BindAddress,
    ) -> Result<Self, EndpointError> {
        let failed = |source| EndpointError::Bind { address: address.clone(), flag, source };
        let Some(listener) = address.bind().await.map_err(failed)? else {
            debug!(server = name, "disabled");
            return Ok(Self { name, open: None });
        };
        let bound = listener.local_addr().map_err(failed)?;
        info!(server = name, address = %bound, "listening");
        Ok(Self { name, open: Some((listener, bound)) })
    }

    /// The bound address: with port 0 the one the system chose. `None` if disabled.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.open.as_ref().map(|(_, address)| *address)
    }

    /// Answers requests until `shutdown`, then lets open requests end. A disabled server returns at once.
    pub async fn run(self, router: Router, shutdown: &CancellationToken) -> Result<(), EndpointError> {
        let Self { name, open } = self;
        let Some((listener, address)) = open else { return Ok(()) };
        let serving =
            axum::serve(listener, router).with_graceful_shutdown(shutdown.clone().cancelled_owned());
        let drained = async {
            shutdown.cancelled().await;
            tokio::time::sleep(DRAIN).await;
        };
        tokio::select! {
            outcome = serving => outcome.map_err(|source| EndpointError::Serve { server: name, address, source }),
            () = drained => {
                info!(server = name, "closing connections that are still open");
                Ok(())
            }
        }
    }
}

fn metrics_router(registry: Registry) -> Router {
    Router::new().route("/metrics", get(async move || exposition(&registry)))
}

fn exposition(registry: &Registry) -> Response {
    match registry.encode() {
        Ok(text) => ([(header::CONTENT_TYPE, Registry::CONTENT_TYPE)], text).into_response(),
        Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, "a metric could not be encoded\n").into_response(),
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use clap::{Args, Command, FromArgMatches};

    use super::*;

    fn parse(args: &[&str]) -> Result<EndpointArgs, clap::Error> {
        let command = EndpointArgs::augment_args(Command::new("test").no_binary_name(true));
        EndpointArgs::from_arg_matches(&command.try_get_matches_from(args)?)
    }

    #[test]
    fn defaults_are_those_of_the_go_operators() {
        let args = parse(&[]).unwrap();
        assert_eq!(args.metrics_bind_address.to_string(), ":8080");
        assert_eq!(args.health_probe_bind_address.to_string(), ":8081");
    }

    #[test]
    fn wrong_address_names_the_flag_and_the_forms() {
        let error = parse(&["--metrics-bind-address=8080"]).unwrap_err().to_string();
        assert!(error.contains("--metrics-bind-address"), "{error}");
        assert!(error.contains("expected ':PORT'"), "{error}");
    }

    #[tokio::test]
    async fn taken_address_names_the_address_and_the_flag() {
        let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address: BindAddress = taken.local_addr().unwrap().to_string().parse().unwrap();
        let error = Server::bind("metrics", METRICS_FLAG, &address).await.unwrap_err();
        assert_eq!(error.to_string(), format!("listen on '{address}', given by --metrics-bind-address"));
        assert!(error.source().unwrap().to_string().contains("in use"));
    }

    #[tokio::test]
    async fn with_both_servers_disabled_it_waits_for_shutdown() {
        let args = parse(&["--metrics-bind-address=0", "--health-probe-bind-address=0"]).unwrap();
        let (health, registry, shutdown) = (Health::new(), Registry::new(), CancellationToken::new());
        let mut serving = Box::pin(serve(&args, &health, &registry, &shutdown));
        tokio::select! {
            biased;
            _ = &mut serving => panic!("ended before shutdown"),
            () = tokio::task::yield_now() => {}
        }
        shutdown.cancel();
        serving.await.unwrap();
    }
}
