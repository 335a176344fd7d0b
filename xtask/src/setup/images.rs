//! The images that every node of a testbed cluster has, and a containerd root in which they are unpacked.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use testkit::cache::{Cache, Part};
use testkit::cluster::images::{BUSYBOX, PAUSE, SLURM_VERSION, slurm};
use testkit::oci::Layout;

use super::{debian, step};
use crate::workspace;

/// Programs that pod tests call by name.
const BUSYBOX_LINKS: [&str; 16] = [
    "sh", "cat", "echo", "sleep", "ls", "id", "stat", "touch", "mkdir", "nslookup", "wget", "nc", "httpd",
    "hostname", "true", "false",
];

/// What the daemons do without. Each file is a link that every node of every cluster makes when it starts.
const NOT_IN_THE_SLURM_IMAGE: [&str; 14] = [
    "./usr/lib/mysql",
    "./usr/lib/systemd",
    "./usr/lib/*/gconv",
    "./usr/lib/*/perl",
    "./usr/sbin/mariadbd",
    "./usr/share/bash-completion",
    "./usr/share/doc",
    "./usr/share/lintian",
    "./usr/share/mariadb",
    "./usr/share/perl",
    "./usr/share/perl5",
    "./var/lib/dpkg/info",
    "./var/lib/mariadb",
    "./var/lib/mysql",
];

pub(super) fn archive(cache: &Cache, out: &Path) -> Result<()> {
    let mut layout = Layout::new(out.join("layout"))?;
    let work = tempfile::tempdir_in(out)?;

    let pause = work.path().join("pause");
    fs::create_dir_all(&pause)?;
    let mut compile = Command::new("gcc");
    compile.args(["-Os", "-static", "-s", "-o"]).arg(pause.join("pause"));
    compile.arg(workspace().join("testbed/images/pause.c"));
    step::run(cache, Part::Images, "compiling pause", &mut compile)?;
    layout.add(PAUSE, &pause, &[], &["/pause"])?;

    let busybox = work.path().join("busybox");
    fs::create_dir_all(busybox.join("bin"))?;
    for folder in ["etc", "tmp", "proc", "sys", "dev", "run", "var"] {
        fs::create_dir_all(busybox.join(folder))?;
    }
    fs::copy(cache.debian_program("busybox")?, busybox.join("bin/busybox")).context("copy busybox")?;
    for name in BUSYBOX_LINKS {
        symlink("busybox", busybox.join("bin").join(name))?;
    }
    fs::write(busybox.join("etc/passwd"), "root:x:0:0:root:/:/bin/sh\n")?;
    layout.add(BUSYBOX, &busybox, &[], &["/bin/sh"])?;

    crate::tell("set-up: images: packing Slurm");
    let rootfs = cache.slurm_rootfs(SLURM_VERSION)?;
    layout.add(&slurm(), &rootfs, &NOT_IN_THE_SLURM_IMAGE, &["/usr/bin/tini", "-g", "--"])?;
    layout.write(&out.join("images.tar"))?;
    step::write_sums(out)
}

pub(super) fn containerd_root(cache: &Cache, out: &Path) -> Result<()> {
    let mut command = debian::with_tools(cache)?;
    command.arg("bash").arg(workspace().join("testbed/images/containerd-root.sh"));
    command.arg(cache.part(Part::Images)?.join("images.tar")).arg(out);
    step::run(cache, Part::ContainerdRoot, "unpacking the images", &mut command)
}
