//! Whatever the CRDs accept our types can decode, and nothing that was written is lost.

use anyhow::Result;
use api::slinky::v1beta1 as slinky;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use proptest::prop_assert;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use serde::Deserialize;
use serde_json::{Value, json};
use testkit::ControlPlane;

use crate::server::{create, install, sample};
use crate::{arbitrary, kinds};

fn schema_of(crd: &Value) -> &Value {
    &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
}

/// What is in `written` and not in `read`. What `read` has beside it are defaults.
fn lost(written: &Value, read: &Value, path: &str, found: &mut Vec<String>) {
    match (written, read) {
        (Value::Object(written), Value::Object(read)) => {
            for (name, value) in written {
                lost(value, read.get(name).unwrap_or(&Value::Null), &format!("{path}.{name}"), found);
            }
        }
        (Value::Array(written), Value::Array(read)) if written.len() == read.len() => {
            for (written, read) in written.iter().zip(read) {
                lost(written, read, &format!("{path}[]"), found);
            }
        }
        _ if written == read || same_second(written, read) => {}
        _ => found.push(format!("{path}: {written} became {read}")),
    }
}

/// Kubernetes' own type for a point in time counts seconds, in UTC.
fn same_second(written: &Value, read: &Value) -> bool {
    let second = |value| Time::deserialize(value).ok().and_then(|time| serde_json::to_value(time).ok());
    second(written).is_some_and(|written| second(read) == Some(written))
}

#[test]
fn whatever_the_schema_accepts_is_decoded_and_encoded_without_loss() {
    for (crd, kind) in api::crds().iter().zip(kinds::all()) {
        assert_eq!(crd["spec"]["names"]["kind"], kind.kind.as_str());
        let version = crd["spec"]["versions"][0]["name"].as_str().unwrap();
        let schema = schema_of(crd);
        let object = (arbitrary::value(&schema["spec"]), arbitrary::value(&schema["status"]));
        let mut runner = TestRunner::new(Config {
            cases: 200,
            max_shrink_iters: 200,
            failure_persistence: None,
            ..Config::default()
        });
        let checked = runner.run(&object, |(spec, status)| {
            let object = json!({
                "apiVersion": format!("{}/{version}", kind.group), "kind": kind.kind,
                "metadata": { "name": "x" }, "spec": spec, "status": status,
            });
            let encoded = (kind.round_trip)(object.clone())
                .map_err(|error| TestCaseError::fail(format!("{error}: {object}")))?;
            let mut found = Vec::new();
            lost(&object, &encoded, "", &mut found);
            prop_assert!(found.is_empty(), "{found:?}");
            Ok(())
        });
        if let Err(error) = checked {
            panic!("{} {}: {error}", kind.group, kind.kind);
        }
    }
}

/// Whether all of `part` is in `whole`: fields by their names, items of a list anywhere in it.
fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => part
            .iter()
            .all(|(name, part)| part.is_null() || whole.get(name).is_some_and(|whole| contains(whole, part))),
        (Value::Array(whole), Value::Array(part)) => {
            part.iter().all(|part| whole.iter().any(|whole| contains(whole, part)))
        }
        _ => whole == part,
    }
}

/// A pod is made of what we generate with the user's part laid over it.
#[test]
fn nothing_of_a_users_container_is_lost_by_decode_merge_and_encode() {
    let ours = json!({
        "name": "slurmd", "image": "slurmd:26.05", "args": ["-D"],
        "env": [{ "name": "POD_NAME", "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } }],
        "livenessProbe": { "exec": { "command": ["scontrol", "ping"] }, "periodSeconds": 10 },
        "ports": [{ "containerPort": 6818, "name": "slurmd" }],
        "securityContext": { "privileged": true, "capabilities": { "add": ["SYS_NICE"] } },
        "volumeMounts": [{ "name": "spool", "mountPath": "/var/spool/slurmd" }],
    });
    let clusters = &api::crds()[0];
    let place = "/spec/properties/slurmNodes/properties/login/properties/customInitContainers/items";
    let schema = schema_of(clusters).pointer(place).expect("a container in the schema");
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::default() });
    let checked = runner.run(&arbitrary::value(schema), |container| {
        let object = json!({
            "apiVersion": "slinky.slurm.net/v1beta1", "kind": "NodeSet", "metadata": { "name": "x" },
            "spec": { "controllerRef": { "name": "slurm" }, "slurmd": container },
        });
        let node_set: slinky::NodeSet = serde_json::from_value(object)
            .map_err(|error| TestCaseError::fail(format!("{error}: {container}")))?;
        let slurmd = node_set.spec.slurmd.unwrap_or_default();
        let merged = Value::Object(slurmd.merged_over(ours.as_object().cloned().unwrap_or_default()));
        prop_assert!(contains(&merged, &container), "{container} became {merged}");
        Ok(())
    });
    if let Err(error) = checked {
        panic!("{error}");
    }
}

/// What is made up above is what an API server accepts, so that the test above is about the right objects.
#[test]
fn what_the_server_accepts_is_decoded() -> Result<()> {
    testkit::run(async {
        let plane = ControlPlane::own().await?;
        let client = plane.client("api-test").await?;
        let namespace = plane.namespace("decode").await?;
        let mut crds = api::crds();
        for crd in &mut crds {
            without_rules(crd);
            // A status that is no subresource is checked with the rest of the object.
            crd["spec"]["versions"][0]["subresources"] = Value::Null;
        }
        install(&client, crds).await?;
        let mut runner = TestRunner::deterministic();
        for (crd, kind) in api::crds().iter().zip(kinds::all()) {
            let schema = schema_of(crd);
            let parts = (arbitrary::value(&schema["spec"]), arbitrary::value(&schema["status"]));
            let mut object = sample(&format!("{}/{}-minimal", kind.group, kind.kind.to_lowercase()))?;
            for _ in 0..10 {
                let tree = parts.new_tree(&mut runner).map_err(|reason| anyhow::anyhow!("{reason}"))?;
                (object["spec"], object["status"]) = tree.current();
                let stored = create(&client, &namespace, &object, true).await?;
                let stored = stored.unwrap_or_else(|refusal| panic!("{}: {refusal}\n{object}", kind.kind));
                let decoded = (kind.round_trip)(stored.clone());
                let encoded = decoded.unwrap_or_else(|error| panic!("{}: {error}\n{stored}", kind.kind));
                let mut found = Vec::new();
                for part in ["spec", "status"] {
                    lost(&object[part], &stored[part], part, &mut found);
                    lost(&stored[part], &encoded[part], part, &mut found);
                }
                assert!(found.is_empty(), "{}: {found:?}", kind.kind);
            }
        }
        Ok(())
    })
}

fn without_rules(schema: &mut Value) {
    match schema {
        Value::Object(node) => {
            node.remove("x-kubernetes-validations");
            node.values_mut().for_each(without_rules);
        }
        Value::Array(items) => items.iter_mut().for_each(without_rules),
        _ => {}
    }
}
