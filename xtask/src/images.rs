//! `cargo xtask images`: the product's images, without a container engine.
//!
//! Debian's layers are made once by set-up, and every node of a testbed cluster has them. What changes with our code is
//! a small layer on top, so a new build is on the nodes within seconds.

mod debian_layers;
#[cfg(test)]
mod dockerfile;
#[cfg(test)]
mod entrypoints;
mod programs;
mod stage;

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tempfile::TempDir;
use testkit::cache::{Cache, Part, SlurmVersion};
use testkit::images::{IMAGES, Image, Ours, REGISTRY, VERSION, slurm_tag};
use testkit::oci::{Blob, Config, Layout};

use crate::{say, setup, target, tell};
pub(crate) use debian_layers::DebianLayers;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Also write all images into one OCI archive, complete, for `skopeo copy oci-archive:…` or `ctr images import`
    #[arg(long, value_name = "FILE")]
    archive: Option<PathBuf>,
}

pub(crate) fn command(args: &Args) -> Result<()> {
    let cache = setup::ensure(&[Part::Images])?;
    let built = build(&cache)?;
    let for_nodes = built.for_nodes(&cache)?;
    tell(&format!("{} is what `cargo xtask cluster load` needs", for_nodes.display()));
    if let Some(archive) = &args.archive {
        built.write(&cache, archive, Content::Complete)?;
        tell(&format!("{} holds all images", archive.display()));
    }
    for name in &built.names {
        say(name);
    }
    Ok(())
}

/// Builds the programs and the images, and gives an archive for nodes that have Debian's layers.
pub(crate) fn for_nodes(cache: &Cache) -> Result<PathBuf> {
    build(cache)?.for_nodes(cache)
}

/// What an archive holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    /// Debian's layers too.
    Complete,
    OnlyOurs,
}

/// Our files, ready to be packed.
struct Built {
    /// Of this run alone: another command may build at the same time.
    folder: TempDir,
    stages: HashMap<&'static str, PathBuf>,
    names: Vec<String>,
}

fn build(cache: &Cache) -> Result<Built> {
    let programs = programs::build()?;
    let images = target().join("images");
    fs::create_dir_all(&images).with_context(|| format!("make {}", images.display()))?;
    let folder = tempfile::Builder::new().prefix("stage").tempdir_in(images)?;
    let mut stages = HashMap::new();
    for ours in Ours::ALL.into_iter().filter(|ours| *ours != Ours::Nothing) {
        let root = folder.path().join(ours.name());
        stage::make(ours, &programs, &root)
            .with_context(|| format!("gather the files of {}", ours.name()))?;
        stages.insert(ours.name(), root);
    }
    let names = references(cache)?.into_iter().map(|(_, _, name)| name).collect();
    Ok(Built { folder, stages, names })
}

/// Every image with its full name, for each release of Slurm that it is made for.
fn references(cache: &Cache) -> Result<Vec<(&'static Image, SlurmVersion, String)>> {
    let mut all = Vec::new();
    for version in SlurmVersion::ALL {
        let tag = slurm_tag(cache, version)?;
        for image in IMAGES.iter().filter(|image| image.is_for_slurm()) {
            all.push((image, version, format!("{REGISTRY}/{}:{tag}", image.name)));
        }
    }
    for image in IMAGES.iter().filter(|image| !image.is_for_slurm()) {
        all.push((image, SlurmVersion::V26_05, format!("{REGISTRY}/{}:{VERSION}", image.name)));
    }
    Ok(all)
}

impl Built {
    fn for_nodes(&self, cache: &Cache) -> Result<PathBuf> {
        let (archive, unfinished) =
            (target().join("images/for-nodes.tar"), self.folder.path().join("for-nodes.tar"));
        self.write(cache, &unfinished, Content::OnlyOurs)?;
        fs::rename(unfinished, &archive)?;
        Ok(archive)
    }

    fn write(&self, cache: &Cache, archive: &Path, content: Content) -> Result<()> {
        let images = cache.part(Part::Images)?;
        let debian = DebianLayers::read(&images)?;
        let mut layout = Layout::new(self.folder.path().join("layout"))?;
        let mut ours: HashMap<&str, Blob> = HashMap::new();
        for (name, root) in &self.stages {
            ours.insert(name, layout.layer(root)?);
        }
        for (image, version, name) in references(cache)? {
            let mut layers = debian.stack(version, image.layers)?;
            if content == Content::Complete {
                layout.include(&images.join("layout"), &layers)?;
            }
            layers.extend(ours.get(image.ours.name()).cloned());
            let Image { entrypoint, cmd, user, .. } = *image;
            layout.add(&name, &layers, &Config { entrypoint, cmd, user })?;
        }
        layout.archive(archive)
    }
}
