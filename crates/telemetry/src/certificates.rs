//! The certificate of a TLS server: read from files that may change under a running process, or made by the process
//! itself.
//!
//! A server never loses a pair that works: what cannot be read, or does not fit together, is only spoken about.

mod files;
mod self_made;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem;
use rustls::server::ResolvesServerCert;

pub use files::CertificateFiles;
pub use self_made::SelfMade;

#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    #[error("read '{}'", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("read '{}' as PEM", path.display())]
    Pem { path: PathBuf, source: pem::Error },
    #[error("use the certificate '{}' with the key '{}'", certificate.display(), key.display())]
    Pair { certificate: PathBuf, key: PathBuf, source: rustls::Error },
    #[error("make a certificate for {names}")]
    Make { names: String, source: rcgen::Error },
    #[error("use the certificate made for {names}")]
    Made { names: String, source: rustls::Error },
}

/// What a server with this certificate speaks: HTTP/1.1 over TLS 1.2 or 1.3, without certificates of clients.
pub fn server_config(certificate: Arc<dyn ResolvesServerCert>) -> Result<Arc<ServerConfig>, rustls::Error> {
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_cert_resolver(certificate);
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Named wherever it is needed: the provider of the process is set by whoever comes first, or by nobody.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}
