//! `slipway-node complement-jail`: makes the jail a complete root for this pod. What belongs to the pod (`/proc`,
//! `/dev`, `/run`, volumes for users, Slurm's own files) is bound into it.
//!
//! Mounts stay in this pod's mount namespace, so all pods share one jail without seeing each other's. A target is
//! resolved as a process inside the jail would: its links, which users can write, never lead outside.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat, openat2, readlinkat};
use nix::mount::{MsFlags, mount};
use nix::sys::stat::{Mode, mkdirat};
use nix::unistd::{UnlinkatFlags, symlinkat, unlinkat};

use crate::jail_lock;
use crate::mounts::{below, mount_points};
use crate::say::say;

/// Of every pod, with all that is mounted below.
const FOLDERS: [&str; 6] = ["/proc", "/sys", "/dev", "/run", "/tmp", "/var/log"];
/// What Kubernetes writes for the pod.
const FILES: [&str; 2] = ["/etc/resolv.conf", "/etc/hosts"];
/// Where sssd answers, if the pod has it.
const SSSD: &str = "/var/lib/sss/pipes";
/// Batch scripts are run from here.
const SLURMD_SPOOL: &str = "/var/spool/slurmd";
/// Where checks leave what they found, whoever runs them.
const OUTPUTS: &str = "/opt/soperator-outputs";
/// Commands, libraries and plugins of Slurm, written when the image was built.
const SLURM_FILES: &str = "/usr/share/slipway/jail-files";
/// `PluginDir`: a link in Debian.
const PLUGIN_DIR: &str = "/usr/lib/slurm";

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The jail
    #[arg(short = 'j', long, default_value = jail::JAIL)]
    jail: PathBuf,
    /// Where the volumes are that appear in the jail
    #[arg(short = 'u', long, default_value = jail::UPPER)]
    upper: PathBuf,
    /// For a worker: also what jobs need
    #[arg(short = 'w', long)]
    worker: bool,
}

pub fn run(args: Args) -> Result<()> {
    let Args { jail, upper, worker } = args;
    let mounted = mount_points()?;
    let list = fs::read_to_string(SLURM_FILES).unwrap_or_default();
    let wanted = wanted(&mounted, &upper, &list, worker);
    let root = File::open(&jail).with_context(|| format!("open the jail {}", jail.display()))?;
    let mut count = 0;
    for Bind { source, target } in &wanted {
        // A second run in one container finds the mounts of the first.
        if mounted.contains(&jail.join(target)) {
            continue;
        }
        match fs::symlink_metadata(source) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error).with_context(|| format!("look at {}", source.display())),
            Ok(found) if found.is_symlink() && same_link(&root, source, target)? => (),
            Ok(_) => {
                let kind = if source.is_dir() { Kind::Folder } else { Kind::File };
                let at = target_in(&root, target, kind)?;
                bind(source, &at)
                    .with_context(|| format!("bind {} into the jail {}", source.display(), jail.display()))?;
                count += 1;
            }
        }
    }
    if worker {
        let outputs = target_in(&root, inside(Path::new(OUTPUTS)), Kind::Folder)?;
        // Jobs of all users write there, and rename nothing that is not theirs: volumes are mounted on it. A volume that
        // forbids it keeps its own mode.
        let _ = fs::set_permissions(path_of(&outputs), fs::Permissions::from_mode(0o1777));
    }
    say(&format!("{count} mounts in the jail {}", jail.display()));
    Ok(())
}

/// A file or folder of the pod, and where it appears in the jail.
#[derive(Debug, PartialEq, Eq)]
struct Bind {
    source: PathBuf,
    /// Relative to the jail.
    target: PathBuf,
}

impl Bind {
    /// At the same path as in the pod.
    fn same(path: impl Into<PathBuf>) -> Self {
        let source = path.into();
        Self { target: inside(&source).to_owned(), source }
    }
}

fn inside(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}

