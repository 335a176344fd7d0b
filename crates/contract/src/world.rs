//! An API server with the subject's kinds in it, and one namespace for one promise.

use std::ops::Deref;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use engine::Kind;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use testkit::ControlPlane;
use testkit::pki::MASTERS;
use testkit::process::eventually;

use crate::operator::Operator;
use crate::subject::Subject;

/// For what takes a second on a quiet machine.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Objects of any kind.
pub type Dynamic = Api<DynamicObject>;

#[derive(Debug)]
enum Plane {
    Shared(&'static ControlPlane),
    Own(Box<ControlPlane>),
}

impl Deref for Plane {
    type Target = ControlPlane;

    fn deref(&self) -> &ControlPlane {
        match self {
            Self::Shared(plane) => plane,
            Self::Own(plane) => plane,
        }
    }
}

/// Where one promise is tested.
pub struct World {
    pub subject: Subject,
    pub namespace: String,
    pub client: Client,
    folder: tempfile::TempDir,
    plane: Plane,
}

impl std::fmt::Debug for World {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "World({})", self.namespace)
    }
}

impl World {
    /// A namespace on the API server that the tests of a binary share.
    pub async fn new(subject: &Subject, name: &str) -> Result<Self> {
        let world = Self::on(subject, name, Plane::Shared(ControlPlane::start().await?)).await?;
        world.install(&subject.crds).await?;
        Ok(world)
    }

    /// An API server of its own, without the subject's kinds.
    pub async fn bare(subject: &Subject, name: &str) -> Result<Self> {
        Self::on(subject, name, Plane::Own(Box::new(ControlPlane::own().await?))).await
    }

    async fn on(subject: &Subject, name: &str, plane: Plane) -> Result<Self> {
        let namespace = plane.namespace(name).await?;
        let client = plane.client("contract").await?;
        let folder = tempfile::tempdir()?;
        Ok(Self { subject: subject.clone(), namespace, client, folder, plane })
    }

    pub fn plane(&self) -> &ControlPlane {
        &self.plane
    }

    /// The API server, if it is this world's own.
    pub fn own_plane(&mut self) -> Result<&mut ControlPlane> {
        match &mut self.plane {
            Plane::Own(plane) => Ok(plane),
            Plane::Shared(_) => bail!("this API server is shared"),
        }
    }

    /// Installs definitions and waits until their kinds are served.
    pub async fn install(&self, crds: &[Value]) -> Result<()> {
        let definitions: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        for crd in crds {
            let name = crd.pointer("/metadata/name").and_then(Value::as_str).context("a name")?;
            let params = PatchParams::apply("contract").force();
            definitions.patch(name, &params, &Patch::Apply(crd)).await?;
            eventually(&format!("{name} to be served"), PATIENCE, async || {
                let definition = definitions.get(name).await?;
                let conditions = definition.status.and_then(|status| status.conditions).unwrap_or_default();
                let served = conditions.iter().any(|one| one.type_ == "Established" && one.status == "True");
                Ok(served.then_some(()))
            })
            .await?;
        }
        Ok(())
    }

    /// The name under which the API server knows an operator of this world.
    pub fn user(&self, name: &str) -> String {
        format!("{}-{name}", self.namespace)
    }

    /// The operator, as a user that may do everything, in this namespace only.
    pub async fn operator(&self, name: &str) -> Result<Operator> {
        self.operator_with(name, &[]).await
    }

    pub async fn operator_with(&self, name: &str, env: &[(&str, &str)]) -> Result<Operator> {
        let kubeconfig = self.plane.kubeconfig(&self.user(name), MASTERS)?;
        self.operator_at(name, &kubeconfig, &self.namespace, env).await
    }

    /// The operator, reaching the API server as the kubeconfig says.
    pub async fn operator_at(
        &self,
        name: &str,
        kubeconfig: &Value,
        namespaces: &str,
        env: &[(&str, &str)],
    ) -> Result<Operator> {
        let args = [
            format!("--leader-elect-namespace={}", self.namespace),
            format!("--namespaces={namespaces}"),
            "--log-level=debug".to_owned(),
        ];
        Operator::start(&self.subject, name, self.folder.path(), kubeconfig, &args, env).await
    }

    /// Objects of a kind in this namespace.
    pub fn api(&self, kind: Kind) -> Dynamic {
        self.api_in(kind, &self.namespace)
    }

