//! A cluster gives the machine back as it was. These run alone: anything else on the machine would show.

use std::time::Duration;

use anyhow::{Context, Result};
use e2e::{Machine, Xtask};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use testkit::cache::Cache;
use testkit::cluster::State;
use testkit::process::eventually;

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

fn pid(child: &std::process::Child) -> Pid {
    Pid::from_raw(child.id().cast_signed())
}

#[test]
fn is_as_it_was_after_down_and_two_clusters_do_not_collide() -> Result<()> {
    testkit::run(async {
        let xtask = Xtask::find()?;
        let before = Machine::now();
        xtask.run(&["cluster", "up", "--name", "machine-a", "--nodes", "1"])?;
        xtask.run(&["cluster", "up", "--name", "machine-b", "--nodes", "1"])?;
        let seen = before.changes();
        let ours = ["cgroup", "namespace", "process"];
        assert!(
            seen.iter().all(|fact| ours.iter().any(|kind| fact.starts_with(kind))),
            "a running cluster shows outside: {seen:#?}"
        );
        assert_eq!(xtask.run(&["cluster", "status", "--name", "machine-a"])?.matches(" Ready").count(), 1);
        assert_eq!(xtask.run(&["cluster", "status", "--name", "machine-b"])?.matches(" Ready").count(), 1);
        let again = xtask.run(&["cluster", "up", "--name", "machine-a"]).unwrap_err().to_string();
        assert!(again.contains("already there"), "{again}");
        xtask.run(&["cluster", "down", "--name", "machine-a"])?;
        xtask.run(&["cluster", "down", "--name", "machine-b"])?;
        before.is_back().await
    })
}

#[test]
fn a_control_plane_alone_takes_pretended_nodes() -> Result<()> {
    testkit::run(async {
        let xtask = Xtask::find()?;
        let before = Machine::now();
        xtask.run(&["cluster", "up", "--name", "machine-f", "--nodes", "0", "--fake", "2"])?;
        assert_eq!(xtask.run(&["cluster", "status", "--name", "machine-f"])?.matches(" Ready").count(), 2);
        xtask.run(&["cluster", "down", "--name", "machine-f"])?;
        before.is_back().await
    })
}

#[test]
fn is_as_it_was_after_control_c_in_the_middle_of_up() -> Result<()> {
    testkit::run(async {
        let before = Machine::now();
        let mut up = Xtask::find()?.start(&["cluster", "up", "--name", "machine-c", "--nodes", "2"])?;
        nodes_begin(&before).await?;
        kill(pid(&up), Signal::SIGINT)?;
        assert!(!up.wait()?.success(), "an interrupted `up` must fail");
        before.is_back().await
    })
}

#[test]
fn is_as_it_was_after_up_is_killed() -> Result<()> {
    testkit::run(async {
        let before = Machine::now();
        let mut up = Xtask::find()?.start(&["cluster", "up", "--name", "machine-d", "--nodes", "2"])?;
        nodes_begin(&before).await?;
        kill(pid(&up), Signal::SIGKILL)?;
        up.wait()?;
        before.is_back().await
    })
}

#[test]
fn is_as_it_was_after_everything_is_killed_in_the_middle_of_up_and_then_down() -> Result<()> {
    testkit::run(async {
        let cache = Cache::locate()?;
        let xtask = Xtask::find()?;
        let before = Machine::now();
        let mut up = xtask.start(&["cluster", "up", "--name", "machine-e", "--nodes", "2"])?;
        nodes_begin(&before).await?;
        let holder = State::holder(&cache, "machine-e").context("nobody holds the cluster")?;
        kill(pid(&up), Signal::SIGKILL)?;
        kill(holder, Signal::SIGKILL)?;
        up.wait()?;
        xtask.run(&["cluster", "down", "--name", "machine-e"])?;
        before.is_back().await?;
        assert!(!State::folder(&cache, "machine-e").exists(), "the cluster's folder is still there");
        Ok(())
    })
}

#[test]
fn set_up_names_everything_that_is_missing_and_does_nothing() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let cache = folder.path().join("cache");
    let environment = [("PATH", "/nonexistent".as_ref()), ("SLIPWAY_CACHE", cache.as_os_str())];
    let error = Xtask::find()?.with_env(&environment).run(&["setup"]).unwrap_err().to_string();
    for missing in ["`go` is missing", "apt-get install iproute2", "nothing was done"] {
        assert!(error.contains(missing), "{missing} is not in: {error}");
    }
    assert!(!cache.exists(), "something was done");
    Ok(())
}
