//! Full objects of every kind that there is a view of, as a real API server and its controllers make them. They are kept
//! in `tests/recorded`, where the views' own tests read them.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use engine::View;
use engine::views::{
    ClaimPhase, ConfigMapView, ControllerRevisionView, CrdView, CronJobView, DaemonSetView, DeploymentView,
    EndpointSliceView, JobPhase, JobView, LeaseView, NodeView, PersistentVolumeClaimView,
    PodDisruptionBudgetView, PodView, RoleBindingView, RoleView, SecretView, ServiceAccountView, ServiceView,
    StatefulSetView,
};
use http::Method;
use kube::Client;
use serde_json::{Value, json};
use testkit::process::eventually;
use testkit::{ControlPlane, FakeKubelet};

const PATIENCE: Duration = Duration::from_secs(60);

/// One namespace of one test: names in the recordings do not depend on what else runs.
const NAMESPACE: &str = "yard";

/// Run it with `SLIPWAY_WRITE=1` to record anew, after Kubernetes was upgraded or a view got a field.
#[test]
fn recorded_objects_are_what_the_api_server_sends() -> Result<()> {
    testkit::run(async {
        let plane = ControlPlane::start().await?;
        let yard = Yard { client: plane.client("recorded").await? };
        let namespace = json!({ "metadata": { "name": NAMESPACE } });
        yard.send(Method::POST, "/api/v1/namespaces", &namespace).await?;
        yard.until::<ServiceAccountView>("default", |_| true).await?;
        let nodes = FakeKubelet::nodes(NAMESPACE, 1).in_namespace(NAMESPACE);
        let _kubelet = nodes.start(yard.client.clone()).await?;
        fill(&yard).await?;

        yard.record::<StatefulSetView>("crew", StatefulSetView::is_settled).await?;
        yard.record::<DeploymentView>("desk", |desk| desk.is_settled() && desk.is_available()).await?;
        yard.record::<DaemonSetView>("guard", |guard| guard.is_settled() && guard.status.desired == 1)
            .await?;
        yard.record::<JobView>("load", |load| load.phase() == JobPhase::Complete).await?;
        yard.record::<PodDisruptionBudgetView>("crew", |budget| budget.status.current_healthy == 1).await?;
        yard.record::<PersistentVolumeClaimView>("hold-crew-0", |claim| {
            claim.status.phase == ClaimPhase::Bound
        })
        .await?;
        yard.record::<PodView>("crew-0", PodView::is_ready).await?;
        yard.record_as::<PodView>("pod-crashing", "castaway", |pod| !pod.status.containers.is_empty())
            .await?;
        let slice = yard.only::<EndpointSliceView>("kubernetes.io/service-name=crew").await?;
        yard.record::<EndpointSliceView>(&slice, |slice| {
            slice.endpoints.len() == 1 && slice.endpoints.iter().all(engine::views::Endpoint::is_ready)
        })
        .await?;
        let revision = yard.only::<ControllerRevisionView>("app=crew").await?;
        yard.record::<ControllerRevisionView>(&revision, |_| true).await?;
        yard.record::<CronJobView>("tide", |tide| tide.status.active.len() == 1).await?;
        yard.record::<ServiceView>("desk", |desk| !desk.status.load_balancer.ingress.is_empty()).await?;
        yard.record::<ConfigMapView>("chart", |_| true).await?;
        yard.record::<SecretView>("seal", |_| true).await?;
        yard.record::<ServiceAccountView>("hand", |_| true).await?;
        yard.record::<RoleView>("hand", |_| true).await?;
        yard.record::<RoleBindingView>("hand", |_| true).await?;
        yard.record::<LeaseView>("helm", |_| true).await?;
        yard.record::<CrdView>("boats.harbor.example", |boats| boats.serves("v2") && !boats.serves("v1"))
            .await?;
        // A taint keeps pods away, so it comes when all are there.
        mark_node(&yard).await?;
        yard.record::<NodeView>("yard-0", |_| true).await
    })
}

struct Yard {
    client: Client,
}

impl Yard {
    /// Records an object under the name of its kind.
    async fn record<V: View>(&self, name: &str, done: impl Fn(&V) -> bool) -> Result<()> {
        self.record_as(&V::kind().kind.to_lowercase(), name, done).await
    }

