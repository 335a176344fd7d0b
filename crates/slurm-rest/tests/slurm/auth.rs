//! Tokens that are refused, renewed, asked for; sockets and TLS.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::future::BoxFuture;
use slurm_rest::token::{Claims, Minted, NoToken, Scontrol, Secret, Signed, Static, TokenError, TokenSource};
use slurm_rest::{Client, Endpoint, Options};
use testkit::cache::SlurmVersion;
use testkit::chaos::{Chaos, Fault};
use testkit::slurm::SlurmCluster;
use tokio::net::{TcpListener, UnixListener};

use crate::{Log, cluster, relay, root};

fn with(url: &str, source: impl TokenSource + 'static) -> Result<Client> {
    Ok(Client::new(Endpoint::parse(url, None)?, Arc::new(source), Options::new("test")))
}

/// Its first tokens are of a key that slurmctld does not have, as after the key was changed.
#[derive(Debug)]
struct Rotated {
    new: Signed,
    wrong: usize,
    minted: AtomicUsize,
}

impl TokenSource for Rotated {
    fn mint(&self) -> BoxFuture<'_, Result<Minted, TokenError>> {
        Box::pin(async {
            let number = self.minted.fetch_add(1, Ordering::Relaxed);
            let old = Signed { key: (*b"the key before").into(), ..self.new.clone() };
            if number < self.wrong { old.mint().await } else { self.new.mint().await }
        })
    }
}

pub(crate) async fn a_refused_token_is_replaced_at_once(release: SlurmVersion) -> Result<()> {
    let cluster = cluster(release).accounting().nodes(1).start().await?;
    for slurmdb in [false, true] {
        let source = Arc::new(Rotated { new: root(&cluster), wrong: 1, minted: AtomicUsize::new(0) });
        let client =
            Client::new(Endpoint::parse(&cluster.rest_url(), None)?, source.clone(), Options::new("test"));
        // slurmrestd describes itself to everybody, so this token is only refused later, when it is old enough to be
        // doubted.
        client.version().await?;
        tokio::time::sleep(Duration::from_millis(1100)).await;
        let asked = futures::future::join_all((0..10).map(|_| async {
            match slurmdb {
                false => client.nodes().await.map(|listed| listed.records.len()),
                true => client.qos().await.map(|listed| listed.records.len()),
            }
        }));
        for answer in asked.await {
            ensure!(answer? > 0);
        }
        assert_eq!(source.minted.load(Ordering::Relaxed), 2, "ten callers, one renewal");
    }
    let wrong = Signed { key: (*b"another key").into(), ..root(&cluster) };
    let error = with(&cluster.rest_url(), wrong)?.nodes().await.err().context("a wrong key is let in")?;
    assert_eq!(error.class(), "auth", "{error}");
    let error = with(&cluster.rest_url(), NoToken)?.nodes().await.err().context("no token is let in")?;
    assert_eq!(error.class(), "auth", "{error}");
    Ok(())
}

pub(crate) async fn tokens_of_every_source_are_let_in(release: SlurmVersion) -> Result<()> {
    let cluster = cluster(release).nodes(1).start().await?;
    let all = Claims { issuer: Some("somebody"), subject: true, not_before: true, id: true };
    let month = Duration::from_secs(30 * 24 * 3600);
    let sources: [(&str, Arc<dyn TokenSource>); 4] = [
        ("user and time", Arc::new(Signed { user: "slurm".into(), ..root(&cluster) })),
        ("all claims", Arc::new(Signed { claims: all, lifetime: month, ..root(&cluster) })),
        ("static", Arc::new(Static(Secret::new(cluster.token("root", month)?)))),
        ("scontrol", Arc::new(scontrol(&cluster)?)),
    ];
    for (what, source) in sources {
        let client = Client::new(Endpoint::parse(&cluster.rest_url(), None)?, source, Options::new("test"));
        ensure!(client.nodes().await.context(what)?.records.len() == 1, "{what}");
    }
    Ok(())
}

/// The name beside the token: slurmctld lets only itself and root speak for others.
pub(crate) async fn a_name_beside_the_token_is_sent(release: SlurmVersion) -> Result<()> {
    let cluster = cluster(release).nodes(1).start().await?;
    for (of, name, expected) in [("root", "root", "ok"), ("alice", "root", "auth")] {
        let options = Options { user: Some(name.into()), ..Options::new("test") };
        let source = Arc::new(Signed { user: of.into(), ..root(&cluster) });
        let client = Client::new(Endpoint::parse(&cluster.rest_url(), None)?, source, options);
        let found = client.nodes().await.map_or_else(|error| error.class(), |_| "ok");
        assert_eq!(found, expected, "token of {of}, name {name}");
    }
    Ok(())
}

