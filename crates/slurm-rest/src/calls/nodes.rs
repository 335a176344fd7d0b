//! Nodes: look, drain, resume, create, delete, reboot.

use http::Method;
use serde::Serialize;
use tokio::time::Instant;

use crate::call::{Call, query, segment};
use crate::client::{Client, Listed};
use crate::error::{RestError, numbers};
use crate::record::Record;
use crate::record::node::Node;
use crate::served::ApiVersion;

const ONE: &str = "node/{node_name}";
/// Twice as many as Slurm can have.
const MOST: u64 = 1 << 17;

/// What to change of a node; what is None stays as it is.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct NodeUpdate {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<NodeAction>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extra: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub features: Option<Vec<String>>,
    #[serde(rename = "features_act", skip_serializing_if = "Option::is_none")]
    pub active_features: Option<Vec<String>>,
    /// Where in the topology: `default:switch-1`. From v0.0.43 on.
    #[serde(rename = "topology_str", skip_serializing_if = "Option::is_none")]
    pub topology: Option<String>,
}

/// What a node is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeAction {
    /// Jobs there end, no new ones start.
    Drain,
    /// The opposite; a node that is down stays down.
    Undrain,
    /// Takes jobs again, whatever kept it from that.
    Resume,
    /// At once; **its jobs are killed**.
    Down,
}

/// A list of one word.
impl Serialize for NodeAction {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let word = match self {
            Self::Drain => "DRAIN",
            Self::Undrain => "UNDRAIN",
            Self::Resume => "RESUME",
            Self::Down => "DOWN",
        };
        [word].serialize(serializer)
    }
}

impl NodeUpdate {
    fn state(action: NodeAction, reason: Option<String>) -> Self {
        Self { state: Some(action), reason, ..Self::default() }
    }

    pub fn drain(reason: impl Into<String>) -> Self {
        Self::state(NodeAction::Drain, Some(reason.into()))
    }

    #[must_use]
    pub fn undrain() -> Self {
        Self::state(NodeAction::Undrain, None)
    }

    #[must_use]
    pub fn resume() -> Self {
        Self::state(NodeAction::Resume, None)
    }

    /// **Kills the node's jobs.**
    pub fn down(reason: impl Into<String>) -> Self {
        Self::state(NodeAction::Down, Some(reason.into()))
    }
}

/// The same for many nodes in one call.
#[derive(Serialize)]
struct ManyNodes<'a> {
    /// slurmrestd takes a list and nothing else: of a text it says 200, and does nothing.
    name: &'a [&'a str],
    #[serde(flatten)]
    update: &'a NodeUpdate,
}

/// How nodes are rebooted, where the server knows how.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Reboot {
    /// A host list.
    pub nodes: String,
    /// Drains first, so that the reboot comes as soon as its jobs have ended.
    pub asap: bool,
    pub force: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub next_state: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_action: Option<String>,
}

impl Client {
    /// Every node.
    pub async fn nodes(&self) -> Result<Listed<Node>, RestError> {
        self.nodes_as().await
    }

    /// Every node, with the fields of the caller's own [`crate::record!`].
    pub async fn nodes_as<T: Record>(&self) -> Result<Listed<T>, RestError> {
        dated(self.list(&nodes("nodes", "nodes/"), |_| true).await?)
    }

    /// Every node if any has changed since `last_update` of an earlier list, else None.
    pub async fn nodes_since(&self, last_update: u64) -> Result<Option<Listed<Node>>, RestError> {
        let begin = Instant::now();
        let call = self.changed_nodes("nodes", last_update).await?;
        match self.rest_of(begin).list_if_changed(&call, |_| true).await {
            // Before 26.05.3 slurmrestd asks for changed partitions, too, and fails where only nodes have changed.
            Err(RestError::Slurm { .. }) => self.rest_of(begin).nodes().await.map(Some),
            answer => answer?.map(dated).transpose(),
        }
    }

    /// Has slurmctld count anew what jobs hold of each node. It does so before it sends all nodes and never before it sends one, which
    /// without this shows the counts of the last list, and with them a state of MIXED long after its job has ended. Nodes
    /// changed after the end of time are asked for, of which there are none, so next to nothing is sent.
    pub async fn recount_nodes(&self) -> Result<(), RestError> {
        const END_OF_TIME: u64 = 4_000_000_000;
        let begin = Instant::now();
        let call = self.changed_nodes("recount_nodes", END_OF_TIME).await?;
        self.rest_of(begin).list_if_changed::<Node>(&call, |_| false).await.map(drop)
    }

    async fn changed_nodes(&self, name: &'static str, since: u64) -> Result<Call, RestError> {
        // v0.0.41 takes a date, and this is how a number is one.
        let unix = if self.version_for(name).await? < ApiVersion::V0_0_42 { "uts" } else { "" };
        let query = query([("update_time", Some(format!("{unix}{since}")))]);
        Ok(nodes(name, format!("nodes/{query}")))
    }

