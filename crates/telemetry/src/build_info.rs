//! Which build this is: shown by `version`, logged at start, exported as `slipway_build_info`.

use serde::Serialize;

/// The identity of a build, as fixed when it was compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct BuildInfo {
    /// The workspace version.
    pub version: &'static str,
    /// The git revision, from `SLIPWAY_REVISION` at build time; `unknown` in a local build.
    pub revision: &'static str,
    /// The version of the compiler.
    pub rustc: &'static str,
}

pub const BUILD: BuildInfo = BuildInfo {
    version: env!("CARGO_PKG_VERSION"),
    revision: match option_env!("SLIPWAY_REVISION") {
        Some(revision) => revision,
        None => "unknown",
    },
    rustc: env!("SLIPWAY_RUSTC"),
};
