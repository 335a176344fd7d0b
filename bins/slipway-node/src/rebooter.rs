//! `slipway-node rebooter`: for now the process without its controller. It says so in its log and is never ready,
//! so that nobody waits for a reboot that will not come.

use telemetry::cli::{Component, service, service_args};
use telemetry::health::Probe;
use telemetry::{EndpointArgs, EndpointError, Health, LogDefaults, Registry};
use tokio_util::sync::CancellationToken;
use tracing::{Level, warn};

/// The Go rebooter logs at debug unless told otherwise.
const LOG: LogDefaults = LogDefaults::OPERATOR.with_level(Level::DEBUG);

pub(crate) const COMPONENT: Component = Component {
    name: "rebooter",
    about: "Run the agent that drains and reboots its node (no controllers in this build yet)",
    args: |command| service_args::<Args>(command, &LOG),
    run: |call| service(call, &LOG, run),
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
