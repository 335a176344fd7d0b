//! An API server with CRDs on it, and objects as plain JSON.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use serde_json::Value;
use testkit::ControlPlane;
use testkit::process::eventually;
use tokio::sync::OnceCell;

/// The API server that the tests of this program share, with our CRDs.
pub(crate) async fn ours() -> Result<(&'static ControlPlane, Client)> {
    static INSTALLED: OnceCell<()> = OnceCell::const_new();
    let plane = ControlPlane::start().await?;
    let client = plane.client("api-test").await?;
    INSTALLED.get_or_try_init(|| install(&client, api::crds())).await?;
    Ok((plane, client))
}

/// Installs CRDs and waits until they are served.
pub(crate) async fn install(client: &Client, crds: Vec<Value>) -> Result<()> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    for crd in &crds {
        let name = crd["metadata"]["name"].as_str().context("a CRD without a name")?;
        // As JSON, so that nothing is lost in bindings.
        let parameters = PatchParams::apply("api-test").force();
        api.patch(name, &parameters, &Patch::Apply(crd)).await.with_context(|| format!("install {name}"))?;
        eventually(&format!("{name} is served"), Duration::from_secs(30), async || {
            let conditions = api.get(name).await?.status.and_then(|status| status.conditions);
            let served = |kind: &str| {
                conditions
                    .iter()
                    .flatten()
                    .any(|condition| condition.type_ == kind && condition.status == "True")
            };
            Ok((served("Established") && served("NamesAccepted")).then_some(()))
        })
        .await?;
    }
    Ok(())
}

/// The API of an object's kind. The plural is the regular one for all of ours.
pub(crate) fn api_of(client: &Client, namespace: &str, object: &Value) -> Result<Api<DynamicObject>> {
    let (version, kind) = (object["apiVersion"].as_str(), object["kind"].as_str());
    let (Some((group, version)), Some(kind)) = (version.and_then(|version| version.split_once('/')), kind)
    else {
        bail!("not an object: {object}");
    };
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    Ok(Api::namespaced_with(client.clone(), namespace, &resource))
}

/// Creates an object, or asks whether it could be; gives what the server makes of it, or its refusal.
pub(crate) async fn create(
    client: &Client,
    namespace: &str,
    object: &Value,
    dry_run: bool,
) -> Result<Result<Value, String>> {
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.insert("namespace".to_owned(), namespace.into());
    }
    let typed: DynamicObject = serde_json::from_value(object.clone())?;
    let parameters = PostParams { dry_run, ..PostParams::default() };
    answer(api_of(client, namespace, &object)?.create(&parameters, &typed).await)
}

/// What the server made of a request, or why it refused.
pub(crate) fn answer(result: kube::Result<DynamicObject>) -> Result<Result<Value, String>> {
    match result {
        Ok(object) => Ok(Ok(serde_json::to_value(object)?)),
        Err(kube::Error::Api(status)) => Ok(Err(status.message.clone())),
        Err(error) => Err(error.into()),
    }
}

/// The root of the workspace.
pub(crate) fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The documents of a YAML file.
pub(crate) fn documents(path: &Path) -> Result<Vec<Value>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(&text).with_context(|| format!("parse {}", path.display()))?;
    Ok(documents.into_iter().filter(|document| !document.is_null()).collect())
}

/// The YAML files of a folder, in the order of their names.
pub(crate) fn yaml_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    files.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    Ok(files)
}

/// A sample of ours by its path below `deploy/samples`, without its ending.
pub(crate) fn sample(name: &str) -> Result<Value> {
    let path = workspace().join("deploy/samples").join(format!("{name}.yaml"));
    documents(&path)?.into_iter().next().with_context(|| format!("{name} is empty"))
}

/// Changes a JSON document as a JSON merge patch says (RFC 7396).
pub(crate) fn merge(document: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *document = patch.clone();
        return;
    };
    if !document.is_object() {
        *document = serde_json::json!({});
    }
    let Some(fields) = document.as_object_mut() else { return };
    for (key, value) in patch {
        if value.is_null() {
            fields.remove(key);
        } else {
            merge(fields.entry(key).or_insert(Value::Null), value);
        }
    }
}
