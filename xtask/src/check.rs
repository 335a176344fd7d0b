//! `cargo xtask check`: who may use whom. The table below is the architecture; Cargo.toml has to follow it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use anyhow::{Context, Result, bail};
use cargo_metadata::{DependencyKind, Metadata, MetadataCommand};

use crate::crd_diff::{self, AllowList, CrdSet, Detail};
use crate::{cargo, generate, tell, workspace};

/// One crate: what it is for and which other crates of the workspace it may use.
/// Who may use a crate may use what that crate uses.
struct Room {
    name: &'static str,
    purpose: &'static str,
    uses: &'static [&'static str],
    /// No I/O: cannot even be linked with a runtime or an HTTP client.
    pure: bool,
}

const fn pure(name: &'static str, purpose: &'static str, uses: &'static [&'static str]) -> Room {
    Room { name, purpose, uses, pure: true }
}

const fn room(name: &'static str, purpose: &'static str, uses: &'static [&'static str]) -> Room {
    Room { name, purpose, uses, pure: false }
}

/// All rooms of the architecture, also those that are still to be built.
const ROOMS: &[Room] = &[
    pure("slurm", "what Slurm is: files, hostlists, TRES, node and job states, facts", &[]),
    room("slurm-rest", "talking to slurmrestd", &["slurm"]),
    pure("api", "custom resources of both groups", &[]),
    pure("cluster-model", "the wanted cluster, product-neutral", &["slurm"]),
    pure("render", "model to Kubernetes objects", &["cluster-model"]),
    pure("workers", "the life of a worker: a pure planner", &["slurm"]),
    room("worker-control", "carries the planner's actions out", &["workers", "engine", "slurm-rest"]),
    room("engine", "cache, queue, apply, conditions, leader; knows no Slurm", &[]),
    room("sample", "the smallest product on the engine: an example, its tests and benches", &["engine"]),
    room("contract", "what every controller has to keep, as tests", &["engine", "testkit"]),
    room("soperator", "controllers of slurm.nebius.ai", &["render", "worker-control", "api"]),
    room("slinky", "controllers of slinky.slurm.net", &["render", "worker-control", "api"]),
    room("admission", "webhook server, certificates, validators", &["api"]),
    room("exporter", "Slurm to Prometheus", &["engine", "slurm-rest"]),
    room("node-agent", "reboots and drains on the host", &["engine", "slurm-rest", "api"]),
    room("config-sync", "writes configuration into the jail", &["engine", "slurm-rest", "api"]),
    room("power", "resume and suspend", &["engine", "slurm-rest", "api"]),
    room("jail", "where the jail is, and whether it is whole", &[]),
    room("pod-tools", "what Slurm pods run at start", &["jail", "slurm"]),
    room("spank-chroot", "the SPANK plugin", &["jail"]),
    room("telemetry", "logging, metrics, health endpoints, build info", &[]),
    room("testkit", "real Kubernetes and real Slurm for tests", &[]),
    room("slipway", "the control-plane program", &["soperator", "slinky", "admission", "exporter"]),
    room(
        "slipway-node",
        "the program on hosts and in Slurm images",
        &["node-agent", "config-sync", "power", "pod-tools"],
    ),
    room("e2e", "promises kept on real nodes", &["testkit"]),
    room("xtask", "the project's own commands", &["testkit", "api", "engine"]),
];

/// What a pure crate cannot be linked with.
const IMPURE: [&str; 5] = ["tokio", "kube-client", "kube-runtime", "hyper", "reqwest"];

pub(crate) fn command() -> Result<()> {
    dependency_rules()?;
    generate::up_to_date()?;
    compatibility()?;
    tell("the dependency rules hold, the generated files are up to date");
    Ok(())
}

/// Fails with every broken rule at once.
pub(crate) fn dependency_rules() -> Result<()> {
    let metadata =
        MetadataCommand::new().current_dir(workspace()).no_deps().exec().context("cargo metadata")?;
    let mut broken = broken_rules(&edges(&metadata));
    for room in ROOMS.iter().filter(|room| room.pure) {
        if metadata.packages.iter().any(|package| package.name.as_str() == room.name) {
            broken.extend(impurities(room.name)?);
        }
    }
    if broken.is_empty() {
        return Ok(());
    }
    bail!("dependency rules (xtask/src/check.rs):\n  - {}", broken.join("\n  - "))
}

/// Fails if our custom resources differ from the originals' in a way that the allow-list does not explain, or if an entry of it
/// explains nothing any more. The originals' files are not part of the project; without them there is nothing to compare.
pub(crate) fn compatibility() -> Result<()> {
    let peers = workspace().join("../shared/peers");
    if !peers.is_dir() {
        tell("custom resources: not compared, since the originals' files are not beside the project");
        return Ok(());
    }
    let theirs = CrdSet::read_all(&peers)?;
    let ours = CrdSet::new("crates/api", api::crds())?;
    let allowed = AllowList::of_workspace()?;
    let report = crd_diff::compare(&ours, &theirs, &allowed)?;
    if report.unexplained().next().is_none() && report.stale().is_empty() {
        return Ok(());
    }
    bail!("custom resources:\n{}", report.lines(Detail { allowed: false, stale: true }).join("\n"))
}

