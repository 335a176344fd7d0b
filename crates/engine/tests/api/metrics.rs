//! Metrics behind TLS and the API server's word: a real server, real tokens, real roles.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use axum::Router;
use axum::routing::get;
use engine::MetricsGuard;
use engine::metrics_guard::NEEDS;
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::PostParams;
use kube::{Api, Client};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use telemetry::Server;
use telemetry::certificates::{CertificateFiles, server_config};
use tempfile::TempDir;
use testkit::ControlPlane;
use testkit::pki::Pki;
use testkit::process::eventually;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

const PATIENCE: Duration = Duration::from_secs(30);

/// A metrics server with a certificate of the control plane's authority; ends when dropped.
struct Metrics {
    address: SocketAddr,
    roots: RootCertStore,
    certificates: TempDir,
    shutdown: CancellationToken,
    serving: AbortOnDropHandle<Result<(), telemetry::EndpointError>>,
}

struct Reply {
    status: u16,
    head: String,
    body: String,
}

fn write_certificate(pki: &Pki, folder: &TempDir) -> Result<CertificateDer<'static>> {
    let identity = pki.issue("metrics", None, &["localhost".into()], &[])?;
    fs::write(folder.path().join("tls.crt"), identity.certificate_pem())?;
    fs::write(folder.path().join("tls.key"), identity.key_pem())?;
    Ok(CertificateDer::from_pem_slice(identity.certificate_pem().as_bytes())?)
}

impl Metrics {
    async fn start(plane: &ControlPlane, client: Client) -> Result<Self> {
        let certificates = TempDir::new()?;
        write_certificate(plane.pki(), &certificates)?;
        let path = |name| certificates.path().join(name);
        let files = CertificateFiles::load(path("tls.crt"), path("tls.key"))?;
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(plane.pki().ca_pem().as_bytes())?)?;
        let server = Server::bind("metrics", "--metrics-bind-address", &"127.0.0.1:0".parse()?).await?;
        let address = server.address().context("it listens")?;
        let router = Router::new().route("/metrics", get(async || "slipway_up 1\n"));
        let router = MetricsGuard::new(client).protect(router);
        let config = server_config(Arc::new(files))?;
        let shutdown = CancellationToken::new();
        let stop = shutdown.clone();
        let serving = tokio::spawn(async move { server.run_tls(router, config, &stop).await });
        Ok(Self { address, roots, certificates, shutdown, serving: AbortOnDropHandle::new(serving) })
    }

    /// One request on a connection of its own, and the certificate that was shown.
    async fn get(&self, token: Option<&str>) -> Result<(Reply, CertificateDer<'static>)> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(self.roots.clone())
            .with_no_client_auth();
        let stream = TcpStream::connect(self.address).await?;
        let name = ServerName::try_from("localhost")?;
        let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
        let shown = stream.get_ref().1.peer_certificates().context("a certificate")?[0].clone();
        let authorization = token.map(|token| format!("Authorization: Bearer {token}\r\n"));
        let head = format!(
            "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{}\r\n",
            authorization.unwrap_or_default()
        );
        stream.write_all(head.as_bytes()).await?;
        let mut text = String::new();
        stream.read_to_string(&mut text).await?;
        let (head, body) = text.split_once("\r\n\r\n").context("a whole head")?;
        let status = head.split(' ').nth(1).context("a status")?.parse()?;
        Ok((Reply { status, head: head.to_lowercase(), body: body.to_owned() }, shown))
    }

    async fn scrape(&self, token: &str) -> Result<Reply> {
        Ok(self.get(Some(token)).await?.0)
    }

    async fn stop(self) -> Result<()> {
        self.shutdown.cancel();
        Ok(self.serving.await??)
    }
}

async fn create<K>(api: &Api<K>, object: Value) -> Result<K>
where
    K: Clone + std::fmt::Debug + DeserializeOwned + Serialize,
{
    Ok(api.create(&PostParams::default(), &serde_json::from_value(object)?).await?)
}

