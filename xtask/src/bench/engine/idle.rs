//! What an operator with nothing to do asks of the API server, counted in the audit log.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};
use kube::Api;
use kube::api::ListParams;
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::{Map, Value, json};
use testkit::pki::MASTERS;
use testkit::process::eventually;
use testkit::{ControlPlane, FakeKubelet};

use super::subject::{Start, Subject, load, no_writes};
use super::{Measured, rounded};
use crate::tell;

const OBJECTS: usize = 20;
/// Ten minutes: what the other operators were measured with.
const WINDOW: Duration = Duration::from_secs(600);
const USER: &str = "sample-operator";

pub(super) async fn measure() -> Result<Measured> {
    let plane = ControlPlane::own().await?;
    let client = plane.client("bench").await?;
    let folder = tempfile::tempdir()?;
    let folder = folder.path();
    let _kubelet = FakeKubelet::nodes("idle", 2).start(client.clone()).await?;
    let (args, kubeconfig) =
        ([format!("--number={OBJECTS}"), "--replicas=1".to_owned()], plane.kubeconfig("load", MASTERS)?);
    let program = "engine-bench";
    load(&Start { program, mode: "load-samples", args: &args, kubeconfig: &kubeconfig, folder }).await?;
    let (args, kubeconfig) =
        (["--leader-elect-namespace=bench".to_owned()], plane.kubeconfig(USER, MASTERS)?);
    let mut operator = Subject::start(&Start {
        program: USER,
        mode: "operator",
        args: &args,
        kubeconfig: &kubeconfig,
        folder,
    })?;
    operator.ready().await?;
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("sample.slipway.hpc", "v1", "Sample"));
    let objects: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    eventually("all Samples to be ready", Duration::from_secs(120), async || {
        let ready =
            objects.list(&ListParams::default()).await?.iter().filter(|sample| is_ready(sample)).count();
        Ok((ready == OBJECTS).then_some(()))
    })
    .await?;
    let calls = plane.api_calls();
    no_writes(&calls, &client, Some(USER)).await?;

    let (mark, processor) = (calls.mark(&client).await?, operator.processor_seconds()?);
    tell(&format!("idle: {OBJECTS} objects are settled, counting for {} s", WINDOW.as_secs()));
    tokio::time::sleep(WINDOW).await;
    let made = calls.since(&client, mark).await?.by(USER);
    let processor = operator.processor_seconds()? - processor;
    let rss = operator.mebibytes("VmRSS")?;
    operator.end().await?;

    ensure!(!made.of("leases").is_empty(), "an operator that does not renew its lease is not idle but gone");
    let verb = |verb: &str| made.filter(|call| call.verb == verb).len();
    let requests: BTreeMap<String, usize> = made
        .counts()
        .into_iter()
        .map(|((_, verb, resource), count)| (format!("{verb} {resource}"), count))
        .collect();
    tell(&format!("idle: {} writes, {} lists, {} watches", made.writes().len(), verb("list"), verb("watch")));
    let figures = Map::from_iter([
        ("idle_writes".to_owned(), made.writes().len().into()),
        ("idle_lists".to_owned(), verb("list").into()),
        ("idle_watches".to_owned(), verb("watch").into()),
    ]);
    let samples = json!({
        "seconds": WINDOW.as_secs(), "objects": OBJECTS, "requests": requests, "processor_seconds": rounded(processor),
        "rss_mib": rounded(rss) });
    Ok(Measured { figures, samples })
}

fn is_ready(sample: &DynamicObject) -> bool {
    let conditions = sample.data.pointer("/status/conditions").and_then(Value::as_array);
    conditions
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}
