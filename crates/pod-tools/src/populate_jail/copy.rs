//! Copies a root file system so that it can be killed at any point and run again: a file appears under its name
//! only when it is whole, and one that is already there is not copied twice.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, DirBuilder, File, FileTimes, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, fchown, lchown, symlink};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use nix::sys::stat::{Mode, UtimensatFlags, utimensat};
use nix::sys::time::TimeSpec;
use nix::unistd::mkfifo;

/// A file on its way to its name.
const UNFINISHED: &str = ".slipway-unfinished";
/// Attributes that programs of a jail depend on; others describe where the source lies.
const ATTRIBUTES: [&str; 4] =
    ["security.capability", "system.posix_acl_access", "system.posix_acl_default", "user."];

pub(super) struct Copy {
    /// Left out.
    skip: Vec<PathBuf>,
    /// Folders and files of the source that are made, but empty.
    empty: Vec<PathBuf>,
    /// Where the first of several names of a file went.
    links: HashMap<(u64, u64), PathBuf>,
    files: u64,
    bytes: u64,
    removed: u64,
}

impl fmt::Display for Copy {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} files, {} MB copied", self.files, self.bytes / 1_000_000)?;
        if self.removed > 0 {
            write!(out, ", {} removed", self.removed)?;
        }
        Ok(())
    }
}

impl Copy {
    pub(super) fn new(skip: Vec<PathBuf>, empty: Vec<PathBuf>) -> Self {
        Self { skip, empty, links: HashMap::new(), files: 0, bytes: 0, removed: 0 }
    }

    /// Copies what is in one folder into another, owners, modes, times and links included.
    pub(super) fn tree(&mut self, from: &Path, to: &Path) -> Result<()> {
        for entry in fs::read_dir(from).with_context(|| format!("read {}", from.display()))? {
            let entry = entry.with_context(|| format!("read {}", from.display()))?;
            let source = entry.path();
            if self.skip.contains(&source) {
                continue;
            }
            let target = to.join(entry.file_name());
            self.entry(&source, &target).with_context(|| format!("copy {}", source.display()))?;
        }
        Ok(())
    }

    fn entry(&mut self, source: &Path, target: &Path) -> Result<()> {
        let of = fs::symlink_metadata(source)?;
        let kind = of.file_type();
        let there = fs::symlink_metadata(target).ok();
        if kind.is_dir() {
            return self.folder(source, &of, target, there.as_ref());
        }
        if kind.is_char_device() || kind.is_block_device() || kind.is_socket() {
            // Pods bring their own, and a user namespace may not make any.
            return Ok(());
        }
        if there.as_ref().is_some_and(Metadata::is_dir) {
            fs::remove_dir_all(target)?;
        }
        if kind.is_file() {
            return self.file(source, &of, target, there.as_ref());
        }
        if same(&of, there.as_ref()) && (kind.is_fifo() || fs::read_link(source)? == fs::read_link(target)?) {
            return Ok(());
        }
        let unfinished = self.unfinished(target)?;
        if kind.is_symlink() {
            symlink(fs::read_link(source)?, &unfinished)?;
        } else {
            mkfifo(&unfinished, Mode::from_bits_truncate(of.mode()))?;
        }
        lchown(&unfinished, Some(of.uid()), Some(of.gid()))?;
        let time = TimeSpec::new(of.mtime(), of.mtime_nsec());
        utimensat(nix::fcntl::AT_FDCWD, &unfinished, &time, &time, UtimensatFlags::NoFollowSymlink)?;
        fs::rename(&unfinished, target)?;
        self.files += 1;
        Ok(())
    }

