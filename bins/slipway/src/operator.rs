//! `slipway operator`: for now the process without controllers. It says so in its log and is never ready, so that
//! nobody takes it for an operator that works.

use telemetry::cli::{Component, service, service_args};
use telemetry::health::Probe;
use telemetry::{EndpointArgs, EndpointError, Health, LogDefaults, Registry};
use tokio_util::sync::CancellationToken;
use tracing::warn;

pub(crate) const COMPONENT: Component = Component {
    name: "operator",
    about: "Run the operator (no controllers in this build yet)",
    args: |command| service_args::<Args>(command, &LogDefaults::OPERATOR),
    run: |call| service(call, &LogDefaults::OPERATOR, run),
};

#[derive(Debug, clap::Args)]
struct Args {
    #[command(flatten)]
    endpoints: EndpointArgs,
}

async fn run(args: Args, shutdown: CancellationToken) -> Result<(), EndpointError> {
    warn!("no controllers are compiled in yet: serving probes and metrics only, never ready");
    let health = Health::new();
    health.add(Probe::Readiness, "controllers", || Err("none registered".to_owned()));
    telemetry::serve(&args.endpoints, &health, &Registry::new(), &shutdown).await
}
