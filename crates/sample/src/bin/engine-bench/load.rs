//! Fills an API server: nodes, pods on them, Samples; and changes Samples at a steady rate.
//!
//! There is no kubelet. Pods are created as a controller would, and their status is then written as a kubelet would, so
//! that what the server sends has both managers' field lists.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use futures::{TryStreamExt, stream};
use http::{Method, Request};
use kube::{Client, Config, CustomResourceExt};
use sample::api::{Gadget, Sample};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::{BenchError, node, pod};

/// The annotation that changes carry: round, slash, number.
pub(crate) const CHANGE: &str = "bench.slipway.hpc/change";

/// Requests at a time; more do not make the server faster.
const AT_A_TIME: usize = 32;
/// Where Samples are.
const NAMESPACE: &str = "bench";

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Args {
    /// How many objects
    #[arg(long)]
    number: usize,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct SampleArgs {
    /// How many objects
    #[arg(long)]
    number: usize,
    /// Pods of each; without it no StatefulSets
    #[arg(long)]
    replicas: Option<i32>,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ChangeArgs {
    /// How many objects there are to change, one after the other
    #[arg(long)]
    number: usize,
    /// Name of this round, for those who time it
    #[arg(long)]
    round: String,
    #[arg(long)]
    per_second: u32,
    #[arg(long)]
    seconds: u32,
    /// Where to say how many changes were made in what time
    #[arg(long, value_name = "FILE")]
    report: PathBuf,
}

pub(crate) async fn nodes(args: Args, _: CancellationToken) -> Result<(), BenchError> {
    let server = Server::connect().await?;
    each(args.number, async |index| {
        server.create("/api/v1/nodes", "kubelet", &node::manifest(index)).await?;
        Ok(())
    })
    .await
}

pub(crate) async fn pods(args: Args, _: CancellationToken) -> Result<(), BenchError> {
    let server = Server::connect().await?;
    let mut owners = Vec::new();
    for index in 0..pod::NAMESPACES {
        let namespace = pod::namespace(index);
        server.namespace(&namespace).await?;
        for group in 0..pod::GROUPS {
            // Owners have to be there: pods of a missing one are garbage, and are collected.
            let owner =
                json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": pod::owner(group) } });
            let path = format!("/api/v1/namespaces/{namespace}/configmaps");
            let made = server.create(&path, "engine-bench", &owner).await?;
            owners.push(made["metadata"]["uid"].as_str().unwrap_or_default().to_owned());
        }
    }
    each(args.number, async |index| {
        let (namespace, name) = (pod::namespace(index), pod::name(index));
        let owner = &owners[(index % pod::NAMESPACES) * pod::GROUPS + pod::group(index)];
        let path = format!("/api/v1/namespaces/{namespace}/pods");
        server.create(&path, "kube-controller-manager", &pod::manifest(index, owner)).await?;
        server.merge(&format!("{path}/{name}/status"), "kubelet", &pod::status(index)).await
    })
    .await
}

pub(crate) async fn samples(args: SampleArgs, _: CancellationToken) -> Result<(), BenchError> {
    let server = Server::connect().await?;
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    for definition in [json!(Sample::crd()), json!(Gadget::crd())] {
        server.create(definitions, "engine-bench", &definition).await?;
    }
    server.namespace(NAMESPACE).await?;
    let path = format!("/apis/sample.slipway.hpc/v1/namespaces/{NAMESPACE}/samples");
    // A kind is served a moment after it is defined.
    while server.send(Method::GET, &path, None).await.is_err() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    each(args.number, async |index| {
        let sample = json!({
            "apiVersion": "sample.slipway.hpc/v1", "kind": "Sample", "metadata": { "name": sample_name(index) },
            "spec": { "message": format!("message {index}"), "extra": "more", "replicas": args.replicas },
        });
        server.create(&path, "engine-bench", &sample).await?;
        Ok(())
    })
    .await
}

/// Sends on time whether or not the last change has been answered: a slow server must not slow the load down unnoticed.
pub(crate) async fn change_samples(args: ChangeArgs, _: CancellationToken) -> Result<(), BenchError> {
    let server = Server::connect().await?;
    let mut ticks = tokio::time::interval(Duration::from_secs(1) / args.per_second);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let mut changes = JoinSet::new();
    let begin = Instant::now();
    for number in 0..args.per_second * args.seconds {
        ticks.tick().await;
        let (server, name) = (server.clone(), sample_name(number as usize % args.number));
        let change = json!({ "metadata": { "annotations": { CHANGE: format!("{}/{number}", args.round) } } });
        changes.spawn(async move {
            let path = format!("/apis/sample.slipway.hpc/v1/namespaces/{NAMESPACE}/samples/{name}");
            server.merge(&path, "engine-bench", &change).await
        });
    }
    let sent = begin.elapsed();
    let changed = changes.len();
    while let Some(answer) = changes.join_next().await {
        answer??;
    }
    let figures = json!({
        "changes": changed, "sent_seconds": sent.as_secs_f64(), "answered_seconds": begin.elapsed().as_secs_f64() });
    Ok(std::fs::write(&args.report, figures.to_string())?)
}

fn sample_name(index: usize) -> String {
    format!("sample-{index}")
}

async fn each(number: usize, make: impl AsyncFn(usize) -> Result<(), BenchError>) -> Result<(), BenchError> {
    let begin = Instant::now();
    stream::iter((0..number).map(|index| Ok(make(index))))
        .try_for_each_concurrent(AT_A_TIME, |made| made)
        .await?;
    info!(number, seconds = begin.elapsed().as_secs_f64(), "loaded");
    Ok(())
}

/// Plain JSON to and from the API server: typed objects would be decoded for nothing.
#[derive(Clone)]
struct Server(Client);

impl Server {
    async fn connect() -> Result<Self, BenchError> {
        Ok(Self(Client::try_from(Config::infer().await?)?))
    }

    /// A namespace and the account that pods need.
    async fn namespace(&self, name: &str) -> Result<(), BenchError> {
        let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
        self.create("/api/v1/namespaces", "engine-bench", &namespace).await?;
        while self
            .send(Method::GET, &format!("/api/v1/namespaces/{name}/serviceaccounts/default"), None)
            .await
            .is_err()
        {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    async fn create(&self, path: &str, manager: &str, object: &Value) -> Result<Value, BenchError> {
        Ok(self.send(Method::POST, &format!("{path}?fieldManager={manager}"), Some(object)).await?)
    }

    async fn merge(&self, path: &str, manager: &str, patch: &Value) -> Result<(), BenchError> {
        self.send(Method::PATCH, &format!("{path}?fieldManager={manager}"), Some(patch)).await?;
        Ok(())
    }

    async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, kube::Error> {
        let kind = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let request = Request::builder().method(method).uri(path).header("content-type", kind);
        let body = body.map(ToString::to_string).unwrap_or_default().into_bytes();
        let request = request.body(body).map_err(kube::Error::HttpError)?;
        self.0.request(request).await
    }
}
