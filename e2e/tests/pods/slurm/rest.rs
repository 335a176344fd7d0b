//! slurmrestd in its image, without the rest of a cluster.

use anyhow::Result;
use e2e::Place;
use testkit::cache::{Cache, SlurmVersion};
use testkit::images::{REGISTRY, slurm_tag};

fn manifest(tag: &str) -> String {
    format!(
        r#"
apiVersion: v1
kind: ConfigMap
metadata: {{name: slurm-configs}}
data:
  slurm.conf: |
    ClusterName=alone
    SlurmctldHost=nobody
    AuthAltTypes=auth/jwt
    AccountingStorageType=accounting_storage/none
  slurm_rest.conf: |
    include /etc/slurm/slurm.conf
    AuthType=auth/jwt
---
apiVersion: v1
kind: Pod
metadata: {{name: rest}}
spec:
  terminationGracePeriodSeconds: 0
  securityContext: {{runAsUser: 33, runAsGroup: 33}}
  containers:
  - name: slurmrestd
    image: {REGISTRY}/slurmrestd:{tag}
    readinessProbe: {{tcpSocket: {{port: 6820}}, periodSeconds: 1}}
    securityContext: {{readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, capabilities: {{drop: [ALL]}}}}
    volumeMounts: [{{name: slurm-configs, mountPath: /mnt/slurm-configs}}]
  volumes: [{{name: slurm-configs, configMap: {{name: slurm-configs}}}}]
"#
    )
}

/// 24.11 ends at once if it has to serve accounting that slurm.conf does not name.
#[test]
fn slurmrestd_starts_without_accounting() -> Result<()> {
    testkit::run(async {
        for version in SlurmVersion::ALL {
            let place = Place::new("rest").await?;
            place.apply(&manifest(&slurm_tag(&Cache::locate()?, version)?)).await?;
            place.ready("rest").await?;
            let command = place
                .exec("rest", &["bash", "-c", "tr '\\0' ' ' < /proc/$(pgrep slurmrestd)/cmdline"])
                .await?;
            assert!(command.contains("-s slurmctld"), "{}: {command}", version.as_str());
            place.leave().await?;
        }
        Ok(())
    })
}
