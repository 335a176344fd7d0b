//! A cluster gives the machine back as it was. These run alone: anything else on the machine would show.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use e2e::{Machine, Place, Xtask};
use nix::sys::signal::{Signal, kill};
use testkit::cache::Cache;
use testkit::cluster::State;
use testkit::cluster::images::BUSYBOX;
use testkit::process::{Process, eventually, until};

/// Something that only nodes make: the cluster is in the middle of coming up.
async fn nodes_begin(before: &Machine) -> Result<()> {
    eventually("cgroups of nodes", Duration::from_secs(30), async || {
        Ok(before
            .changes()
            .iter()
            .any(|fact| fact.starts_with("cgroup") && fact.contains("node1"))
            .then_some(()))
    })
    .await
}

async fn ended(process: &mut Process) -> Result<std::process::ExitStatus> {
    until("the end of `up`", Duration::from_secs(60), || process.try_wait()).await
}

/// Pods with a volume, in the machine's user namespace and in one of their own.
fn pods() -> String {
    let pod = |name: &str, host_users: bool| {
        format!(
            r#"
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  hostUsers: {host_users}
  containers:
  - {{name: c, image: '{BUSYBOX}', command: [sleep, "1000"], volumeMounts: [{{name: v, mountPath: /v}}]}}
  volumes: [{{name: v, persistentVolumeClaim: {{claimName: v}}}}]
---"#
        )
    };
    let claim = "
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: v}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
";
    format!("{}{}{claim}", pod("plain", true), pod("apart", false))
}

#[test]
fn is_as_it_was_after_down_and_two_clusters_do_not_collide() -> Result<()> {
    testkit::run(async {
        let xtask = Xtask::find()?;
        let before = Machine::now();
        let one = xtask.up("machine-a", &["--nodes", "1"]).await?;
        let other = xtask.up("machine-b", &["--nodes", "1"]).await?;
        for cluster in [&one, &other] {
            let kubeconfig = xtask.run(&["cluster", "kubeconfig", "--name", cluster.name()]).await?;
            let place = Place::on(Path::new(&kubeconfig), "machine").await?;
            place.apply(&pods()).await?;
            for pod in ["plain", "apart"] {
                place.ready(pod).await?;
                place.exec(pod, &["touch", "/v/file"]).await?;
            }
            let status = xtask.run(&["cluster", "status", "--name", cluster.name()]).await?;
            assert_eq!(status.matches(" Ready").count(), 1, "{status}");
        }
        let seen = before.changes();
        let ours = ["cgroup", "namespace", "process"];
        assert!(
            seen.iter().all(|fact| ours.iter().any(|kind| fact.starts_with(kind))),
            "a running cluster shows outside: {seen:#?}"
        );
        let folder = State::folder(&Cache::locate()?, one.name());
        assert_eq!(folder.metadata()?.permissions().mode() & 0o077, 0, "others can read the cluster's keys");
        let again = xtask.run(&["cluster", "up", "--name", one.name()]).await.unwrap_err().to_string();
        assert!(again.contains("already there"), "{again}");
        one.down().await?;
        other.down().await?;
        before.is_back().await
    })
}

