//! Starting a component that runs until it is told to stop: logging, runtime, signals, exit code.

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{Command, FromArgMatches};
use tokio_util::sync::CancellationToken;
use tracing::{error, info};

use crate::build_info::BUILD;
use crate::cli::Call;
use crate::log::{self, LogArgs, LogDefaults, LogError, with_causes};
use crate::shutdown::shutdown_signal;

/// Two are enough for work that waits on the network. tokio's default is one per core, and on a GPU node with 128
/// cores each of them costs memory.
const WORKER_THREADS: usize = 2;

/// What a blocking call may still take after the component has ended.
const LAST_CALLS: Duration = Duration::from_secs(1);

/// The flags of a service: those of the component, and the log flags, which components never see.
#[must_use]
pub fn service_args<A: clap::Args>(command: Command, log: &LogDefaults) -> Command {
    LogArgs::augment(A::augment_args(command), log)
}

/// Runs `run(args, shutdown)` to its end. An error that comes before there is a log is one of the command line.
pub fn service<A, E, F>(
    call: &Call<'_>,
    defaults: &LogDefaults,
    run: impl FnOnce(A, CancellationToken) -> F,
) -> Result<ExitCode, clap::Error>
where
    A: FromArgMatches,
    E: Error + Send + Sync + 'static,
    F: Future<Output = Result<(), E>>,
{
    let args = A::from_arg_matches(call.matches)?;
    let settings = LogArgs::from_arg_matches(call.matches)?
        .resolve(|name| std::env::var(name).ok(), defaults)
        .map_err(|error| usage_error(&error))?;
    log::init(&settings).map_err(|error| usage_error(&error))?;
    info!(
        component = call.component,
        version = BUILD.version,
        revision = BUILD.revision,
        rustc = BUILD.rustc,
        "starting"
    );
    match block_on(args, run) {
        Ok(()) => {
            info!(component = call.component, "stopped");
            Ok(ExitCode::SUCCESS)
        }
        Err(failure) => {
            error!(component = call.component, error = with_causes(failure.as_ref()), "failed");
            Ok(ExitCode::FAILURE)
        }
    }
}

fn block_on<A, E, F>(
    args: A,
    run: impl FnOnce(A, CancellationToken) -> F,
) -> Result<(), Box<dyn Error + Send + Sync>>
where
    E: Error + Send + Sync + 'static,
    F: Future<Output = Result<(), E>>,
{
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(WORKER_THREADS).enable_all().build()?;
    let outcome = runtime.block_on(async { Ok(run(args, shutdown_signal()?).await?) });
    // Dropping the runtime would wait for blocking calls without an end.
    runtime.shutdown_timeout(LAST_CALLS);
    outcome
}

fn usage_error(error: &LogError) -> clap::Error {
    clap::Error::raw(ErrorKind::InvalidValue, format_args!("{error}\n"))
}
