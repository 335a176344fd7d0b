//! What a controller may do to the API server, declared where its watches are; ClusterRoles and Roles are made from it.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::views::Kind;

/// One resource and what is done to it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Access {
    pub group: &'static str,
    /// With a subresource: `pods/status`.
    pub resource: String,
    pub verb: &'static str,
    /// Of namespaced resources Roles suffice where namespaces are given.
    pub namespaced: bool,
}

impl Access {
    #[must_use]
    pub fn to(kind: Kind, verbs: &[&'static str]) -> Vec<Self> {
        Self::sub(kind, "", verbs)
    }

    #[must_use]
    pub fn sub(kind: Kind, subresource: &str, verbs: &[&'static str]) -> Vec<Self> {
        let resource = if subresource.is_empty() {
            kind.plural.to_owned()
        } else {
            format!("{}/{subresource}", kind.plural)
        };
        let one = |verb: &&'static str| Self {
            group: kind.group,
            resource: resource.clone(),
            verb,
            namespaced: kind.namespaced,
        };
        verbs.iter().map(one).collect()
    }
}

/// The rules of a Role: resources of a group with the same verbs stand together.
#[must_use]
pub fn rules<'a>(access: impl IntoIterator<Item = &'a Access>) -> Vec<Value> {
    let mut verbs: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    for Access { group, resource, verb, .. } in access {
        verbs.entry((group, resource)).or_default().insert(verb);
    }
    let mut together: BTreeMap<(&str, BTreeSet<&str>), Vec<&str>> = BTreeMap::new();
    for ((group, resource), verbs) in verbs {
        together.entry((group, verbs)).or_default().push(resource);
    }
    let rule =
        |((group, verbs), resources)| json!({ "apiGroups": [group], "resources": resources, "verbs": verbs });
    together.into_iter().map(rule).collect()
}

/// A ClusterRole for all namespaces.
#[must_use]
pub fn cluster_role(name: &str, access: &[Access]) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": { "name": name }, "rules": rules(access),
    })
}

/// A Role for each namespace that is given: what is namespaced, and no more.
#[must_use]
pub fn role(name: &str, namespace: &str, access: &[Access]) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": { "name": name, "namespace": namespace },
        "rules": rules(access.iter().filter(|access| access.namespaced)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PODS: Kind = Kind::namespaced("", "v1", "Pod", "pods");
    const SECRETS: Kind = Kind::namespaced("", "v1", "Secret", "secrets");
    const NODES: Kind = Kind::cluster("", "v1", "Node", "nodes");

    #[test]
    fn resources_with_the_same_verbs_stand_in_one_rule() {
        let access = [
            Access::to(PODS, &["list", "watch"]),
            Access::to(SECRETS, &["watch"]),
            Access::to(SECRETS, &["list"]),
            Access::sub(PODS, "status", &["patch"]),
        ];
        assert_eq!(
            rules(&access.concat()),
            [
                json!({ "apiGroups": [""], "resources": ["pods", "secrets"], "verbs": ["list", "watch"] }),
                json!({ "apiGroups": [""], "resources": ["pods/status"], "verbs": ["patch"] }),
            ]
        );
    }

    #[test]
    fn a_role_leaves_out_what_is_not_namespaced() {
        let access = [Access::to(PODS, &["get"]), Access::to(NODES, &["get"])].concat();
        assert_eq!(role("r", "a", &access)["rules"][0]["resources"], json!(["pods"]));
        assert_eq!(cluster_role("r", &access)["rules"][0]["resources"], json!(["nodes", "pods"]));
    }
}
