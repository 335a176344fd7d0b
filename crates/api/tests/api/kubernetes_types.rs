//! `crates/api/src/schema/kubernetes.json` is what an API server publishes.

use anyhow::Result;
use serde_json::Value;
use testkit::ControlPlane;

use crate::server::workspace;

/// Run it with `SLIPWAY_WRITE=1` to write the file anew, after Kubernetes was upgraded.
#[test]
fn embedded_types_are_those_that_the_api_server_publishes() -> Result<()> {
    testkit::run(async {
        let client = ControlPlane::start().await?.client("api-test").await?;
        let request = http::Request::get("/openapi/v3/api/v1").body(Vec::new())?;
        let published: Value = serde_json::from_str(&client.request_text(request).await?)?;
        let published = Value::Object(api::schema::kubernetes::published_by(&published));
        let path = workspace().join("crates/api/src/schema/kubernetes.json");
        if std::env::var_os("SLIPWAY_WRITE").is_some() {
            std::fs::write(&path, serde_json::to_string_pretty(&published)? + "\n")?;
        }
        let ours: Value = serde_json::from_str(&std::fs::read_to_string(path)?)?;
        assert!(ours == published, "out of date: run this test with SLIPWAY_WRITE=1");
        Ok(())
    })
}
