//! OCI image layouts from directories, without a container engine.
//!
//! Layers are plain tar files: they seldom leave this machine, and unpacking is what takes time. The same directories
//! give the same bytes, so images built twice have the same digests.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use aws_lc_rs::digest::{Context as Digest, SHA256};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::cache::{hex, sha256};

const PATH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// The time of everything that has none of its own.
pub const EPOCH: &str = "2026-01-01T00:00:00Z";

/// A folder that images are added to.
#[derive(Debug)]
pub struct Layout {
    folder: PathBuf,
    manifests: Vec<Value>,
}

/// A blob: what a manifest says of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blob {
    digest: String,
    size: u64,
}

/// What an image does when it is run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Config<'a> {
    pub entrypoint: &'a [&'a str],
    pub cmd: &'a [&'a str],
    pub user: &'a str,
}

impl Layout {
    pub fn new(folder: PathBuf) -> Result<Self> {
        fs::create_dir_all(folder.join("blobs/sha256"))?;
        Ok(Self { folder, manifests: Vec::new() })
    }

    /// Makes a layer of a directory, with owners, links and times as they are.
    pub fn layer(&self, root: &Path) -> Result<Blob> {
        only_adds(root)?;
        let file = self.folder.join("layer");
        tar(&file, root)?;
        let (hex, size) = (file_digest(&file)?, fs::metadata(&file)?.len());
        fs::rename(&file, self.blob(&hex))?;
        Ok(Blob { digest: format!("sha256:{hex}"), size })
    }

    /// Adds an image: layers from the bottom up, which need not be in this layout if whoever reads it has them.
    pub fn add(&mut self, name: &str, layers: &[Blob], config: &Config<'_>) -> Result<()> {
        let digests: Vec<_> = layers.iter().map(|layer| &layer.digest).collect();
        let Config { entrypoint, cmd, user } = config;
        let config = json!({
            "architecture": oci_architecture(),
            "os": "linux",
            "created": EPOCH,
            "config": { "Entrypoint": entrypoint, "Cmd": cmd, "User": user, "Env": [PATH], "WorkingDir": "/" },
            "rootfs": { "type": "layers", "diff_ids": digests },
        });
        let config = self.put_json(&config)?;
        let layer = |blob| descriptor("application/vnd.oci.image.layer.v1.tar", blob);
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": descriptor("application/vnd.oci.image.config.v1+json", &config),
            "layers": layers.iter().map(layer).collect::<Vec<_>>(),
        });
        let mut manifest =
            descriptor("application/vnd.oci.image.manifest.v1+json", &self.put_json(&manifest)?);
        let tag = name.rsplit(':').next().unwrap_or_default();
        manifest["platform"] = json!({ "architecture": oci_architecture(), "os": "linux" });
        manifest["annotations"] =
            json!({ "io.containerd.image.name": name, "org.opencontainers.image.ref.name": tag });
        self.manifests.push(manifest);
        Ok(())
    }

    /// Brings the blobs of another layout into this one, so that it is complete.
    pub fn include(&self, other: &Path, blobs: &[Blob]) -> Result<()> {
        let wanted: BTreeSet<_> =
            blobs.iter().filter_map(|blob| blob.digest.strip_prefix("sha256:")).collect();
        for hex in wanted.into_iter().filter(|hex| !self.blob(hex).exists()) {
            let from = other.join("blobs/sha256").join(hex);
            // Layers are large; a second name for the same file does where it is possible.
            if fs::hard_link(&from, self.blob(hex)).is_err() {
                fs::copy(&from, self.blob(hex)).with_context(|| format!("copy {}", from.display()))?;
            }
        }
        Ok(())
    }

    /// Writes the index, after which the folder is an OCI layout.
    pub fn finish(self) -> Result<PathBuf> {
        fs::write(self.folder.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#)?;
        let index = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.index.v1+json",
            "manifests": self.manifests,
        });
        fs::write(self.folder.join("index.json"), serde_json::to_vec(&index)?)?;
        Ok(self.folder)
    }

    /// Writes one archive, and removes the folder.
    pub fn archive(self, archive: &Path) -> Result<()> {
        let folder = self.finish()?;
        tar(archive, &folder)?;
        fs::remove_dir_all(&folder)?;
        Ok(())
    }

    fn blob(&self, hex: &str) -> PathBuf {
        self.folder.join("blobs/sha256").join(hex)
    }

    fn put_json(&self, value: &Value) -> Result<Blob> {
        let bytes = serde_json::to_vec(value)?;
        let hex = sha256(&bytes);
        fs::write(self.blob(&hex), &bytes)?;
        Ok(Blob { digest: format!("sha256:{hex}"), size: bytes.len() as u64 })
    }
}

fn file_digest(path: &Path) -> Result<String> {
    let mut hash = Digest::new(&SHA256);
    let mut reader = File::open(path)?;
    let mut buffer = vec![0; 1 << 20];
    loop {
        match reader.read(&mut buffer)? {
            0 => return Ok(hex(hash.finish().as_ref())),
            read => hash.update(&buffer[..read]),
        }
    }
}

fn descriptor(media_type: &str, blob: &Blob) -> Value {
    json!({ "mediaType": media_type, "digest": blob.digest, "size": blob.size })
}

fn oci_architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// Overlayfs writes down a removal as a device, which other readers of a layer would take for one.
fn only_adds(folder: &Path) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_char_device() && entry.metadata()?.rdev() == 0 {
            bail!("{} removes a file of a layer below: a layer may only add", entry.path().display());
        }
        if kind.is_dir() {
            only_adds(&entry.path())?;
        }
    }
    Ok(())
}

fn tar(archive: &Path, root: &Path) -> Result<()> {
    let mut command = Command::new("tar");
    command.args(["--create", "--numeric-owner", "--sort=name", "--format=posix"]);
    // Times of access and change are of this machine, not of the content.
    command.arg("--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime");
    command.args(["--xattrs", "--xattrs-include=security.capability", "--file"]).arg(archive);
    let status = command.arg("-C").arg(root).arg(".").status().context("start tar")?;
    if !status.success() {
        bail!("tar of {}: {status}", root.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(root: &Path) -> Value {
        let folder = tempfile::tempdir().unwrap();
        let mut layout = Layout::new(folder.path().join("layout")).unwrap();
        let layer = layout.layer(root).unwrap();
        layout.add("slipway.hpc/x:1", &[layer], &Config::default()).unwrap();
        let index = fs::read(layout.finish().unwrap().join("index.json")).unwrap();
        serde_json::from_slice(&index).unwrap()
    }

    #[test]
    fn the_same_files_give_the_same_image_and_other_files_another() {
        let root = tempfile::tempdir().unwrap();
        for name in ["b", "a"] {
            fs::write(root.path().join(name), name).unwrap();
        }
        let first = image(root.path());
        // Reading changes the time of access.
        fs::read(root.path().join("a")).unwrap();
        assert_eq!(image(root.path()), first);
        fs::write(root.path().join("a"), "another").unwrap();
        assert_ne!(image(root.path()), first);
    }
}