/// A service account and a token of it.
async fn account(admin: &Client, namespace: &str, name: &str) -> Result<String> {
    let accounts: Api<ServiceAccount> = Api::namespaced(admin.clone(), namespace);
    create(&accounts, json!({ "metadata": { "name": name } })).await?;
    token(admin, namespace, name).await
}

async fn token(admin: &Client, namespace: &str, account: &str) -> Result<String> {
    let accounts: Api<ServiceAccount> = Api::namespaced(admin.clone(), namespace);
    let request: TokenRequest = serde_json::from_value(json!({ "spec": { "audiences": [] } }))?;
    let answer = accounts.create_token_request(account, &PostParams::default(), &request).await?;
    answer.status.and_then(|status| status.token).context("a token")
}

/// A role of this name, for one subject.
async fn bind(admin: &Client, name: &str, rules: Value, subject: Value) -> Result<()> {
    create(&Api::<ClusterRole>::all(admin.clone()), json!({ "metadata": { "name": name }, "rules": rules }))
        .await?;
    let role = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name });
    create(
        &Api::<ClusterRoleBinding>::all(admin.clone()),
        json!({ "metadata": { "name": name }, "roleRef": role, "subjects": [subject] }),
    )
    .await?;
    Ok(())
}

fn reader_rules() -> Value {
    json!([{ "nonResourceURLs": ["/metrics"], "verbs": ["get"] }])
}

fn account_subject(namespace: &str, name: &str) -> Value {
    json!({ "kind": "ServiceAccount", "namespace": namespace, "name": name })
}

#[test]
fn metrics_are_for_those_whom_a_role_lets_read_them() -> Result<()> {
    testkit::run(async {
        let plane = ControlPlane::start().await?;
        let namespace = plane.namespace("metrics").await?;
        let admin = plane.client("metrics-admin").await?;
        let metrics = Metrics::start(plane, plane.client("metrics-guard").await?).await?;

        let (reply, _) = metrics.get(None).await?;
        assert_eq!(reply.status, 401, "{}", reply.body);
        assert!(reply.head.contains("www-authenticate: bearer"), "{}", reply.head);
        assert_eq!(metrics.scrape("nonsense").await?.status, 401);

        let outsider = account(&admin, &namespace, "outsider").await?;
        let reply = metrics.scrape(&outsider).await?;
        assert_eq!(reply.status, 403);
        let user = format!("system:serviceaccount:{namespace}:outsider");
        assert!(reply.body.starts_with(&format!("{user} may not get /metrics")), "{}", reply.body);

        account(&admin, &namespace, "reader").await?;
        bind(&admin, "metrics-reader", reader_rules(), account_subject(&namespace, "reader")).await?;
        // The API server learns of the role a moment later, and a denial is remembered for a while: each token is
        // another user to the guard.
        let reader = eventually("the account may read", PATIENCE, async || {
            let reader = token(&admin, &namespace, "reader").await?;
            Ok((metrics.scrape(&reader).await?.status == 200).then_some(reader))
        })
        .await?;
        let reply = metrics.scrape(&reader).await?;
        assert_eq!((reply.status, reply.body.as_str()), (200, "slipway_up 1\n"));
        metrics.stop().await
    })
}

#[test]
fn a_second_scrape_asks_the_api_server_nothing() -> Result<()> {
    testkit::run(async {
        let plane = ControlPlane::start().await?;
        let namespace = plane.namespace("metrics-again").await?;
        let admin = plane.client("metrics-again-admin").await?;
        let metrics = Metrics::start(plane, plane.client("metrics-again").await?).await?;
        let outsider = account(&admin, &namespace, "outsider").await?;

        let calls = plane.api_calls();
        let mark = calls.mark(&admin).await?;
        for token in [&outsider, "nonsense"] {
            assert!(metrics.scrape(token).await?.status >= 401);
        }
        let first = calls.since(&admin, mark).await?.by("metrics-again");
        assert_eq!(
            (first.of("tokenreviews").len(), first.of("subjectaccessreviews").len()),
            (2, 1),
            "{first:?}"
        );

        let mark = calls.mark(&admin).await?;
        for token in [&outsider, "nonsense", &outsider, "nonsense"] {
            assert!(metrics.scrape(token).await?.status >= 401);
        }
        let again = calls.since(&admin, mark).await?.by("metrics-again");
        assert!(again.is_empty(), "{again:?}");
        Ok(())
    })
}

