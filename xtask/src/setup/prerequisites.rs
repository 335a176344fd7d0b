//! What set-up needs from the machine. Checked whole before any work is done.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};
use testkit::cache::{Part, host_suite};

use super::debian::{KEYRING, Mirror};

/// Programs and the Debian packages that have them: what sandboxes and clusters run.
const ALWAYS: [(&str, &str); 13] = [
    ("bash", "bash"),
    ("cp", "coreutils"),
    ("hostname", "hostname"),
    ("ip", "iproute2"),
    ("mount", "mount"),
    ("nsenter", "util-linux"),
    ("sed", "sed"),
    ("setpriv", "util-linux"),
    ("setsid", "util-linux"),
    ("ssh", "openssh-client"),
    ("ssh-keygen", "openssh-client"),
    ("umount", "mount"),
    ("unshare", "util-linux"),
];
const FOR_SET_UP: [(&str, &str); 7] = [
    ("apt-get", "apt"),
    ("chroot", "coreutils"),
    ("dpkg-deb", "dpkg"),
    ("find", "findutils"),
    ("perl", "perl"),
    ("sha256sum", "coreutils"),
    ("tar", "tar"),
];
/// What the package list is made for.
const SUITE: &str = "bookworm";
/// What the wrapper modules' go.mod ask for.
const GO_VERSION: (u32, u32) = (1, 26);

/// `todo`: the parts that have to be made; none if all are there.
pub(super) fn check(todo: &[Part]) -> Result<()> {
    let mut problems = Vec::new();
    if !nix::unistd::geteuid().is_root() {
        problems.push(
            "set-up and clusters make mounts and namespaces: run as root (`sudo -E cargo xtask …`)".into(),
        );
    }
    if !fs::read_to_string("/proc/filesystems").unwrap_or_default().contains("\toverlay") {
        problems.push("the kernel has no overlay file system: load it with `modprobe overlay`".into());
    }
    let mut programs = ALWAYS.to_vec();
    let go = todo.iter().any(|part| matches!(part, Part::Kubernetes | Part::CoreDns | Part::Runc));
    if !todo.is_empty() {
        programs.extend(FOR_SET_UP);
        problems.extend(not_the_debian_we_know());
    }
    if go {
        programs.push(("go", "golang-go"));
    }
    if todo.contains(&Part::Runc) {
        programs.push(("pkg-config", "pkg-config"));
    }
    if todo.contains(&Part::Runc) || todo.contains(&Part::Images) {
        programs.extend([("gcc", "gcc"), ("make", "make")]);
    }
    let missing = programs.iter().filter(|(program, _)| find(program).is_none());
    problems.extend(
        missing.map(|(program, package)| format!("`{program}` is missing: apt-get install {package}")),
    );
    problems.extend(go.then(old_go).flatten());
    if problems.is_empty() {
        return Ok(());
    }
    bail!("this machine lacks what is needed; nothing was done\n  - {}", problems.join("\n  - "))
}

fn not_the_debian_we_know() -> Vec<String> {
    let mut problems = Vec::new();
    if host_suite() != SUITE {
        problems.push(format!("this is not Debian {SUITE}, for which the list of packages is made"));
    } else if find("apt-get").is_some()
        && let Err(error) = Mirror::of_this_machine()
    {
        problems.push(format!("{error:#}"));
    }
    if !Path::new(KEYRING).exists() {
        problems.push(format!("{KEYRING} is missing: apt-get install debian-archive-keyring"));
    }
    problems
}

fn find(program: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?).map(|folder| folder.join(program)).find(|path| path.is_file())
}

fn old_go() -> Option<String> {
    let output = Command::new("go").arg("version").env("GOTOOLCHAIN", "local").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let found = parse_go_version(&text);
    (found < Some(GO_VERSION)).then(|| {
        format!(
            "Go {}.{} or newer is needed, found `{}`: Debian has golang-1.26-go in trixie-backports and forky",
            GO_VERSION.0,
            GO_VERSION.1,
            text.trim()
        )
    })
}

/// `go version go1.26.8 linux/amd64` → (1, 26)
fn parse_go_version(text: &str) -> Option<(u32, u32)> {
    let version = text.split_whitespace().find_map(|word| word.strip_prefix("go1."))?;
    let minor = version.split(|c: char| !c.is_ascii_digit()).next()?;
    Some((1, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_versions_are_read() {
        assert_eq!(parse_go_version("go version go1.26.8 linux/amd64"), Some((1, 26)));
        assert_eq!(parse_go_version("go version go1.27rc1 linux/amd64"), Some((1, 27)));
        assert_eq!(parse_go_version("go: command not found"), None);
    }
}
