use anyhow::Result;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::json;
use testkit::ControlPlane;

#[test]
fn probe() -> Result<()> {
    testkit::run(async {
        let plane = ControlPlane::start().await?;
        let client = plane.client("probe").await?;
        let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
        for crd in api::crds() {
            let name = crd["metadata"]["name"].as_str().unwrap().to_owned();
            match crds.patch(&name, &PatchParams::apply("test").force(), &Patch::Apply(&crd)).await {
                Ok(_) => println!("ok {name}"),
                Err(e) => println!("{e:#}"),
            }
        }
        Ok(())
    })
}
