//! A control plane that crashes and comes back, and one whose test process is killed.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::PostParams;
use serde_json::json;
use testkit::process::{Process, bound_command, eventually};
use testkit::{ControlPlane, FakeKubelet};

use crate::{PATIENCE, config_map, config_map_with, create};

const PROGRAMS: [&str; 3] = ["etcd", "kube-apiserver", "kube-controller-manager"];

/// Where the killed process below writes its scratch folder; also what tells it to start at all.
const REPORT: &str = "SLIPWAY_TESTKIT_REPORT";

#[test]
fn objects_outlive_the_api_server_and_nothing_outlives_the_control_plane() -> Result<()> {
    testkit::run(async {
        let mut plane = ControlPlane::own().await?;
        let scratch = scratch_of(&plane)?;
        let client = plane.client("survivor").await?;
        let _kubelet = FakeKubelet::nodes("survivor", 1).start(plane.client("kubelet").await?).await?;
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
        maps.create(&PostParams::default(), &config_map_with("kept", [("colour", "red")])).await?;

        plane.kill_api_server();
        let lost = maps.get("kept").await;
        assert!(matches!(lost, Err(kube::Error::Service(_) | kube::Error::HyperError(_))), "{lost:?}");
        assert_eq!(programs_in(&scratch), ["etcd", "kube-controller-manager"]);

        plane.restart_api_server().await?;
        let kept = maps.get("kept").await?;
        assert_eq!(kept.data.unwrap_or_default()["colour"], "red");
        // The audit log goes on where it was.
        let calls = plane.api_calls();
        let mark = calls.mark(&client).await?;
        maps.create(&PostParams::default(), &config_map("new")).await?;
        assert_eq!(calls.since(&client, mark).await?.by("survivor").len(), 1);

        // Neither controllers nor kubelets need a restart of their own.
        let jobs: Api<Job> = Api::namespaced(client, "default");
        create(
            &jobs,
            json!({
                "metadata": { "name": "after" },
                "spec": { "template": { "spec": {
                    "restartPolicy": "Never", "containers": [{ "name": "main", "image": "rope:1" }],
                } } },
            }),
        )
        .await?;
        eventually("a job of the new time", PATIENCE, async || {
            let status = jobs.get("after").await?.status.unwrap_or_default();
            Ok((status.succeeded == Some(1)).then_some(()))
        })
        .await?;

        drop(plane);
        assert!(programs_in(&scratch).is_empty() && !scratch.exists());
        Ok(())
    })
}

#[test]
fn a_killed_test_process_leaves_no_process_and_its_folder_is_swept() -> Result<()> {
    testkit::run(async {
        let folder = tempfile::tempdir()?;
        let report = folder.path().join("report");
        let mut command = bound_command(std::env::current_exe()?);
        command.args(["--exact", "life_and_death::victim", "--nocapture"]).env(REPORT, &report);
        let mut victim = Process::spawn("victim", command, &folder.path().join("log"))?;
        let scratch = eventually("the victim's control plane", Duration::from_secs(60), async || {
            victim.check_running()?;
            Ok(fs::read_to_string(&report).ok().filter(|path| path.ends_with('\n')))
        })
        .await?;
        let scratch = PathBuf::from(scratch.trim_end());
        assert_eq!(programs_in(&scratch), PROGRAMS);

        victim.kill();
        eventually("its processes are gone", Duration::from_secs(5), async || {
            let left = programs_in(&scratch);
            ensure!(left.is_empty(), "still there: {left:?}");
            Ok(Some(()))
        })
        .await?;

        let _next = ControlPlane::own().await?;
        assert!(!scratch.exists());
        Ok(())
    })
}

/// Not a test of its own: the process that the test above kills.
#[test]
fn victim() -> Result<()> {
    let Some(report) = std::env::var_os(REPORT) else { return Ok(()) };
    testkit::run(async {
        let plane = ControlPlane::own().await?;
        fs::write(report, format!("{}\n", scratch_of(&plane)?.display()))?;
        std::future::pending().await
    })
}

fn scratch_of(plane: &ControlPlane) -> Result<PathBuf> {
    plane
        .pki()
        .folder()
        .parent()
        .map(Path::to_owned)
        .context("the certificates are in a folder of the scratch")
}

/// The names of programs that have this folder in their arguments. A zombie has no arguments.
fn programs_in(folder: &Path) -> Vec<String> {
    let folder = folder.display().to_string();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut names: Vec<_> = processes
        .filter_map(|process| fs::read_to_string(process.path().join("cmdline")).ok())
        .filter(|arguments| arguments.contains(&folder))
        .filter_map(|arguments| {
            Some(Path::new(arguments.split('\0').next()?).file_name()?.to_str()?.to_owned())
        })
        .collect();
    names.sort();
    names
}
