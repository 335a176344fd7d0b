//! A process of controllers from its flags: client, probes, metrics, manager; until it is told to stop.

use std::path::PathBuf;
use std::time::Duration;

use clap::ArgAction;
use jiff::SignedDuration;
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use telemetry::cli::go_flags;
use telemetry::{EndpointArgs, EndpointError, Health, Registry};
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::controller::Options;
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
    /// How long one reconcile may take, all its requests included
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = duration)]
    pub reconcile_timeout: Duration,
    /// After how long caches that are not complete are an error in the log; the process goes on trying
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = duration)]
    pub cache_sync_timeout: Duration,
    /// How to reach the API server; without it KUBECONFIG, ~/.kube/config, or the pod's own account
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
}

/// As Go writes them: `90s`, `1m30s`, `2h`.
fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("'{text}' is no time: write it like 90s, 1m30s or 2h");
    let span: SignedDuration = text.parse().map_err(|_| wrong())?;
    Duration::try_from(span).ok().filter(|time| !time.is_zero()).ok_or_else(wrong)
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
    /// How the controllers of this process are run.
    #[must_use]
    pub fn options(&self) -> Options {
        let concurrency = usize::from(self.max_concurrent_reconciles);
        Options { concurrency, deadline: self.reconcile_timeout, ..Options::default() }
    }

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
    let settings = Settings {
        namespaces: args.namespaces.clone(),
        identity: identity.clone(),
        cache_sync_timeout: args.cache_sync_timeout,
    };
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

#[cfg(test)]
mod tests {
    use clap::{Args, Command, FromArgMatches};

    use super::*;

    fn parse(args: &[&str]) -> Result<ProcessArgs, clap::Error> {
        let command = ProcessArgs::augment_args(Command::new("test").no_binary_name(true));
        ProcessArgs::from_arg_matches(&command.try_get_matches_from(args)?)
    }

    #[test]
    fn flags_of_both_originals_are_taken() {
        let args = parse(&[
            "--leader-elect=false",
            "--operator-namespace=soperator-system",
            "--namespaces=a, b",
            "--max-concurrent-reconciles=2",
            "--cache-sync-timeout=1m30s",
            "--reconcile-timeout=3m",
            "--metrics-secure",
        ])
        .unwrap();
        assert!(!args.leader_elect && args.endpoints.metrics_secure);
        assert_eq!(
            (args.leader_elect_namespace.as_str(), args.namespaces.to_string()),
            ("soperator-system", "a,b".into())
        );
        let Options { concurrency, deadline, .. } = args.options();
        assert_eq!((concurrency, deadline), (2, Duration::from_secs(180)));
        assert_eq!(args.cache_sync_timeout, Duration::from_secs(90));
        assert!(parse(&["--leader-elect"]).unwrap().leader_elect);
    }

    #[test]
    fn a_wrong_time_is_refused_with_the_form() {
        for wrong in ["soon", "5", "-1m", "0s"] {
            let error = parse(&[&format!("--reconcile-timeout={wrong}")]).unwrap_err().to_string();
            assert!(error.contains("--reconcile-timeout") && error.contains("1m30s"), "{error}");
        }
    }

    #[test]
    fn a_lease_has_the_timings_of_client_go_and_can_be_switched_off() {
        let lease = parse(&["--leader-elect-namespace=ops"]).unwrap().lease("name", "me").unwrap().unwrap();
        let seconds = |time: Duration| time.as_secs();
        assert_eq!((lease.namespace.as_str(), lease.name.as_str()), ("ops", "name"));
        let times = [lease.lease_duration, lease.renew_deadline, lease.retry_period].map(seconds);
        assert_eq!(times, [15, 10, 2]);
        assert_eq!(parse(&["--leader-elect=false"]).unwrap().lease("name", "me").unwrap(), None);
        // Outside of a pod the namespace has to be given.
        let error = parse(&[]).unwrap().lease("name", "me").unwrap_err().to_string();
        assert!(error.contains("--leader-elect-namespace"), "{error}");
    }
}