    fn folder(
        &mut self,
        source: &Path,
        of: &Metadata,
        target: &Path,
        there: Option<&Metadata>,
    ) -> Result<()> {
        match there {
            Some(there) if there.is_dir() => (),
            Some(_) => {
                fs::remove_file(target)?;
                closed_folder(target)?;
            }
            None => closed_folder(target)?,
        }
        if !self.empty.iter().any(|path| path == source) {
            self.tree(source, target)?;
        }
        let folder = File::open(target)?;
        fchown(&folder, Some(of.uid()), Some(of.gid()))?;
        folder.set_permissions(of.permissions())?;
        copy_attributes(source, target)?;
        folder.set_times(times(of)?)?;
        Ok(())
    }

    fn file(&mut self, source: &Path, of: &Metadata, target: &Path, there: Option<&Metadata>) -> Result<()> {
        let identity = (of.dev(), of.ino());
        if let Some(first) = self.links.get(&identity).filter(|_| of.nlink() > 1).cloned() {
            let unfinished = self.unfinished(target)?;
            fs::hard_link(first, &unfinished)?;
            // Renaming one name of a file over another of its names does nothing, and leaves both.
            fs::rename(&unfinished, target)?;
            let _ = fs::remove_file(&unfinished);
            return Ok(());
        }
        self.links.insert(identity, target.to_owned());
        // A mount, such as Kubernetes' hosts file: the jail has a place for the pod's own.
        let empty = self.empty.iter().any(|path| path == source);
        if !empty && same(of, there) {
            return Ok(());
        }
        let unfinished = self.unfinished(target)?;
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(&unfinished)?;
        if !empty {
            self.bytes += io::copy(&mut File::open(source)?, &mut file)?;
        }
        // In this order: a change of owner takes capabilities and set-user-id bits away.
        fchown(&file, Some(of.uid()), Some(of.gid()))?;
        file.set_permissions(of.permissions())?;
        copy_attributes(source, &unfinished)?;
        file.set_times(times(of)?)?;
        fs::rename(&unfinished, target)?;
        self.files += 1;
        Ok(())
    }

    /// A free name beside the target.
    fn unfinished(&self, target: &Path) -> io::Result<PathBuf> {
        let path = target.with_file_name(UNFINISHED);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(path),
        }
    }

    /// Removes what the source does not have, other than `keep` and what is mounted.
    pub(super) fn remove_others(&mut self, from: &Path, to: &Path, keep: &[PathBuf]) -> Result<()> {
        for entry in fs::read_dir(to).with_context(|| format!("read {}", to.display()))? {
            let entry = entry?;
            let (source, target) = (from.join(entry.file_name()), entry.path());
            if keep.contains(&target) || self.empty.contains(&target) {
                continue;
            }
            let known = !self.skip.contains(&source) && fs::symlink_metadata(&source).is_ok();
            let folder = entry.file_type()?.is_dir();
            let below = || keep.iter().chain(&self.empty).any(|kept| kept.starts_with(&target));
            if folder && (known || below()) {
                self.remove_others(&source, &target, keep)?;
            } else if !known {
                let removed = if folder { fs::remove_dir_all(&target) } else { fs::remove_file(&target) };
                removed.with_context(|| format!("remove {}", target.display()))?;
                self.removed += 1;
            }
        }
        Ok(())
    }
}

/// For nobody but us, until its content is there and its own mode with it.
fn closed_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

/// Whether an earlier copy has already made this one.
fn same(of: &Metadata, there: Option<&Metadata>) -> bool {
    let facts = |meta: &Metadata| {
        (meta.file_type(), meta.len(), meta.mode(), meta.uid(), meta.gid(), meta.mtime(), meta.mtime_nsec())
    };
    there.is_some_and(|there| facts(there) == facts(of))
}

fn times(of: &Metadata) -> io::Result<FileTimes> {
    Ok(FileTimes::new().set_modified(of.modified()?).set_accessed(of.modified()?))
}

fn copy_attributes(source: &Path, target: &Path) -> Result<()> {
    let names = match xattr::list(source) {
        Ok(names) => names,
        // A file system without attributes has none to copy.
        Err(error) if error.kind() == io::ErrorKind::Unsupported => return Ok(()),
        Err(error) => return Err(error).context("list its attributes"),
    };
    for name in names.filter(|name| is_copied(name)) {
        if let Some(value) = xattr::get(source, &name)? {
            xattr::set(target, &name, &value)
                .with_context(|| format!("set its attribute {}", name.display()))?;
        }
    }
    Ok(())
}