pub(crate) async fn neither_errors_nor_logs_show_what_is_secret(release: SlurmVersion) -> Result<()> {
    let cluster = cluster(release).nodes(1).start().await?;
    let chaos = Chaos::before_http(cluster.rest_url().trim_start_matches("http://").parse()?).await?;
    let log = Log::begin()?;
    let key = "the key of nobody";
    let wrong = Signed { key: key.as_bytes().into(), ..root(&cluster) };
    // A file with a token in it ends with a line break.
    let good = cluster.token("root", Duration::from_secs(600))?;
    let token = wrong.sign(std::time::SystemTime::now())?;
    let mut told = format!("{wrong:?} {token:?}");
    let sources: [Arc<dyn TokenSource>; 3] =
        [Arc::new(wrong), Arc::new(Static(token)), Arc::new(Static(Secret::new(format!("{good}\n"))))];
    for source in sources {
        let client = Client::new(Endpoint::parse(&chaos.url(), None)?, source, Options::new("test"));
        client.version().await?;
        chaos.inject_times("nodes/", Fault::Cut, 1);
        told += &match client.nodes().await {
            Ok(listed) => format!("{client:?} {listed:?}"),
            Err(error) => format!("{client:?} {error} {error:?}"),
        };
    }
    let broken = Static(Secret::new(format!("{good}\u{7f}{good}")));
    let error = with(&chaos.url(), broken)?.nodes().await.err().context("no header can have this")?;
    assert_eq!(error.class(), "invalid", "{error}");
    told += &format!("{error} {error:?}");
    told += &log.read()?;
    // The first part of every token is the same, and tells nothing.
    let (_, secret) = good.split_once('.').context("no token")?;
    ensure!(told.contains("trying again") && told.contains("token is refused") && told.contains("n1"), told);
    for word in [key, secret, &format!("{:?}", key.as_bytes())[1..20], "eyJ"] {
        ensure!(!told.contains(word), "{word} is told in {told}");
    }
    Ok(())
}

/// `scontrol` where slurmctld runs.
fn scontrol(cluster: &SlurmCluster) -> Result<Scontrol> {
    let inside = cluster.processes("slurmctld")?.into_iter().min().context("slurmctld has no process")?;
    let enter = format!(
        "nsenter --target={inside} --mount --uts --net --root --wd -- env -i PATH=/usr/bin:/bin scontrol"
    );
    let command = enter.split(' ').map(str::to_owned).collect();
    Ok(Scontrol { command, ..Scontrol::new("root", Duration::from_secs(600)) })
}

/// slurmrestd behind a UNIX socket, and behind TLS.
pub(crate) async fn sockets_and_tls_lead_to_slurmrestd(release: SlurmVersion) -> Result<()> {
    let cluster = cluster(release).nodes(1).start().await?;
    let restd: SocketAddr = cluster.rest_url().trim_start_matches("http://").parse()?;

    let folder = tempfile::tempdir()?;
    let path = folder.path().join("slurmrestd.sock");
    let socket = UnixListener::bind(&path)?;
    let connections = Arc::new(AtomicUsize::new(0));
    let accepted = connections.clone();
    let unix = tokio::spawn(async move {
        while let Ok((outside, _)) = socket.accept().await {
            accepted.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(relay(outside, restd));
        }
    });
    let client = with(&format!("unix:{}", path.display()), root(&cluster))?;
    for _ in 0..5 {
        ensure!(client.nodes().await?.records.len() == 1);
    }
    // One comes back to the pool a moment after its answer was read, so the next call can still miss it.
    let made = connections.load(Ordering::Relaxed);
    ensure!(made < 5, "{made} connections for five calls");
    unix.abort();

    let (server, trusted, strangers) = tls()?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("https://localhost:{}", listener.local_addr()?.port());
    let acceptor = tokio_rustls::TlsAcceptor::from(server);
    let tls = tokio::spawn(async move {
        while let Ok((outside, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move { relay(acceptor.accept(outside).await?, restd).await });
        }
    });
    let endpoint = Endpoint::parse(&url, Some(trusted))?;
    let client = Client::new(endpoint, Arc::new(root(&cluster)), Options::new("test"));
    ensure!(client.nodes().await?.records.len() == 1);
    let endpoint = Endpoint::parse(&url, Some(strangers))?;
    let client = Client::new(endpoint, Arc::new(root(&cluster)), Options::new("test"));
    let error = client.within(Duration::from_secs(3)).nodes().await.err().context("a stranger is trusted")?;
    ensure!(error.class() == "no_answer" && error.to_string().contains("certificate"), "{error}");
    tls.abort();
    Ok(())
}

type Client13 = Arc<rustls::ClientConfig>;

/// A server's side, a client that trusts it, and one that trusts somebody else.
fn tls() -> Result<(Arc<rustls::ServerConfig>, Client13, Client13)> {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let other = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let server = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key.into())?;
    let trusting = |certificate: &rcgen::Certificate| -> Result<Client13> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(certificate.der().clone())?;
        Ok(Arc::new(rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth()))
    };
    Ok((Arc::new(server), trusting(&made.cert)?, trusting(&other.cert)?))
}