    /// Writes an object down, or finds that the one written down is still the same one.
    async fn record_as<V: View>(&self, file: &str, name: &str, done: impl Fn(&V) -> bool) -> Result<()> {
        let now = self.until(name, done).await?;
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/recorded/{file}.json"));
        if std::env::var_os("SLIPWAY_WRITE").is_some() {
            std::fs::write(&path, serde_json::to_string_pretty(&now)? + "\n")?;
        }
        let recorded: Value = serde_json::from_str(&std::fs::read_to_string(&path)?)?;
        for pointer in ["/apiVersion", "/kind"] {
            ensure!(recorded.pointer(pointer) == now.pointer(pointer), "{pointer} of {}", path.display());
        }
        let (recorded, now) = (identity::<V>(&recorded)?, identity::<V>(&now)?);
        ensure!(recorded == now, "out of date: run this test with SLIPWAY_WRITE=1: {recorded} is now {now}");
        Ok(())
    }

    /// The object as soon as it is done.
    async fn until<V: View>(&self, name: &str, done: impl Fn(&V) -> bool) -> Result<Value> {
        eventually(&format!("{} {name}", V::kind().kind), PATIENCE, async || {
            let text = self.get::<V>(&format!("{}/{name}", path::<V>())).await?;
            Ok(if done(&serde_json::from_str(&text)?) { Some(serde_json::from_str(&text)?) } else { None })
        })
        .await
    }

    /// The name of the one object with a label.
    async fn only<V: View>(&self, selector: &str) -> Result<String> {
        let path = format!("{}?labelSelector={selector}", path::<V>());
        eventually(&path, PATIENCE, async || {
            let list: Value = serde_json::from_str(&self.get::<V>(&path).await?)?;
            let names = list["items"].as_array().context("a list")?;
            ensure!(names.len() == 1, "{} of them", names.len());
            Ok(names[0]["metadata"]["name"].as_str().map(str::to_owned))
        })
        .await
    }

    /// As the cache asks for it.
    async fn get<V: View>(&self, path: &str) -> Result<String> {
        let accept = if V::METADATA_ONLY {
            "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
        } else {
            "application/json"
        };
        let request = http::Request::get(path).header(http::header::ACCEPT, accept).body(Vec::new())?;
        Ok(self.client.request_text(request).await?)
    }

    async fn create<V: View>(&self, object: Value) -> Result<()> {
        self.send(Method::POST, &path::<V>(), &object).await
    }

    async fn patch_status<V: View>(&self, name: &str, status: Value) -> Result<()> {
        let path = format!("{}/{name}/status", path::<V>());
        self.send(Method::PATCH, &path, &json!({ "status": status })).await
    }

    async fn send(&self, method: Method, path: &str, object: &Value) -> Result<()> {
        let content = if method == Method::PATCH {
            "application/strategic-merge-patch+json"
        } else {
            "application/json"
        };
        let request = http::Request::builder().method(method).uri(path);
        let request =
            request.header(http::header::CONTENT_TYPE, content).body(serde_json::to_vec(object)?)?;
        self.client.request_text(request).await.with_context(|| format!("send to {path}"))?;
        Ok(())
    }
}

fn path<V: View>() -> String {
    let kind = V::kind();
    let root = if kind.group.is_empty() { "/api" } else { "/apis" };
    let namespace = if kind.namespaced { format!("namespaces/{NAMESPACE}/") } else { String::new() };
    format!("{root}/{}/{namespace}{}", kind.api_version(), kind.plural)
}

/// The key of an object; of one whose name the server makes up, what it is made of.
fn identity<V: View>(object: &Value) -> Result<String> {
    let view: V = serde_json::from_value(object.clone())?;
    Ok(match object.pointer("/metadata/generateName").and_then(Value::as_str) {
        Some(prefix) if !V::kind().kind.eq("Pod") => format!("{}/{prefix}*", view.meta().namespace()),
        _ => view.meta().key.to_string(),
    })
}

/// One object of each kind, with as many fields set as a view may read.
async fn fill(yard: &Yard) -> Result<()> {
    let text = |name: &str| json!({ "metadata": { "name": name }, "data": { "key": "dmFsdWU=" } });
    yard.create::<ConfigMapView>(text("chart")).await?;
    yard.create::<SecretView>(text("seal")).await?;
    yard.create::<ServiceAccountView>(json!({ "metadata": { "name": "hand" } })).await?;
    let rule = json!({ "apiGroups": [""], "resources": ["pods"], "verbs": ["get"] });
    yard.create::<RoleView>(json!({ "metadata": { "name": "hand" }, "rules": [rule] })).await?;
    yard.create::<RoleBindingView>(json!({
        "metadata": { "name": "hand" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "hand" },
        "subjects": [{ "kind": "ServiceAccount", "name": "hand", "namespace": NAMESPACE }],
    }))
    .await?;
    yard.create::<LeaseView>(json!({
        "metadata": { "name": "helm" },
        "spec": {
            "holderIdentity": "crew-0", "leaseDurationSeconds": 15, "leaseTransitions": 2,
            "acquireTime": "2026-01-02T03:04:05.678901Z", "renewTime": "2026-01-02T03:05:06.789012Z",
        },
    }))
    .await?;
    yard.create::<CrdView>(crd()).await?;
    services(yard).await?;
    workloads(yard).await?;
    castaway(yard).await
}

