//! Rules in CEL that the API server checks when an object is written.

use serde::Serialize;
use serde_with::skip_serializing_none;

/// One rule. The message names the field and the fix: it is all that `kubectl apply` shows.
#[skip_serializing_none]
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Rule {
    rule: &'static str,
    message: &'static str,
    field_path: Option<&'static str>,
}

pub(crate) const fn rule(rule: &'static str, message: &'static str) -> Rule {
    Rule { rule, message, field_path: None }
}

impl Rule {
    /// The field that the API server names in its answer, relative to where the rule stands.
    pub(crate) const fn at(self, field_path: &'static str) -> Self {
        Self { field_path: Some(field_path), ..self }
    }
}
