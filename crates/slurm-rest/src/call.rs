//! One call as data: what is asked, how its answer is read, and whether it may be asked twice.

use std::fmt::Write;

use http::Method;
use hyper::body::Bytes;
use serde::Serialize;

use crate::error::RestError;
use crate::served::Family;

/// Whether a lost answer allows to ask again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Safety {
    Read,
    Write,
}

/// Where a description has its calls.
const DESCRIPTION: &str = "paths";

#[derive(Debug, Clone)]
pub(crate) struct Call {
    /// In errors and metrics.
    pub(crate) name: &'static str,
    pub(crate) family: Family,
    pub(crate) method: Method,
    pub(crate) safety: Safety,
    /// The path as slurmrestd describes it, without slashes at its ends.
    pub(crate) template: &'static str,
    /// The path behind the version, with its query.
    pub(crate) path: String,
    pub(crate) body: Option<Bytes>,
    /// Where the answer has what was asked for; empty: nowhere.
    pub(crate) key: &'static str,
    /// The object in the answer that has that key, if it is not the answer itself.
    pub(crate) outer: Option<&'static str>,
    /// More records than this are none of Slurm's.
    pub(crate) most: u64,
    /// What it is about, for "Slurm knows no …", and the number by which Slurm says so.
    pub(crate) what: Option<String>,
    pub(crate) missing: Option<i64>,
    /// One thing is asked for by its name.
    pub(crate) one: bool,
}

impl Call {
    /// A list.
    pub(crate) fn read(name: &'static str, path: impl Into<String>) -> Self {
        Self {
            name,
            family: Family::Slurm,
            method: Method::GET,
            safety: Safety::Read,
            template: "",
            path: path.into(),
            body: None,
            key: "",
            outer: None,
            most: u64::MAX,
            what: None,
            missing: None,
            one: false,
        }
    }

    /// What the server says that it serves, asked on behalf of another call.
    pub(crate) fn description(name: &'static str) -> Self {
        Self::read(name, "").key(DESCRIPTION)
    }

    pub(crate) fn is_description(&self) -> bool {
        self.key == DESCRIPTION
    }

    /// A call that changes something.
    pub(crate) fn write(name: &'static str, method: Method, path: impl Into<String>) -> Self {
        Self { method, safety: Safety::Write, ..Self::read(name, path) }
    }

    pub(crate) fn template(self, template: &'static str) -> Self {
        Self { template, ..self }
    }

    pub(crate) fn key(self, key: &'static str) -> Self {
        Self { key, ..self }
    }

    pub(crate) fn at_most(self, most: u64) -> Self {
        Self { most, ..self }
    }

    pub(crate) fn within(self, outer: &'static str) -> Self {
        Self { outer: Some(outer), ..self }
    }

    pub(crate) fn slurmdb(self) -> Self {
        Self { family: Family::Slurmdb, ..self }
    }

    /// It is about this thing, and this number says that there is none.
    pub(crate) fn about(self, what: String, missing: i64) -> Self {
        Self { what: Some(what), missing: Some(missing), ..self }
    }

    pub(crate) fn one(self) -> Self {
        Self { one: true, ..self }
    }

    pub(crate) fn body(self, body: &impl Serialize) -> Result<Self, RestError> {
        let bytes = serde_json::to_vec(body)
            .map_err(|error| RestError::Invalid { call: self.name, why: error.to_string() })?;
        Ok(Self { body: Some(bytes.into()), ..self })
    }
}

/// A name as a segment of a path. Empty names and those with control characters would mean another path, or none.
pub(crate) fn segment(call: &'static str, name: &str) -> Result<String, RestError> {
    if name.is_empty() || name.chars().any(char::is_control) || name == "." || name == ".." {
        return Err(RestError::Invalid { call, why: format!("{name:?} is no name") });
    }
    Ok(escape(name))
}

/// A query, from those of its parts that are given.
pub(crate) fn query<'a>(parts: impl IntoIterator<Item = (&'a str, Option<String>)>) -> String {
    let mut text = String::new();
    for (name, value) in parts {
        if let Some(value) = value {
            let before = if text.is_empty() { '?' } else { '&' };
            let _ = write!(text, "{before}{name}={}", escape(&value));
        }
    }
    text
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                escaped.push(char::from(byte));
            }
            _ => {
                let _ = write!(escaped, "%{byte:02X}");
            }
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_one_segment() {
        assert_eq!(segment("node", "gpu-0").unwrap(), "gpu-0");
        assert_eq!(segment("node", "a/b?c#d e%é").unwrap(), "a%2Fb%3Fc%23d%20e%25%C3%A9");
        for wrong in ["", ".", "..", "a\nb"] {
            assert!(matches!(segment("node", wrong), Err(RestError::Invalid { .. })), "{wrong:?}");
        }
    }

    #[test]
    fn only_what_is_given_is_in_a_query() {
        assert_eq!(
            query([("a", None), ("b", Some("1&2".to_owned())), ("c", Some("3".to_owned()))]),
            "?b=1%262&c=3"
        );
        assert_eq!(query([("a", None)]), "");
    }
}
