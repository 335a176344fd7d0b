//! Parts from Debian packages: through the mirror that this machine's apt already uses, with apt's
//! signature checks, but with lists and sources of our own. The system's packages are not touched.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use testkit::cache::{Cache, Part, SlurmVersion, host_suite};
use testkit::layers::Layer;
use testkit::process::bound_command;

use super::step;
use crate::workspace;

const SUITES: [&str; 2] = ["trixie", "forky"];
pub(super) const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Where this machine gets its Debian from.
pub(super) struct Mirror {
    uri: String,
    suite: String,
}

impl Mirror {
    pub(super) fn of_this_machine() -> Result<Self> {
        let suite = host_suite();
        let format = "$(CREATED_BY) $(RELEASE) $(COMPONENT) $(REPO_URI)";
        let output = Command::new("apt-get").args(["indextargets", "--format", format]).output()?;
        let wanted = format!("Packages {suite} main ");
        let uri = String::from_utf8_lossy(&output.stdout)
            .lines()
            .find_map(|line| line.strip_prefix(&wanted).map(str::to_owned))
            .with_context(|| {
                format!("apt has no source for {suite} main: add one to /etc/apt/sources.list.d")
            })?;
        Ok(Self { uri, suite })
    }
}

pub(super) fn packages(cache: &Cache, out: &Path) -> Result<()> {
    let mirror = Mirror::of_this_machine()?;
    let apt = cache.root().join("apt");
    for folder in ["sources", "lists/partial", "cache/archives/partial", "debs"] {
        fs::create_dir_all(apt.join(folder))?;
    }
    let suites = format!("{} {}", mirror.suite, SUITES.join(" "));
    let sources = format!(
        "Types: deb\nURIs: {}\nSuites: {suites}\nComponents: main\nSigned-By: {KEYRING}\n",
        mirror.uri
    );
    fs::write(apt.join("sources/debian.sources"), sources)?;
    let apt_get = || {
        let mut command = bound_command("apt-get");
        for (key, value) in [
            ("Dir::Etc::sourcelist", Path::new("/dev/null").to_owned()),
            ("Dir::Etc::sourceparts", apt.join("sources")),
            ("Dir::State::lists", apt.join("lists")),
            ("Dir::Cache", apt.join("cache")),
        ] {
            command.arg("-o").arg(format!("{key}={}", value.display()));
        }
        // Testing carries a Valid-Until that a machine with a late clock has passed.
        for option in
            ["APT::Sandbox::User=root", "Acquire::Languages=none", "Acquire::Check-Valid-Until=false"]
        {
            command.args(["-o", option]);
        }
        command.args(["-o", "Acquire::Retries=3"]).current_dir(apt.join("debs"));
        command
    };
    step::run(cache, Part::Debian, "reading the package lists", apt_get().arg("update"))?;
    // Packages of another time would be unpacked as well.
    for entry in fs::read_dir(apt.join("debs"))? {
        fs::remove_file(entry?.path())?;
    }
    let list = fs::read_to_string(workspace().join("testbed/debian/packages.txt"))?;
    let wanted = package_arguments(&list, &mirror.suite)?;
    step::run(cache, Part::Debian, "downloading packages", apt_get().arg("download").args(wanted))?;
    for entry in fs::read_dir(apt.join("debs"))? {
        let deb = entry?.path();
        let status = Command::new("dpkg-deb").arg("-x").arg(&deb).arg(out).status()?;
        if !status.success() {
            bail!("unpack {}: {status}", deb.display());
        }
    }
    merge_usr(out)
}

/// Lines `suite package` → apt's `package/suite`.
fn package_arguments(list: &str, host_suite: &str) -> Result<Vec<String>> {
    list.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| match line.split_whitespace().collect::<Vec<_>>()[..] {
            ["host", package] => Ok(format!("{package}/{host_suite}")),
            [suite, package] if SUITES.contains(&suite) => Ok(format!("{package}/{suite}")),
            _ => bail!("testbed/debian/packages.txt: cannot read the line `{line}`"),
        })
        .collect()
}

/// Older packages still ship `/sbin` and `/lib`, which are links into `/usr` on every Debian system.
fn merge_usr(root: &Path) -> Result<()> {
    for folder in ["bin", "sbin", "lib", "lib64"] {
        let from = root.join(folder);
        if !from.is_dir() {
            continue;
        }
        let to = root.join("usr").join(folder);
        fs::create_dir_all(&to)?;
        let status = Command::new("cp").arg("-a").arg(from.join(".")).arg(&to).status()?;
        if !status.success() {
            bail!("move {} into {}: {status}", from.display(), to.display());
        }
        fs::remove_dir_all(&from)?;
    }
    Ok(())
}

pub(super) fn layer(cache: &Cache, version: SlurmVersion, layer: Layer, out: &Path) -> Result<()> {
    let part = Part::Layer(version, layer);
    let mut command = with_tools(cache)?;
    command.arg("bash").arg(workspace().join("images/layers/layer.sh"));
    command.args([layer.name(), version.suite()]).arg(out);
    match layer.below() {
        [] => command.arg(Mirror::of_this_machine()?.uri),
        below => command.arg(cache.stack(version, below)?),
    };
    step::run(cache, part, &format!("installing packages from {}", version.suite()), &mut command)?;
    if layer == Layer::Slurm {
        let found = fs::read_to_string(out.join("root/usr/share/slipway/release")).unwrap_or_default();
        if !found.contains(&format!(" {}.", version.as_str())) {
            bail!("{} has `{}`, not Slurm {}", version.suite(), found.trim(), version.as_str());
        }
    }
    Ok(())
}

/// A command that sees the unpacked packages as installed.
pub(super) fn with_tools(cache: &Cache) -> Result<Command> {
    let mut command = bound_command("unshare");
    // With a pid namespace, so that nothing it started writes on after its end.
    command.args([
        "--mount",
        "--propagation",
        "private",
        "--pid",
        "--fork",
        "--kill-child=KILL",
        "--mount-proc",
    ]);
    command.arg("bash");
    command.arg(workspace().join("testbed/with-tools.sh")).arg(cache.part(Part::Debian)?);
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_list_is_readable() {
        let list = fs::read_to_string(workspace().join("testbed/debian/packages.txt")).unwrap();
        let arguments = package_arguments(&list, "bookworm").unwrap();
        assert!(arguments.contains(&"etcd-server/forky".into()));
        assert!(arguments.contains(&"nftables/bookworm".into()));
    }

    #[test]
    fn an_unknown_suite_is_named() {
        let error = package_arguments("woody bash", "bookworm").unwrap_err().to_string();
        assert!(error.contains("woody bash"), "{error}");
    }
}