/// Which crate uses which other crate of the workspace, tests apart.
fn edges(metadata: &Metadata) -> BTreeMap<String, BTreeSet<String>> {
    let names: BTreeSet<&str> = metadata.packages.iter().map(|package| package.name.as_str()).collect();
    let uses = |package: &cargo_metadata::Package| {
        let ours = package.dependencies.iter().filter(|dependency| {
            dependency.kind != DependencyKind::Development && names.contains(dependency.name.as_str())
        });
        ours.map(|dependency| dependency.name.clone()).collect()
    };
    metadata.packages.iter().map(|package| (package.name.to_string(), uses(package))).collect()
}

fn broken_rules(edges: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let mut broken = Vec::new();
    for (name, uses) in edges {
        let Some(room) = ROOMS.iter().find(|room| room.name == name) else {
            broken.push(format!("{name} has no room: add it to the table with what it is for"));
            continue;
        };
        let mut allowed = reachable(room);
        if !room.pure {
            allowed.insert("telemetry");
        }
        let wrong = uses.iter().filter(|used| !allowed.contains(used.as_str()));
        broken.extend(wrong.map(|used| format!("{name} must not use {used}")));
    }
    broken
}

/// The rooms that a room may use, through others too.
fn reachable(room: &Room) -> BTreeSet<&'static str> {
    let mut found = BTreeSet::new();
    let mut next: Vec<&'static str> = room.uses.to_vec();
    while let Some(name) = next.pop() {
        if found.insert(name)
            && let Some(used) = ROOMS.iter().find(|room| room.name == name)
        {
            next.extend(used.uses);
        }
    }
    found
}

/// `cargo tree` resolves features for this crate alone; the workspace's union would show what others ask for.
fn impurities(name: &str) -> Result<Vec<String>> {
    let tree = ["tree", "--package", name, "--edges", "normal", "--prefix", "none", "--format", "{lib}"];
    let output = cargo(&tree).output()?;
    if !output.status.success() {
        bail!("cargo tree for {name}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let linked: BTreeSet<String> = text.lines().map(|line| line.trim().replace('_', "-")).collect();
    Ok(IMPURE
        .iter()
        .filter(|crate_name| linked.contains(**crate_name))
        .map(|crate_name| format!("{name} is pure and must not be linked with {crate_name}"))
        .collect())
}

/// The table as a page of the documentation.
pub(crate) fn rooms_page() -> String {
    let mut page = String::from(
        "# Rooms\n\nGenerated by `cargo xtask generate` from the table that `cargo xtask check` enforces.\n\
         Who may use a crate may use what that crate uses. A pure crate does no I/O and cannot be linked with a\n\
         runtime or an HTTP client. `telemetry` is open to all but the pure crates; `testkit` is for tests.\n\n\
         | crate | for | may use | pure | built |\n|---|---|---|---|---|\n",
    );
    for room in ROOMS {
        let built =
            ["crates", "bins", ""].iter().any(|folder| workspace().join(folder).join(room.name).is_dir());
        let mark = |yes: bool| if yes { "yes" } else { "" };
        // Writing to a String cannot fail.
        let _ = writeln!(
            page,
            "| {} | {} | {} | {} | {} |",
            room.name,
            room.purpose,
            room.uses.join(", "),
            mark(room.pure),
            mark(built)
        );
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uses(name: &str, used: &[&str]) -> BTreeMap<String, BTreeSet<String>> {
        BTreeMap::from([(name.to_owned(), used.iter().map(ToString::to_string).collect())])
    }

    #[test]
    fn what_is_reachable_is_allowed() {
        assert_eq!(
            broken_rules(&uses("soperator", &["render", "slurm", "slurm-rest", "telemetry"])),
            [""; 0]
        );
    }

    #[test]
    fn a_wrong_use_is_named() {
        assert_eq!(broken_rules(&uses("engine", &["slurm"])), ["engine must not use slurm"]);
        assert_eq!(broken_rules(&uses("render", &["telemetry"])), ["render must not use telemetry"]);
        assert_eq!(broken_rules(&uses("slipway", &["testkit"])), ["slipway must not use testkit"]);
    }

    #[test]
    fn a_crate_without_a_room_is_named() {
        assert!(broken_rules(&uses("utils", &[]))[0].starts_with("utils has no room"));
    }

    #[test]
    fn what_a_crate_is_linked_with_is_found_through_others() {
        let found = impurities("testkit").unwrap();
        assert!(found.contains(&"testkit is pure and must not be linked with hyper".to_owned()), "{found:?}");
        assert!(found.iter().any(|line| line.ends_with(" kube-client")), "{found:?}");
    }

    #[test]
    fn every_use_names_a_room_and_pure_rooms_use_pure_rooms() {
        for room in ROOMS {
            for used in room.uses {
                let used = ROOMS.iter().find(|other| other.name == *used).unwrap();
                assert!(!room.pure || used.pure, "{} is pure, {} is not", room.name, used.name);
            }
        }
    }
}
