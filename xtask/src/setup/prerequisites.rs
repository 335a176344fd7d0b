//! What set-up needs from the machine. Checked whole before any work is done.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, bail};
use testkit::cache::Part;

/// Programs and the Debian packages that have them.
const ALWAYS: [(&str, &str); 12] = [
    ("apt-get", "apt"),
    ("dpkg-deb", "dpkg"),
    ("tar", "tar"),
    ("bash", "bash"),
    ("mount", "mount"),
    ("ip", "iproute2"),
    ("nsenter", "util-linux"),
    ("unshare", "util-linux"),
    ("setpriv", "util-linux"),
    ("perl", "perl"),
    ("hostname", "hostname"),
    ("sha256sum", "coreutils"),
];
const FOR_GO: [(&str, &str); 3] = [("go", "golang-go"), ("gcc", "gcc"), ("pkg-config", "pkg-config")];
/// What the wrapper modules' go.mod ask for.
const GO_VERSION: (u32, u32) = (1, 26);

pub(super) fn check(parts: &[Part]) -> Result<()> {
    let mut problems = Vec::new();
    if !nix::unistd::geteuid().is_root() {
        problems.push(
            "set-up and clusters make mounts and namespaces: run as root (`sudo -E cargo xtask …`)".into(),
        );
    }
    if !fs::read_to_string("/etc/os-release").unwrap_or_default().contains("ID=debian") {
        problems.push("this is not Debian: parts of the testbed are Debian packages".into());
    }
    if !fs::read_to_string("/proc/filesystems").unwrap_or_default().contains("\toverlay") {
        problems.push("the kernel has no overlay file system: load it with `modprobe overlay`".into());
    }
    let go =
        parts.iter().any(|part| matches!(part, Part::Kubernetes | Part::CoreDns | Part::Runc | Part::Images));
    let programs = ALWAYS.iter().chain(if go { FOR_GO.as_slice() } else { &[] });
    for (program, package) in programs {
        if find(program).is_none() {
            problems.push(format!("`{program}` is missing: apt-get install {package}"));
        }
    }
    if go && let Some(problem) = old_go() {
        problems.push(problem);
    }
    if problems.is_empty() {
        return Ok(());
    }
    bail!("this machine lacks what set-up needs; nothing was done\n  - {}", problems.join("\n  - "))
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