/// What `NEEDS` says is enough, and without it the guard lets nobody in.
#[test]
fn the_guard_works_with_exactly_what_it_says_it_needs() -> Result<()> {
    testkit::run(async {
        let plane = ControlPlane::start().await?;
        let namespace = plane.namespace("metrics-needs").await?;
        let admin = plane.client("metrics-needs-admin").await?;
        let metrics = Metrics::start(plane, plane.client_as("needy", "nobodies").await?).await?;
        bind(&admin, "metrics-needs-reader", reader_rules(), account_subject(&namespace, "reader")).await?;
        let reader = account(&admin, &namespace, "reader").await?;

        let reply = metrics.scrape(&reader).await?;
        assert_eq!(
            (reply.status, reply.body.as_str()),
            (500, "the API server refused to review the token\n")
        );

        let rules: Vec<Value> = NEEDS
            .iter()
            .map(|(group, resource, verb)| json!({ "apiGroups": [group], "resources": [resource], "verbs": [verb] }))
            .collect();
        let needy = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "needy" });
        bind(&admin, "metrics-needs", rules.into(), needy).await?;
        eventually("the guard may ask", PATIENCE, async || {
            Ok((metrics.scrape(&reader).await?.status == 200).then_some(()))
        })
        .await
    })
}

#[test]
fn a_peer_without_tls_is_turned_away_and_others_are_served() -> Result<()> {
    testkit::run(async {
        let plane = ControlPlane::start().await?;
        let metrics = Metrics::start(plane, plane.client("metrics-plain").await?).await?;
        let mut silent = TcpStream::connect(metrics.address).await?;
        let mut plain = TcpStream::connect((Ipv4Addr::LOCALHOST, metrics.address.port())).await?;
        plain.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").await?;
        let mut answer = Vec::new();
        // An alert, or a reset for what was not read.
        let _ = plain.read_to_end(&mut answer).await;
        ensure!(!answer.starts_with(b"HTTP"), "answered: {}", String::from_utf8_lossy(&answer));
        assert_eq!(metrics.get(None).await?.0.status, 401);
        // One that says nothing does not delay the end.
        metrics.stop().await?;
        let _ = silent.read_to_end(&mut answer).await;
        Ok(())
    })
}

#[test]
fn a_renewed_certificate_is_shown_without_a_restart() -> Result<()> {
    testkit::run(async {
        let plane = ControlPlane::start().await?;
        let metrics = Metrics::start(plane, plane.client("metrics-renewed").await?).await?;
        let (_, before) = metrics.get(None).await?;
        let renewed = write_certificate(plane.pki(), &metrics.certificates)?;
        assert_ne!(before, renewed);
        eventually("the new certificate", PATIENCE, async || {
            Ok((metrics.get(None).await?.1 == renewed).then_some(()))
        })
        .await
    })
}

#[test]
fn without_an_api_server_nobody_reads() -> Result<()> {
    testkit::run(async {
        let mut plane = ControlPlane::own().await?;
        let namespace = plane.namespace("metrics-down").await?;
        let admin = plane.client("metrics-down-admin").await?;
        let metrics = Metrics::start(&plane, plane.client("metrics-down").await?).await?;
        bind(&admin, "metrics-down", reader_rules(), account_subject(&namespace, "reader")).await?;
        let reader = account(&admin, &namespace, "reader").await?;
        plane.kill_api_server();
        let reply = metrics.scrape(&reader).await?;
        assert_eq!((reply.status, reply.body.as_str()), (503, "the API server could not be reached\n"));
        plane.restart_api_server().await?;
        eventually("the account may read", PATIENCE, async || {
            // A denial from before the role was known would be remembered for longer than this waits.
            let reader = token(&admin, &namespace, "reader").await?;
            Ok((metrics.scrape(&reader).await?.status == 200).then_some(()))
        })
        .await
    })
}
