//! Filling the jail: from the volume at `/jail`, and again after a copy was killed.

use anyhow::Result;
use e2e::Place;
use k8s_openapi::api::core::v1::Pod;
use testkit::cache::{Cache, SlurmVersion};
use testkit::cluster::SHARED_STORAGE_CLASS;
use testkit::images::{REGISTRY, slurm_tag};
use testkit::process::eventually;

/// Kills a copy in its middle, shows that nobody takes it for a jail, and runs it again.
const SCRIPT: &str = r#"
set -eux
slipway-node populate-jail & copy=$!
until [ -e /mnt/jail/usr/bin ]; do kill -0 $copy; done
kill -KILL $copy
wait $copy || true
[ ! -e /mnt/jail/etc/soperator-jail-populated ]
if slipway-node wait-jail --timeout 0; then echo half a jail was taken for one; exit 1; fi
slipway-node populate-jail
slipway-node wait-jail --timeout 0
# From the volume, which is an image of something else: it has what the image of this pod has not.
[ -e /mnt/jail/usr/sbin/mariadbd ] && [ ! -e /usr/sbin/mariadbd ]
diff --recursive --no-dereference --brief /jail/usr /mnt/jail/usr
[ "$(stat -c '%u:%g %a' /mnt/jail)" = '0:0 755' ]
[ "$(stat -c '%u' /mnt/jail/var/lib/mysql)" = 64033 ]
slipway-node populate-jail | grep 'already populated'
"#;

fn manifest(tag: &str) -> String {
    let script = SCRIPT.replace('\n', "\n      ");
    format!(
        r#"
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: jail}}
spec: {{storageClassName: {SHARED_STORAGE_CLASS}, accessModes: [ReadWriteMany], resources: {{requests: {{storage: 1Gi}}}}}}
---
apiVersion: v1
kind: Pod
metadata: {{name: populate}}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 0
  containers:
  - name: populate-jail
    image: {REGISTRY}/populate_jail:{tag}
    command:
    - bash
    - -c
    - |-{script}
    volumeMounts: [{{name: jail, mountPath: /mnt/jail}}, {{name: snapshot, mountPath: /jail}}]
  volumes:
  - {{name: jail, persistentVolumeClaim: {{claimName: jail}}}}
  - {{name: snapshot, image: {{reference: '{REGISTRY}/mariadb:{tag}', pullPolicy: IfNotPresent}}}}
"#
    )
}

#[test]
fn a_killed_copy_is_finished_and_a_volume_wins() -> Result<()> {
    testkit::run(async {
        let place = Place::new("populate").await?;
        place.apply(&manifest(&slurm_tag(&Cache::locate()?, SlurmVersion::V26_05)?)).await?;
        let phase = eventually("the end of the pod", testkit::DEADLINE / 2, async || {
            let status = place.api::<Pod>().get("populate").await?.status.unwrap_or_default();
            let phase = status.phase.unwrap_or_default();
            Ok((phase == "Succeeded" || phase == "Failed").then_some(phase))
        })
        .await?;
        assert_eq!(phase, "Succeeded", "{}", place.logs("populate").await?);
        place.leave().await
    })
}