fn is_copied(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    ATTRIBUTES
        .iter()
        .any(|wanted| if wanted.ends_with('.') { name.starts_with(wanted) } else { name == *wanted })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::time::{Duration, SystemTime};

    fn copy(from: &Path, to: &Path) -> Copy {
        let mut copy = Copy::new(Vec::new(), Vec::new());
        copy.tree(from, to).unwrap();
        copy
    }

    #[test]
    fn modes_times_and_links_are_kept() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (a, b) = (from.path(), to.path());
        fs::DirBuilder::new().mode(0o750).create(a.join("folder")).unwrap();
        fs::write(a.join("folder/tool"), "x").unwrap();
        fs::set_permissions(a.join("folder/tool"), fs::Permissions::from_mode(0o4755)).unwrap();
        let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        File::options().append(true).open(a.join("folder/tool")).unwrap().set_modified(long_ago).unwrap();
        fs::hard_link(a.join("folder/tool"), a.join("another name")).unwrap();
        symlink("/etc/nowhere", a.join("link")).unwrap();
        mkfifo(&a.join("pipe"), Mode::S_IRWXU).unwrap();
        copy(a, b);
        let tool = fs::metadata(b.join("folder/tool")).unwrap();
        assert_eq!((tool.mode() & 0o7777, tool.modified().unwrap()), (0o4755, long_ago));
        assert_eq!(tool.ino(), fs::metadata(b.join("another name")).unwrap().ino());
        assert_eq!(fs::metadata(b.join("folder")).unwrap().mode() & 0o777, 0o750);
        assert_eq!(fs::read_link(b.join("link")).unwrap(), Path::new("/etc/nowhere"));
        assert!(fs::symlink_metadata(b.join("pipe")).unwrap().file_type().is_fifo());
        assert_eq!(copy(a, b).files, 0, "a second copy has nothing to do");
        assert_eq!(fs::read_dir(b.join("folder")).unwrap().count(), 1, "nothing unfinished is left");
    }

    #[test]
    fn what_is_of_another_kind_is_replaced() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir(from.path().join("now a folder")).unwrap();
        fs::write(to.path().join("now a folder"), "").unwrap();
        fs::write(from.path().join("now a file"), "text").unwrap();
        fs::create_dir_all(to.path().join("now a file/deep")).unwrap();
        copy(from.path(), to.path());
        assert!(to.path().join("now a folder").is_dir());
        assert_eq!(fs::read_to_string(to.path().join("now a file")).unwrap(), "text");
    }

    #[test]
    fn mounts_become_empty_places() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(from.path().join("hosts"), "of the pod").unwrap();
        fs::create_dir(from.path().join("proc")).unwrap();
        fs::write(from.path().join("proc/stat"), "").unwrap();
        let mut copy = Copy::new(Vec::new(), vec![from.path().join("hosts"), from.path().join("proc")]);
        copy.tree(from.path(), to.path()).unwrap();
        assert_eq!(fs::read_to_string(to.path().join("hosts")).unwrap(), "");
        assert_eq!(fs::read_dir(to.path().join("proc")).unwrap().count(), 0);
    }

    #[test]
    fn a_volume_deep_inside_is_not_emptied() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let volume = to.path().join("data/set");
        fs::create_dir_all(&volume).unwrap();
        fs::write(volume.join("precious"), "").unwrap();
        fs::write(to.path().join("data/other"), "").unwrap();
        let mut copy = Copy::new(Vec::new(), vec![volume.clone()]);
        copy.remove_others(from.path(), to.path(), &[]).unwrap();
        assert!(volume.join("precious").exists() && !to.path().join("data/other").exists());
    }
}
