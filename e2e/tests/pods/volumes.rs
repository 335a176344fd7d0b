//! One volume, seen from two nodes, with and without a user namespace.

use anyhow::{Context, Result};
use e2e::Place;
use testkit::cluster::SHARED_STORAGE_CLASS;
use testkit::cluster::images::BUSYBOX;

const CLAIM: &str = "shared";

fn claim() -> String {
    format!(
        "{{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {{name: {CLAIM}}}, spec: {{storageClassName: \
         {SHARED_STORAGE_CLASS}, accessModes: [ReadWriteMany], resources: {{requests: {{storage: 16Mi}}}}}}}}"
    )
}

fn pod(name: &str, node: &str, host_users: bool) -> String {
    format!(
        r#"
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  nodeName: {node}
  hostUsers: {host_users}
  terminationGracePeriodSeconds: 0
  containers:
  - name: c
    image: {BUSYBOX}
    command: [sleep, "1000"]
    volumeMounts: [{{name: shared, mountPath: /shared}}]
  volumes: [{{name: shared, persistentVolumeClaim: {{claimName: {CLAIM}}}}}]
"#
    )
}

#[test]
fn a_shared_volume_is_the_same_on_two_nodes() -> Result<()> {
    testkit::run(async {
        let place = Place::new("rwx").await?;
        place.apply(&claim()).await?;
        place.apply(&pod("writer", "node1", true)).await?;
        place.apply(&pod("reader", "node2", true)).await?;
        place.ready("writer").await?;
        place.ready("reader").await?;
        place.exec("writer", &["sh", "-c", "echo from node1 > /shared/file"]).await?;
        assert_eq!(place.exec("reader", &["cat", "/shared/file"]).await?, "from node1\n");
        place.exec("reader", &["sh", "-c", "echo and node2 >> /shared/file"]).await?;
        assert_eq!(place.exec("writer", &["cat", "/shared/file"]).await?, "from node1\nand node2\n");
        place.leave().await
    })
}

#[test]
fn a_pod_with_a_user_namespace_shares_a_volume_with_an_ordinary_one() -> Result<()> {
    testkit::run(async {
        let place = Place::new("userns").await?;
        place.apply(&claim()).await?;
        place.apply(&pod("inside", "node1", false)).await?;
        place.apply(&pod("plain", "node2", true)).await?;
        place.ready("inside").await?;
        place.ready("plain").await?;

        let map = place.exec("inside", &["cat", "/proc/self/uid_map"]).await?;
        let map: Vec<u64> = map.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [inside, outside, length] = map[..] else { anyhow::bail!("uid_map {map:?}") };
        assert!(
            inside == 0 && outside >= 65536 && length == 65536,
            "root of the pod is {outside} on the machine"
        );

        let script = "echo x > /shared/file && touch /shared/alice && chown 2001:2002 /shared/alice";
        let chown = ["sh", "-c", &script.replace("chown", "/bin/busybox chown")];
        place.exec("inside", &chown).await?;
        let owners = ["stat", "-c", "%n %u:%g", "/shared/file", "/shared/alice"];
        let seen = place.exec("plain", &owners).await.context("owners seen from the ordinary pod")?;
        assert_eq!(seen, "/shared/file 0:0\n/shared/alice 2001:2002\n");
        assert_eq!(place.exec("inside", &owners).await?, seen, "both pods see the same owners");
        place.leave().await
    })
}
