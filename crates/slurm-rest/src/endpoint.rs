//! Where slurmrestd is, and how a connection to it is made: TCP or a UNIX socket, plain or TLS.

use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// The address of a slurmrestd.
#[derive(Debug, Clone)]
pub enum Endpoint {
    Http { host: Box<str>, port: u16 },
    Https { host: Box<str>, port: u16, tls: Arc<ClientConfig> },
    Unix { path: PathBuf },
}

/// slurmrestd's usual port.
pub const PORT: u16 = 6820;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is no address of a slurmrestd: {why}; write http://HOST:6820, https://HOST:6820 or unix:/PATH"
)]
pub struct EndpointError {
    text: String,
    why: &'static str,
}

impl Endpoint {
    /// `http://HOST[:PORT]`, `https://HOST[:PORT]` or `unix:/PATH`. `tls` is used for https only.
    pub fn parse(text: &str, tls: Option<Arc<ClientConfig>>) -> Result<Self, EndpointError> {
        let wrong = |why| EndpointError { text: text.to_owned(), why };
        if let Some(path) = text.strip_prefix("unix:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            return if path.starts_with('/') {
                Ok(Self::Unix { path: path.into() })
            } else {
                Err(wrong("the path of a socket begins with a slash"))
            };
        }
        let uri: Uri = text.parse().map_err(|_| wrong("it is no URL"))?;
        let authority = uri.authority().ok_or_else(|| wrong("it names no host"))?;
        if authority.as_str().contains('@') {
            // A password may be in it, too.
            let text = "…@…".to_owned();
            return Err(EndpointError { text, why: "it has a user in it, which slurmrestd does not know" });
        }
        if uri.path_and_query().is_some_and(|path| path.as_str() != "/") {
            return Err(wrong("it has a path; the path is ours"));
        }
        let (host, port) = (authority.host().into(), authority.port_u16().unwrap_or(PORT));
        match (uri.scheme_str(), tls) {
            (Some("http"), _) => Ok(Self::Http { host, port }),
            (Some("https"), Some(tls)) => Ok(Self::Https { host, port, tls }),
            (Some("https"), None) => Err(wrong("https needs to be told which certificates to trust")),
            _ => Err(wrong("it is neither http, https nor unix")),
        }
    }

    /// Scheme and authority of requests.
    pub(crate) fn base(&self) -> String {
        match self {
            // A UNIX socket has no host; slurmrestd does not look at it.
            Self::Unix { .. } => "http://localhost".to_owned(),
            Self::Http { host, port } | Self::Https { host, port, .. } => format!("http://{host}:{port}"),
        }
    }

    async fn connect(self) -> io::Result<Stream> {
        match self {
            Self::Http { host, port } => Ok(Stream::Tcp(TokioIo::new(tcp(&host, port).await?))),
            Self::Unix { path } => Ok(Stream::Unix(TokioIo::new(UnixStream::connect(path).await?))),
            Self::Https { host, port, tls } => {
                let name = ServerName::try_from(bare(&host).to_owned())
                    .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
                let stream = TlsConnector::from(tls).connect(name, tcp(&host, port).await?).await?;
                Ok(Stream::Tls(Box::new(TokioIo::new(stream))))
            }
        }
    }
}

/// An IPv6 address stands in brackets in a URL and nowhere else.
fn bare(host: &str) -> &str {
    host.trim_start_matches('[').trim_end_matches(']')
}

async fn tcp(host: &str, port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((bare(host), port)).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Makes connections for hyper's pool.
#[derive(Debug, Clone)]
pub(crate) struct Connector(pub(crate) Endpoint);

impl tower::Service<Uri> for Connector {
    type Response = Stream;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Stream>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        Box::pin(self.0.clone().connect())
    }
}

/// One connection.
#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TokioIo<TcpStream>),
    Unix(TokioIo<UnixStream>),
    Tls(Box<TokioIo<TlsStream<TcpStream>>>),
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

macro_rules! on_each {
    ($self:ident, $stream:ident => $call:expr) => {
        match $self.get_mut() {
            Stream::Tcp($stream) => {
                let $stream = Pin::new($stream);
                $call
            }
            Stream::Unix($stream) => {
                let $stream = Pin::new($stream);
                $call
            }
            Stream::Tls($stream) => {
                let $stream = Pin::new(&mut **$stream);
                $call
            }
        }
    };
}

impl Read for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        on_each!(self, stream => stream.poll_read(context, buffer))
    }
}

impl Write for Stream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        on_each!(self, stream => stream.poll_write(context, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_each!(self, stream => stream.poll_flush(context))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_each!(self, stream => stream.poll_shutdown(context))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        match Endpoint::parse(text, None) {
            Ok(endpoint) => format!("{endpoint:?}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn addresses_are_read() {
        assert_eq!(shown("http://rest.ns.svc"), r#"Http { host: "rest.ns.svc", port: 6820 }"#);
        assert_eq!(shown("http://[::1]:80/"), r#"Http { host: "[::1]", port: 80 }"#);
        assert_eq!(shown("unix:/run/restd"), r#"Unix { path: "/run/restd" }"#);
        assert_eq!(shown("unix:///run/restd"), r#"Unix { path: "/run/restd" }"#);
    }

    #[test]
    fn what_is_no_address_is_refused_with_the_reason() {
        for (text, why) in [
            ("rest:6820", "neither"),
            ("http://", "no URL"),
            ("ftp://host", "neither"),
            ("http://host/slurm/v0.0.42", "path"),
            ("unix:run/restd", "slash"),
            ("https://host", "trust"),
        ] {
            let told = shown(text);
            assert!(told.contains(why) && told.contains(text), "{told}");
        }
        let told = shown("http://root:hush@host");
        assert!(told.contains("user") && !told.contains("hush"), "{told}");
    }
}
