//! HTTP/1.1 over TLS: what `axum::serve` is for plain connections. Nothing that a peer does, and no shortage of
//! descriptors, ends the server.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::endpoints::DRAIN;

/// Whoever has not shown what he wants takes a descriptor that the program needs for its work: no more than this many
/// at once; others wait in the backlog of the socket.
const MAX_CONNECTIONS: usize = 256;

const HANDSHAKE: Duration = Duration::from_secs(10);

/// How long the head of a request may take. hyper begins to count at the end of the request before: a shorter time
/// would cost Prometheus a handshake at every scrape.
const NEXT_REQUEST: Duration = Duration::from_secs(90);

/// A peer that never reads its answers is let go after this, whatever it does.
const MAX_AGE: Duration = Duration::from_secs(600);

/// More than any head with a token in it; hyper's own limit is 400 KiB.
const MAX_HEAD: usize = 64 * 1024;

/// After an error that says something about this process and not about one peer.
const PAUSE: Duration = Duration::from_secs(1);

/// Answers requests until `shutdown`, then waits for open requests. Dropped, it closes all connections.
pub(crate) async fn serve(
    server: &'static str,
    listener: TcpListener,
    config: Arc<ServerConfig>,
    router: &Router,
    shutdown: &CancellationToken,
) {
    let acceptor = TlsAcceptor::from(config);
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            () = shutdown.cancelled() => break,
            // One that panicked has logged it.
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept(), if connections.len() < MAX_CONNECTIONS => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                connections.spawn(connection(
                    stream,
                    peer,
                    acceptor.clone(),
                    router.clone(),
                    shutdown.clone(),
                ));
                if connections.len() == MAX_CONNECTIONS {
                    debug!(server, limit = MAX_CONNECTIONS, "as many connections as may be");
                }
            }
            Err(error) if is_of_one_peer(&error) => debug!(server, %error, "connection gone before its turn"),
            Err(error) => {
                warn!(server, %error, "cannot accept connections, trying again");
                tokio::select! {
                    () = shutdown.cancelled() => break,
                    () = sleep(PAUSE) => {}
                }
            }
        }
    }
    // Peers are refused from here on, and do not wait for an answer that will not come.
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// `accept` also reports what happened to a connection that it was about to hand out.
fn is_of_one_peer(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

async fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    acceptor: TlsAcceptor,
    router: Router,
    shutdown: CancellationToken,
) {
    let handshake = tokio::select! {
        () = shutdown.cancelled() => return,
        handshake = timeout(HANDSHAKE, acceptor.accept(stream)) => handshake,
    };
    match handshake {
        Ok(Ok(stream)) => requests(stream, peer, router, &shutdown).await,
        Ok(Err(error)) => debug!(%peer, %error, "no TLS handshake"),
        Err(_) => debug!(%peer, "TLS handshake took too long"),
    }
}

