//! Our two programs in images with nothing else in them.

use anyhow::Result;
use e2e::Place;
use testkit::images::{REGISTRY, VERSION};

fn pod(name: &str, image: &str, more: &str) -> String {
    format!(
        r#"
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 10
  containers:
  - name: {name}
    image: {REGISTRY}/{image}:{VERSION}
    readinessProbe: {{httpGet: {{path: /healthz, port: 8081}}, periodSeconds: 1}}
    securityContext: {{readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, capabilities: {{drop: [ALL]}}}}
    {more}
"#
    )
}

/// As images are, and by the name that a chart of the Go operator calls.
#[test]
fn they_run_alone_and_by_their_other_names() -> Result<()> {
    testkit::run(async {
        let place = Place::new("programs").await?;
        let pods = [
            ("operator", "slipway", "resources: {}"),
            ("manager", "slipway", "command: [/manager]"),
            ("node", "slipway-node", "resources: {}"),
            ("rebooter", "slipway-node", "command: [/usr/bin/rebooter]"),
        ];
        for (name, image, more) in pods {
            place.apply(&pod(name, image, more)).await?;
        }
        for (name, ..) in pods {
            place.ready(name).await?;
        }
        let log = place.logs("manager").await?;
        assert!(log.contains("\"component\":\"operator\""), "{log}");
        place.leave().await
    })
}
