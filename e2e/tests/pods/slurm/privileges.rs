//! What the pods may do: no more than the manifests say, and as little as these say.

use anyhow::{Context, Result};
use testkit::by_hand::Shape;

use super::site::{DEADLINE, Site, site};

const SYS_ADMIN: u64 = 1 << 21;

/// A line of /proc/PID/status.
async fn status(site: &Site, pod: &str, container: &str, pid: &str, name: &str) -> Result<String> {
    let text = site.slurm.exec(pod, container, &["cat", &format!("/proc/{pid}/status")]).await?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .with_context(|| format!("no {name} in {text}"))?;
    Ok(line.trim_start_matches(':').trim().to_owned())
}

async fn capabilities(site: &Site, pod: &str, container: &str) -> Result<u64> {
    Ok(u64::from_str_radix(&status(site, pod, container, "1", "CapBnd").await?, 16)?)
}

#[test]
fn slurmrestd_is_a_plain_user_on_a_read_only_root() -> Result<()> {
    testkit::run_within(DEADLINE, async {
        let site = site(Shape::Privileged).await?;
        assert_eq!(capabilities(&site, "deploy/rest", "slurmrestd").await?, 0);
        let users = status(&site, "deploy/rest", "slurmrestd", "1", "Uid").await?;
        assert_eq!(users.split_whitespace().collect::<Vec<_>>(), ["33"; 4]);
        let write = site.slurm.exec("deploy/rest", "slurmrestd", &["touch", "/var/tmp/x"]).await;
        assert!(format!("{:#}", write.unwrap_err()).contains("Read-only file system"));
        Ok(())
    })
}

#[test]
fn controller_and_accounting_are_root_without_its_powers() -> Result<()> {
    testkit::run_within(DEADLINE, async {
        let site = site(Shape::Privileged).await?;
        for (pod, container) in [("controller-0", "slurmctld"), ("deploy/accounting", "accounting")] {
            let held = capabilities(&site, pod, container).await?;
            assert_eq!(held & SYS_ADMIN, 0, "{container} has SYS_ADMIN");
            assert_eq!(held.count_ones(), 1, "{container} has {held:x}, and needs SETGID only");
            assert!(status(&site, pod, container, "1", "Uid").await?.starts_with('0'));
        }
        Ok(())
    })
}

#[test]
fn in_user_namespaces_nobody_is_root_of_the_machine() -> Result<()> {
    testkit::run_within(DEADLINE, async {
        let site = site(Shape::UserNamespaces).await?;
        for (pod, container) in [("login-0", "sshd"), ("worker-0", "slurmd"), ("worker-1", "slurmd")] {
            let map = site.slurm.exec(pod, container, &["cat", "/proc/self/uid_map"]).await?;
            let outside: u64 = map.split_whitespace().nth(1).context("uid_map")?.parse()?;
            assert!(outside >= 65536, "root of {pod} is {outside} on the machine");
        }
        let specs = site.slurm.kubectl(&["get", "pods", "--output", "yaml"]).await?;
        assert!(!specs.contains("privileged: true"));
        Ok(())
    })
}
