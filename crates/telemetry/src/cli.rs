//! The outer layer of the command line: which component of a multi-call program is meant, and starting it.
//!
//! A program is a table of components. A component is chosen by subcommand, or by the name the program is called
//! by, so that images can carry links with the names that charts of the Go operators use.

pub mod go_flags;
mod service;
mod tool;
mod version;

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{ArgMatches, Command};

use crate::build_info::BUILD;

pub use service::{service, service_args};
pub use tool::tool;
pub use version::VERSION;

/// One executable and the components in it.
#[derive(Debug)]
pub struct Program {
    pub name: &'static str,
    pub about: &'static str,
    /// What exists in this build, and nothing else.
    pub components: &'static [Component],
    /// Names under which charts call this program, each with the component they mean. A component may be missing
    /// from the build: the call is then refused by name, and not answered with the help of another program.
    pub called_by: &'static [(&'static str, &'static str)],
}

/// One entry of the table.
#[derive(Debug, Clone, Copy)]
pub struct Component {
    pub name: &'static str,
    pub about: &'static str,
    /// Adds the component's flags.
    pub args: fn(Command) -> Command,
    pub run: fn(&Call<'_>) -> Result<ExitCode, clap::Error>,
}

/// What a component is started with.
#[derive(Debug)]
pub struct Call<'a> {
    pub program: &'static str,
    pub component: &'static str,
    pub matches: &'a ArgMatches,
}

impl Program {
    /// The whole of a `main`: reads the command line, runs what it asks for, and answers how that went.
    pub fn main(&self) -> ExitCode {
        let outcome = self.parse(std::env::args_os().collect()).and_then(|(component, matches)| {
            (component.run)(&Call { program: self.name, component: component.name, matches: &matches })
        });
        outcome.unwrap_or_else(|error| {
            // Help and version are "errors" too, with code 0 and written to stdout. If not even that can be
            // written, the code is all that is left to say.
            let _ = error.print();
            u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from)
        })
    }

    /// Finds the component that the arguments mean, and its flags.
    fn parse(&self, args: Vec<OsString>) -> Result<(&'static Component, ArgMatches), clap::Error> {
        let called = args.first().map(Path::new).and_then(Path::file_name);
        let peer = self.called_by.iter().find(|(name, _)| called == Some(OsStr::new(name)));
        if let Some((name, wanted)) = peer {
            let Some(component) = self.component(wanted) else { return Err(self.not_built(name, wanted)) };
            let matches = parse_with(component.command().name(*name), args)?;
            return Ok((component, matches));
        }
        let matches = parse_with(self.command(), args)?;
        match matches.subcommand().and_then(|(name, of_it)| Some((self.component(name)?, of_it.clone()))) {
            Some(found) => Ok(found),
            // Not reached: clap has required one of these subcommands.
            None => Err(self.command().error(ErrorKind::MissingSubcommand, "a subcommand is required")),
        }
    }

    fn component(&self, name: &str) -> Option<&'static Component> {
        self.components.iter().find(|component| component.name == name)
    }

    fn command(&self) -> Command {
        Command::new(self.name)
            .about(self.about)
            .version(BUILD.version)
            .subcommand_required(true)
            .arg_required_else_help(true)
            .subcommands(self.components.iter().map(Component::command))
    }

    fn not_built(&self, called: &str, wanted: &str) -> clap::Error {
        let available: Vec<_> = self.components.iter().map(|component| component.name).collect();
        let message = format!(
            "called as '{called}', but this build of {} has no component '{wanted}'; it has: {}",
            self.name,
            available.join(", ")
        );
        self.command().error(ErrorKind::InvalidSubcommand, message)
    }
}

impl Component {
    fn command(&self) -> Command {
        // The table speaks last: clap takes the doc comment of an `Args` type for the description of the program.
        let command = (self.args)(Command::new(self.name)).about(self.about).long_about(None);
        // Go takes the last of a repeated flag, and charts append flags to their own.
        command.version(BUILD.version).args_override_self(true)
    }
}

fn parse_with(mut command: Command, args: Vec<OsString>) -> Result<ArgMatches, clap::Error> {
    command.build();
    let args = go_flags::normalise(&command, args);
    command.try_get_matches_from_mut(args)
}

#[cfg(test)]
mod tests;
