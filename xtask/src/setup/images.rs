//! The images that every node of a testbed cluster has, and a containerd root in which they are unpacked.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use testkit::cache::{Cache, Part, SlurmVersion};
use testkit::cluster::images::{BUSYBOX, LAYERS, PAUSE};
use testkit::layers::Layer;
use testkit::oci::{Config, Layout};

use super::{debian, step};
use crate::images::DebianLayers;
use crate::workspace;

/// Programs that pod tests call by name.
const BUSYBOX_LINKS: [&str; 16] = [
    "sh", "cat", "echo", "sleep", "ls", "id", "stat", "touch", "mkdir", "nslookup", "wget", "nc", "httpd",
    "hostname", "true", "false",
];

/// The stacks that images of ours begin with.
const STACKS: [(&str, &[Layer]); 3] = [
    ("session", &[Layer::Base, Layer::Slurm, Layer::Session]),
    ("mariadb", &[Layer::Base, Layer::MariaDb]),
    ("jail", &[Layer::Base, Layer::Jail]),
];

pub(super) fn layout(cache: &Cache, out: &Path) -> Result<()> {
    let mut layout = Layout::new(out.join("layout"))?;
    let work = tempfile::tempdir_in(out)?;

    let pause = work.path().join("pause");
    fs::create_dir_all(&pause)?;
    let mut compile = Command::new("gcc");
    compile.args(["-Os", "-static", "-s", "-o"]).arg(pause.join("pause"));
    compile.arg(workspace().join("testbed/images/pause.c"));
    step::run(cache, Part::Images, "compiling pause", &mut compile)?;
    let layer = layout.layer(&pause)?;
    layout.add(PAUSE, &[layer], &Config { entrypoint: &["/pause"], ..Config::default() })?;

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
    let layer = layout.layer(&busybox)?;
    layout.add(BUSYBOX, &[layer], &Config { entrypoint: &["/bin/sh"], ..Config::default() })?;

    let mut layers = DebianLayers::default();
    for version in SlurmVersion::ALL {
        for (name, stack) in STACKS {
            crate::tell(&format!("set-up: images: packing {name} of Slurm {}", version.as_str()));
            for layer in stack {
                if layers.get(version, *layer).is_none() {
                    layers.put(version, *layer, layout.layer(&cache.layer(version, *layer)?)?);
                }
            }
            let blobs = layers.stack(version, stack)?;
            layout.add(&format!("{LAYERS}/{name}:{}", version.as_str()), &blobs, &Config::default())?;
        }
    }
    layers.write(out)?;
    drop(work);
    layout.finish().map(|_| ())
}

pub(super) fn containerd_root(cache: &Cache, out: &Path) -> Result<()> {
    let mut command = debian::with_tools(cache)?;
    command.arg("bash").arg(workspace().join("testbed/images/containerd-root.sh"));
    command.arg(cache.part(Part::Images)?.join("layout")).arg(out);
    step::run(cache, Part::ContainerdRoot, "unpacking the images", &mut command)
}
