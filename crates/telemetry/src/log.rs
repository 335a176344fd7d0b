//! Log settings: where they come from, and the one call that puts them into force.
//!
//! Names of levels, formats and variables are those of the Go operators, so that their charts keep working. Which
//! setting wins is decided by [`LogArgs::resolve`], a pure function; [`init`] is the only effect.

mod json;

use std::panic::PanicHookInfo;

use clap::Command;
use tracing::{Level, Subscriber, warn};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;

use json::JsonLayer;
pub(crate) use json::with_causes;

/// The log flags of a program. They are texts, since the environment gives texts too and both are read by one rule.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct LogArgs {
    /// Format of log lines: json or plain
    #[arg(long, value_name = "FORMAT")]
    pub log_format: Option<String>,
    /// Least severe level to log
    #[arg(long, value_name = "LEVEL")]
    pub log_level: Option<String>,
}

/// What a program does when nobody says otherwise, and the variables it listens to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogDefaults {
    pub format_env: &'static str,
    pub level_env: &'static str,
    pub format: LogFormat,
    pub level: Level,
}

impl LogDefaults {
    /// The operator and most programs: JSON, info. The exporter has variables of its own.
    pub const OPERATOR: Self = Self {
        format_env: "SLURM_OPERATOR_LOG_FORMAT",
        level_env: "SLURM_OPERATOR_LOG_LEVEL",
        format: LogFormat::Json,
        level: Level::INFO,
    };

    /// The same, with another level: checks, rebooter and exporter say more.
    #[must_use]
    pub const fn with_level(self, level: Level) -> Self {
        Self { level, ..self }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    Json,
    Plain,
}

impl LogFormat {
    const fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Plain => "plain",
        }
    }
}

/// What [`init`] puts into force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSettings {
    pub format: LogFormat,
    pub level: Level,
    /// A level nobody knows, for which info was taken. `init` says so.
    pub unknown_level: Option<String>,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    #[error("unknown log format '{value}' in {origin}: choose json or plain")]
    UnknownFormat { value: String, origin: &'static str },
    #[error("logging is already set up in this process")]
    AlreadyInitialised,
}

impl LogArgs {
    /// Adds the log flags to a command, with the defaults of this program in their help.
    #[must_use]
    pub fn augment(command: Command, defaults: &LogDefaults) -> Command {
        let format_help = format!(
            "Format of log lines: json or plain [env: {}] [default: {}]",
            defaults.format_env,
            defaults.format.name()
        );
        let level_help = format!(
            "Least severe level to log: trace, debug, info, warn, error, dpanic, panic or fatal [env: {}] [default: {}]",
            defaults.level_env,
            level_name(defaults.level)
        );
        <Self as clap::Args>::augment_args(command)
            .mut_arg("log_format", |arg| arg.help(format_help))
            .mut_arg("log_level", |arg| arg.help(level_help))
    }

    /// A flag beats the environment, which beats the defaults. An empty text counts as not given: that is what a
    /// chart renders from an empty value.
    pub fn resolve(
        &self,
        env: impl Fn(&str) -> Option<String>,
        defaults: &LogDefaults,
    ) -> Result<LogSettings, LogError> {
        let given = |flag: &Option<String>, flag_name, env_name| {
            let nonempty = |text: &String| !text.is_empty();
            let from_flag = flag.clone().filter(nonempty).map(|text| (text, flag_name));
            from_flag.or_else(|| env(env_name).filter(nonempty).map(|text| (text, env_name)))
        };
        let format = match given(&self.log_format, "--log-format", defaults.format_env) {
            None => defaults.format,
            Some((text, origin)) => match text.to_ascii_lowercase().as_str() {
                "json" => LogFormat::Json,
                // Other operators call it text.
                "plain" | "text" => LogFormat::Plain,
                _ => return Err(LogError::UnknownFormat { value: text, origin }),
            },
        };
        let (level, unknown_level) = match given(&self.log_level, "--log-level", defaults.level_env) {
            None => (defaults.level, None),
            Some((text, _)) => match parse_level(&text) {
                Some(level) => (level, None),
                None => (Level::INFO, Some(text)),
            },
        };
        Ok(LogSettings { format, level, unknown_level })
    }
}

/// zap's levels above error do not exist here, and hiding errors helps nobody: they all mean error.
fn parse_level(text: &str) -> Option<Level> {
    Some(match text.to_ascii_lowercase().as_str() {
        "trace" => Level::TRACE,
        "debug" => Level::DEBUG,
        "info" => Level::INFO,
        "warn" => Level::WARN,
        "error" | "dpanic" | "panic" | "fatal" => Level::ERROR,
        _ => return None,
    })
}

pub(crate) fn level_name(level: Level) -> &'static str {
    match level {
        Level::TRACE => "trace",
        Level::DEBUG => "debug",
        Level::INFO => "info",
        Level::WARN => "warn",
        Level::ERROR => "error",
    }
}

/// Sends the logs of this process to stderr. May be called once.
pub fn init(settings: &LogSettings) -> Result<(), LogError> {
    tracing::subscriber::set_global_default(subscriber(settings, std::io::stderr))
        .map_err(|_| LogError::AlreadyInitialised)?;
    std::panic::set_hook(Box::new(log_panic));
    if let Some(unknown) = &settings.unknown_level {
        warn!(given = %unknown, "unknown log level, using info");
    }
    Ok(())
}

/// The default hook writes several bare lines, which a collector of JSON lines cannot read.
fn log_panic(panic: &PanicHookInfo<'_>) {
    tracing::error!(
        reason = panic.payload_as_str().unwrap_or("unknown"),
        location = panic.location().map(ToString::to_string),
        thread = std::thread::current().name(),
        backtrace = %std::backtrace::Backtrace::capture(),
        "panicked"
    );
}

/// Libraries that describe every connection at debug. `trace` shows them too.
const TALKATIVE: [&str; 4] = ["h2", "hyper", "hyper_util", "tower"];

fn subscriber<W>(settings: &LogSettings, writer: W) -> Box<dyn Subscriber + Send + Sync>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let mut filter = Targets::new().with_default(settings.level);
    if settings.level == Level::DEBUG {
        filter = filter.with_targets(TALKATIVE.map(|target| (target, LevelFilter::INFO)));
    }
    let registry = tracing_subscriber::registry().with(filter);
    match settings.format {
        LogFormat::Json => Box::new(registry.with(JsonLayer::new(writer))),
        LogFormat::Plain => {
            Box::new(registry.with(tracing_subscriber::fmt::layer().with_ansi(false).with_writer(writer)))
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