/// Everything that is to appear in the jail, parents before children. User volumes come last: they win.
fn wanted(mounted: &[PathBuf], upper: &Path, slurm_files: &str, worker: bool) -> Vec<Bind> {
    let always = FOLDERS.iter().chain(&FILES).chain([&SSSD]).map(Bind::same);
    let slurm = slurm_files.lines().chain([PLUGIN_DIR]).map(Bind::same);
    let spool = worker.then(|| Bind::same(SLURMD_SPOOL));
    let volumes = below(mounted, upper).map(|point| Bind {
        source: point.to_owned(),
        target: point.strip_prefix(upper).unwrap_or(point).to_owned(),
    });
    always.chain(slurm).chain(spool).chain(volumes).collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Folder,
    File,
}

/// Opens the place to mount on, as the jail sees it; makes it, and the folders above it, if they are not there.
fn target_in(root: &File, target: &Path, kind: Kind) -> Result<OwnedFd> {
    let failed = |what: &str| format!("{what} {} in the jail", target.display());
    let mut parent: OwnedFd = root.try_clone().context("open the jail")?.into();
    let mut path = PathBuf::new();
    for component in target {
        path.push(component);
        parent = match open_in(root, &path) {
            Err(Errno::ENOENT) => {
                // Another pod that starts at the same time may make the same, and mount on it.
                let _lock = jail_lock::take(&path_of(root)).with_context(|| failed("make"))?;
                if matches!(open_in(root, &path), Err(Errno::ENOENT)) {
                    let kind = if path == target { kind } else { Kind::Folder };
                    make(&parent, component, kind).with_context(|| failed("make"))?;
                }
                open_in(root, &path)
            }
            opened => opened,
        }
        .with_context(|| failed("open"))?;
    }
    Ok(parent)
}

/// Links lead where they would for a process whose root is the jail.
fn open_in(root: &File, path: &Path) -> nix::Result<OwnedFd> {
    let how = OpenHow::new()
        .flags(OFlag::O_PATH | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_IN_ROOT | ResolveFlag::RESOLVE_NO_MAGICLINKS);
    openat2(root, path, how)
}

fn make(parent: &OwnedFd, name: &OsStr, kind: Kind) -> nix::Result<()> {
    // A link that leads nowhere: a jail made for a machine with another way to its resolv.conf.
    if readlinkat(parent, name).is_ok() {
        unlinkat(parent, name, UnlinkatFlags::NoRemoveDir)?;
    }
    match kind {
        Kind::Folder => mkdirat(parent, name, Mode::from_bits_truncate(0o755)),
        Kind::File => {
            let flags = OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_WRONLY | OFlag::O_CLOEXEC;
            openat(parent, name, flags, Mode::from_bits_truncate(0o644)).map(|_| ())
        }
    }
}

/// A name for what is open, wherever it lies.
fn path_of(open: &impl AsRawFd) -> PathBuf {
    format!("/proc/self/fd/{}", open.as_raw_fd()).into()
}

fn bind(source: &Path, at: &OwnedFd) -> nix::Result<()> {
    mount(Some(source), &path_of(at), None::<&str>, MsFlags::MS_BIND | MsFlags::MS_REC, None::<&str>)
}

