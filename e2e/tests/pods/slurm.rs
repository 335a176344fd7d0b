//! The Slurm root file system as an image.

use std::time::Duration;

use anyhow::Result;
use e2e::Place;
use testkit::cluster::images::{SLURM_VERSION, slurm};
use testkit::process::eventually;

fn manifest() -> String {
    let image = slurm();
    format!(
        r#"
apiVersion: v1
kind: ConfigMap
metadata: {{name: slurm}}
data:
  slurm.conf: |
    ClusterName=pods
    SlurmctldHost=controller
    SlurmUser=slurm
    AuthType=auth/slurm
    CredType=cred/slurm
    StateSaveLocation=/var/spool/slurmctld
    SlurmctldPidFile=/run/slurmctld.pid
    ProctrackType=proctrack/linuxproc
    TaskPlugin=task/none
    NodeName=none State=FUTURE
    PartitionName=all Nodes=ALL Default=YES
---
apiVersion: v1
kind: Secret
metadata: {{name: slurm}}
stringData: {{slurm.key: {key}}}
---
apiVersion: v1
kind: Pod
metadata: {{name: controller}}
spec:
  terminationGracePeriodSeconds: 0
  securityContext: {{runAsUser: 64030, runAsGroup: 64030, fsGroup: 64030}}
  containers:
  - name: slurmctld
    image: {image}
    args: [slurmctld, -D]
    securityContext: {{readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, capabilities: {{drop: [ALL]}}}}
    volumeMounts:
    - {{name: conf, mountPath: /etc/slurm}}
    - {{name: run, mountPath: /run}}
    - {{name: spool, mountPath: /var/spool/slurmctld}}
  volumes:
  - name: conf
    projected:
      defaultMode: 0440
      sources: [{{configMap: {{name: slurm}}}}, {{secret: {{name: slurm}}}}]
  - {{name: run, emptyDir: {{medium: Memory}}}}
  - {{name: spool, emptyDir: {{medium: Memory}}}}
"#,
        key = "c".repeat(64)
    )
}

#[test]
fn slurmctld_answers_in_a_pod() -> Result<()> {
    testkit::run(async {
        let place = Place::new("slurm").await?;
        place.apply(&manifest()).await?;
        place.ready("controller").await?;
        let answer = eventually("scontrol ping", Duration::from_secs(30), async || {
            let answer = place.exec("controller", &["scontrol", "ping"]).await?;
            Ok(answer.contains("is UP").then_some(answer))
        })
        .await?;
        assert!(answer.contains("controller"), "{answer}");
        let said = place.exec("controller", &["scontrol", "--version"]).await?;
        assert!(said.contains(SLURM_VERSION.as_str()), "{said}");
        place.leave().await
    })
}