async fn requests(
    stream: TlsStream<TcpStream>,
    peer: SocketAddr,
    router: Router,
    shutdown: &CancellationToken,
) {
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(NEXT_REQUEST)
        .max_buf_size(MAX_HEAD)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let mut serving = pin!(serving);
    let ended = tokio::select! {
        outcome = serving.as_mut() => Some(outcome),
        () = shutdown.cancelled() => None,
        () = sleep(MAX_AGE) => None,
    };
    let outcome = match ended {
        Some(outcome) => outcome,
        None => {
            // A connection that waits for its next request ends here.
            serving.as_mut().graceful_shutdown();
            let Ok(outcome) = timeout(DRAIN, serving).await else {
                debug!(%peer, "request not ended in time");
                return;
            };
            outcome
        }
    };
    if let Err(error) = outcome {
        debug!(%peer, %error, "connection ended early");
    }
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use rustls::pki_types::{CertificateDer, ServerName};
    use rustls::server::{ClientHello, ResolvesServerCert};
    use rustls::sign::CertifiedKey;
    use rustls::{ClientConfig, RootCertStore};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::sync::Notify;
    use tokio::task::JoinHandle;
    use tokio_rustls::TlsConnector;
    use tokio_rustls::client::TlsStream as ClientStream;

    use super::*;
    use crate::certificates::{SelfMade, server_config};

    const PATIENCE: Duration = Duration::from_secs(30);

    /// Keeps what it showed last, so that a client can be told to trust it.
    #[derive(Debug)]
    struct Shown {
        by: SelfMade,
        last: std::sync::Mutex<Option<CertificateDer<'static>>>,
    }

    impl ResolvesServerCert for Shown {
        fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
            let pair = self.by.resolve(hello)?;
            *self.last.lock().unwrap() = Some(pair.cert[0].clone());
            Some(pair)
        }
    }

    struct Running {
        address: SocketAddr,
        shown: Arc<Shown>,
        /// Told when a request that never ends has begun.
        hanging: Arc<Notify>,
        shutdown: CancellationToken,
        serving: JoinHandle<()>,
    }

    async fn start() -> Running {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shown = Arc::new(Shown { by: SelfMade::new().unwrap(), last: std::sync::Mutex::default() });
        let config = server_config(Arc::clone(&shown) as _).unwrap();
        let shutdown = CancellationToken::new();
        let stop = shutdown.clone();
        let hanging = Arc::new(Notify::new());
        let begun = Arc::clone(&hanging);
        let hang = async move || {
            begun.notify_one();
            std::future::pending::<&str>().await
        };
        let router = Router::new().route("/metrics", get(async || "all is well\n")).route("/hang", get(hang));
        let serving = tokio::spawn(async move { serve("test", listener, config, &router, &stop).await });
        Running { address, shown, hanging, shutdown, serving }
    }

    impl Running {
        async fn connect_as(
            &self,
            name: &'static str,
            alpn: &[&[u8]],
        ) -> io::Result<ClientStream<TcpStream>> {
            let mut roots = RootCertStore::empty();
            if let Some(certificate) = self.shown.last.lock().unwrap().clone() {
                roots.add(certificate).unwrap();
            }
            let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
            let mut config = ClientConfig::builder_with_provider(provider)
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_root_certificates(roots)
                .with_no_client_auth();
            config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
            let stream = TcpStream::connect(self.address).await?;
            TlsConnector::from(Arc::new(config)).connect(ServerName::try_from(name).unwrap(), stream).await
        }

        /// A connection that trusts what the server shows. The first try only gets to know it.
        async fn connect(&self) -> ClientStream<TcpStream> {
            if self.shown.last.lock().unwrap().is_none() {
                self.connect_as("localhost", &[]).await.unwrap_err();
            }
            self.connect_as("localhost", &[]).await.unwrap()
        }

        async fn end(self) {
            self.shutdown.cancel();
            timeout(PATIENCE, self.serving).await.unwrap().unwrap();
        }
    }

    async fn scrape(stream: &mut ClientStream<TcpStream>) -> String {
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
        let mut text = String::new();
        while !text.ends_with("all is well\n") {
            let mut some = [0; 1000];
            let read = timeout(PATIENCE, stream.read(&mut some)).await.unwrap().unwrap();
            assert_ne!(read, 0, "ended after {text:?}");
            text.push_str(std::str::from_utf8(&some[..read]).unwrap());
        }
        text
    }

    #[tokio::test]
    async fn one_connection_serves_many_requests() {
        let running = start().await;
        let mut stream = running.connect().await;
        for _ in 0..3 {
            assert!(scrape(&mut stream).await.starts_with("HTTP/1.1 200"));
        }
        // It would stay open for longer than anyone waits here.
        running.end().await;
    }

    #[tokio::test]
    async fn the_certificate_it_makes_is_for_this_machine() {
        let running = start().await;
        drop(running.connect().await);
        running.connect_as("127.0.0.1", &[]).await.unwrap();
        let error = running.connect_as("elsewhere.example", &[]).await.unwrap_err();
        assert!(error.to_string().contains("not valid for name"), "{error}");
    }

    #[tokio::test]
    async fn peers_that_offer_http2_too_get_http1() {
        let running = start().await;
        drop(running.connect().await);
        let stream = running.connect_as("localhost", &[b"h2", b"http/1.1"]).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
    }

    #[tokio::test]
    async fn failed_handshakes_do_no_harm() {
        let running = start().await;
        for bytes in [&b"GET /metrics HTTP/1.1\r\n\r\n"[..], b"\x16\x03\x01\xff\xff", b""] {
            let mut stream = TcpStream::connect(running.address).await.unwrap();
            stream.write_all(bytes).await.unwrap();
            stream.shutdown().await.unwrap();
            let mut answer = Vec::new();
            // An alert, or a reset for what was not read.
            let _ = timeout(PATIENCE, stream.read_to_end(&mut answer)).await.unwrap();
            assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
        }
        assert!(scrape(&mut running.connect().await).await.starts_with("HTTP/1.1 200"));
        running.end().await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_never_begins_is_let_go() {
        let running = start().await;
        let begin = tokio::time::Instant::now();
        let mut silent = TcpStream::connect(running.address).await.unwrap();
        assert_eq!(silent.read(&mut [0; 10]).await.unwrap_or_default(), 0);
        assert!((HANDSHAKE..HANDSHAKE * 2).contains(&begin.elapsed()), "{:?}", begin.elapsed());
    }

    #[tokio::test]
    async fn more_peers_than_may_be_wait_for_their_turn() {
        let running = start().await;
        drop(running.connect().await);
        let mut silent = Vec::new();
        for _ in 0..MAX_CONNECTIONS {
            silent.push(TcpStream::connect(running.address).await.unwrap());
        }
        let mut late = Box::pin(running.connect());
        let early = timeout(Duration::from_millis(200), &mut late).await;
        assert!(early.is_err(), "served beyond the limit");
        drop(silent);
        assert!(scrape(&mut timeout(PATIENCE, late).await.unwrap()).await.starts_with("HTTP/1.1 200"));
    }

    #[tokio::test]
    async fn a_silent_peer_does_not_delay_the_end() {
        let running = start().await;
        let mut silent = TcpStream::connect(running.address).await.unwrap();
        drop(running.connect().await);
        let begin = std::time::Instant::now();
        running.end().await;
        assert!(begin.elapsed() < DRAIN, "{:?}", begin.elapsed());
        assert_eq!(silent.read(&mut [0; 10]).await.unwrap_or_default(), 0);
    }

    #[tokio::test]
    async fn a_request_that_never_ends_is_given_its_time_and_no_more() {
        let running = start().await;
        let mut stream = running.connect().await;
        stream.write_all(b"GET /hang HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
        running.hanging.notified().await;
        tokio::time::pause();
        let begin = tokio::time::Instant::now();
        running.end().await;
        assert!((DRAIN..DRAIN * 2).contains(&begin.elapsed()), "{:?}", begin.elapsed());
    }
}
