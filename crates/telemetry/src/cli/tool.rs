//! Starting a component that does one thing and ends: no runtime, no structured log.

use std::error::Error;
use std::process::ExitCode;

use clap::FromArgMatches;

use crate::cli::Call;
use crate::log::with_causes;

/// Runs `run(args)`. A failure is one line on standard error, with its causes, and exit code 1.
pub fn tool<A, E>(call: &Call<'_>, run: impl FnOnce(A) -> Result<(), E>) -> Result<ExitCode, clap::Error>
where
    A: FromArgMatches,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    match run(A::from_arg_matches(call.matches)?) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) => {
            complain(&format!("{} {}: {}", call.program, call.component, with_causes(error.into().as_ref())));
            Ok(ExitCode::FAILURE)
        }
    }
}

#[allow(clippy::print_stderr, reason = "a tool has no log; this is where its caller looks")]
fn complain(line: &str) {
    eprintln!("{line}");
}
