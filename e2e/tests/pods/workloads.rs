//! StatefulSets, names, exec, logs, rolling updates and image loading.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use anyhow::{Context, Result};
use e2e::{Place, Xtask};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use testkit::cache::Cache;
use testkit::cluster::State;
use testkit::cluster::images::BUSYBOX;
use testkit::oci::{Config, Layout};
use testkit::process::eventually;

fn web(generation: &str) -> String {
    format!(
        r#"
apiVersion: v1
kind: Service
metadata: {{name: web}}
spec:
  clusterIP: None
  selector: {{app: web}}
  ports: [{{port: 80}}]
---
apiVersion: v1
kind: Service
metadata: {{name: front}}
spec:
  selector: {{app: web}}
  ports: [{{port: 80}}]
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {{name: web}}
spec:
  serviceName: web
  replicas: 3
  podManagementPolicy: Parallel
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec:
      terminationGracePeriodSeconds: 0
      topologySpreadConstraints:
      - {{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, labelSelector: {{matchLabels: {{app: web}}}}}}
      initContainers:
      - name: content
        image: {BUSYBOX}
        command: [sh, -c, "echo $HOSTNAME of {generation} >> /data/index.html"]
        volumeMounts: [{{name: data, mountPath: /data}}]
      containers:
      - name: httpd
        image: {BUSYBOX}
        command: [sh, -c, "echo serving; exec httpd -f -h /data"]
        readinessProbe: {{httpGet: {{path: /index.html, port: 80}}, periodSeconds: 1}}
        volumeMounts: [{{name: data, mountPath: /data}}]
  volumeClaimTemplates:
  - metadata: {{name: data}}
    spec: {{accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 16Mi}}}}}}
"#
    )
}

async fn rolled_out(place: &Place) -> Result<()> {
    let sets: Api<StatefulSet> = place.api();
    eventually("StatefulSet rolled out", Duration::from_secs(90), async || {
        let set = sets.get("web").await?;
        let status = set.status.as_ref().context("no status")?;
        let done = status.observed_generation == set.metadata.generation
            && status.updated_replicas == Some(3)
            && status.ready_replicas == Some(3)
            && status.current_revision == status.update_revision;
        Ok(done.then_some(()))
    })
    .await
}

#[test]
fn a_statefulset_keeps_its_volumes_and_names_through_a_rolling_update() -> Result<()> {
    testkit::run(async {
        let place = Place::new("web").await?;
        place.apply(&web("first")).await?;
        rolled_out(&place).await?;

        let pods: Vec<Pod> = place.api().list(&ListParams::default()).await?.items;
        let mut nodes: Vec<_> = pods.iter().filter_map(|pod| pod.spec.as_ref()?.node_name.clone()).collect();
        nodes.sort();
        assert_eq!(nodes, ["node1", "node2", "node3"], "one pod on each node");

        assert_eq!(place.logs("web-0").await?, "serving\n");
        let other = format!("http://web-1.web.{}.svc.cluster.local/index.html", place.namespace());
        let page = eventually("the other pod by name", Duration::from_secs(20), async || {
            place.exec("web-0", &["wget", "-q", "-O", "-", &other]).await.map(Some)
        })
        .await?;
        assert_eq!(page, "web-1 of first\n");
        // Through kube-proxy.
        let page = place.exec("web-2", &["wget", "-q", "-O", "-", "http://front/index.html"]).await?;
        assert!(page.contains(" of first"), "{page}");

        place.apply(&web("second")).await?;
        rolled_out(&place).await?;
        let content = place.exec("web-2", &["cat", "/data/index.html"]).await?;
        assert_eq!(content, "web-2 of first\nweb-2 of second\n", "the volume outlives the pod");
        place.leave().await
    })
}

#[test]
fn controller_manager_and_scheduler_have_names_of_their_own() -> Result<()> {
    testkit::run(async {
        let place = Place::new("names").await?;
        let calls = State::api_calls(&Cache::locate()?, &Place::shared_cluster()?);
        let mark = calls.mark(&place.client()).await?;
        place
            .apply(&format!(
                "{{apiVersion: batch/v1, kind: Job, metadata: {{name: once}}, spec: {{template: {{spec: {{restartPolicy: \
                 Never, containers: [{{name: c, image: '{BUSYBOX}', command: ['true']}}]}}}}}}}}"
            ))
            .await?;
        let jobs: Api<Job> = place.api();
        eventually("the job", Duration::from_secs(30), async || {
            Ok(jobs.get("once").await?.status.and_then(|status| status.succeeded).filter(|done| *done == 1))
        })
        .await?;
        let calls = calls.since(&place.client(), mark).await?.within(place.namespace());
        let created = |client: &str, resource: &str| {
            calls.by(client).of(resource).filter(|call| call.verb == "create").len()
        };
        assert_eq!(created("system:kube-controller-manager", "pods"), 1, "{calls:?}");
        assert_eq!(created("system:kube-scheduler", "pods/binding"), 1, "{calls:?}");
        place.leave().await
    })
}

#[test]
fn a_failed_command_in_a_pod_is_an_error() -> Result<()> {
    testkit::run(async {
        let place = Place::new("exec").await?;
        place
            .apply(&format!(
                "{{apiVersion: v1, kind: Pod, metadata: {{name: box}}, spec: {{terminationGracePeriodSeconds: 0, \
                 containers: [{{name: c, image: '{BUSYBOX}', command: [sleep, '1000']}}]}}}}"
            ))
            .await?;
        place.ready("box").await?;
        assert_eq!(place.exec("box", &["hostname"]).await?, "box\n");
        let error = place.exec("box", &["ls", "/nowhere"]).await.unwrap_err().to_string();
        assert!(error.contains("/nowhere: No such file or directory"), "{error}");
        place.leave().await
    })
}

#[test]
fn a_loaded_image_runs_on_every_node() -> Result<()> {
    testkit::run(async {
        let cache = Cache::locate()?;
        let work = tempfile::tempdir()?;
        let root = work.path().join("root");
        fs::create_dir_all(root.join("bin"))?;
        fs::copy(cache.debian_program("busybox")?, root.join("bin/busybox"))?;
        symlink("busybox", root.join("bin/sh"))?;
        let name = "test.slipway.hpc/loaded:1";
        let mut layout = Layout::new(work.path().join("layout"))?;
        let layer = layout.layer(&root)?;
        let entrypoint: &[&str] = &["/bin/sh", "-c", "echo loaded; sleep 1000"];
        layout.add(name, &[layer], &Config { entrypoint, ..Config::default() })?;
        let archive = work.path().join("image.tar");
        layout.archive(&archive)?;
        let path = archive.to_str().context("the path is not UTF-8")?;
        Xtask::find()?.run(&["cluster", "load", path, "--name", &Place::shared_cluster()?]).await?;

        let place = Place::new("load").await?;
        for node in ["node1", "node3"] {
            place
                .apply(&format!(
                    "{{apiVersion: v1, kind: Pod, metadata: {{name: {node}}}, spec: {{nodeName: {node}, \
                     terminationGracePeriodSeconds: 0, containers: [{{name: c, image: '{name}'}}]}}}}"
                ))
                .await?;
        }
        for node in ["node1", "node3"] {
            let pod = place.ready(node).await?;
            assert_eq!(pod.name_any(), node);
            // Ready is a moment before the first line is written.
            eventually("its output", Duration::from_secs(10), async || {
                Ok((place.logs(node).await? == "loaded\n").then_some(()))
            })
            .await?;
        }
        place.leave().await
    })
}
