//! `sample-operator`: a process with the sample controller, for tests and benches.

use std::process::ExitCode;

use engine::process::{self, ProcessArgs, ProcessError};
use telemetry::LogDefaults;
use telemetry::cli::{Component, Program, service, service_args};
use tokio_util::sync::CancellationToken;

static PROGRAM: Program = Program {
    name: "sample-operator",
    about: "The sample controller",
    components: &[Component {
        name: "operator",
        about: "Run the operator",
        args: |command| service_args::<ProcessArgs>(command, &LogDefaults::OPERATOR),
        run: |call| service(call, &LogDefaults::OPERATOR, run),
    }],
    called_by: &[],
};

async fn run(args: ProcessArgs, shutdown: CancellationToken) -> Result<(), ProcessError> {
    process::run(&args, shutdown, |manager, identity| sample::build(manager, &args, identity)).await
}

fn main() -> ExitCode {
    PROGRAM.main()
}
