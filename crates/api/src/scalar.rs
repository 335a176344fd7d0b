//! Values that users write as a number or as a string.

use std::fmt;

use schemars::json_schema;
use serde::{Deserialize, Serialize};
use serde_json::Number;

use crate::schema::inline_schema;

/// A number or a string, kept as it was written. The API server stores both forms.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum IntOrString {
    Int(Number),
    String(String),
}

/// An amount of a resource: `4`, `"500m"`, `"64Gi"`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Quantity(pub IntOrString);

/// A span of time in Go's notation: `90s`, `5m`, `1h30m`.
pub type GoDuration = String;

impl fmt::Display for IntOrString {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(number) => number.fmt(formatter),
            Self::String(text) => text.fmt(formatter),
        }
    }
}

impl From<i32> for IntOrString {
    fn from(number: i32) -> Self {
        Self::Int(number.into())
    }
}

impl From<&str> for IntOrString {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl From<&str> for Quantity {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

/// What Kubernetes accepts as a quantity, in a CRD.
const QUANTITY: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

inline_schema!(
    IntOrString,
    json_schema!({
        "anyOf": [{ "type": "integer" }, { "type": "string" }],
        "x-kubernetes-int-or-string": true,
    })
);

inline_schema!(
    Quantity,
    json_schema!({
        "anyOf": [{ "type": "integer" }, { "type": "string" }],
        "x-kubernetes-int-or-string": true,
        "pattern": QUANTITY,
    })
);

/// A span of time in Prometheus' notation: `30s`, `1h30m`, `1d`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PrometheusDuration(pub String);

impl From<&str> for PrometheusDuration {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

inline_schema!(
    PrometheusDuration,
    json_schema!({
        "type": "string",
        "pattern": "^(0|(([0-9]+)y)?(([0-9]+)w)?(([0-9]+)d)?(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?(([0-9]+)ms)?)$",
    })
);