fn crd() -> Value {
    let version = |name: &str, served: bool| {
        json!({
            "name": name, "served": served, "storage": served,
            "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                "spec": { "type": "object", "properties": { "length": { "type": "integer" } } } } } },
        })
    };
    json!({
        "metadata": { "name": "boats.harbor.example" },
        "spec": {
            "group": "harbor.example", "scope": "Namespaced", "versions": [version("v1", false), version("v2", true)],
            "names": { "kind": "Boat", "listKind": "BoatList", "plural": "boats", "singular": "boat" },
        },
    })
}

async fn services(yard: &Yard) -> Result<()> {
    let port = |name: &str| json!({ "name": name, "port": 22, "targetPort": name });
    yard.create::<ServiceView>(json!({
        "metadata": { "name": "crew" },
        "spec": { "clusterIP": "None", "selector": { "app": "crew" }, "ports": [port("ssh")] },
    }))
    .await?;
    yard.create::<ServiceView>(json!({
        "metadata": { "name": "desk", "annotations": { "harbor.example/pier": "7" } },
        "spec": {
            "type": "LoadBalancer", "selector": { "app": "desk" }, "loadBalancerClass": "harbor.example/none",
            "loadBalancerIP": "192.0.2.7", "publishNotReadyAddresses": true,
            "ports": [port("ssh"), { "name": "metrics", "port": 9100 }],
        },
    }))
    .await?;
    let ingress = json!([{ "ip": "192.0.2.7", "ipMode": "VIP" }, { "hostname": "desk.harbor.example" }]);
    yard.patch_status::<ServiceView>("desk", json!({ "loadBalancer": { "ingress": ingress } })).await
}

async fn workloads(yard: &Yard) -> Result<()> {
    let volume = json!({
        "metadata": { "name": "yard" },
        "spec": {
            "capacity": { "storage": "2Gi" }, "accessModes": ["ReadWriteMany"], "storageClassName": "yard",
            "csi": { "driver": "csi.harbor.example", "volumeHandle": "1" },
        },
    });
    yard.send(Method::POST, "/api/v1/persistentvolumes", &volume).await?;
    let claim = json!({
        "metadata": { "name": "hold" },
        "spec": { "accessModes": ["ReadWriteMany"], "storageClassName": "yard", "resources": { "requests": { "storage": "1Gi" } } },
    });
    let workload = |name: &str, more: Value| {
        let mut object = json!({
            "metadata": { "name": name },
            "spec": { "selector": { "matchLabels": { "app": name } }, "template": template(name) },
        });
        if let (Some(spec), Value::Object(more)) = (object["spec"].as_object_mut(), more) {
            spec.extend(more);
        }
        object
    };
    let crew = json!({ "replicas": 1, "serviceName": "crew", "volumeClaimTemplates": [claim] });
    yard.create::<StatefulSetView>(workload("crew", crew)).await?;
    yard.create::<DeploymentView>(workload("desk", json!({ "replicas": 2 }))).await?;
    // Other tests have nodes too.
    let mut guard = workload("guard", json!({}));
    guard["spec"]["template"]["spec"]["nodeSelector"] = json!({ "kubernetes.io/hostname": "yard-0" });
    yard.create::<DaemonSetView>(guard).await?;
    let budget = json!({ "maxUnavailable": 1, "selector": { "matchLabels": { "app": "crew" } } });
    yard.create::<PodDisruptionBudgetView>(json!({ "metadata": { "name": "crew" }, "spec": budget })).await?;

    let mut pod = template("load");
    pod["spec"]["restartPolicy"] = json!("Never");
    let job = json!({ "completions": 1, "backoffLimit": 3, "suspend": false, "template": pod });
    yard.create::<JobView>(json!({ "metadata": { "name": "load" }, "spec": job })).await?;
    yard.create::<CronJobView>(json!({
        "metadata": { "name": "tide" },
        "spec": { "schedule": "0 3 * * *", "suspend": true, "jobTemplate": { "spec": job } },
    }))
    .await?;
    // The next tide is hours away, so one is started by hand, and does not end.
    let tide = yard.until::<CronJobView>("tide", |_| true).await?;
    let owner = json!({ "apiVersion": "batch/v1", "kind": "CronJob", "name": "tide", "uid": tide["metadata"]["uid"], "controller": true });
    let held = json!({ "suspend": true, "template": job["template"] });
    yard.create::<JobView>(
        json!({ "metadata": { "name": "tide-1", "ownerReferences": [owner] }, "spec": held }),
    )
    .await?;
    let first = yard.until::<JobView>("tide-1", |_| true).await?;
    let active =
        json!({ "apiVersion": "batch/v1", "kind": "Job", "name": "tide-1", "uid": first["metadata"]["uid"] });
    let times = json!({
        "active": [active], "lastScheduleTime": "2026-01-02T03:00:00Z", "lastSuccessfulTime": "2026-01-01T03:01:00Z",
    });
    yard.patch_status::<CronJobView>("tide", times).await
}