    pub fn api_in(&self, kind: Kind, namespace: &str) -> Dynamic {
        let gvk = GroupVersionKind::gvk(kind.group, kind.version, kind.kind);
        let resource = ApiResource::from_gvk_with_plural(&gvk, kind.plural);
        Api::namespaced_with(self.client.clone(), namespace, &resource)
    }

    pub fn objects(&self) -> Dynamic {
        self.api(self.subject.kind)
    }

    pub fn children(&self) -> Dynamic {
        self.api(self.subject.child.kind)
    }

    pub fn child_name(&self, name: &str) -> String {
        (self.subject.child.name)(name)
    }

    /// An object with a good `spec`.
    pub async fn create(&self, name: &str) -> Result<DynamicObject> {
        self.create_with(name, &self.subject.spec).await
    }

    pub async fn create_with(&self, name: &str, spec: &Value) -> Result<DynamicObject> {
        self.create_in(name, &self.namespace, spec).await
    }

    pub async fn create_in(&self, name: &str, namespace: &str, spec: &Value) -> Result<DynamicObject> {
        let kind = self.subject.kind;
        let object = serde_json::from_value(json!({
            "apiVersion": kind.api_version(), "kind": kind.kind, "metadata": { "name": name }, "spec": spec }))?;
        Ok(self.api_in(kind, namespace).create(&PostParams::default(), &object).await?)
    }

    /// Changes the `spec` of an object as a user would.
    pub async fn edit(&self, name: &str, spec: &Value) -> Result<()> {
        merge(&self.objects(), name, &json!({ "spec": spec })).await
    }

    /// Waits for the child of an object, and for a condition on it.
    pub async fn child(
        &self,
        name: &str,
        what: &str,
        fits: impl Fn(&DynamicObject) -> bool,
    ) -> Result<DynamicObject> {
        let (api, child) = (self.children(), self.child_name(name));
        eventually(&format!("{what} of {child}"), PATIENCE, async || {
            Ok(api.get_opt(&child).await?.filter(|child| fits(child)))
        })
        .await
    }

    /// A child that is there for good: its object's status says what was done.
    pub async fn settled(&self, name: &str) -> Result<DynamicObject> {
        let objects = self.objects();
        eventually(&format!("{name} to be told of"), PATIENCE, async || {
            let object = objects.get(name).await?;
            let current = object.metadata.generation;
            let ready = condition(&object, "Ready");
            Ok((ready["observedGeneration"].as_i64() == current).then_some(()))
        })
        .await?;
        self.child(name, "the child", |_| true).await
    }

    /// Waits until an object has a condition with this status and reason.
    pub async fn told(&self, name: &str, kind: &str, status: &str, reason: &str) -> Result<Value> {
        let objects = self.objects();
        eventually(&format!("{name}: {kind} {status}, {reason}"), PATIENCE, async || {
            let condition = condition(&objects.get(name).await?, kind);
            ensure!(condition["status"] == status && condition["reason"] == reason, "{condition}");
            Ok(Some(condition))
        })
        .await
    }

    pub async fn delete(&self, api: &Dynamic, name: &str) -> Result<()> {
        api.delete(name, &DeleteParams::default()).await?;
        Ok(())
    }

    /// Everything in the namespace that an object manages.
    pub async fn owned_by(&self, uid: &str) -> Result<Vec<String>> {
        let mut owned = Vec::new();
        for kind in &self.subject.children {
            let Ok(list) = self.api(*kind).list(&ListParams::default()).await else { continue };
            let ours = list.iter().filter(|one| one.owner_references().iter().any(|owner| owner.uid == uid));
            owned.extend(ours.map(|one| format!("{} {}", kind.kind, one.name_any())));
        }
        Ok(owned)
    }
}

/// A merge patch by somebody else.
pub async fn merge(api: &Dynamic, name: &str, patch: &Value) -> Result<()> {
    api.patch(
        name,
        &PatchParams { field_manager: Some("somebody".into()), ..PatchParams::default() },
        &Patch::Merge(patch),
    )
    .await?;
    Ok(())
}

/// A condition of an object; null if it has none of this type.
pub fn condition(object: &DynamicObject, kind: &str) -> Value {
    let conditions = object.data.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().find(|one| one["type"] == kind).cloned().unwrap_or_default()
}

/// A way to a server that asks nobody who he is, such as a proxy of a test.
pub fn plain_kubeconfig(server: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "plain",
        "clusters": [{ "name": "plain", "cluster": { "server": server } }],
        "users": [{ "name": "plain", "user": {} }],
        "contexts": [{ "name": "plain", "context": { "cluster": "plain", "user": "plain" } }],
    })
}