#[test]
fn is_as_it_was_after_the_demo_ran_twice() -> Result<()> {
    testkit::run_within(Duration::from_secs(600), async {
        let xtask = Xtask::find()?;
        let before = Machine::now();
        let cluster = xtask.cluster("machine-demo");
        let demo = |arguments: &[&'static str]| {
            [&["demo", "--name", cluster.name()], arguments]
                .concat()
                .into_iter()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let run = async |arguments: &[&'static str]| {
            let words = demo(arguments);
            xtask.run(&words.iter().map(String::as_str).collect::<Vec<_>>()).await
        };
        for _ in 0..2 {
            let printed = run(&[]).await?;
            assert!(printed.contains("worker-0 runs this as alice on Debian"), "{printed}");
            assert!(printed.contains("worker-[0-1]  COMPLETED      0:0"), "{printed}");
        }
        let hosts = run(&["ssh", "--", "srun -N2 hostname | sort"]).await?;
        assert_eq!(hosts, "worker-0\nworker-1");
        let refused = run(&["--shape", "user-namespaces"]).await.unwrap_err().to_string();
        assert!(refused.contains("the demo is up in the shape privileged"), "{refused}");
        run(&["--down"]).await?;
        before.is_back().await
    })
}

#[test]
fn a_control_plane_alone_takes_pretended_nodes() -> Result<()> {
    testkit::run(async {
        let xtask = Xtask::find()?;
        let before = Machine::now();
        let cluster = xtask.up("machine-f", &["--nodes", "0", "--fake", "2"]).await?;
        let status = xtask.run(&["cluster", "status", "--name", cluster.name()]).await?;
        assert_eq!(status.matches(" Ready").count(), 2, "{status}");
        cluster.down().await?;
        before.is_back().await
    })
}

#[test]
fn is_as_it_was_after_control_c_in_the_middle_of_up() -> Result<()> {
    testkit::run(async {
        let xtask = Xtask::find()?;
        let before = Machine::now();
        let cluster = xtask.cluster("machine-c");
        let mut up = xtask.start(&["cluster", "up", "--name", cluster.name(), "--nodes", "2"])?;
        nodes_begin(&before).await?;
        up.signal(Signal::SIGINT);
        assert!(!ended(&mut up).await?.success(), "an interrupted `up` must fail");
        before.is_back().await
    })
}

#[test]
fn is_as_it_was_after_up_is_killed() -> Result<()> {
    testkit::run(async {
        let xtask = Xtask::find()?;
        let before = Machine::now();
        let cluster = xtask.cluster("machine-d");
        let mut up = xtask.start(&["cluster", "up", "--name", cluster.name(), "--nodes", "2"])?;
        nodes_begin(&before).await?;
        up.kill();
        before.is_back().await
    })
}

#[test]
fn is_as_it_was_after_everything_is_killed_in_the_middle_of_up_and_then_down() -> Result<()> {
    testkit::run(async {
        let cache = Cache::locate()?;
        let xtask = Xtask::find()?;
        let before = Machine::now();
        let cluster = xtask.cluster("machine-e");
        let mut up = xtask.start(&["cluster", "up", "--name", cluster.name(), "--nodes", "2"])?;
        nodes_begin(&before).await?;
        let holder = State::holder(&cache, cluster.name()).context("nobody holds the cluster")?;
        kill(holder, Signal::SIGKILL)?;
        up.kill();
        let folder = State::folder(&cache, cluster.name());
        cluster.down().await?;
        before.is_back().await?;
        assert!(!folder.exists(), "the cluster's folder is still there");
        Ok(())
    })
}

#[test]
fn set_up_names_everything_that_is_missing_and_does_nothing() -> Result<()> {
    testkit::run(async {
        let folder = tempfile::tempdir()?;
        let cache = folder.path().join("cache");
        let program = std::env::var_os("SLIPWAY_XTASK").context("SLIPWAY_XTASK")?;
        let mut command = std::process::Command::new(program);
        command.arg("setup").env("PATH", "/nonexistent").env("SLIPWAY_CACHE", &cache);
        let output = command.output()?;
        let error = String::from_utf8_lossy(&output.stderr);
        for missing in ["`go` is missing", "apt-get install iproute2", "nothing was done"] {
            assert!(error.contains(missing), "{missing} is not in: {error}");
        }
        assert!(!output.status.success() && !cache.exists(), "something was done");
        Ok(())
    })
}

#[test]
fn bad_names_and_missing_clusters_are_explained() -> Result<()> {
    testkit::run(async {
        let xtask = Xtask::find()?;
        for (arguments, said) in [
            (["cluster", "up", "--name", "a/b"].as_slice(), "is no name for a cluster"),
            (
                ["cluster", "kubeconfig", "--name", "nobody"].as_slice(),
                "cargo xtask cluster up --name nobody",
            ),
            (["cluster", "load", "/nowhere.tar", "--name", "nobody"].as_slice(), "open /nowhere.tar"),
        ] {
            let error = xtask.run(arguments).await.unwrap_err().to_string();
            assert!(error.contains(said), "{said} is not in: {error}");
        }
        Ok(())
    })
}
