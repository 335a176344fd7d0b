//! Servers inside the test process, one idea of an answer each.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use anyhow::{Context, Result};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::Value;
use testkit::pki::Identity;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_util::task::AbortOnDropHandle;

/// A server; ends when dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    _serving: AbortOnDropHandle<()>,
}

/// A server whose every answer has the same body.
pub(crate) async fn plain(body: &'static str) -> Result<Server> {
    let (listener, address) = listen().await?;
    let serving = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, move |_| async move { Ok(Response::new(Full::from(body))) }));
        }
    });
    Ok(Server { address, _serving: AbortOnDropHandle::new(serving) })
}

/// A webhook server; `decide` is given the query and the AdmissionReview's request, and says why not.
/// It knows one path, `/validate`.
pub(crate) async fn webhook(
    identity: &Identity,
    decide: fn(&str, &Value) -> Option<String>,
) -> Result<Server> {
    let (listener, address) = listen().await?;
    let tls = TlsAcceptor::from(Arc::new(tls_config(identity)?));
    let serving = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let tls = tls.clone();
            tokio::spawn(async move {
                if let Ok(stream) = tls.accept(stream).await {
                    serve(stream, move |request| review(request, decide)).await;
                }
            });
        }
    });
    Ok(Server { address, _serving: AbortOnDropHandle::new(serving) })
}

async fn listen() -> Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

fn tls_config(identity: &Identity) -> Result<rustls::ServerConfig> {
    let certificate = CertificateDer::from_pem_slice(identity.certificate_pem().as_bytes())?;
    let key = PrivateKeyDer::from_pem_slice(identity.key_pem().as_bytes())?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    Ok(rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)?)
}

async fn serve<S, A, F>(stream: S, answer: A)
where
    S: AsyncRead + AsyncWrite + Unpin + 'static,
    A: Fn(Request<Incoming>) -> F,
    F: Future<Output = Result<Response<Full<Bytes>>>>,
{
    let _ = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service_fn(answer))
        .await;
}

async fn review(
    request: Request<Incoming>,
    decide: fn(&str, &Value) -> Option<String>,
) -> Result<Response<Full<Bytes>>> {
    // The API server appends a query to the configured URL.
    let query = request.uri().query().unwrap_or_default().to_owned();
    if request.uri().path() != "/validate" {
        return Ok(Response::builder().status(StatusCode::NOT_FOUND).body(Full::default())?);
    }
    let body: Value = serde_json::from_slice(&request.into_body().collect().await?.to_bytes())?;
    let asked = body.get("request").context("an AdmissionReview has a request")?;
    let objection = decide(&query, asked);
    let answer = serde_json::json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {
            "uid": asked["uid"], "allowed": objection.is_none(), "status": { "message": objection },
        },
    });
    Ok(Response::builder().header("content-type", "application/json").body(Full::from(answer.to_string()))?)
}
