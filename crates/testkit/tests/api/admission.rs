//! Who may ask, and what the server lets in: RBAC, CEL rules, admission policies, webhooks.

use std::net::Ipv4Addr;

use anyhow::Result;
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use testkit::ControlPlane;
use testkit::process::eventually;

use crate::{PATIENCE, config_map, config_map_with, create, dry_run, refusal, servers};

#[test]
fn a_user_without_rights_is_refused_until_a_role_is_bound() -> Result<()> {
    testkit::run(async {
        let plane = ControlPlane::start().await?;
        let namespace = plane.namespace("rights").await?;
        let admin = plane.client("rights-admin").await?;
        let stowaway = plane.client_as("stowaway", "passengers").await?;

        let maps: Api<ConfigMap> = Api::namespaced(stowaway, &namespace);
        let status = refusal(maps.list(&ListParams::default()).await)?;
        assert!(
            status.is_forbidden() && status.message.contains(r#"User "stowaway" cannot list"#),
            "{status}"
        );

        create(
            &Api::<Role>::namespaced(admin.clone(), &namespace),
            json!({
                "metadata": { "name": "readers" },
                "rules": [{ "apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"] }],
            }),
        )
        .await?;
        create(&Api::<RoleBinding>::namespaced(admin.clone(), &namespace), json!({
            "metadata": { "name": "readers" },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "readers" },
            "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "passengers" }],
        }))
        .await?;
        eventually("the group may list", PATIENCE, async || {
            Ok(Some(maps.list(&ListParams::default()).await?))
        })
        .await?;
        let status = refusal(maps.create(&PostParams::default(), &config_map("luggage")).await)?;
        assert!(status.is_forbidden(), "{status}");
        Ok(())
    })
}

#[test]
fn rules_of_a_crd_refuse_bad_objects_and_forbidden_changes() -> Result<()> {
    testkit::run(async {
        let plane = ControlPlane::start().await?;
        let namespace = plane.namespace("rules").await?;
        let client = plane.client("rules").await?;
        create(&Api::<CustomResourceDefinition>::all(client.clone()), json!({
            "metadata": { "name": "berths.rules.testkit.slipway.hpc" },
            "spec": {
                "group": "rules.testkit.slipway.hpc",
                "names": { "kind": "Berth", "plural": "berths" },
                "scope": "Namespaced",
                "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": {
                    "type": "object",
                    "properties": { "spec": {
                        "type": "object",
                        "required": ["min", "max", "quay"],
                        "properties": {
                            "min": { "type": "integer" },
                            "max": { "type": "integer" },
                            "quay": { "type": "string", "x-kubernetes-validations": [
                                { "rule": "self == oldSelf", "message": "a berth stays at its quay" },
                            ] },
                        },
                        "x-kubernetes-validations": [
                            { "rule": "self.min <= self.max", "message": "min must not be above max" },
                        ],
                    } },
                } } }],
            },
        }))
        .await?;
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("rules.testkit.slipway.hpc", "v1", "Berth"));
        let berths: Api<DynamicObject> = Api::namespaced_with(client, &namespace, &kind);
        eventually("the CRD is served", PATIENCE, async || {
            Ok(Some(berths.list(&ListParams::default()).await?))
        })
        .await?;
        let berth = |min: u32, max: u32| {
            DynamicObject::new("one", &kind)
                .data(json!({ "spec": { "min": min, "max": max, "quay": "north" } }))
        };

        let status = refusal(berths.create(&PostParams::default(), &berth(2, 1)).await)?;
        assert!(status.is_invalid() && status.message.contains("min must not be above max"), "{status}");
        berths.create(&PostParams::default(), &berth(1, 2)).await?;

        let change = async |spec: Value| {
            let patch = Patch::Merge(json!({ "spec": spec }));
            berths.patch("one", &PatchParams::default(), &patch).await
        };
        let status = refusal(change(json!({ "quay": "south" })).await)?;
        assert!(status.is_invalid() && status.message.contains("a berth stays at its quay"), "{status}");
        let status = refusal(change(json!({ "max": 0 })).await)?;
        assert!(status.is_invalid() && status.message.contains("min must not be above max"), "{status}");
        let changed = change(json!({ "max": 3, "quay": "north" })).await?;
        assert_eq!(changed.data["spec"], json!({ "min": 1, "max": 3, "quay": "north" }));
        Ok(())
    })
}

