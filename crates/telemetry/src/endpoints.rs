//! The HTTP servers beside a component's work: probes on one address, metrics on another.
//!
//! Metrics are plain, or with `--metrics-secure` behind TLS and a guard that the program brings along: whom to let in
//! is nothing that this crate knows.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use rustls::ServerConfig;
use rustls::server::ResolvesServerCert;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::bind_address::BindAddress;
use crate::certificates::{self, CertificateError, CertificateFiles, SelfMade};
use crate::cli::go_flags;
use crate::health::Health;
use crate::registry::Registry;
use crate::tls_server;

/// How long open connections may delay the end. A peer that never ends its request would else hold it for ever;
/// the charts grant ten seconds in all.
pub(crate) const DRAIN: Duration = Duration::from_secs(3);

const METRICS_FLAG: &str = "--metrics-bind-address";
const PROBE_FLAG: &str = "--health-probe-bind-address";

/// The flags of a program that serves probes and metrics.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct EndpointArgs {
    /// Address that serves /metrics; 0 disables it
    #[arg(long, value_name = "ADDRESS", default_value = ":8080")]
    pub metrics_bind_address: BindAddress,
    /// Address that serves /healthz and /readyz; 0 disables it
    #[arg(long, value_name = "ADDRESS", default_value = ":8081")]
    pub health_probe_bind_address: BindAddress,
    /// Serve /metrics over TLS, to those whom the API server lets get it
    #[arg(long, value_name = "BOOL", action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true,
          default_value = "false", default_missing_value = "true", value_parser = go_flags::boolean)]
    pub metrics_secure: bool,
    /// Folder with the certificate for --metrics-secure, read again when it changes; without it the program makes a
    /// certificate for itself
    #[arg(long, value_name = "FOLDER", default_value = "", hide_default_value = true, value_parser = folder)]
    pub metrics_cert_path: PathBuf,
    /// File in that folder with the certificate
    #[arg(long, value_name = "FILE", default_value = "tls.crt")]
    pub metrics_cert_name: String,
    /// File in that folder with its key
    #[arg(long, value_name = "FILE", default_value = "tls.key")]
    pub metrics_cert_key: String,
    /// Taken from charts that set it, without effect: the servers speak HTTP/1.1
    #[arg(long, value_name = "BOOL", action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true,
          default_value = "false", default_missing_value = "true", value_parser = go_flags::boolean)]
    pub enable_http2: bool,
}

/// An empty text means none, which clap's own parser of paths would refuse: charts render it from an empty value.
fn folder(text: &str) -> Result<PathBuf, std::convert::Infallible> {
    Ok(PathBuf::from(text))
}

#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    #[error("listen on '{address}', given by {flag}")]
    Bind { address: BindAddress, flag: &'static str, source: io::Error },
    #[error("serve {server} on {address}")]
    Serve { server: &'static str, address: SocketAddr, source: io::Error },
    #[error(
        "--metrics-secure is not possible here: this program does not ask the API server who may read metrics; \
         leave the flag out and keep others away with a NetworkPolicy"
    )]
    NoGuard,
    #[error("load the certificate in '{}', given by --metrics-cert-path", folder.display())]
    GivenCertificate { folder: PathBuf, source: Box<CertificateError> },
    #[error("prepare a certificate for --metrics-secure")]
    OwnCertificate { source: Box<CertificateError> },
    #[error("set up TLS for --metrics-secure")]
    Tls { source: rustls::Error },
}

impl EndpointArgs {
    /// Whether metrics are served, and only behind TLS and a guard.
    #[must_use]
    pub fn guards_metrics(&self) -> bool {
        self.metrics_secure && self.metrics_bind_address != BindAddress::Disabled
    }

    fn certificate_folder(&self) -> Option<&Path> {
        (!self.metrics_cert_path.as_os_str().is_empty()).then_some(&self.metrics_cert_path)
    }

    fn certificate(&self) -> Result<Arc<dyn ResolvesServerCert>, EndpointError> {
        let Some(folder) = self.certificate_folder() else {
            let made =
                SelfMade::new().map_err(|source| EndpointError::OwnCertificate { source: source.into() })?;
            return Ok(Arc::new(made));
        };
        let (certificate, key) = (folder.join(&self.metrics_cert_name), folder.join(&self.metrics_cert_key));
        let files = CertificateFiles::load(certificate, key).map_err(|source| {
            EndpointError::GivenCertificate { folder: folder.to_owned(), source: source.into() }
        })?;
        Ok(Arc::new(files))
    }

