//! Moving this process into the jail.

use std::fmt;
use std::path::Path;

use jail::State;
use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{chdir, getcwd, pivot_root};

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Not a whole jail.
    NoJail(String, State),
    Step(&'static str, String, Errno),
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoJail(jail, State::Unfinished) => {
                write!(out, "the copy into the jail {jail} is not complete: look at the populate-jail job")
            }
            Self::NoJail(jail, _) => write!(
                out,
                "{jail} is not a populated jail: check the path in plugstack.conf and the populate-jail job"
            ),
            Self::Step(what, jail, error) => write!(out, "{what} for the jail {jail}: {error}"),
        }
    }
}

/// A job must not run in what merely has the jail's path.
pub(crate) fn check(jail: &Path) -> Result<(), Refusal> {
    let state = State::of(jail);
    if state.is_usable() { Ok(()) } else { Err(Refusal::NoJail(jail.display().to_string(), state)) }
}

/// Makes the jail the root of this process and of those it starts. `pivot_root` and not `chroot`: the kernel refuses
/// user namespaces, which container tools in jobs need, to a process that is in a chroot.
pub(crate) fn enter(jail: &Path) -> Result<(), Refusal> {
    check(jail)?;
    let step = |what: &'static str| move |error| Refusal::Step(what, jail.display().to_string(), error);
    let none = None::<&str>;
    let cwd = getcwd();
    unshare(CloneFlags::CLONE_NEWNS).map_err(step("a mount namespace"))?;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_SLAVE, none).map_err(step("mounts of our own"))?;
    mount(Some(jail), jail, none, MsFlags::MS_BIND | MsFlags::MS_REC, none).map_err(step("a mount"))?;
    chdir(jail).map_err(step("chdir"))?;
    pivot_root(".", ".").map_err(step("pivot_root"))?;
    umount2(".", MntFlags::MNT_DETACH).map_err(step("leaving the old root"))?;
    chdir("/").map_err(step("chdir"))?;
    // The step's own folder, as far as the jail has it; Slurm goes there itself and complains if it cannot.
    if let Ok(cwd) = cwd {
        let _ = chdir(&cwd);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_what_to_look_at() {
        let refusal = check(Path::new("/nonexistent/jail")).unwrap_err();
        assert_eq!(
            refusal.to_string(),
            "/nonexistent/jail is not a populated jail: check the path in plugstack.conf and the populate-jail job"
        );
        let unfinished = Refusal::NoJail("/mnt/jail".into(), State::Unfinished);
        assert!(unfinished.to_string().contains("is not complete"));
    }

    #[test]
    fn nothing_is_changed_for_a_path_that_is_no_jail() {
        let before = std::fs::read_link("/proc/self/ns/mnt").unwrap();
        assert!(enter(Path::new("/nonexistent/jail")).is_err());
        assert_eq!(std::fs::read_link("/proc/self/ns/mnt").unwrap(), before);
    }
}
