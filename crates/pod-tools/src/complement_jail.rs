//! `slipway-node complement-jail`: makes the jail a complete root for this pod. What belongs to the pod (`/proc`,
//! `/dev`, `/run`, volumes for users, Slurm's own files) is bound into it.
//!
//! Mounts stay in this pod's mount namespace, so all pods share one jail without seeing each other's. A target is
//! resolved as a process inside the jail would: its links, which users can write, never lead outside.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};
use nix::mount::{MsFlags, mount};

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
            Ok(found) if found.is_symlink() => same_link(&jail, source, target)?,
            Ok(found) => {
                let at = target_in(&root, &jail, target, found.is_dir())?;
                bind(source, &at)
                    .with_context(|| format!("bind {} into the jail {}", source.display(), jail.display()))?;
                count += 1;
            }
        }
    }
    if worker {
        let outputs = jail.join(inside(Path::new(OUTPUTS)));
        let _ = DirBuilder::new().recursive(true).mode(0o777).create(&outputs);
        // Jobs of all users write there; a volume that forbids it keeps its own mode.
        let _ = fs::set_permissions(&outputs, fs::Permissions::from_mode(0o777));
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

/// Opens the place to mount on, as the jail sees it; makes it if it is not there.
fn target_in(root: &File, jail: &Path, target: &Path, folder: bool) -> Result<OwnedFd> {
    let open = || {
        let how = OpenHow::new()
            .flags(OFlag::O_PATH | OFlag::O_CLOEXEC)
            .resolve(ResolveFlag::RESOLVE_IN_ROOT | ResolveFlag::RESOLVE_NO_MAGICLINKS);
        openat2(root, target, how)
    };
    match open() {
        Ok(found) => return Ok(found),
        Err(Errno::ENOENT) => (),
        Err(error) => return Err(error).with_context(|| format!("open {} in the jail", target.display())),
    }
    let path = jail.join(target);
    let make = || -> io::Result<()> {
        // A link that leads nowhere: a jail made for a machine with another way to its resolv.conf.
        if path.is_symlink() {
            fs::remove_file(&path)?;
        }
        if folder {
            return fs::create_dir_all(&path);
        }
        fs::create_dir_all(path.parent().unwrap_or(jail))?;
        File::options().create(true).append(true).open(&path).map(|_| ())
    };
    make().with_context(|| format!("make {} in the jail, as a place to mount on", target.display()))?;
    open().with_context(|| format!("open {} in the jail", target.display()))
}

fn bind(source: &Path, at: &OwnedFd) -> nix::Result<()> {
    let at = format!("/proc/self/fd/{}", at.as_raw_fd());
    mount(Some(source), at.as_str(), None::<&str>, MsFlags::MS_BIND | MsFlags::MS_REC, None::<&str>)
}

/// A link cannot be mounted on; the jail gets the same one if it has nothing there.
fn same_link(jail: &Path, source: &Path, target: &Path) -> Result<()> {
    let path = jail.join(target);
    if path.symlink_metadata().is_ok() {
        return Ok(());
    }
    let link = || {
        fs::create_dir_all(path.parent().unwrap_or(jail))?;
        std::os::unix::fs::symlink(fs::read_link(source)?, &path)
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
        let at = target_in(&root, &jail, Path::new("etc/hosts"), false).unwrap();
        let opened = fs::read_link(format!("/proc/self/fd/{}", at.as_raw_fd())).unwrap();
        assert_eq!(opened, jail.canonicalize().unwrap().join("etc/hosts"));
        assert_eq!(fs::read_to_string(&outside).unwrap(), "of the pod");
    }

    #[test]
    fn a_missing_target_is_made_as_what_it_has_to_be() {
        let jail = tempfile::tempdir().unwrap();
        let root = File::open(jail.path()).unwrap();
        target_in(&root, jail.path(), Path::new("var/log"), true).unwrap();
        target_in(&root, jail.path(), Path::new("usr/bin/srun"), false).unwrap();
        assert!(jail.path().join("var/log").is_dir() && jail.path().join("usr/bin/srun").is_file());
    }
}