    fn warn_of_flags_without_effect(&self) {
        if self.enable_http2 {
            warn!("--enable-http2 has no effect: the servers speak HTTP/1.1");
        }
        if !self.metrics_secure && self.certificate_folder().is_some() {
            warn!("--metrics-cert-path has no effect without --metrics-secure");
        }
    }
}

/// Serves probes and plain metrics until `shutdown`. Both sockets are open before either answers, so a wrong address
/// ends the program before it looks alive. `--metrics-secure` is refused: see [`serve_guarded`].
pub async fn serve(
    args: &EndpointArgs,
    health: &Health,
    registry: &Registry,
    shutdown: &CancellationToken,
) -> Result<(), EndpointError> {
    if args.guards_metrics() {
        return Err(EndpointError::NoGuard);
    }
    serve_all(args, health, Metrics::Plain(metrics_router(registry)), shutdown).await
}

/// The same for a program that can tell who may read its metrics: with `--metrics-secure` they are served over TLS,
/// and `guard` is put before every request. Without the flag it is not used.
pub async fn serve_guarded(
    args: &EndpointArgs,
    health: &Health,
    registry: &Registry,
    guard: impl FnOnce(Router) -> Router,
    shutdown: &CancellationToken,
) -> Result<(), EndpointError> {
    let router = metrics_router(registry);
    let metrics = if args.guards_metrics() {
        let config = certificates::server_config(args.certificate()?)
            .map_err(|source| EndpointError::Tls { source })?;
        Metrics::Tls(guard(router), config)
    } else {
        Metrics::Plain(router)
    };
    serve_all(args, health, metrics, shutdown).await
}

enum Metrics {
    Plain(Router),
    Tls(Router, Arc<ServerConfig>),
}

async fn serve_all(
    args: &EndpointArgs,
    health: &Health,
    metrics: Metrics,
    shutdown: &CancellationToken,
) -> Result<(), EndpointError> {
    args.warn_of_flags_without_effect();
    let metrics_server = Server::bind("metrics", METRICS_FLAG, &args.metrics_bind_address).await?;
    let probes = Server::bind("probes", PROBE_FLAG, &args.health_probe_bind_address).await?;
    tokio::try_join!(
        async {
            match metrics {
                Metrics::Plain(router) => metrics_server.run(router, shutdown).await,
                Metrics::Tls(router, config) => metrics_server.run_tls(router, config, shutdown).await,
            }
        },
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
        let serving =
            async { serving.await.map_err(|source| EndpointError::Serve { server: name, address, source }) };
        within_drain(name, serving, shutdown).await
    }

    /// The same over TLS. See [`certificates::server_config`] for a configuration.
    pub async fn run_tls(
        self,
        router: Router,
        config: Arc<ServerConfig>,
        shutdown: &CancellationToken,
    ) -> Result<(), EndpointError> {
        let Self { name, open } = self;
        let Some((listener, _)) = open else { return Ok(()) };
        let serving = async {
            tls_server::serve(name, listener, config, &router, shutdown).await;
            Ok(())
        };
        within_drain(name, serving, shutdown).await
    }
}

async fn within_drain(
    server: &'static str,
    serving: impl Future<Output = Result<(), EndpointError>>,
    shutdown: &CancellationToken,
) -> Result<(), EndpointError> {
    let drained = async {
        shutdown.cancelled().await;
        tokio::time::sleep(DRAIN).await;
    };
    tokio::select! {
        outcome = serving => outcome,
        () = drained => {
            info!(server, "closing connections that are still open");
            Ok(())
        }
    }
}

