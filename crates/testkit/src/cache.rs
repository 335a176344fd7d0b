//! Where the parts of the testbed are: one cache directory, one folder per part.
//!
//! A part's folder carries a hash of its recipe. It exists only when it is complete, so that a look is
//! enough to know whether set-up has work to do, and two checkouts with different recipes can share a cache.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use aws_lc_rs::digest;

use crate::layers::Layer;

pub const KUBERNETES_VERSION: &str = "1.36.4";
pub const KUBERNETES_PROGRAMS: [&str; 5] =
    ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy"];

const DEBIAN_PACKAGES: &str = include_str!("../../../testbed/debian/packages.txt");
const KUBERNETES_MOD: &str = include_str!("../../../testbed/go/kubernetes/go.mod");
const COREDNS_MOD: &str = include_str!("../../../testbed/go/coredns/go.mod");
const RUNC_MOD: &str = include_str!("../../../testbed/go/runc/go.mod");
const PAUSE_SOURCE: &str = include_str!("../../../testbed/images/pause.c");

/// The Slurm releases that Debian packages, and so the ones that everything is tested on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SlurmVersion {
    V24_11,
    V26_05,
}

impl SlurmVersion {
    pub const ALL: [Self; 2] = [Self::V24_11, Self::V26_05];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::V24_11 => "24.11",
            Self::V26_05 => "26.05",
        }
    }

    /// The Debian suite that has this release.
    pub fn suite(self) -> &'static str {
        match self {
            Self::V24_11 => "trixie",
            Self::V26_05 => "forky",
        }
    }

    /// The newest REST API version that this release serves.
    pub fn newest_api(self) -> &'static str {
        match self {
            Self::V24_11 => "v0.0.42",
            Self::V26_05 => "v0.0.45",
        }
    }
}

/// Something that set-up makes once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    /// Unpacked Debian packages: etcd, containerd, kubectl, CNI plugins and small tools.
    Debian,
    Kubernetes,
    CoreDns,
    Runc,
    /// A layer of the images, for one release of Slurm.
    Layer(SlurmVersion, Layer),
    /// OCI layout with the images that every node has: those of the testbed, and the layers of ours.
    Images,
    /// A containerd root with these images unpacked, shown to each node.
    ContainerdRoot,
}

impl Part {
    pub fn all() -> Vec<Self> {
        let mut all = vec![Self::Debian, Self::Kubernetes, Self::CoreDns, Self::Runc];
        all.extend(SlurmVersion::ALL.into_iter().flat_map(Self::layers));
        all.extend([Self::Images, Self::ContainerdRoot]);
        all
    }

    /// Every layer for one release of Slurm, those below first.
    pub fn layers(version: SlurmVersion) -> impl Iterator<Item = Self> {
        Layer::ALL.into_iter().map(move |layer| Self::Layer(version, layer))
    }

    /// The layers that nodes have.
    fn layers_of_images() -> impl Iterator<Item = Self> {
        let all = SlurmVersion::ALL.into_iter().flat_map(Self::layers);
        all.filter(|part| !matches!(part, Self::Layer(_, Layer::Testbed)))
    }

    pub fn name(self) -> String {
        match self {
            Self::Debian => "debian".into(),
            Self::Kubernetes => format!("kubernetes-{KUBERNETES_VERSION}"),
            Self::CoreDns => "coredns".into(),
            Self::Runc => "runc".into(),
            Self::Layer(version, layer) => format!("layer-{}-{}", layer.name(), version.as_str()),
            Self::Images => "images".into(),
            Self::ContainerdRoot => "containerd-root".into(),
        }
    }

    /// The parts that this one is made from.
    pub fn needs(self) -> Vec<Self> {
        match self {
            Self::Debian | Self::Kubernetes | Self::CoreDns => vec![],
            Self::Runc => vec![Self::Debian],
            Self::Layer(version, layer) => {
                let below = layer.below().iter().map(|below| Self::Layer(version, *below));
                std::iter::once(Self::Debian).chain(below).collect()
            }
            Self::Images => std::iter::once(Self::Debian).chain(Self::layers_of_images()).collect(),
            Self::ContainerdRoot => vec![Self::Debian, Self::Images],
        }
    }

    /// Everything that decides what this part contains. `r1` and so on: raised when the code that makes it changes.
    fn recipe(self) -> String {
        match self {
            // Libraries that fit one suite would shadow those of another.
            Self::Debian => format!("r1\n{}\n{}\n{DEBIAN_PACKAGES}", host_suite(), env::consts::ARCH),
            Self::Kubernetes => format!("r1\n{KUBERNETES_MOD}"),
            Self::CoreDns => format!("r1\n{COREDNS_MOD}"),
            Self::Runc => format!("r1\n{RUNC_MOD}"),
            Self::Layer(version, layer) => format!("r1\n{}", layer.recipe(version)),
            Self::Images => {
                let layers: Vec<_> = Self::layers_of_images().map(Self::recipe).collect();
                format!("r3\n{PAUSE_SOURCE}\n{}\n{}", Self::Debian.recipe(), layers.join("\n"))
            }
            Self::ContainerdRoot => format!("r1\n{}", Self::Images.recipe()),
        }
    }

    fn folder(self) -> String {
        format!("{}-{}", self.name(), &sha256(self.recipe().as_bytes())[..12])
    }
}

/// The cache directory.
#[derive(Debug, Clone)]
pub struct Cache {
    root: PathBuf,
}

