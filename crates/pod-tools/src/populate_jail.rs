//! `slipway-node populate-jail`: fills the jail from an image, once.
//!
//! The source is a snapshot volume at `/jail` if there is one, else this image's own root. A copy that was killed is
//! finished by the next run; `OVERWRITE=1` makes the jail anew and keeps only the users' homes.

mod copy;

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use jail::{LOCK, POPULATED, POPULATING, State};

use crate::jail_lock;
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
/// What the mark of a copy says that makes the jail anew.
const AFRESH: &str = "afresh";

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
    if decide(&jail, overwrite) == Decision::Keep {
        say("the jail is already populated");
        return Ok(());
    }
    // Two copies at once would take each other's half files for whole ones.
    let _lock = jail_lock::take(&jail)?;
    // Whoever had it may have done it all.
    match decide(&jail, overwrite) {
        Decision::Keep => say("the jail has been populated meanwhile"),
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

fn decide(jail: &Path, overwrite: bool) -> Decision {
    match (State::of(jail), overwrite) {
        (_, true) => Decision::Fill { afresh: true },
        (State::Populated, false) => Decision::Keep,
        (State::Legacy, false) => Decision::Mark,
        (State::Empty, false) => Decision::Fill { afresh: false },
        // What was begun is finished: half of the old content must not stay among the new.
        (State::Unfinished, false) => {
            let begun = fs::read_to_string(jail.join(POPULATING)).unwrap_or_default();
            Decision::Fill { afresh: begun.trim() == AFRESH }
        }
    }
}

fn fill(jail: &Path, snapshot: &Path, afresh: bool) -> Result<()> {
    let started = Instant::now();
    let mounts = mount_points()?;
    let Source { root: source, skip, empty } = Source::choose(snapshot, &mounts)?;
    begin(jail, afresh)?;
    say(&format!("populating {} from {}", jail.display(), source.display()));
    let kept = KEPT.iter().filter(|name| afresh && jail.join(name).symlink_metadata().is_ok());
    let skip = skip.iter().chain(kept).map(|path| source.join(path)).collect();
    let empty = EMPTY.iter().chain(empty).map(|name| source.join(name));
    let mut copy = Copy::new(skip, mounts.into_iter().chain(empty).collect());
    copy.tree(&source, jail)?;
    if afresh {
        let keep = KEPT.iter().chain([&POPULATING, &POPULATED, &LOCK]);
        copy.remove_others(&source, jail, &keep.map(|name| jail.join(name)).collect::<Vec<_>>())?;
    }
    // sshd takes no other for a ChrootDirectory, and provisioners make volumes for everybody.
    fs::set_permissions(jail, fs::Permissions::from_mode(0o755)).context("chmod 755 of the jail")?;
    chown(jail, Some(0), Some(0)).context("chown of the jail to root")?;
    root_key(jail)?;
    mark(jail)?;
    let populating = jail.join(POPULATING);
    fs::remove_file(&populating).with_context(|| format!("remove {}", populating.display()))?;
    say(&format!("populated in {:.1} s: {copy}", started.elapsed().as_secs_f64()));
    Ok(())
}

/// From here on it is no jail, for us and for programs that know the older mark only.
fn begin(jail: &Path, afresh: bool) -> Result<()> {
    let populating = jail.join(POPULATING);
    let write = || {
        let mut file = File::create(&populating)?;
        file.write_all(if afresh { AFRESH.as_bytes() } else { b"" })?;
        file.sync_all()
    };
    write().with_context(|| format!("write {}", populating.display()))?;
    let populated = jail.join(POPULATED);
    match fs::remove_file(&populated) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("remove {}", populated.display()))
        }
        _ => Ok(()),
    }
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
    fn choose(snapshot: &Path, mounts: &[PathBuf]) -> Result<Self> {
        if snapshot.join("etc").is_dir() && snapshot.join("usr").is_dir() {
            return Ok(Self { root: snapshot.to_owned(), skip: &[], empty: &[] });
        }
        // Whoever mounts a volume wants it, and would find the image's own content in the jail for good.
        let is_used = fs::read_dir(snapshot).is_ok_and(|mut entries| entries.next().is_some());
        ensure!(
            !is_used && !mounts.iter().any(|point| point == snapshot),
            "{} is no root file system, without etc and usr: mount one there, or nothing for this image's own",
            snapshot.display()
        );
        Ok(Self { root: PathBuf::from("/"), skip: &NOT_THE_JAIL, empty: &EMPTY_OF_THE_IMAGE })
    }
}

