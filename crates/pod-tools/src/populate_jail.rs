//! `slipway-node populate-jail`: fills the jail from an image, once.
//!
//! The source is a snapshot volume at `/jail` if there is one, else this image's own root. A copy that was killed is
//! finished by the next run; `OVERWRITE=1` makes the jail anew and keeps only the users' homes.

mod copy;

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use jail::{POPULATED, POPULATING, State};

use crate::mounts::mount_points;
use crate::say::say;
use copy::Copy;

/// Of the image's own root: what belongs to this pod and this program, not to the jail.
const NOT_THE_JAIL: [&str; 4] = ["jail", "opt/bin", "usr/local/bin/slipway-node", ".dockerenv"];
/// Folders that are the pod's in every jail: made, and left empty.
const EMPTY: [&str; 5] = ["dev", "proc", "run", "sys", "tmp"];
/// The same in the image's own root, where the jail itself is mounted below.
const EMPTY_OF_THE_IMAGE: [&str; 1] = ["mnt"];
/// What `OVERWRITE=1` leaves alone.
const KEPT: [&str; 2] = ["home", "lost+found"];

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The jail
    #[arg(long, default_value = jail::JAIL)]
    jail: PathBuf,
    /// Where a volume with the content of the jail may be
    #[arg(long, default_value = "/jail")]
    snapshot: PathBuf,
    /// `1` makes a jail anew that is already there
    #[arg(long, env = "OVERWRITE", default_value = "0")]
    overwrite: String,
}

pub fn run(args: Args) -> Result<()> {
    let Args { jail, snapshot, overwrite } = args;
    let overwrite = match overwrite.as_str() {
        "1" => true,
        "0" | "" => false,
        other => bail!("OVERWRITE is `{other}`: use 1 to make the jail anew, 0 to keep one that is there"),
    };
    match decide(State::of(&jail), overwrite) {
        Decision::Keep => say("the jail is already populated"),
        Decision::Mark => {
            mark(&jail)?;
            say("the jail was populated by an older release: marked");
        }
        Decision::Fill { afresh } => fill(&jail, &snapshot, afresh)?,
    }
    Ok(())
}

#[derive(Debug, PartialEq, Eq)]
enum Decision {
    Keep,
    /// Populated, but nobody would see it.
    Mark,
    Fill {
        /// Remove what the source does not have.
        afresh: bool,
    },
}

fn decide(state: State, overwrite: bool) -> Decision {
    match (state, overwrite) {
        (_, true) => Decision::Fill { afresh: true },
        (State::Populated, false) => Decision::Keep,
        (State::Legacy, false) => Decision::Mark,
        (State::Empty | State::Unfinished, false) => Decision::Fill { afresh: false },
    }
}

fn fill(jail: &Path, snapshot: &Path, afresh: bool) -> Result<()> {
    let started = Instant::now();
    let populating = jail.join(POPULATING);
    File::create(&populating)
        .and_then(|file| file.sync_all())
        .with_context(|| format!("write {}: can this pod write to the jail?", populating.display()))?;
    let Source { root: source, skip, empty } = Source::choose(snapshot);
    say(&format!("populating {} from {}", jail.display(), source.display()));
    let skip = skip.iter().map(|path| source.join(path)).collect();
    let empty = EMPTY.iter().chain(empty).map(|name| source.join(name));
    let mut copy = Copy::new(skip, mount_points()?.into_iter().chain(empty).collect());
    copy.tree(&source, jail)?;
    if afresh {
        let keep: Vec<_> = KEPT.iter().chain([&POPULATING, &POPULATED]).map(|name| jail.join(name)).collect();
        copy.remove_others(&source, jail, &keep)?;
    }
    // sshd takes no other for a ChrootDirectory, and provisioners make volumes for everybody.
    fs::set_permissions(jail, fs::Permissions::from_mode(0o755)).context("chmod 755 of the jail")?;
    chown(jail, Some(0), Some(0)).context("chown of the jail to root")?;
    root_key(jail)?;
    mark(jail)?;
    fs::remove_file(&populating).with_context(|| format!("remove {}", populating.display()))?;
    say(&format!("populated in {:.1} s: {copy}", started.elapsed().as_secs_f64()));
    Ok(())
}

/// Where the content comes from.
struct Source {
    root: PathBuf,
    /// Left out.
    skip: &'static [&'static str],
    /// Made, and left empty.
    empty: &'static [&'static str],
}

impl Source {
    fn choose(snapshot: &Path) -> Self {
        if snapshot.join("etc").is_dir() && snapshot.join("usr").is_dir() {
            Self { root: snapshot.to_owned(), skip: &[], empty: &[] }
        } else {
            Self { root: PathBuf::from("/"), skip: &NOT_THE_JAIL, empty: &EMPTY_OF_THE_IMAGE }
        }
    }
}

