//! The MariaDB operator: a database for accounting, and the right to use it.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1 as core;
use kube::CustomResource;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::Open;
use crate::soperator::common::ImagePullPolicy;
use crate::soperator::v1::{MariaDbReplication, MariaDbStorage};

/// A database server.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "k8s.mariadb.com",
    version = "v1alpha1",
    kind = "MariaDB",
    plural = "mariadbs",
    namespaced,
    schema = "disabled",
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
pub struct MariaDbSpec {
    /// Where the pods run, and whether they keep apart from each other.
    pub affinity: Option<MariaDbAffinity>,
    /// A database that is made on the server at its first start.
    pub database: Option<String>,
    /// Image of the server with its tag.
    pub image: Option<String>,
    /// When the kubelet fetches the image.
    pub image_pull_policy: Option<ImagePullPolicy>,
    /// Secrets with which the image is fetched.
    pub image_pull_secrets: Option<Vec<Open<core::LocalObjectReference>>>,
    /// Metrics of the server.
    pub metrics: Option<MariaDbMetrics>,
    /// Text of the server's configuration file.
    pub my_cnf: Option<String>,
    /// Labels that a Kubernetes node must have.
    pub node_selector: Option<BTreeMap<String, String>>,
    /// Password of `username`.
    pub password_secret_key_ref: Option<GeneratedSecretKeyRef>,
    /// Security context of the pods.
    pub pod_security_context: Option<Open<core::PodSecurityContext>>,
    /// Port that the server listens on.
    pub port: Option<i32>,
    /// Priority class of the pods.
    pub priority_class_name: Option<String>,
    /// How many servers there are.
    pub replicas: Option<i32>,
    /// Replication between the servers.
    pub replication: Option<Open<MariaDbReplication>>,
    /// What the server's container asks for and may have.
    pub resources: Option<Open<core::ResourceRequirements>>,
    /// Whether root has no password.
    pub root_empty_password: Option<bool>,
    /// Password of root.
    pub root_password_secret_key_ref: Option<GeneratedSecretKeyRef>,
    /// Security context of the server's container.
    pub security_context: Option<Open<core::SecurityContext>>,
    /// The Service that clients reach.
    pub service: Option<MariaDbService>,
    /// Where the data is kept.
    pub storage: Option<MariaDbStorage>,
    /// Taints of Kubernetes nodes that the pods tolerate.
    pub tolerations: Option<Vec<Open<core::Toleration>>>,
    /// A user that is made on the server at its first start.
    pub username: Option<String>,
}

/// Affinity of a pod, and a switch beside it.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MariaDbAffinity {
    /// `nodeAffinity` and `podAntiAffinity`, as in a pod.
    #[serde(flatten)]
    pub affinity: Open<core::Affinity>,
    /// Whether no two servers may run on one Kubernetes node.
    pub anti_affinity_enabled: Option<bool>,
}

/// Metrics of the server.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MariaDbMetrics {
    /// Whether there is an exporter beside the server.
    pub enabled: Option<bool>,
}

/// The Service that clients reach.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MariaDbService {
    /// Type of the Service, for example `ClusterIP`.
    #[serde(rename = "type")]
    pub type_: Option<String>,
}

/// A key of a Secret that the MariaDB operator can make.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GeneratedSecretKeyRef {
    /// Whether the Secret is made if it does not exist.
    pub generate: Option<bool>,
    /// Which key of the Secret holds the password.
    pub key: String,
    /// Name of the Secret.
    pub name: Option<String>,
}

/// What a user may do with a database.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[kube(
    group = "k8s.mariadb.com",
    version = "v1alpha1",
    kind = "Grant",
    namespaced,
    schema = "disabled",
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
pub struct GrantSpec {
    /// The database; all of them if not given.
    pub database: Option<String>,
    /// Whether the user may grant the same to others.
    pub grant_option: Option<bool>,
    /// Host that the user comes from; `%` is any.
    pub host: Option<String>,
    /// The server.
    pub maria_db_ref: MariaDbRef,
    /// What the user may do, for example `ALL PRIVILEGES`.
    pub privileges: Vec<String>,
    /// How often the MariaDB operator looks again, in Go's notation.
    pub requeue_interval: Option<String>,
    /// How soon the MariaDB operator tries again after an error, in Go's notation.
    pub retry_interval: Option<String>,
    /// The table; all of them if not given.
    pub table: Option<String>,
    /// The user.
    pub username: String,
}

/// A MariaDB object.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MariaDbRef {
    /// Name of the object.
    pub name: Option<String>,
    /// Namespace of the object.
    pub namespace: Option<String>,
    /// Whether to wait until the server is ready.
    pub wait_for_it: Option<bool>,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::foreign::round_trip;

    fn mariadb() -> Value {
        json!({
            "apiVersion": "k8s.mariadb.com/v1alpha1",
            "kind": "MariaDB",
            "metadata": { "name": "demo-acct-db", "namespace": "slurm", "labels": { "app": "demo" } },
            "spec": {
                "affinity": { "antiAffinityEnabled": true, "nodeAffinity": { "newer": 1 } },
                "database": "slurm_acct_db",
                "image": "mariadb:12",
                "imagePullPolicy": "IfNotPresent",
                "imagePullSecrets": [{ "name": "registry" }],
                "metrics": { "enabled": true },
                "myCnf": "[mariadb]\nbind-address=*",
                "nodeSelector": { "pool": "system" },
                "passwordSecretKeyRef": { "generate": true, "key": "password", "name": "mariadb-password" },
                "podSecurityContext": { "fsGroup": 999 },
                "port": 3306,
                "priorityClassName": "",
                "replicas": 1,
                "replication": { "enabled": true },
                "resources": { "limits": { "memory": "2Gi" }, "requests": { "cpu": "1", "memory": "2Gi" } },
                "rootEmptyPassword": false,
                "rootPasswordSecretKeyRef": { "key": "password", "name": "mariadb-root" },
                "securityContext": { "runAsUser": 999 },
                "service": { "type": "ClusterIP" },
                "storage": { "size": "10Gi", "storageClassName": "standard" },
                "tolerations": [{ "effect": "NoSchedule", "key": "dedicated", "operator": "Exists" }],
                "username": "slurm",
            },
        })
    }

    #[test]
    fn a_mariadb_keeps_every_field_we_write() {
        assert_eq!(round_trip::of::<MariaDB>(&mariadb()), mariadb());
    }

    #[test]
    fn what_soperator_left_empty_in_a_mariadb_is_not_written_again() {
        let mut recorded = mariadb();
        recorded["spec"]["updateStrategy"] = json!({});
        recorded["spec"]["metrics"]["exporter"] = json!({});
        recorded["spec"]["metrics"]["passwordSecretKeyRef"] = json!({ "key": "" });
        assert_eq!(round_trip::of::<MariaDB>(&recorded), mariadb());
    }

    #[test]
    fn a_grant_keeps_every_field_we_write() {
        let grant = json!({
            "apiVersion": "k8s.mariadb.com/v1alpha1",
            "kind": "Grant",
            "metadata": { "name": "demo-acct-db", "namespace": "slurm" },
            "spec": {
                "database": "slurm_acct_db",
                "grantOption": true,
                "host": "%",
                "mariaDbRef": { "name": "demo-acct-db", "namespace": "slurm", "waitForIt": true },
                "privileges": ["ALL PRIVILEGES"],
                "requeueInterval": "30ns",
                "retryInterval": "5ns",
                "table": "slurm_acct_db.*",
                "username": "slurm",
            },
        });
        assert_eq!(round_trip::of::<Grant>(&grant), grant);
    }
}
