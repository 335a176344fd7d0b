//! The programs and the plugin that go into images.

use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::{cargo, target, tell, workspace};

pub(super) const STATIC: &str = "-C target-feature=+crt-static";
pub(super) const PROGRAMS: [&str; 4] = ["--package", "slipway", "--package", "slipway-node"];
pub(super) const PLUGIN: [&str; 2] = ["--package", "spank-chroot"];

pub(super) struct Programs {
    pub(super) slipway: PathBuf,
    pub(super) slipway_node: PathBuf,
    pub(super) plugin: PathBuf,
}

/// Static, so that they run in any image: ours of two Debian releases, another's, or one with nothing else in it. The
/// plugin cannot be: it is loaded into Slurm's own programs.
pub(super) fn build() -> Result<Programs> {
    let triple = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let programs = [&["--target", &triple], &PROGRAMS[..]].concat();
    compile("programs", &programs, &format!("{STATIC} "))?;
    compile("the plugin", &PLUGIN, "")?;
    let folder = target().join(&triple).join("release");
    Ok(Programs {
        slipway: folder.join("slipway"),
        slipway_node: folder.join("slipway-node"),
        plugin: target().join("release/libchroot.so"),
    })
}

fn compile(what: &str, selection: &[&str], flags: &str) -> Result<()> {
    tell(&format!("images: building {what}"));
    // Paths of the machine that built it do not belong in an image. The same flags however we were started, since other
    // ones build everything anew: cargo sets CARGO_HOME for what it runs, and without it the place is this.
    let home = PathBuf::from(std::env::var_os("HOME").unwrap_or_default());
    let cargo_home = std::env::var_os("CARGO_HOME").map_or_else(|| home.join(".cargo"), PathBuf::from);
    let mut flags = flags.to_owned();
    for (path, shown) in [(workspace(), "/slipway"), (cargo_home, "/cargo"), (home, "/home")] {
        flags += &format!("--remap-path-prefix={}={shown} ", path.display());
    }
    let mut command = cargo(&["build", "--release", "--quiet"]);
    command.args(selection).env("RUSTFLAGS", flags.trim());
    if !command.status()?.success() {
        bail!("{what} do not compile");
    }
    Ok(())
}