/// Root's key for ssh between login and worker pods, made once per jail; sshd accepts what is in the jail.
fn root_key(jail: &Path) -> Result<()> {
    let folder = jail.join("root/.ssh");
    let key = folder.join("id_ecdsa");
    if key.exists() {
        return Ok(());
    }
    fs::create_dir_all(&folder)?;
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700))?;
    // Beside its name, which it gets last: a killed run leaves nothing that looks like a key.
    let work = folder.join(".slipway-key");
    if work.exists() {
        fs::remove_dir_all(&work)?;
    }
    fs::create_dir(&work)?;
    let made = work.join("id_ecdsa");
    let status = Command::new("ssh-keygen")
        .args(["-q", "-t", "ecdsa", "-N", "", "-C", "root@jail", "-f"])
        .arg(&made)
        .status()
        .context("start ssh-keygen: install openssh-client in the populate-jail image")?;
    ensure!(status.success(), "ssh-keygen for root of the jail: {status}");
    let public = fs::read_to_string(made.with_extension("pub")).context("read root's public key")?;
    let mut authorized =
        File::options().create(true).append(true).mode(0o600).open(folder.join("authorized_keys"))?;
    authorized.write_all(public.as_bytes()).context("let root's key in")?;
    fs::rename(made.with_extension("pub"), key.with_extension("pub"))?;
    fs::rename(&made, &key)?;
    fs::remove_dir(&work).context("remove where root's key was made")
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
        let choose = |path: &Path| Source::choose(path, &mount_points().unwrap());
        assert_eq!(choose(folder.path()).unwrap().root, Path::new("/"));
        assert_eq!(choose(Path::new("/nonexistent")).unwrap().root, Path::new("/"));
        let snapshot = snapshot();
        assert_eq!(choose(snapshot.path()).unwrap().root, snapshot.path());
    }

    #[test]
    fn a_volume_that_is_no_root_is_refused_before_anything_is_done() {
        let (jail, volume) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir_all(volume.path().join("one-level-down/etc")).unwrap();
        let error = populate(jail.path(), volume.path(), "0").unwrap_err().to_string();
        assert!(error.contains("is no root file system"), "{error}");
        assert_eq!(State::of(jail.path()), State::Empty);
        assert!(
            Source::choose(Path::new("/proc"), &mount_points().unwrap()).is_err(),
            "a mount counts as used"
        );
    }

    #[test]
    fn homes_are_kept_whatever_the_source_has_there() {
        let (jail, snapshot) = (tempfile::tempdir().unwrap(), snapshot());
        populate(jail.path(), snapshot.path(), "0").unwrap();
        fs::create_dir_all(jail.path().join("home/alice")).unwrap();
        fs::write(jail.path().join("home/alice/thesis"), "new").unwrap();
        // An earlier snapshot of the same jail.
        fs::create_dir_all(snapshot.path().join("home/alice")).unwrap();
        fs::write(snapshot.path().join("home/alice/thesis"), "old").unwrap();
        populate(jail.path(), snapshot.path(), "1").unwrap();
        // An image of a distribution that has it elsewhere.
        fs::remove_dir_all(snapshot.path().join("home")).unwrap();
        std::os::unix::fs::symlink("var/home", snapshot.path().join("home")).unwrap();
        populate(jail.path(), snapshot.path(), "1").unwrap();
        assert_eq!(fs::read_to_string(jail.path().join("home/alice/thesis")).unwrap(), "new");
    }

    #[test]
    fn an_overwrite_that_was_killed_is_finished_as_one() {
        let (jail, snapshot) = (tempfile::tempdir().unwrap(), snapshot());
        populate(jail.path(), snapshot.path(), "0").unwrap();
        fs::write(jail.path().join("usr/bin/old-tool"), "").unwrap();
        begin(jail.path(), true).unwrap();
        assert!(!jail.path().join(POPULATED).exists(), "others look for this mark only");
        populate(jail.path(), snapshot.path(), "0").unwrap();
        assert!(!jail.path().join("usr/bin/old-tool").exists());
        assert_eq!(State::of(jail.path()), State::Populated);
    }

    #[test]
    fn a_second_copy_waits_for_the_first() {
        let (jail, snapshot) = (tempfile::tempdir().unwrap(), snapshot());
        let first = jail_lock::take(jail.path()).unwrap();
        begin(jail.path(), false).unwrap();
        let (to, from) = (jail.path().to_owned(), snapshot.path().to_owned());
        let second = std::thread::spawn(move || populate(&to, &from, "0"));
        let tool = jail.path().join("usr/bin/tool");
        // The first ends well, and has another content than the second would bring.
        fs::create_dir_all(tool.parent().unwrap()).unwrap();
        fs::write(&tool, "of the first").unwrap();
        mark(jail.path()).unwrap();
        fs::remove_file(jail.path().join(POPULATING)).unwrap();
        drop(first);
        second.join().unwrap().unwrap();
        assert_eq!(fs::read_to_string(tool).unwrap(), "of the first");
    }

    #[test]
    fn root_can_use_its_key() {
        let (jail, snapshot) = (tempfile::tempdir().unwrap(), snapshot());
        populate(jail.path(), snapshot.path(), "0").unwrap();
        let read = |name: &str| fs::read_to_string(jail.path().join("root/.ssh").join(name)).unwrap();
        assert_eq!(read("authorized_keys"), read("id_ecdsa.pub"));
        assert!(read("id_ecdsa").starts_with("-----BEGIN"));
        assert_eq!(fs::read_dir(jail.path().join("root/.ssh")).unwrap().count(), 3);
    }
}
