//! The product's images: which layers, which of our files, which entrypoint. Names are those that users of
//! Soperator know.

use std::fs;

use anyhow::{Context, Result};

use crate::cache::{Cache, SlurmVersion};
use crate::layers::Layer;

/// Where the images are said to come from. Nothing is pulled from there: nodes have them.
pub const REGISTRY: &str = "slipway.hpc";
/// The first half of every tag.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What we add on top of Debian's layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ours {
    Nothing,
    /// Entrypoints, `slipway-node` and the SPANK plugin.
    Slurm,
    /// What copies the image's own root into the jail.
    Populate,
    Database,
    /// The control plane, alone.
    Operator,
    /// The node tools, alone.
    Node,
}

impl Ours {
    pub const ALL: [Self; 6] =
        [Self::Nothing, Self::Slurm, Self::Populate, Self::Database, Self::Operator, Self::Node];

    pub fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Slurm => "slurm",
            Self::Populate => "populate",
            Self::Database => "database",
            Self::Operator => "operator",
            Self::Node => "node",
        }
    }
}

#[derive(Debug)]
pub struct Image {
    pub name: &'static str,
    /// Bottom first.
    pub layers: &'static [Layer],
    pub ours: Ours,
    pub entrypoint: &'static [&'static str],
    pub cmd: &'static [&'static str],
    /// As in an image's configuration: empty is root.
    pub user: &'static str,
}

const SLURM: &[Layer] = &[Layer::Base, Layer::Slurm];
const SESSION: &[Layer] = &[Layer::Base, Layer::Slurm, Layer::Session];
const JAIL: &[Layer] = &[Layer::Base, Layer::Jail];

/// An image that is an entrypoint over Slurm's layers.
const fn slurm(name: &'static str, layers: &'static [Layer], entrypoint: &'static [&'static str]) -> Image {
    Image { name, layers, ours: Ours::Slurm, entrypoint, cmd: &[], user: "" }
}

/// tini reaps orphans, and passes signals on: a script that waits would not hear them as the first process.
pub const IMAGES: [Image; 11] = [
    slurm("controller_slurmctld", SLURM, &["/usr/bin/tini", "--", "/opt/bin/slurm/slurmctld_entrypoint.sh"]),
    slurm("controller_slurmdbd", SLURM, &["/usr/bin/tini", "--", "/opt/bin/slurm/slurmdbd_entrypoint.sh"]),
    slurm("slurmrestd", SLURM, &["/usr/bin/tini", "--", "/opt/bin/slurm/slurmrestd_entrypoint.sh"]),
    slurm("munge", SLURM, &["/usr/bin/tini", "--", "/opt/bin/slurm/munge_entrypoint.sh"]),
    slurm("login_sshd", SESSION, &["/usr/bin/tini", "--", "/opt/bin/slurm/sshd_entrypoint.sh"]),
    slurm("worker_slurmd", SESSION, &["/usr/bin/tini", "--", "/opt/bin/slurm/supervisord_entrypoint.sh"]),
    Image {
        name: "populate_jail",
        layers: JAIL,
        ours: Ours::Populate,
        entrypoint: &["/usr/bin/tini", "--", "/opt/bin/slurm/populate_jail_entrypoint.sh"],
        cmd: &[],
        user: "",
    },
    Image { name: "jail", layers: JAIL, ours: Ours::Nothing, entrypoint: &[], cmd: &["/bin/bash"], user: "" },
    Image {
        name: "mariadb",
        layers: &[Layer::Base, Layer::MariaDb],
        ours: Ours::Database,
        entrypoint: &["/usr/bin/tini", "--", "/opt/bin/slurm/mariadb_entrypoint.sh"],
        cmd: &[],
        user: "",
    },
    Image {
        name: "slipway",
        layers: &[],
        ours: Ours::Operator,
        entrypoint: &["/usr/bin/slipway"],
        cmd: &["operator"],
        user: "65532:65532",
    },
    Image {
        name: "slipway-node",
        layers: &[],
        ours: Ours::Node,
        entrypoint: &["/usr/bin/slipway-node"],
        cmd: &["rebooter"],
        user: "",
    },
];

impl Image {
    /// The programs alone are the same for every release of Slurm.
    pub fn is_for_slurm(&self) -> bool {
        !self.layers.is_empty()
    }
}

/// The release of Slurm that Debian's suite has at the moment, such as `26.05.5`.
pub fn slurm_release(cache: &Cache, version: SlurmVersion) -> Result<String> {
    let status = cache.layer(version, Layer::Slurm)?.join("var/lib/dpkg/status");
    let text = fs::read_to_string(&status).with_context(|| format!("read {}", status.display()))?;
    package_version(&text, "slurmctld").with_context(|| format!("no slurmctld in {}", status.display()))
}

/// `Version: 1:26.05.5-2` of a package → `26.05.5`
fn package_version(status: &str, package: &str) -> Option<String> {
    let heading = format!("Package: {package}");
    let paragraph = status.split("\n\n").find(|paragraph| paragraph.lines().any(|line| line == heading))?;
    let version = paragraph.lines().find_map(|line| line.strip_prefix("Version: "))?;
    let upstream = version.split_once(':').map_or(version, |(_, rest)| rest).rsplit_once('-');
    Some(upstream.map_or(version, |(upstream, _)| upstream).to_owned())
}

/// The tag of the images for a release of Slurm.
pub fn slurm_tag(cache: &Cache, version: SlurmVersion) -> Result<String> {
    Ok(format!("{VERSION}-slurm{}", slurm_release(cache, version)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_release_is_read_from_dpkg() {
        let status = "Package: slurm\nVersion: 1\n\nPackage: slurmctld\nStatus: install ok\nVersion: 1:26.05.5-2+b1\n\n";
        assert_eq!(package_version(status, "slurmctld").as_deref(), Some("26.05.5"));
        assert_eq!(package_version(status, "slurmd"), None);
    }

    #[test]
    fn an_image_stacks_its_layers_as_they_were_made() {
        for image in &IMAGES {
            if let Some((top, _)) = image.layers.split_last() {
                let mut stack: Vec<_> = top.below().iter().rev().copied().collect();
                stack.push(*top);
                assert_eq!(image.layers, stack, "{}", image.name);
            }
        }
    }
}