    /// One node. What its jobs hold is as of the last list of anybody, or of [`Client::recount_nodes`].
    pub async fn node(&self, name: &str) -> Result<Node, RestError> {
        const NAME: &str = "node";
        let path = format!("node/{}", segment(NAME, name)?);
        let call =
            Call::read(NAME, path).template(ONE).key("nodes").about(node(name), numbers::INVALID_NODE).one();
        let listed = self.list::<Node>(&call, |_| true).await?;
        exactly(NAME, listed, |found| &*found.name == name, || node(name))
    }

    pub async fn update_node(&self, name: &str, update: &NodeUpdate) -> Result<(), RestError> {
        const NAME: &str = "update_node";
        let path = format!("node/{}", segment(NAME, name)?);
        let call =
            Call::write(NAME, Method::POST, path).template(ONE).about(node(name), numbers::INVALID_NODE);
        self.done(&call.body(update)?).await
    }

    /// Many nodes at once. Of a name that Slurm does not know it says so, and changes the others all the same.
    pub async fn update_nodes(&self, names: &[&str], update: &NodeUpdate) -> Result<(), RestError> {
        const NAME: &str = "update_nodes";
        if names.is_empty() {
            return Ok(());
        }
        for name in names {
            segment(NAME, name)?;
        }
        let what = format!("node with one of the names {}", names.join(", "));
        let call =
            Call::write(NAME, Method::POST, "nodes/").template("nodes").about(what, numbers::INVALID_NODE);
        self.done(&call.body(&ManyNodes { name: names, update })?).await
    }

    /// Forgets a dynamic node. Slurm refuses it for busy nodes and for those of slurm.conf.
    pub async fn delete_node(&self, name: &str) -> Result<(), RestError> {
        const NAME: &str = "delete_node";
        let path = format!("node/{}", segment(NAME, name)?);
        let call =
            Call::write(NAME, Method::DELETE, path).template(ONE).about(node(name), numbers::INVALID_NODE);
        self.done(&call).await
    }

    /// A node as a line of slurm.conf has it: `NodeName=… CPUs=4 State=CLOUD`. From v0.0.44 on.
    pub async fn create_node(&self, line: &str) -> Result<(), RestError> {
        let body = serde_json::json!({ "node_conf": line });
        self.done(&Call::write("create_node", Method::POST, "new/node/").template("new/node").body(&body)?)
            .await
    }

    /// Asks slurmctld to reboot nodes. No release of SchedMD serves this; some builds do.
    pub async fn reboot_nodes(&self, reboot: &Reboot) -> Result<(), RestError> {
        let call = Call::write("reboot_nodes", Method::POST, "nodes/reboot").template("nodes/reboot");
        self.done(&call.body(reboot)?).await
    }

    /// Whether [`Client::reboot_nodes`] is served; if not, `scontrol reboot` is the way.
    pub async fn serves_reboot(&self) -> Result<bool, RestError> {
        self.serves(&Call::write("reboot_nodes", Method::POST, "").template("nodes/reboot")).await
    }
}

fn nodes(name: &'static str, path: impl Into<String>) -> Call {
    Call::read(name, path).template("nodes").key("nodes").at_most(MOST)
}

/// slurmctld says when it made a list, of no nodes too. One that does not say is not its own.
fn dated<T>(listed: Listed<T>) -> Result<Listed<T>, RestError> {
    match listed.last_update {
        Some(_) => Ok(listed),
        None => Err(RestError::Garbage { call: "nodes", why: "it has no `last_update`".to_owned() }),
    }
}

fn node(name: &str) -> String {
    format!("node `{name}`")
}

/// The one thing that was asked for. None, several, or another one is no answer to the question.
pub(super) fn exactly<T>(
    call: &'static str,
    mut listed: Listed<T>,
    is_it: impl Fn(&T) -> bool,
    what: impl Fn() -> String,
) -> Result<T, RestError> {
    if let Some((_, why)) = listed.odd {
        return Err(RestError::Garbage { call, why });
    }
    match (listed.records.pop(), listed.records.is_empty()) {
        (None, _) => Err(RestError::NotFound { call, what: what() }),
        (Some(record), true) if is_it(&record) => Ok(record),
        (Some(_), _) => Err(RestError::Garbage { call, why: format!("it is not about {}", what()) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_given_is_sent() {
        let json = |update: &NodeUpdate| serde_json::to_value(update).unwrap();
        assert_eq!(
            json(&NodeUpdate::drain("maintenance")),
            serde_json::json!({"state": ["DRAIN"], "reason": "maintenance"})
        );
        assert_eq!(json(&NodeUpdate::resume()), serde_json::json!({"state": ["RESUME"]}));
        assert_eq!(
            json(&NodeUpdate { comment: Some(String::new()), ..NodeUpdate::default() }),
            serde_json::json!({"comment": ""}),
            "empty is a value"
        );
        let update = NodeUpdate { active_features: Some(vec!["a".into()]), ..NodeUpdate::default() };
        assert_eq!(json(&update), serde_json::json!({"features_act": ["a"]}));
        let many = ManyNodes { name: &["n1", "n2"], update: &NodeUpdate::undrain() };
        assert_eq!(
            serde_json::to_value(many).unwrap(),
            serde_json::json!({"name": ["n1", "n2"], "state": ["UNDRAIN"]})
        );
    }
}