/// Whether the jail has the link that the pod has: it gets it if it has nothing there. Something else there has to be
/// covered by what the link leads to.
fn same_link(root: &File, source: &Path, target: &Path) -> Result<bool> {
    let link = || -> Result<bool> {
        let name = target.file_name().context("a link without a name")?;
        let parent = target_in(root, target.parent().unwrap_or(Path::new("")), Kind::Folder)?;
        let wanted = fs::read_link(source)?;
        match symlinkat(&wanted, &parent, name) {
            Ok(()) => Ok(true),
            Err(Errno::EEXIST) => Ok(readlinkat(&parent, name).is_ok_and(|found| found == *wanted)),
            Err(error) => Err(error.into()),
        }
    };
    link().with_context(|| format!("link {} in the jail", target.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(worker: bool) -> Vec<String> {
        let mounted = ["/proc", "/mnt/jail", "/mnt/jail.upper/mnt/memory", "/mnt/jail.upper/data"];
        let mounted = mounted.map(PathBuf::from);
        let list = "/usr/bin/srun\n/usr/lib/x86_64-linux-gnu/slurm-wlm\n";
        let wanted = wanted(&mounted, Path::new("/mnt/jail.upper"), list, worker);
        wanted.into_iter().map(|bind| bind.target.display().to_string()).collect()
    }

    #[test]
    fn volumes_under_upper_appear_in_the_jail_after_everything_else() {
        assert!(targets(false).ends_with(&["mnt/memory".to_owned(), "data".to_owned()]));
    }

    #[test]
    fn slurm_comes_from_the_image() {
        let targets = targets(false);
        assert!(targets.contains(&"usr/bin/srun".to_owned()), "{targets:?}");
        assert!(targets.contains(&"usr/lib/slurm".to_owned()), "{targets:?}");
    }

    #[test]
    fn only_workers_share_the_spool_of_slurmd() {
        let spool = "var/spool/slurmd".to_owned();
        assert!(targets(true).contains(&spool) && !targets(false).contains(&spool));
    }

    #[test]
    fn a_link_of_the_jail_does_not_lead_outside() {
        let base = tempfile::tempdir().unwrap();
        let jail = base.path().join("jail");
        let outside = base.path().join("outside");
        fs::create_dir_all(jail.join("etc")).unwrap();
        fs::write(&outside, "of the pod").unwrap();
        // Absolute, to a file that exists outside and not inside.
        std::os::unix::fs::symlink(&outside, jail.join("etc/hosts")).unwrap();
        let root = File::open(&jail).unwrap();
        let at = target_in(&root, Path::new("etc/hosts"), Kind::File).unwrap();
        assert_eq!(fs::read_link(path_of(&at)).unwrap(), jail.canonicalize().unwrap().join("etc/hosts"));
        assert_eq!(fs::read_to_string(&outside).unwrap(), "of the pod");
    }

    #[test]
    fn a_missing_target_is_made_as_what_it_has_to_be() {
        let jail = tempfile::tempdir().unwrap();
        let root = File::open(jail.path()).unwrap();
        for _ in 0..2 {
            target_in(&root, Path::new("var/log"), Kind::Folder).unwrap();
            target_in(&root, Path::new("usr/bin/srun"), Kind::File).unwrap();
        }
        assert!(jail.path().join("var/log").is_dir() && jail.path().join("usr/bin/srun").is_file());
    }

    #[test]
    fn folders_are_made_where_links_lead_inside_the_jail() {
        let base = tempfile::tempdir().unwrap();
        let (jail, outside) = (base.path().join("jail"), base.path().join("outside"));
        fs::create_dir_all(&outside).unwrap();
        fs::create_dir_all(jail.join("usr/lib")).unwrap();
        // A merged /usr, as most distributions have it; and one that root of the jail points at the pod.
        std::os::unix::fs::symlink("usr/lib", jail.join("lib")).unwrap();
        std::os::unix::fs::symlink(&outside, jail.join("opt")).unwrap();
        let root = File::open(&jail).unwrap();
        target_in(&root, Path::new("lib/slurm"), Kind::Folder).unwrap();
        assert!(jail.join("usr/lib/slurm").is_dir());
        target_in(&root, Path::new("opt/soperator-outputs"), Kind::Folder).unwrap();
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0, "something was made outside");
        assert!(jail.join("opt/soperator-outputs").is_dir());
    }

    #[test]
    fn a_link_is_the_same_or_has_to_be_covered() {
        let base = tempfile::tempdir().unwrap();
        let (jail, source) = (base.path().join("jail"), base.path().join("slurm"));
        fs::create_dir(&jail).unwrap();
        std::os::unix::fs::symlink("x86_64-linux-gnu/slurm-wlm", &source).unwrap();
        let root = File::open(&jail).unwrap();
        let is_same = || same_link(&root, &source, Path::new("usr/lib/slurm")).unwrap();
        assert!(is_same() && is_same(), "made, and then found");
        let target = jail.join("usr/lib/slurm");
        fs::remove_file(&target).unwrap();
        std::os::unix::fs::symlink("elsewhere", &target).unwrap();
        assert!(!is_same(), "a link to plugins of another release");
        fs::remove_file(&target).unwrap();
        fs::create_dir(&target).unwrap();
        assert!(!is_same(), "a folder of plugins of another release");
    }
}
