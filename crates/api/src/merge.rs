//! A user's part of a pod or a Service laid over ours.
//!
//! This is Kubernetes' strategic merge, done on JSON so that fields newer than our bindings reach the pod, and with values
//! taken as written: `false`, `0` and `""` replace ours. A null and an empty list say nothing; charts write them everywhere.

use serde_json::{Map, Value};

/// What becomes of a list, told by the name of its field. A list that has no way of its own is replaced.
enum Way {
    /// Items are the same if the fields of one of these sets are; one that both have is merged.
    By(&'static [&'static [&'static str]]),
    /// The same, but the user's item stands in place of ours: its fields exclude each other.
    Instead(&'static [&'static [&'static str]]),
    /// The user's items follow ours.
    Append,
}

fn way(field: &str) -> Option<Way> {
    Some(match field {
        "containers" | "initContainers" | "imagePullSecrets" | "resourceClaims" => Way::By(&[&["name"]]),
        "env" | "volumes" => Way::Instead(&[&["name"]]),
        "volumeMounts" => Way::By(&[&["mountPath"]]),
        "volumeDevices" => Way::By(&[&["devicePath"]]),
        // Of a container, or of a Service. A name is there once: by it a user gives one of ours another number.
        "ports" => Way::By(&[&["containerPort", "port", "protocol"], &["name"]]),
        "hostAliases" => Way::By(&[&["ip"]]),
        "topologySpreadConstraints" => Way::By(&[&["topologyKey", "whenUnsatisfiable"]]),
        "args" => Way::Append,
        _ => return None,
    })
}

/// Ways to do the same thing, of which a probe or a hook has one.
const HANDLERS: &[&str] = &["exec", "grpc", "httpGet", "sleep", "tcpSocket"];

fn has_handler(field: &str) -> bool {
    matches!(field, "livenessProbe" | "readinessProbe" | "startupProbe" | "postStart" | "preStop")
}

/// Lays the fields of a container, a pod spec or a part of one over ours.
pub fn over(ours: &mut Map<String, Value>, users: &Map<String, Value>) {
    for (field, users) in users.iter().filter(|(_, value)| !value.is_null()) {
        match ours.get_mut(field) {
            Some(ours) => value_over(field, ours, users),
            None => {
                ours.insert(field.clone(), users.clone());
            }
        }
    }
}

fn value_over(field: &str, ours: &mut Value, users: &Value) {
    match (ours, users) {
        (Value::Object(ours), Value::Object(users)) => {
            if has_handler(field)
                && HANDLERS.iter().any(|name| users.get(*name).is_some_and(|it| !it.is_null()))
            {
                ours.retain(|name, _| !HANDLERS.contains(&name.as_str()));
            }
            over(ours, users);
        }
        (Value::Array(_), Value::Array(users)) if users.is_empty() => {}
        (Value::Array(ours), Value::Array(users)) => match way(field) {
            Some(Way::By(keys)) => list_over(ours, users, keys, |item, users| value_over("", item, users)),
            Some(Way::Instead(keys)) => list_over(ours, users, keys, Value::clone_from),
            Some(Way::Append) => ours.extend(users.iter().cloned()),
            None => ours.clone_from(users),
        },
        (ours, users) => ours.clone_from(users),
    }
}

fn list_over(ours: &mut Vec<Value>, users: &[Value], keys: &[&[&str]], merge: impl Fn(&mut Value, &Value)) {
    for item in users {
        match ours.iter_mut().find(|ours| keys.iter().any(|keys| same(keys, ours, item))) {
            Some(ours) => merge(ours, item),
            None => ours.push(item.clone()),
        }
    }
}

fn same(keys: &[&str], ours: &Value, users: &Value) -> bool {
    let equal = |key: &&str| {
        let default = if *key == "protocol" { "TCP".into() } else { Value::Null };
        ours.get(key).unwrap_or(&default) == users.get(key).unwrap_or(&default)
    };
    keys.iter().any(|key| users.get(key).is_some()) && keys.iter().all(equal)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[allow(clippy::needless_pass_by_value, reason = "both are written in place")]
    fn merged(mut ours: Value, users: Value) -> Value {
        value_over("", &mut ours, &users);
        ours
    }

    #[test]
    fn values_that_go_reads_as_unset_are_taken_as_written() {
        assert_eq!(
            merged(
                json!({ "securityContext": { "privileged": true, "runAsUser": 401 }, "workingDir": "/x" }),
                json!({ "securityContext": { "privileged": false, "runAsUser": 0 }, "workingDir": "" }),
            ),
            json!({ "securityContext": { "privileged": false, "runAsUser": 0 }, "workingDir": "" }),
        );
    }

    #[test]
    fn null_leaves_ours() {
        assert_eq!(
            merged(json!({ "image": "slurmd" }), json!({ "image": null })),
            json!({ "image": "slurmd" })
        );
    }

    #[test]
    fn containers_of_one_name_are_merged_and_others_added() {
        assert_eq!(
            merged(
                json!({ "containers": [{ "name": "slurmd", "image": "ours", "args": ["-D"] }] }),
                json!({ "containers": [
                    { "name": "slurmd", "args": ["-v"], "fieldOfTomorrow": 1 },
                    { "name": "sidecar", "image": "theirs" },
                ] }),
            ),
            json!({ "containers": [
                { "name": "slurmd", "image": "ours", "args": ["-D", "-v"], "fieldOfTomorrow": 1 },
                { "name": "sidecar", "image": "theirs" },
            ] }),
        );
    }

    #[test]
    fn mounts_are_told_apart_by_their_path() {
        assert_eq!(
            merged(
                json!({ "volumeMounts": [{ "name": "a", "mountPath": "/a", "readOnly": true }] }),
                json!({ "volumeMounts": [{ "name": "b", "mountPath": "/a" }, { "name": "a", "mountPath": "/b" }] }),
            ),
            json!({ "volumeMounts": [
                { "name": "b", "mountPath": "/a", "readOnly": true },
                { "name": "a", "mountPath": "/b" },
            ] }),
        );
    }

    #[test]
    fn one_port_may_be_open_for_two_protocols() {
        assert_eq!(
            merged(
                json!({ "ports": [{ "containerPort": 53, "name": "dns" }] }),
                json!({ "ports": [
                    { "containerPort": 53, "protocol": "UDP" },
                    { "containerPort": 53, "protocol": "TCP", "name": "dns-tcp" },
                ] }),
            ),
            json!({ "ports": [
                { "containerPort": 53, "protocol": "TCP", "name": "dns-tcp" },
                { "containerPort": 53, "protocol": "UDP" },
            ] }),
        );
    }

    #[test]
    fn ports_of_a_service_are_told_apart_by_their_number() {
        assert_eq!(
            merged(
                json!({ "ports": [{ "port": 6817, "name": "slurmctld" }] }),
                json!({ "ports": [{ "port": 80, "name": "http" }, { "port": 443 }, { "port": 6817, "nodePort": 30017 }] }),
            ),
            json!({ "ports": [
                { "port": 6817, "name": "slurmctld", "nodePort": 30017 },
                { "port": 80, "name": "http" },
                { "port": 443 },
            ] }),
        );
    }

    /// How a user of a LoginSet with the network of the host gives sshd another port.
    #[test]
    fn a_port_keeps_its_name_and_takes_another_number() {
        assert_eq!(
            merged(
                json!({ "ports": [{ "containerPort": 22, "name": "login", "protocol": "TCP" }] }),
                json!({ "ports": [{ "containerPort": 2222, "name": "login" }] }),
            ),
            json!({ "ports": [{ "containerPort": 2222, "name": "login", "protocol": "TCP" }] }),
        );
    }

    #[test]
    fn items_without_their_key_are_never_taken_for_the_same() {
        assert_eq!(
            merged(
                json!({ "containers": [{ "image": "a" }] }),
                json!({ "containers": [{ "image": "b" }, { "image": "c" }] })
            ),
            json!({ "containers": [{ "image": "a" }, { "image": "b" }, { "image": "c" }] }),
        );
    }

    /// Merged field by field, a variable would have a value and a source, and a volume two sources.
    #[test]
    fn variables_and_volumes_are_replaced_as_a_whole() {
        assert_eq!(
            merged(
                json!({
                    "env": [{ "name": "HOST", "valueFrom": { "fieldRef": { "fieldPath": "spec.nodeName" } } }],
                    "volumes": [{ "name": "spool", "emptyDir": {} }],
                }),
                json!({
                    "env": [{ "name": "HOST", "value": "x" }],
                    "volumes": [{ "name": "spool", "hostPath": { "path": "/spool" } }],
                }),
            ),
            json!({
                "env": [{ "name": "HOST", "value": "x" }],
                "volumes": [{ "name": "spool", "hostPath": { "path": "/spool" } }],
            }),
        );
    }

    #[test]
    fn a_probe_has_one_handler() {
        let ours = json!({ "livenessProbe": { "tcpSocket": { "port": 6817 }, "periodSeconds": 5 } });
        assert_eq!(
            merged(ours.clone(), json!({ "livenessProbe": { "exec": { "command": ["true"] } } })),
            json!({ "livenessProbe": { "exec": { "command": ["true"] }, "periodSeconds": 5 } }),
        );
        assert_eq!(
            merged(ours, json!({ "livenessProbe": { "periodSeconds": 9 } })),
            json!({ "livenessProbe": { "tcpSocket": { "port": 6817 }, "periodSeconds": 9 } }),
        );
        let ours = json!({ "livenessProbe": { "tcpSocket": { "port": 6817 } } });
        assert_eq!(merged(ours.clone(), json!({ "livenessProbe": { "exec": null } })), ours);
    }

    #[test]
    fn other_lists_are_replaced() {
        assert_eq!(
            merged(
                json!({ "command": ["a", "b"], "tolerations": [{ "key": "x" }] }),
                json!({ "command": ["c"], "tolerations": [{ "key": "y" }] })
            ),
            json!({ "command": ["c"], "tolerations": [{ "key": "y" }] }),
        );
    }

    /// Slinky's chart writes `tolerations: []` into every pod template, and its workers keep theirs.
    #[test]
    fn an_empty_list_leaves_ours() {
        let ours = json!({ "command": ["a"], "tolerations": [{ "key": "x" }], "volumes": [{ "name": "v" }] });
        let users = json!({ "command": [], "tolerations": [], "volumes": [], "hostAliases": [] });
        let mut expected = ours.clone();
        expected["hostAliases"] = json!([]);
        assert_eq!(merged(ours, users), expected);
    }
}