fn metrics_router(registry: &Registry) -> Router {
    let registry = registry.clone();
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
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;
    use tracing::Level;

    use super::*;
    use crate::log::LogFormat;
    use crate::log::tests::logged;

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

    #[test]
    fn truths_are_given_as_to_go_programs() {
        for (args, secure) in [
            (&[][..], false),
            (&["--metrics-secure"], true),
            (&["--metrics-secure=true"], true),
            (&["--metrics-secure=T"], true),
            (&["--metrics-secure=1"], true),
            (&["--metrics-secure=false"], false),
            (&["--metrics-secure=False"], false),
            (&["--metrics-secure=0"], false),
        ] {
            assert_eq!(parse(args).unwrap().metrics_secure, secure, "{args:?}");
        }
        let error = parse(&["--metrics-secure=yes"]).unwrap_err().to_string();
        assert!(error.contains("--metrics-secure") && error.contains("expected true or false"), "{error}");
        // Go does not take the next argument for the value of a flag that is a truth.
        assert!(parse(&["--metrics-secure", "false"]).is_err());
        assert!(!parse(&[]).unwrap().enable_http2);
        assert!(parse(&["--enable-http2"]).unwrap().enable_http2);
        assert!(!parse(&["--enable-http2=false"]).unwrap().enable_http2);
    }

    #[test]
    fn names_of_the_certificate_are_those_of_kubebuilder() {
        let args = parse(&["--metrics-cert-path=/certs"]).unwrap();
        assert_eq!(args.certificate_folder(), Some(Path::new("/certs")));
        assert_eq!((args.metrics_cert_name.as_str(), args.metrics_cert_key.as_str()), ("tls.crt", "tls.key"));
        let args = parse(&["--metrics-cert-path=", "--metrics-cert-name=a", "--metrics-cert-key=b"]).unwrap();
        assert_eq!(args.certificate_folder(), None);
        assert_eq!((args.metrics_cert_name.as_str(), args.metrics_cert_key.as_str()), ("a", "b"));
    }

    /// What serving comes to when shutdown has been asked for before it begins.
    async fn serve_briefly(args: &[&str], guarded: bool) -> Result<(), EndpointError> {
        let (health, registry, shutdown) = (Health::new(), Registry::new(), CancellationToken::new());
        shutdown.cancel();
        let args = [&["--metrics-bind-address=127.0.0.1:0", "--health-probe-bind-address=0"], args].concat();
        let args = parse(&args).unwrap();
        if guarded {
            return serve_guarded(&args, &health, &registry, |router| router, &shutdown).await;
        }
        serve(&args, &health, &registry, &shutdown).await
    }

    #[tokio::test]
    async fn secure_metrics_without_a_guard_are_refused_at_the_start() {
        let error = serve_briefly(&["--metrics-secure"], false).await.unwrap_err();
        assert!(error.to_string().starts_with("--metrics-secure is not possible here"), "{error}");
        serve_briefly(&["--metrics-secure=false"], false).await.unwrap();
        serve_briefly(&["--metrics-secure"], true).await.unwrap();
    }

    #[tokio::test]
    async fn missing_certificate_names_the_flag_and_the_file() {
        let error =
            serve_briefly(&["--metrics-secure", "--metrics-cert-path=/nowhere"], true).await.unwrap_err();
        assert_eq!(error.to_string(), "load the certificate in '/nowhere', given by --metrics-cert-path");
        assert_eq!(error.source().unwrap().to_string(), "read '/nowhere/tls.crt'");
        // Nobody looks at it when it is not used.
        serve_briefly(&["--metrics-cert-path=/nowhere"], true).await.unwrap();
    }

    #[tokio::test]
    async fn with_metrics_disabled_their_flags_do_not_matter() {
        let (health, registry, shutdown) = (Health::new(), Registry::new(), CancellationToken::new());
        shutdown.cancel();
        let mut args = vec!["--metrics-bind-address=0", "--health-probe-bind-address=0"];
        args.extend(["--metrics-secure", "--metrics-cert-path=/nowhere"]);
        let args = parse(&args).unwrap();
        serve(&args, &health, &registry, &shutdown).await.unwrap();
        serve_guarded(&args, &health, &registry, |router| router, &shutdown).await.unwrap();
    }

    #[test]
    fn flags_without_effect_are_pointed_out() {
        let said = |args: &[&str]| {
            let args = parse(args).unwrap();
            logged(LogFormat::Json, Level::WARN, || args.warn_of_flags_without_effect())
        };
        assert_eq!(said(&["--enable-http2=false", "--metrics-secure", "--metrics-cert-path=/certs"]), "");
        let both = said(&["--enable-http2", "--metrics-cert-path=/certs"]);
        assert!(both.contains("--enable-http2 has no effect"), "{both}");
        assert!(both.contains("--metrics-cert-path has no effect without --metrics-secure"), "{both}");
    }

    #[tokio::test]
    async fn plain_metrics_are_for_everyone() {
        let server = Server::bind("metrics", METRICS_FLAG, &"127.0.0.1:0".parse().unwrap()).await.unwrap();
        let mut peer = TcpStream::connect(server.address().unwrap()).await.unwrap();
        let (router, shutdown) = (metrics_router(&Registry::new()), CancellationToken::new());
        let ask = async {
            let request = b"GET /metrics HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n";
            peer.write_all(request).await.unwrap();
            let mut reply = String::new();
            peer.read_to_string(&mut reply).await.unwrap();
            shutdown.cancel();
            reply
        };
        let (reply, outcome) = tokio::join!(ask, server.run(router, &shutdown));
        outcome.unwrap();
        assert!(reply.starts_with("HTTP/1.1 200") && reply.contains("\nslipway_build_info{"), "{reply}");
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
