//! What a slurmrestd serves, from its own description.
//!
//! Releases differ in their API versions, and versions in their calls; plugins can be left out, too. So nothing is
//! concluded from a release's number: the list of paths decides, and what is not in it is not tried.

use std::collections::HashSet;
use std::fmt;

use http::Method;

use crate::record::{Failed, Record, fields};
use crate::scan::Fields;

/// A version of slurmrestd's API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ApiVersion(u8);

impl ApiVersion {
    pub const V0_0_41: Self = Self(41);
    pub const V0_0_42: Self = Self(42);
    pub const V0_0_43: Self = Self(43);
    pub const V0_0_44: Self = Self(44);
    pub const V0_0_45: Self = Self(45);
    const OLDEST: Self = Self::V0_0_41;
}

impl fmt::Display for ApiVersion {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "v0.0.{}", self.0)
    }
}

/// The part of slurmrestd that a call belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Family {
    Slurm,
    Slurmdb,
}

impl Family {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Slurm => "slurm",
            Self::Slurmdb => "slurmdb",
        }
    }
}

/// The calls of one version.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Served {
    pub(crate) version: ApiVersion,
    calls: HashSet<(Family, Method, Box<str>)>,
}

impl Served {
    /// The newest version that both sides know, up to `newest`.
    pub(crate) fn choose(paths: &Paths, newest: ApiVersion) -> Result<Self, String> {
        let versions: HashSet<u8> = paths.0.iter().map(|path| path.version).collect();
        let both = versions
            .iter()
            .map(|number| ApiVersion(*number))
            .filter(|version| (ApiVersion::OLDEST..=newest).contains(version));
        let Some(version) = both.max() else {
            let mut theirs: Vec<_> =
                versions.into_iter().map(|number| ApiVersion(number).to_string()).collect();
            theirs.sort_unstable();
            let oldest = ApiVersion::OLDEST;
            return Err(format!("it serves [{}], and we know {oldest} to {newest}", theirs.join(", ")));
        };
        let ours = paths.0.iter().filter(|path| ApiVersion(path.version) == version);
        let calls = ours.flat_map(|path| {
            path.methods.iter().map(|method| (path.family, method.clone(), path.rest.clone()))
        });
        Ok(Self { version, calls: calls.collect() })
    }

    /// `template` is as in the description, without slashes at its ends: `node/{node_name}`.
    pub(crate) fn has(&self, family: Family, method: &Method, template: &str) -> bool {
        self.calls.contains(&(family, method.clone(), template.into()))
    }
}

/// `paths` of the description.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Paths(Vec<Path>);

#[derive(Debug, Clone, PartialEq)]
struct Path {
    family: Family,
    version: u8,
    rest: Box<str>,
    methods: Vec<Method>,
}

impl Path {
    /// `/slurm/v0.0.45/node/{node_name}`; none if it is something else.
    fn parse(path: &str) -> Option<Self> {
        let (family, rest) = path.strip_prefix('/')?.split_once('/')?;
        let family = match family {
            "slurm" => Family::Slurm,
            "slurmdb" => Family::Slurmdb,
            _ => return None,
        };
        let (version, rest) = rest.split_once('/')?;
        let version = version.strip_prefix("v0.0.")?.parse().ok()?;
        Some(Self { family, version, rest: rest.trim_matches('/').into(), methods: Vec::new() })
    }
}

impl Record for Paths {
    fn read(text: &[u8], at: usize) -> Result<(Self, usize), Failed> {
        let mut paths = Vec::new();
        let end = fields(text, at, |key, raw| {
            // Keys come as they are written, and slurmrestd writes slashes escaped.
            let key = String::from_utf8_lossy(key).replace("\\/", "/");
            let Some(mut path) = Path::parse(&key) else { return Ok(()) };
            let Ok(mut entries) = Fields::of(raw, 0) else { return Ok(()) };
            while let Ok(Some((method, _))) = entries.step() {
                let method = method.to_ascii_uppercase();
                path.methods.extend(Method::from_bytes(&method).ok());
            }
            paths.push(path);
            Ok(())
        })?;
        Ok((Self(paths), end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(json: &str) -> Result<Served, String> {
        let (paths, end) = Paths::read(json.as_bytes(), 0).unwrap();
        assert_eq!(end, json.len());
        Served::choose(&paths, ApiVersion::V0_0_45)
    }

    #[test]
    fn the_newest_version_that_both_know_is_chosen() {
        let served = served(
            r#"{"/slurm/v0.0.42/nodes/":{"get":{"x":[]},"post":{}},"\/slurm\/v0.0.46\/nodes\/":{"get":{}},"/openapi/v3":{"get":{}},
                "/slurm/v0.0.40/jobs/":{"get":{}},"/slurmdb/v0.0.42/job/{job_id}":{"get":{}},"\/slurm\/v0.0.42\/shares":{"get":{}}}"#,
        )
        .unwrap();
        assert_eq!(served.version, ApiVersion::V0_0_42);
        assert!(
            served.has(Family::Slurm, &Method::GET, "nodes")
                && served.has(Family::Slurm, &Method::POST, "nodes")
        );
        assert!(
            served.has(Family::Slurmdb, &Method::GET, "job/{job_id}")
                && served.has(Family::Slurm, &Method::GET, "shares")
        );
        assert!(!served.has(Family::Slurm, &Method::GET, "jobs"), "only v0.0.40 has it");
        assert!(!served.has(Family::Slurmdb, &Method::GET, "nodes"));
    }

    #[test]
    fn strangers_are_told_what_both_sides_know() {
        let error =
            served(r#"{"/slurm/v0.0.39/nodes/":{"get":{}},"/slurm/v0.0.40/nodes/":{"get":{}}}"#).unwrap_err();
        assert_eq!(error, "it serves [v0.0.39, v0.0.40], and we know v0.0.41 to v0.0.45");
        assert!(served("{}").unwrap_err().contains("it serves []"));
    }
}
