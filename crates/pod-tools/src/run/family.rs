//! The processes of a daemon: our children that carry its name or run its program. A reconfigure replaces the daemon by
//! a child of its own, which becomes ours when the old one ends, and goes by the name of the file behind a link.

use std::fs;
use std::path::{Path, PathBuf};

use nix::unistd::Pid;

/// The kernel keeps this much of a process's name.
const NAME_LENGTH: usize = 15;

pub(super) struct Family {
    name: String,
    program: Option<PathBuf>,
}

impl Family {
    /// `program` as it is started: a path, or a name that is looked up.
    pub(super) fn new(program: &Path) -> Self {
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        Self { name: name.chars().take(NAME_LENGTH).collect(), program: find(program) }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn is_seen(&self) -> bool {
        !self.members().is_empty()
    }

    /// Whom a signal is for: the daemon that the pid file names, or all of ours if it names something else. In the middle
    /// of a reconfigure the new daemon is still a child of the old one.
    pub(super) fn to_signal(&self, written: Option<i32>) -> Vec<Pid> {
        match written {
            Some(pid) if self.has(pid) && is_below_us(pid) => vec![Pid::from_raw(pid)],
            _ => self.members(),
        }
    }

    fn members(&self) -> Vec<Pid> {
        let own = std::process::id();
        let list = fs::read_to_string(format!("/proc/{own}/task/{own}/children")).unwrap_or_default();
        let children = list.split_whitespace().filter_map(|word| word.parse().ok());
        children.filter(|pid| self.has(*pid)).map(Pid::from_raw).collect()
    }

    fn has(&self, pid: i32) -> bool {
        let Some(stat) = stat(pid).filter(|stat| !['Z', 'X'].contains(&stat.state)) else { return false };
        let runs = || fs::read_link(format!("/proc/{pid}/exe")).ok();
        stat.name == self.name || (self.program.is_some() && runs() == self.program)
    }
}

/// The file behind a program's name.
fn find(program: &Path) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Joined with a path that is absolute, a folder is left out.
    let found = std::env::split_paths(&path).map(|folder| folder.join(program)).find(|path| path.is_file());
    found?.canonicalize().ok()
}

fn is_below_us(pid: i32) -> bool {
    let own = std::process::id().cast_signed();
    let mut ancestor = pid;
    loop {
        match stat(ancestor).map(|found| found.parent) {
            Some(Some(parent)) if parent == own => return true,
            Some(Some(parent)) => ancestor = parent,
            Some(None) => return false,
            None if ancestor == pid => return false,
            // It has ended since, as whoever starts a daemon does, and its children have another parent now.
            None => ancestor = pid,
        }
    }
}

struct Stat {
    name: String,
    state: char,
    /// None for the first process.
    parent: Option<i32>,
}

/// `pid (name) state parent …`; the name may hold anything.
fn stat(pid: i32) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (start, rest) = text.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    Some(Stat {
        name: start.split_once('(')?.1.to_owned(),
        state: fields.next()?.chars().next()?,
        parent: fields.next()?.parse().ok().filter(|parent| *parent > 0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pid_file_decides_only_among_our_own() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let pid = child.id().cast_signed();
        assert!(is_below_us(pid) && !is_below_us(1));
        let family = Family::new(Path::new("sleep"));
        assert_eq!(family.to_signal(Some(pid)), [Pid::from_raw(pid)]);
        // A file of an earlier container names a process of somebody else, or none.
        assert!(!family.to_signal(Some(1)).contains(&Pid::from_raw(1)));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_process_is_known_by_its_name_or_by_its_program() {
        let own = std::process::id().cast_signed();
        let (comm, exe) = (fs::read_to_string("/proc/self/comm").unwrap(), std::env::current_exe().unwrap());
        let family = |name: &str, program: Option<PathBuf>| Family { name: name.trim().to_owned(), program };
        assert!(family(&comm, None).has(own));
        // As after a reconfigure: the kernel then shows the name of the file behind the link.
        assert!(family("slurmctld", Some(exe)).has(own));
        assert!(!family("slurmctld", None).has(own));
        assert_eq!(Family::new(Path::new("/x/a-very-long-daemon-name")).name, "a-very-long-dae");
    }
}