/// A pod as the kubelet of a node leaves it that is not the fake one's.
async fn castaway(yard: &Yard) -> Result<()> {
    let mut pod = template("castaway");
    pod["metadata"]["name"] = json!("castaway");
    pod["spec"]["nodeName"] = json!("elsewhere");
    yard.create::<PodView>(pod).await?;
    let time = "2026-01-02T03:04:05Z";
    let condition = |kind: &str, status: &str, reason: &str| json!({ "type": kind, "status": status, "reason": reason, "lastTransitionTime": time });
    let container = |name: &str, restarts: i32, state: Value| {
        json!({
            "name": name, "image": format!("harbor.example/{name}:1"), "imageID": "", "ready": false, "started": false,
            "restartCount": restarts, "state": state,
        })
    };
    let waiting = |reason: &str| json!({ "waiting": { "reason": reason, "message": "back-off 5m0s" } });
    let ended = json!({ "terminated": { "reason": "OOMKilled", "exitCode": 137, "startedAt": time, "finishedAt": time } });
    yard.patch_status::<PodView>("castaway", json!({
        "phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory.",
        "conditions": [
            condition("Initialized", "False", "ContainersNotInitialized"), condition("PodScheduled", "True", ""),
            condition("Ready", "Unknown", "PodFailed"),
        ],
        "initContainerStatuses": [container("prepare", 4, waiting("CrashLoopBackOff"))],
        "containerStatuses": [container("row", 2, ended), container("watch", 0, waiting("PodInitializing"))],
    }))
    .await
}

fn template(name: &str) -> Value {
    let container = |name: &str| {
        json!({
            "name": name, "image": format!("harbor.example/{name}:1"), "command": ["sleep", "infinity"],
            "env": [
                { "name": "PLAIN", "value": "1" },
                { "name": "FROM_CHART", "valueFrom": { "configMapKeyRef": { "name": "chart", "key": "key" } } },
                { "name": "FROM_SEAL", "valueFrom": { "secretKeyRef": { "name": "seal", "key": "key" } } },
                { "name": "NODE", "valueFrom": { "fieldRef": { "fieldPath": "spec.nodeName" } } },
            ],
            "envFrom": [{ "configMapRef": { "name": "all-of-chart", "optional": true } }, { "secretRef": { "name": "all-of-seal", "optional": true } }],
            "resources": { "requests": { "cpu": "100m", "memory": "64Mi" }, "limits": { "memory": "128Mi" } },
            "volumeMounts": [{ "name": "chart", "mountPath": "/chart" }, { "name": "seal", "mountPath": "/seal" }],
        })
    };
    json!({
        "metadata": {
            "labels": { "app": name, "app.kubernetes.io/name": name, "app.kubernetes.io/instance": "yard", "app.kubernetes.io/part-of": "harbor" },
            "annotations": { "harbor.example/chart-hash": "5f1d" },
        },
        "spec": {
            "serviceAccountName": "hand",
            "imagePullSecrets": [{ "name": "pull" }],
            "initContainers": [container("prepare")],
            "containers": [container("row"), container("watch")],
            "volumes": [
                { "name": "chart", "configMap": { "name": "chart" } },
                { "name": "seal", "secret": { "secretName": "seal" } },
                { "name": "both", "projected": { "sources": [
                    { "configMap": { "name": "projected-chart" } }, { "secret": { "name": "projected-seal" } },
                    { "serviceAccountToken": { "path": "token" } } ] } },
                { "name": "scratch", "emptyDir": {} },
            ],
        },
    })
}

async fn mark_node(yard: &Yard) -> Result<()> {
    let taint = json!({ "key": "harbor.example/repair", "value": "mast", "effect": "NoSchedule" });
    let spec = json!({ "spec": {
        "unschedulable": true, "taints": [taint], "providerID": "harbor://yard-0" } });
    yard.send(Method::PATCH, "/api/v1/nodes/yard-0", &spec).await?;
    let resources = json!({ "nvidia.com/gpu": "8", "cpu": "63900m" });
    yard.patch_status::<NodeView>("yard-0", json!({ "allocatable": resources })).await
}