#[test]
fn an_admission_policy_refuses_within_the_namespaces_of_its_binding() -> Result<()> {
    testkit::run(async {
        let plane = ControlPlane::start().await?;
        let namespace = plane.namespace("policy").await?;
        let elsewhere = plane.namespace("policy").await?;
        let client = plane.client("policy").await?;
        create(
            &Api::<ValidatingAdmissionPolicy>::all(client.clone()),
            json!({
                "metadata": { "name": namespace },
                "spec": {
                    "matchConstraints": { "resourceRules": [rule_for_new_config_maps()] },
                    "validations": [{
                        "expression": "has(object.data) && 'flag' in object.data",
                        "message": "no map sails without a flag",
                    }],
                },
            }),
        )
        .await?;
        create(
            &Api::<ValidatingAdmissionPolicyBinding>::all(client.clone()),
            json!({
                "metadata": { "name": namespace },
                "spec": {
                    "policyName": namespace,
                    "validationActions": ["Deny"],
                    "matchResources": { "namespaceSelector": only(&namespace) },
                },
            }),
        )
        .await?;

        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace);
        let status = eventually("the policy is in force", PATIENCE, async || {
            refusal(maps.create(&dry_run(), &config_map("bare")).await).map(Some)
        })
        .await?;
        assert!(status.is_invalid() && status.message.contains("no map sails without a flag"), "{status}");
        maps.create(&PostParams::default(), &config_map_with("proper", [("flag", "blue")])).await?;
        let others: Api<ConfigMap> = Api::namespaced(client, &elsewhere);
        others.create(&PostParams::default(), &config_map("bare")).await?;
        Ok(())
    })
}

#[test]
fn a_webhook_in_the_test_process_refuses_within_its_namespaces() -> Result<()> {
    testkit::run(async {
        let plane = ControlPlane::start().await?;
        let namespace = plane.namespace("webhook").await?;
        let elsewhere = plane.namespace("webhook").await?;
        let client = plane.client("webhook").await?;
        let identity = plane.pki().issue("webhook", None, &[], &[Ipv4Addr::LOCALHOST.into()])?;
        let server = servers::webhook(&identity, |query, request| {
            let flagged = request["object"]["data"].get("flag").is_some();
            (!flagged).then(|| format!("no map sails without a flag, asked with {query}"))
        })
        .await?;
        create(
            &Api::<ValidatingWebhookConfiguration>::all(client.clone()),
            json!({
                "metadata": { "name": namespace },
                "webhooks": [{
                    "name": "flags.testkit.slipway.hpc",
                    "admissionReviewVersions": ["v1"],
                    "sideEffects": "None",
                    "clientConfig": {
                        "url": format!("https://{}/validate", server.address),
                        "caBundle": ByteString(plane.pki().ca_pem().as_bytes().to_vec()),
                    },
                    "rules": [rule_for_new_config_maps()],
                    "namespaceSelector": only(&namespace),
                }],
            }),
        )
        .await?;

        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace);
        let status = eventually("the webhook is called", PATIENCE, async || {
            refusal(maps.create(&dry_run(), &config_map("bare")).await).map(Some)
        })
        .await?;
        let refused = "denied the request: no map sails without a flag, asked with timeout=10s";
        assert!(status.message.ends_with(refused), "{status}");
        maps.create(&PostParams::default(), &config_map_with("proper", [("flag", "blue")])).await?;
        let others: Api<ConfigMap> = Api::namespaced(client, &elsewhere);
        others.create(&PostParams::default(), &config_map("bare")).await?;
        Ok(())
    })
}

fn rule_for_new_config_maps() -> Value {
    json!({ "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"] })
}

/// A selector of one namespace: the others belong to other tests.
fn only(namespace: &str) -> Value {
    json!({ "matchLabels": { "kubernetes.io/metadata.name": namespace } })
}