impl Cache {
    /// `SLIPWAY_CACHE`, or `slipway` in the user's XDG cache directory.
    pub fn locate() -> Result<Self> {
        let from_env = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let root = from_env("SLIPWAY_CACHE")
            .or_else(|| from_env("XDG_CACHE_HOME").map(|base| base.join("slipway")))
            .or_else(|| from_env("HOME").map(|home| home.join(".cache/slipway")))
            .context("no cache directory: set SLIPWAY_CACHE, XDG_CACHE_HOME or HOME")?;
        Self::at(&root)
    }

    fn at(root: &Path) -> Result<Self> {
        // Without a slash at the end, so that a path in it begins with it and a slash.
        let root: PathBuf = root.components().collect();
        let text = root.to_str().unwrap_or("\\");
        let unfit = |c: char| c.is_whitespace() || [':', ',', '\\', '"'].contains(&c);
        if !root.is_absolute() || text.contains(unfit) {
            bail!(
                "the cache directory {} must be an absolute path without white space, colons, commas, quotes and \
                 backslashes (mount options have no way to write them): set SLIPWAY_CACHE to another one",
                root.display()
            );
        }
        Ok(Self { root })
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder of a part, whether or not it has been made.
    pub fn folder(&self, part: Part) -> PathBuf {
        self.root.join(part.folder())
    }

    pub fn has(&self, part: Part) -> bool {
        self.folder(part).is_dir()
    }

    /// The folder of a part that must be there.
    pub fn part(&self, part: Part) -> Result<PathBuf> {
        let folder = self.folder(part);
        if folder.is_dir() {
            return Ok(folder);
        }
        bail!("{} is not in {}: run `cargo xtask setup`", part.name(), self.root.display())
    }

    /// A Kubernetes program: the user's own if there is one, else the one that set-up built.
    pub fn kubernetes(&self, program: &str) -> Result<PathBuf> {
        match own_program(program) {
            Some(path) => Ok(path),
            None => Ok(self.part(Part::Kubernetes)?.join(program)),
        }
    }

    pub fn etcd(&self) -> Result<PathBuf> {
        match own_program("etcd") {
            Some(path) => Ok(path),
            None => self.debian_program("etcd"),
        }
    }

    /// A program from the unpacked Debian packages that runs as it is, without their libraries.
    pub fn debian_program(&self, program: &str) -> Result<PathBuf> {
        Ok(self.part(Part::Debian)?.join("usr/bin").join(program))
    }

    /// The files of one layer.
    pub fn layer(&self, version: SlurmVersion, layer: Layer) -> Result<PathBuf> {
        Ok(self.part(Part::Layer(version, layer))?.join("root"))
    }

    /// A layer and those below it, as an overlay mount names them.
    pub fn stack(&self, version: SlurmVersion, layers: &[Layer]) -> Result<String> {
        let folders = layers.iter().map(|layer| Ok(self.layer(version, *layer)?.display().to_string()));
        Ok(folders.collect::<Result<Vec<_>>>()?.join(":"))
    }

    /// Every daemon of Slurm, MariaDB, and users for tests.
    pub fn slurm_rootfs(&self, version: SlurmVersion) -> Result<String> {
        self.stack(version, &[&[Layer::Testbed], Layer::Testbed.below()].concat())
    }

    /// State of running clusters.
    pub fn clusters(&self) -> PathBuf {
        self.root.join("clusters")
    }
}

/// The hash of some bytes, in hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, bytes).as_ref())
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The Debian suite of this machine, such as `bookworm`.
pub fn host_suite() -> String {
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let suite = release.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    suite.unwrap_or_default().trim_matches('"').to_owned()
}

/// A program that the user named by `SLIPWAY_KUBE_BIN` or `KUBEBUILDER_ASSETS`. A relative folder would mean
/// another one in each test, and is not used.
pub fn own_program(program: &str) -> Option<PathBuf> {
    ["SLIPWAY_KUBE_BIN", "KUBEBUILDER_ASSETS"]
        .iter()
        .filter_map(env::var_os)
        .map(|folder| Path::new(&folder).join(program))
        .find(|path| path.is_absolute() && path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_found_by_its_recipe() {
        let folders: std::collections::BTreeSet<_> = Part::all().iter().map(|part| part.folder()).collect();
        assert_eq!(folders.len(), Part::all().len(), "two parts share a folder: {folders:?}");
        assert!(Part::Kubernetes.folder().starts_with("kubernetes-1.36.4-"));
    }

    #[test]
    fn a_cache_directory_that_scripts_cannot_name_is_refused() {
        assert_eq!(Cache::at(Path::new("/a/b/")).unwrap().root(), Path::new("/a/b"));
        assert_eq!(Cache::at(Path::new("/a/b/")).unwrap().root().to_str(), Some("/a/b"));
        for bad in ["relative", "/with space", "/with:colon", "/with,comma", "/with\\backslash"] {
            let error = Cache::at(Path::new(bad)).unwrap_err().to_string();
            assert!(error.contains(bad) && error.contains("SLIPWAY_CACHE"), "{error}");
        }
    }

    #[test]
    fn a_missing_part_says_how_to_get_it() {
        let cache = Cache { root: "/nonexistent/cache".into() };
        let error = cache.part(Part::Runc).unwrap_err().to_string();
        assert!(error.contains("runc") && error.contains("cargo xtask setup"), "{error}");
    }
}