/// Root's key for ssh between login and worker pods, made once per jail.
fn root_key(jail: &Path) -> Result<()> {
    let key = jail.join("root/.ssh/id_ecdsa");
    if key.exists() {
        return Ok(());
    }
    let folder = jail.join("root/.ssh");
    fs::create_dir_all(&folder)?;
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700))?;
    let status = Command::new("ssh-keygen")
        .args(["-q", "-t", "ecdsa", "-N", "", "-C", "root@jail", "-f"])
        .arg(&key)
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => bail!("ssh-keygen for root of the jail: {status}"),
        Err(error) => {
            Err(error).context("start ssh-keygen: install openssh-client in the populate-jail image")
        }
    }
}

fn mark(jail: &Path) -> Result<()> {
    let path = jail.join(POPULATED);
    let write = || {
        fs::create_dir_all(path.parent().unwrap_or(jail))?;
        // All of the copy has to be there before the sign that it is.
        let file = File::create(&path)?;
        nix::unistd::syncfs(&file)?;
        file.sync_all()
    };
    write().with_context(|| format!("write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for path in ["etc", "usr/bin", "root", "dev"] {
            fs::create_dir_all(folder.path().join(path)).unwrap();
        }
        fs::write(folder.path().join("usr/bin/tool"), "one").unwrap();
        fs::write(folder.path().join("dev/leftover"), "").unwrap();
        folder
    }

    fn populate(jail: &Path, snapshot: &Path, overwrite: &str) -> Result<()> {
        run(Args { jail: jail.to_owned(), snapshot: snapshot.to_owned(), overwrite: overwrite.to_owned() })
    }

    #[test]
    fn a_jail_is_filled_once_and_then_kept() {
        let (jail, snapshot) = (tempfile::tempdir().unwrap(), snapshot());
        populate(jail.path(), snapshot.path(), "0").unwrap();
        assert_eq!(State::of(jail.path()), State::Populated);
        assert!(!jail.path().join("dev/leftover").exists(), "the pod's own folders stay empty");
        assert!(jail.path().join("root/.ssh/id_ecdsa.pub").exists());
        fs::write(jail.path().join("usr/bin/tool"), "changed by a user").unwrap();
        populate(jail.path(), snapshot.path(), "").unwrap();
        assert_eq!(fs::read_to_string(jail.path().join("usr/bin/tool")).unwrap(), "changed by a user");
    }

    #[test]
    fn a_killed_copy_is_finished() {
        let (jail, snapshot) = (tempfile::tempdir().unwrap(), snapshot());
        fs::write(jail.path().join(POPULATING), "").unwrap();
        for folder in ["dev", "usr/bin"] {
            fs::create_dir_all(jail.path().join(folder)).unwrap();
        }
        fs::write(jail.path().join("usr/bin/tool"), "on").unwrap();
        populate(jail.path(), snapshot.path(), "0").unwrap();
        assert_eq!(fs::read_to_string(jail.path().join("usr/bin/tool")).unwrap(), "one");
        assert_eq!(State::of(jail.path()), State::Populated);
    }

    #[test]
    fn overwrite_makes_it_anew_and_keeps_homes() {
        let (jail, snapshot) = (tempfile::tempdir().unwrap(), snapshot());
        populate(jail.path(), snapshot.path(), "0").unwrap();
        fs::create_dir_all(jail.path().join("home/alice")).unwrap();
        fs::create_dir_all(jail.path().join("opt/mine/deep")).unwrap();
        fs::write(jail.path().join("usr/bin/tool"), "changed").unwrap();
        populate(jail.path(), snapshot.path(), "1").unwrap();
        assert_eq!(fs::read_to_string(jail.path().join("usr/bin/tool")).unwrap(), "one");
        assert!(jail.path().join("home/alice").is_dir());
        assert!(!jail.path().join("opt").exists());
        assert_eq!(State::of(jail.path()), State::Populated);
    }

    #[test]
    fn an_old_jail_is_marked_and_not_touched() {
        let (jail, snapshot) = (tempfile::tempdir().unwrap(), snapshot());
        for folder in ["dev", "usr"] {
            fs::create_dir(jail.path().join(folder)).unwrap();
        }
        populate(jail.path(), snapshot.path(), "0").unwrap();
        assert!(!jail.path().join("usr/bin").exists());
        assert_eq!(State::of(jail.path()), State::Populated);
    }

    #[test]
    fn an_odd_wish_is_refused() {
        let (jail, snapshot) = (tempfile::tempdir().unwrap(), snapshot());
        let error = populate(jail.path(), snapshot.path(), "yes").unwrap_err().to_string();
        assert!(error.contains("OVERWRITE is `yes`"), "{error}");
        assert_eq!(State::of(jail.path()), State::Empty, "nothing was done");
    }

    #[test]
    fn an_image_without_a_snapshot_is_its_own_source() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Source::choose(folder.path()).root, Path::new("/"));
        let snapshot = snapshot();
        assert_eq!(Source::choose(snapshot.path()).root, snapshot.path());
    }
}
