//! A process of controllers from its flags: client, probes, metrics, manager; until it is told to stop.

use std::path::PathBuf;

use clap::ArgAction;
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use telemetry::cli::go_flags;
use telemetry::{EndpointArgs, EndpointError, Health, Registry};
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::leader;
use crate::manager::{Manager, Settings};
use crate::metrics_guard::MetricsGuard;
use crate::namespaces::Namespaces;

/// Where a pod finds the namespace that it is in.
const OWN_NAMESPACE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// The flags of every program with controllers, under the names that both originals' charts use.
#[derive(Debug, Clone, clap::Args)]
pub struct ProcessArgs {
    #[command(flatten)]
    pub endpoints: EndpointArgs,
    /// Work only while holding the lease; switch it off only where there is one replica
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true,
          default_value = "true", default_missing_value = "true", value_parser = go_flags::boolean)]
    pub leader_elect: bool,
    /// Namespace of the lease; without it the namespace of this pod
    #[arg(
        long,
        alias = "operator-namespace",
        value_name = "NAMESPACE",
        default_value = "",
        hide_default_value = true
    )]
    pub leader_elect_namespace: String,
    /// Namespaces to work in, with commas between them; nothing or * is all
    #[arg(
        long,
        env = "SLURM_OPERATOR_WATCH_NAMESPACES",
        value_name = "NAMESPACES",
        default_value = "",
        hide_default_value = true
    )]
    pub namespaces: Namespaces,
    /// Objects of a kind that are worked on at a time
    #[arg(long, value_name = "NUMBER", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub max_concurrent_reconciles: u16,
    /// How to reach the API server; without it KUBECONFIG, ~/.kube/config, or the pod's own account
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
}

#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    #[error("read {}, given by --kubeconfig", path.display())]
    Kubeconfig { path: PathBuf, source: Box<kube::config::KubeconfigError> },
    #[error("find out how to reach the API server: no --kubeconfig, no KUBECONFIG, no service account")]
    NoConfig(#[source] Box<kube::config::InferConfigError>),
    #[error("set up the client of the API server")]
    Client(#[source] Box<kube::Error>),
    #[error(
        "the namespace of the lease is not known: give --leader-elect-namespace, or --leader-elect=false where there \
         is one replica"
    )]
    NoNamespace,
    #[error(transparent)]
    Endpoints(#[from] EndpointError),
}

impl From<kube::Error> for ProcessError {
    fn from(error: kube::Error) -> Self {
        Self::Client(Box::new(error))
    }
}

impl ProcessArgs {
    /// The lease of a product, under the name by which the original's replicas know it.
    pub fn lease(&self, name: &str, identity: &str) -> Result<Option<leader::Settings>, ProcessError> {
        if !self.leader_elect {
            return Ok(None);
        }
        let namespace = match self.leader_elect_namespace.as_str() {
            "" => std::fs::read_to_string(OWN_NAMESPACE).map_err(|_| ProcessError::NoNamespace)?,
            given => given.to_owned(),
        };
        Ok(Some(leader::Settings::new(namespace.trim(), name, identity)))
    }

    async fn config(&self) -> Result<kube::Config, ProcessError> {
        let Some(path) = &self.kubeconfig else {
            return kube::Config::infer().await.map_err(|error| ProcessError::NoConfig(Box::new(error)));
        };
        let wrong = |source| ProcessError::Kubeconfig { path: path.clone(), source: Box::new(source) };
        let file = Kubeconfig::read_from(path).map_err(wrong)?;
        kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.map_err(wrong)
    }
}

/// Runs what `build` puts together, beside probes and metrics, until `shutdown`.
pub async fn run(
    args: &ProcessArgs,
    shutdown: CancellationToken,
    build: impl FnOnce(&mut Manager, &str) -> Result<(), ProcessError>,
) -> Result<(), ProcessError> {
    let (health, registry) = (Health::new(), Registry::new());
    let config = args.config().await?;
    let identity = leader::identity();
    let guard = MetricsGuard::new(Client::try_from(config.clone())?);
    let settings = Settings { namespaces: args.namespaces.clone(), identity: identity.clone() };
    let mut manager = Manager::new(config, settings, &registry, &health)?;
    build(&mut manager, &identity)?;
    info!(namespaces = %args.namespaces, identity, "starting controllers");
    // Probes answer until the last reconcile has ended, so that nobody takes a draining process for a dead one.
    let ended = CancellationToken::new();
    let serving =
        telemetry::serve_guarded(&args.endpoints, &health, &registry, |router| guard.protect(router), &ended);
    let working = async {
        manager.run(shutdown.clone()).await;
        ended.cancel();
    };
    let (served, ()) = tokio::join!(
        async {
            let served = serving.await;
            // A server that could not start ends the process, in order.
            shutdown.cancel();
            served
        },
        working
    );
    Ok(served?)
}
