//! `slipway-node worker-handoff`: the program that slurmd runs when a node that the operator wants to renew has become
//! idle. It marks its own pod as ready to be deleted, and does nothing to a pod that nobody asked for.
//!
//! The two labels are the whole protocol: the operator writes the operation and `stopping`, this answers `ready`.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, Config};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::host;
use crate::say::say;

const OPERATION: &str = "slurm.nebius.ai/worker-operation-id";
const PHASE: &str = "slurm.nebius.ai/worker-operation-phase";
const STOPPING: &str = "stopping";
const READY: &str = "ready";

const ATTEMPTS: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// What one call of the API may take.
const DEADLINE: Duration = Duration::from_secs(10);

/// slurmd gives the programs it runs a clean environment, so nothing here is required.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name of this pod; the host name if not set
    #[arg(long, env = "K8S_POD_NAME")]
    pub pod_name: Option<String>,
    /// Namespace of this pod; that of the service account if not set
    #[arg(long, env = "K8S_POD_NAMESPACE")]
    pub pod_namespace: Option<String>,
    /// Whatever slurmd adds to the call
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub ignored: Vec<String>,
}

/// The operation that the pod is now ready for, and whether that is news.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    HandedOver { operation: String },
    AlreadyReady { operation: String },
}

pub fn run(args: Args) -> Result<()> {
    // rustls asks for one provider per process; one that is there already is the same.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let given = |value: Option<String>| value.filter(|value| !value.is_empty());
    let pod = match given(args.pod_name) {
        Some(name) => name,
        None => host::name()?,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(async {
        let config = in_cluster()?;
        let namespace = given(args.pod_namespace).unwrap_or_else(|| config.default_namespace.clone());
        hand_off(Client::try_from(config)?, &namespace, &pod).await
    })?;
    say(&match outcome {
        Outcome::HandedOver { operation } => format!("pod {pod} is ready for operation {operation}"),
        Outcome::AlreadyReady { operation } => {
            format!("pod {pod} was ready for operation {operation} before")
        }
    });
    Ok(())
}

/// The service account of the pod. The address comes from the environment, or from DNS where slurmd has removed it.
fn in_cluster() -> Result<Config> {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let has_address = is_set("KUBERNETES_SERVICE_HOST") && is_set("KUBERNETES_SERVICE_PORT");
    let config = if has_address { Config::incluster_env() } else { Config::incluster_dns() };
    let mut config = config.context("read the service account of this pod: is its token mounted?")?;
    // Attempts are counted here; those of the client would multiply them.
    config.default_retry = false;
    Ok(config)
}

/// Answers the operation that the labels of the pod ask for. Nothing is written unless both labels still are what was
/// read, and a pod that changes meanwhile is read anew.
pub async fn hand_off(client: Client, namespace: &str, pod: &str) -> Result<Outcome> {
    hand_off_with_pauses(client, namespace, pod, FIRST_PAUSE).await
}

async fn hand_off_with_pauses(
    client: Client,
    namespace: &str,
    pod: &str,
    first: Duration,
) -> Result<Outcome> {
    let pods: Api<Pod> = Api::namespaced(client, namespace);
    let (mut attempt, mut pause) = (1, first);
    loop {
        let error = match try_once(&pods, pod).await {
            Ok(outcome) => return Ok(outcome),
            Err(Failure::Final(error)) => {
                break Err(error).context(format!("hand over pod {namespace}/{pod}"));
            }
            Err(Failure::Passing(error)) => error,
        };
        if attempt == ATTEMPTS {
            break Err(error)
                .context(format!("hand over pod {namespace}/{pod}, {ATTEMPTS} attempts in vain"));
        }
        say(&format!("attempt {attempt} of {ATTEMPTS} to hand over pod {namespace}/{pod}: {error:#}"));
        sleep(pause).await;
        (attempt, pause) = (attempt + 1, pause * 2);
    }
}

async fn try_once(pods: &Api<Pod>, pod: &str) -> Result<Outcome, Failure> {
    let found = within_deadline("read the pod", pods.get_metadata(pod)).await?;
    match decide(&found.metadata.labels.unwrap_or_default()) {
        Decision::Done { operation } => Ok(Outcome::AlreadyReady { operation }),
        Decision::Refuse(why) => Err(Failure::Final(anyhow::Error::msg(why))),
        Decision::Patch { operation } => {
            let ops = patch_for(&operation);
            let patch = serde_json::from_value(ops).map_err(|error| Failure::Final(error.into()))?;
            let patch = Patch::Json::<()>(patch);
            let params =
                PatchParams { field_manager: Some("slipway-worker-handoff".into()), ..Default::default() };
            let write = pods.patch_metadata(pod, &params, &patch);
            within_deadline("mark the pod as ready", write).await?;
            Ok(Outcome::HandedOver { operation })
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Decision {
    Patch { operation: String },
    Done { operation: String },
    Refuse(String),
}

fn decide(labels: &BTreeMap<String, String>) -> Decision {
    let label = |name| labels.get(name).filter(|value| !value.is_empty());
    let Some(operation) = label(OPERATION).cloned() else {
        return Decision::Refuse(format!(
            "nothing was done: no operation asks for this pod (no label {OPERATION})"
        ));
    };
    match label(PHASE).map(String::as_str) {
        Some(STOPPING) => Decision::Patch { operation },
        Some(READY) => Decision::Done { operation },
        phase => Decision::Refuse(format!(
            "nothing was done: operation {operation} is not waiting for this pod (label {PHASE} is '{}' and not '{STOPPING}')",
            phase.unwrap_or_default()
        )),
    }
}

fn patch_for(operation: &str) -> Value {
    let path = |label: &str| format!("/metadata/labels/{}", label.replace('~', "~0").replace('/', "~1"));
    json!([
        { "op": "test", "path": path(OPERATION), "value": operation },
        { "op": "test", "path": path(PHASE), "value": STOPPING },
        { "op": "replace", "path": path(PHASE), "value": READY },
    ])
}

/// Whether the next attempt may have more luck.
#[derive(Debug)]
enum Failure {
    Passing(anyhow::Error),
    Final(anyhow::Error),
}

async fn within_deadline<T>(
    what: &'static str,
    call: impl Future<Output = kube::Result<T>>,
) -> Result<T, Failure> {
    match timeout(DEADLINE, call).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) if may_pass(&error) => Err(Failure::Passing(explain(what, error))),
        Ok(Err(error)) => Err(Failure::Final(explain(what, error))),
        Err(_) => Err(Failure::Passing(anyhow::anyhow!("{what}: no answer within {} s", DEADLINE.as_secs()))),
    }
}

/// A failed `test` of a JSON patch is a 422. Whatever did not even reach the server may reach it next time.
fn may_pass(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => matches!(status.code, 409 | 422 | 429 | 500..),
        _ => true,
    }
}

fn explain(what: &'static str, error: kube::Error) -> anyhow::Error {
    match error {
        kube::Error::Api(status) => anyhow::anyhow!("{what}: {} ({})", status.message, status.code),
        other => anyhow::Error::new(other).context(what),
    }
}

#[cfg(test)]
mod tests;
