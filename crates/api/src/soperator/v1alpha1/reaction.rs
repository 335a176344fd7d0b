//! Reactions that were a switch in Soperator 1.x and say more in 5.x. Both forms are stored in clusters that were upgraded.

use schemars::{Schema, json_schema};
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::schema::inline_schema;

/// Draining a node.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum DrainSlurmNode {
    /// As Soperator 1.x wrote it.
    Switch(bool),
    /// With a reason that begins so.
    #[serde(rename_all = "camelCase")]
    With { drain_reason_prefix: Option<String> },
}

/// Commenting on a node.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum CommentSlurmNode {
    /// As Soperator 1.x wrote it.
    Switch(bool),
    /// With a comment that begins so.
    #[serde(rename_all = "camelCase")]
    With { comment_prefix: Option<String> },
}

impl DrainSlurmNode {
    /// How the reason begins, if the node is to be drained. A 1.x switch stands for the prefix that 1.x writes.
    pub fn prefix(&self) -> Option<&str> {
        match self {
            Self::Switch(false) => None,
            Self::Switch(true) => Some("[node_problem]"),
            Self::With { drain_reason_prefix } => Some(drain_reason_prefix.as_deref().unwrap_or_default()),
        }
    }
}

impl CommentSlurmNode {
    /// How the comment begins, if the node is to get one. A 1.x switch stands for the prefix that 1.x writes.
    pub fn prefix(&self) -> Option<&str> {
        match self {
            Self::Switch(false) => None,
            Self::Switch(true) => Some("[node_problem]"),
            Self::With { comment_prefix } => Some(comment_prefix.as_deref().unwrap_or_default()),
        }
    }
}

inline_schema!(
    DrainSlurmNode,
    switch_or(json_schema!({ "properties": { "drainReasonPrefix": {
            "type": "string",
            "description": "How the reason of the drain begins, for example `[node_problem]`. Default: empty.",
        } } }))
);

inline_schema!(
    CommentSlurmNode,
    switch_or(json_schema!({ "properties": { "commentPrefix": {
            "type": "string",
            "description": "How the comment begins, for example `[node_problem]`. Default: empty.",
        } } }))
);

/// A CRD cannot say "boolean or object" by types. A field without a type takes anything, and these bounds, which no string, number or
/// list can meet, leave just those two.
fn switch_or(mut object: Schema) -> Schema {
    object.insert("x-kubernetes-preserve-unknown-fields".to_owned(), true.into());
    for (bound, value) in
        [("minLength", 1), ("maxLength", 0), ("minimum", 1), ("maximum", 0), ("minItems", 1), ("maxItems", 0)]
    {
        object.insert(bound.to_owned(), value.into());
    }
    object
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Objects that 1.x stored go on to drain, or not to drain, with the reason that scripts look for.
    #[test]
    fn a_switch_means_what_it_meant() {
        for (stored, prefix) in [
            (json!(false), None),
            (json!(true), Some("[node_problem]")),
            (json!({}), Some("")),
            (json!({ "drainReasonPrefix": "[gpu]" }), Some("[gpu]")),
        ] {
            let reaction: DrainSlurmNode = serde_json::from_value(stored.clone()).unwrap();
            assert_eq!(reaction.prefix(), prefix, "{stored}");
            assert_eq!(serde_json::to_value(reaction).unwrap(), stored);
        }
    }

    #[test]
    fn a_switch_for_comments_means_what_it_meant() {
        for (stored, prefix) in [
            (json!(false), None),
            (json!(true), Some("[node_problem]")),
            (json!({}), Some("")),
            (json!({ "commentPrefix": "[slow]" }), Some("[slow]")),
        ] {
            let reaction: CommentSlurmNode = serde_json::from_value(stored.clone()).unwrap();
            assert_eq!(reaction.prefix(), prefix, "{stored}");
            assert_eq!(serde_json::to_value(reaction).unwrap(), stored);
        }
    }
}
