//! The control plane of the testbed on the real thing: what other crates' tests lean on is proved here first.

#[path = "api/admission.rs"]
mod admission;
#[path = "api/audit.rs"]
mod audit;
#[path = "api/conflicts.rs"]
mod conflicts;
#[path = "api/faults.rs"]
mod faults;
#[path = "api/life_and_death.rs"]
mod life_and_death;
#[path = "api/pods.rs"]
mod pods;
#[path = "api/servers.rs"]
mod servers;
#[path = "api/watches.rs"]
mod watches;
#[path = "api/workloads.rs"]
mod workloads;

use std::fmt::Debug;
use std::time::Duration;

use anyhow::{Result, bail};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{ObjectMeta, PostParams};
use kube::core::Status;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// For waits that take a second at most on a quiet machine.
const PATIENCE: Duration = Duration::from_secs(30);

fn config_map(name: &str) -> ConfigMap {
    config_map_with(name, [])
}

fn config_map_with<const N: usize>(name: &str, data: [(&str, &str); N]) -> ConfigMap {
    let data = data.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    ConfigMap { metadata, data: Some(data), ..ConfigMap::default() }
}

/// Creates an object from JSON.
async fn create<K>(api: &Api<K>, object: Value) -> Result<K>
where
    K: Clone + Debug + DeserializeOwned + Serialize,
{
    Ok(api.create(&PostParams::default(), &serde_json::from_value(object)?).await?)
}

/// Asks whether a request would pass, and leaves nothing behind if it does.
fn dry_run() -> PostParams {
    PostParams { dry_run: true, ..PostParams::default() }
}

/// What the server said no with.
fn refusal<T: Debug>(answer: kube::Result<T>) -> Result<Status> {
    match answer {
        Err(kube::Error::Api(status)) => Ok(*status),
        Err(error) => Err(error.into()),
        Ok(accepted) => bail!("accepted: {accepted:?}"),
    }
}
