//! What is done about the nodes of a check. Two reactions were a switch in Soperator 1.x and say more in 5.x; both forms are stored in
//! clusters that were upgraded.

use schemars::{JsonSchema, Schema, json_schema};
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::schema::inline_schema;

/// What is done about the nodes of a job.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Reactions {
    /// The node is reserved, so that no other job starts on it. From Soperator 1.x.
    pub add_reservation: Option<Reservation>,
    /// The node gets a comment: `true` as in Soperator 1.x, or with how the comment begins.
    pub comment_slurm_node: Option<CommentSlurmNode>,
    /// The node is drained, so that it takes no new jobs: `true` as in Soperator 1.x, or with how the reason begins.
    pub drain_slurm_node: Option<DrainSlurmNode>,
    /// A reservation that `addReservation` made is removed. From Soperator 1.x.
    pub remove_reservation: Option<Reservation>,
    /// Whether a node that `drainSlurmNode: true` drains counts as suspect: the reason begins with `[node_problem]` then, by which other
    /// controllers know it. From Soperator 1.x. Default: `false`.
    pub set_condition: Option<bool>,
}

impl Reactions {
    /// How the reason begins with which a node is drained, if it is to be drained.
    pub fn drain_reason_prefix(&self) -> Option<&str> {
        match self.drain_slurm_node.as_ref()? {
            DrainSlurmNode::Switch(false) => None,
            DrainSlurmNode::Switch(true) if self.set_condition == Some(true) => Some(NODE_PROBLEM),
            DrainSlurmNode::Switch(true) => Some("Soperator activecheck unknown:"),
            DrainSlurmNode::With { drain_reason_prefix } => non_empty(drain_reason_prefix.as_deref()),
        }
    }

    /// How the comment begins that a node gets, if it is to get one.
    pub fn comment_prefix(&self) -> Option<&str> {
        match self.comment_slurm_node.as_ref()? {
            CommentSlurmNode::Switch(false) => None,
            CommentSlurmNode::Switch(true) => Some(NODE_PROBLEM),
            CommentSlurmNode::With { comment_prefix } => non_empty(comment_prefix.as_deref()),
        }
    }
}

/// What 1.x begins with, where 5.x lets the user choose.
const NODE_PROBLEM: &str = "[node_problem]";

/// Without a prefix 5.x does nothing.
fn non_empty(prefix: Option<&str>) -> Option<&str> {
    prefix.filter(|prefix| !prefix.is_empty())
}

/// A reservation of one node.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Reservation {
    /// The reservation's name is `<prefix>-<node>`.
    pub prefix: Option<String>,
}

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

inline_schema!(
    DrainSlurmNode,
    switch_or(json_schema!({ "properties": { "drainReasonPrefix": {
            "type": "string",
            "description": "How the reason of the drain begins, for example `[node_problem]`. Without it the node is not drained.",
        } } }))
);

inline_schema!(
    CommentSlurmNode,
    switch_or(json_schema!({ "properties": { "commentPrefix": {
            "type": "string",
            "description": "How the comment begins, for example `[node_problem]`. Without it there is no comment.",
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

    /// Objects that 1.x stored go on to drain, or not to drain, with the reasons that programs look for; those of 5.x too.
    #[test]
    fn reactions_mean_what_they_meant() {
        for (stored, drain, comment) in [
            (json!({}), None, None),
            (json!({ "drainSlurmNode": false, "commentSlurmNode": false }), None, None),
            (json!({ "drainSlurmNode": true }), Some("Soperator activecheck unknown:"), None),
            (json!({ "drainSlurmNode": true, "setCondition": true }), Some("[node_problem]"), None),
            (json!({ "commentSlurmNode": true }), None, Some("[node_problem]")),
            (json!({ "drainSlurmNode": {}, "commentSlurmNode": {} }), None, None),
            (
                json!({ "drainSlurmNode": { "drainReasonPrefix": "" }, "commentSlurmNode": { "commentPrefix": "" } }),
                None,
                None,
            ),
            (
                json!({
                    "drainSlurmNode": { "drainReasonPrefix": "[gpu]" },
                    "commentSlurmNode": { "commentPrefix": "[slow]" },
                }),
                Some("[gpu]"),
                Some("[slow]"),
            ),
        ] {
            let reactions: Reactions = serde_json::from_value(stored.clone()).unwrap();
            assert_eq!(
                (reactions.drain_reason_prefix(), reactions.comment_prefix()),
                (drain, comment),
                "{stored}"
            );
            assert_eq!(serde_json::to_value(reactions).unwrap(), stored);
        }
    }
}
