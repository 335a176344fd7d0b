//! Where the jail is, and whether it is whole: what populate-jail writes and everybody else looks for.
//!
//! The jail is one root file system that login and worker pods share. It is filled once, by a copy that can be
//! killed at any point, so a mark says that a copy has begun and another that it has ended.

use std::path::Path;

/// Where pods have the shared volume.
pub const JAIL: &str = "/mnt/jail";
/// Where pods have the volumes that appear inside the jail.
pub const UPPER: &str = "/mnt/jail.upper";
/// In the jail: written when the copy is complete.
pub const POPULATED: &str = "etc/soperator-jail-populated";
/// In the jail: there as long as a copy is under way, or after one was killed.
pub const POPULATING: &str = ".slipway-populating";
/// In the jail: locked by whoever makes something in it that others might make too. It stays.
pub const LOCK: &str = ".slipway-lock";
/// In jails of old releases of Soperator: what [`POPULATED`] is now.
pub const LEGACY_POPULATED: &str = ".populated";

/// What is in a folder that should be a jail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// No copy has begun.
    Empty,
    /// A copy is under way, or was killed.
    Unfinished,
    /// Filled by something older that left other marks, or none.
    Legacy,
    Populated,
}

impl State {
    pub fn of(jail: &Path) -> Self {
        let has = |name: &str| jail.join(name).symlink_metadata().is_ok();
        if has(POPULATING) {
            Self::Unfinished
        } else if has(POPULATED) {
            Self::Populated
        } else if has(LEGACY_POPULATED) || (has("dev") && has("usr")) {
            Self::Legacy
        } else {
            Self::Empty
        }
    }

    /// Whether jobs and logins may use it.
    pub fn is_usable(self) -> bool {
        matches!(self, Self::Populated | Self::Legacy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn half_a_copy_is_never_taken_for_a_jail() {
        let jail = tempfile::tempdir().unwrap();
        let state = || State::of(jail.path());
        assert_eq!(state(), State::Empty);
        fs::write(jail.path().join(POPULATING), "").unwrap();
        // In the order of a copy: at some point everything that an old jail is known by is there.
        for folder in ["dev", "etc", "usr"] {
            fs::create_dir(jail.path().join(folder)).unwrap();
            assert_eq!(state(), State::Unfinished);
            assert!(!state().is_usable());
        }
        fs::write(jail.path().join(POPULATED), "").unwrap();
        assert_eq!(state(), State::Unfinished, "the new mark is written while the old one is still there");
        fs::remove_file(jail.path().join(POPULATING)).unwrap();
        assert_eq!(state(), State::Populated);
    }

    #[test]
    fn jails_of_older_releases_are_known() {
        let jail = tempfile::tempdir().unwrap();
        fs::create_dir(jail.path().join("usr")).unwrap();
        assert_eq!(State::of(jail.path()), State::Empty, "a folder that happens to have a usr");
        fs::create_dir(jail.path().join("dev")).unwrap();
        assert_eq!(State::of(jail.path()), State::Legacy);
        let marked = tempfile::tempdir().unwrap();
        fs::write(marked.path().join(LEGACY_POPULATED), "").unwrap();
        assert_eq!(State::of(marked.path()), State::Legacy);
    }

    #[test]
    fn a_path_that_is_not_there_is_no_jail() {
        assert_eq!(State::of(Path::new("/nonexistent/jail")), State::Empty);
    }
}
