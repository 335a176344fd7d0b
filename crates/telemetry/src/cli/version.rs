//! `version`: which build this is, for people and for scripts.

use std::io::Write;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, Command};
use serde_json::json;

use crate::build_info::{BUILD, BuildInfo};
use crate::cli::{Call, Component};

/// The component that both programs have.
pub const VERSION: Component =
    Component { name: "version", about: "Print the version of this build", args: flags, run };

fn flags(command: Command) -> Command {
    command.arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print one JSON object"))
}

fn run(call: &Call<'_>) -> Result<ExitCode, clap::Error> {
    let text = if call.matches.get_flag("json") { as_json(call.program) } else { as_text(call.program) };
    writeln!(std::io::stdout(), "{text}").map_err(|error| clap::Error::raw(ErrorKind::Io, error))?;
    Ok(ExitCode::SUCCESS)
}

fn as_text(program: &str) -> String {
    let BuildInfo { version, revision, rustc } = BUILD;
    format!("{program} {version} (revision {revision}, rustc {rustc})")
}

fn as_json(program: &str) -> String {
    let BuildInfo { version, revision, rustc } = BUILD;
    json!({ "program": program, "version": version, "revision": revision, "rustc": rustc }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_json_name_program_and_build() {
        let text = as_text("slipway");
        assert!(text.starts_with(concat!("slipway ", env!("CARGO_PKG_VERSION"), " (revision ")), "{text}");
        let json: serde_json::Value = serde_json::from_str(&as_json("slipway")).unwrap();
        assert_eq!(json["program"], "slipway");
        assert_eq!(json["version"], env!("CARGO_PKG_VERSION"));
        assert!(json["rustc"].as_str().unwrap().starts_with("1."), "{json}");
    }
}
