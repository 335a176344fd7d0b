//! Our files as they lie in images: `images/rootfs`, and the programs under the names that pods call.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use testkit::images::Ours;
use testkit::oci::EPOCH;

use super::programs::Programs;
use crate::workspace;

/// Names under which charts of the Go operators call the control plane.
const OPERATOR_LINKS: [&str; 6] = [
    "manager",
    "webhook",
    "usr/bin/slurm_operator",
    "usr/bin/soperatorchecks",
    "usr/bin/exporter",
    "usr/bin/soperator-exporter",
];
const NODE_LINKS: [&str; 2] = ["usr/bin/rebooter", "usr/bin/sconfigcontroller"];
/// The link `/usr/lib/slurm` leads here.
const PLUGINS: &str = "usr/lib/x86_64-linux-gnu/slurm-wlm";
const SLIPWAY_NODE: &str = "usr/local/bin/slipway-node";
const ENTRYPOINTS: &str = "opt/bin/slurm";

pub(super) fn make(ours: Ours, programs: &Programs, root: &Path) -> Result<()> {
    gather(ours, programs, root)?;
    settle(root)
}

/// Files with their modes, and links.
pub(super) fn gather(ours: Ours, programs: &Programs, root: &Path) -> Result<()> {
    fs::create_dir_all(root)?;
    match ours {
        Ours::Nothing => (),
        Ours::Slurm => {
            copy_tree(&workspace().join("images/rootfs"), root)?;
            put(&programs.slipway_node, &root.join(SLIPWAY_NODE), 0o755)?;
            put(&programs.plugin, &root.join(PLUGINS).join("chroot.so"), 0o644)?;
            link("/usr/local/bin/slipway-node", &root.join("opt/soperator/bin/power-manager"))?;
        }
        Ours::Populate => {
            put(&programs.slipway_node, &root.join(SLIPWAY_NODE), 0o755)?;
            entrypoint(root, "populate_jail_entrypoint.sh")?;
        }
        Ours::Database => entrypoint(root, "mariadb_entrypoint.sh")?,
        Ours::Operator => {
            put(&programs.slipway, &root.join("usr/bin/slipway"), 0o755)?;
            for name in OPERATOR_LINKS {
                link("/usr/bin/slipway", &root.join(name))?;
            }
        }
        Ours::Node => {
            put(&programs.slipway_node, &root.join("usr/bin/slipway-node"), 0o755)?;
            for name in NODE_LINKS {
                link("/usr/bin/slipway-node", &root.join(name))?;
            }
        }
    }
    Ok(())
}

fn entrypoint(root: &Path, name: &str) -> Result<()> {
    put(
        &workspace().join("images/rootfs").join(ENTRYPOINTS).join(name),
        &root.join(ENTRYPOINTS).join(name),
        0o755,
    )
}

fn put(from: &Path, to: &Path, mode: u32) -> Result<()> {
    fs::create_dir_all(to.parent().unwrap_or(to))?;
    fs::copy(from, to).with_context(|| format!("copy {}", from.display()))?;
    Ok(fs::set_permissions(to, fs::Permissions::from_mode(mode))?)
}

fn link(target: &str, at: &Path) -> Result<()> {
    fs::create_dir_all(at.parent().unwrap_or(at))?;
    symlink(target, at).with_context(|| format!("link {}", at.display()))
}

fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    for entry in fs::read_dir(from).with_context(|| format!("read {}", from.display()))? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name());
        if path.is_dir() {
            copy_tree(&path, &to.join(name))?;
        } else {
            // A checkout keeps only whether a file is executable; the rest depends on who checked it out.
            let executable = path.metadata()?.permissions().mode() & 0o100 != 0;
            put(&path, &to.join(name), if executable { 0o755 } else { 0o644 })?;
        }
    }
    Ok(())
}

/// Owners, modes of folders and times: not those of the build.
fn settle(root: &Path) -> Result<()> {
    let script = format!(
        "chown -hR 0:0 . && find . -type d -exec chmod 755 {{}} + && find . -exec touch -h -d {EPOCH} {{}} +"
    );
    let status = Command::new("sh").args(["-c", &script]).current_dir(root).status()?;
    if !status.success() {
        bail!("set owners and times in {}: {status}", root.display());
    }
    Ok(())
}
