//! Processes that keep the objects of one kind and do nothing else.

use engine::process::{self, ProcessArgs};
use engine::views::{NodeView, PodView};
use engine::{View, Watch};
use futures::TryStreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::{WatchStreamExt, reflector, watcher};
use kube::{Api, Client, Config};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::BenchError;

pub(crate) async fn empty(args: ProcessArgs, shutdown: CancellationToken) -> Result<(), BenchError> {
    Ok(process::run(&args, shutdown, |_, _| Ok(())).await?)
}

pub(crate) async fn pods(args: ProcessArgs, shutdown: CancellationToken) -> Result<(), BenchError> {
    keep::<PodView>(args, shutdown).await
}

pub(crate) async fn nodes(args: ProcessArgs, shutdown: CancellationToken) -> Result<(), BenchError> {
    keep::<NodeView>(args, shutdown).await
}

async fn keep<V: View>(args: ProcessArgs, shutdown: CancellationToken) -> Result<(), BenchError> {
    let build = |manager: &mut engine::Manager, _: &str| {
        manager.caches().watch::<V>(Watch::default());
        Ok(())
    };
    Ok(process::run(&args, shutdown, build).await?)
}

/// The store that kube brings, as its documentation sets it up, beside a process that keeps nothing else.
pub(crate) async fn stock_pods(args: ProcessArgs, shutdown: CancellationToken) -> Result<(), BenchError> {
    let pods: Api<Pod> = Api::all(Client::try_from(Config::infer().await?)?);
    let (reader, writer) = reflector::store();
    let watching = tokio::spawn(async move {
        let stream = watcher(pods, watcher::Config::default()).default_backoff().reflect(writer);
        let end = stream.try_for_each(async |_| Ok(())).await;
        warn!(?end, "the watch ended");
    });
    tokio::spawn(async move {
        if reader.wait_until_ready().await.is_ok() {
            info!(objects = reader.len(), "in step");
        }
    });
    process::run(&args, shutdown, |_, _| Ok(())).await?;
    watching.abort();
    Ok(())
}
