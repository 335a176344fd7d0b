//! The images that every node of a testbed cluster has, and a containerd root in which they are unpacked.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use testkit::cache::{Cache, Part, SlurmVersion};
use testkit::cluster::images::{BUSYBOX, PAUSE, slurm};
use testkit::oci::Layout;

use super::{debian, step};
use crate::workspace;

/// Programs that pod tests call by name.
const BUSYBOX_LINKS: [&str; 16] = [
    "sh", "cat", "echo", "sleep", "ls", "id", "stat", "touch", "mkdir", "nslookup", "wget", "nc", "httpd",
    "hostname", "true", "false",
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

    for version in SlurmVersion::ALL {
        crate::tell(&format!("set-up: images: packing Slurm {}", version.as_str()));
        // No pod runs the database from this image, and its empty data alone is 140 MB.
        let exclude = ["./var/lib/mysql", "./var/lib/mariadb", "./usr/sbin/mariadbd"];
        layout.add(
            &slurm(version),
            &cache.slurm_rootfs(version)?,
            &exclude,
            &["/usr/bin/tini", "-g", "--"],
        )?;
    }
    layout.write(&out.join("images.tar"))?;
    step::write_sums(out)
}

pub(super) fn containerd_root(cache: &Cache, out: &Path) -> Result<()> {
    let mut command = debian::with_tools(cache)?;
    command.arg("bash").arg(workspace().join("testbed/images/containerd-root.sh"));
    command.arg(cache.part(Part::Images)?.join("images.tar")).arg(out);
    step::run(cache, Part::ContainerdRoot, "unpacking the images", &mut command)
}
