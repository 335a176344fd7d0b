//! OCI image archives from directories, without a container engine.
//!
//! Layers are plain tar files: the archive never leaves this machine, and unpacking is what takes time.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use aws_lc_rs::digest::{Context as Digest, SHA256};
use serde_json::{Value, json};

use crate::cache::{hex, sha256};

const PATH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A layout that images are added to, and that becomes one archive.
#[derive(Debug)]
pub struct Layout {
    folder: PathBuf,
    manifests: Vec<Value>,
}

/// A blob in the layout: what a manifest says of it.
struct Blob {
    digest: String,
    size: u64,
}

impl Layout {
    pub fn new(folder: PathBuf) -> Result<Self> {
        fs::create_dir_all(folder.join("blobs/sha256"))?;
        Ok(Self { folder, manifests: Vec::new() })
    }

    /// Adds an image of one layer, with owners, links and times as they are in `root`.
    pub fn add(&mut self, name: &str, root: &Path, exclude: &[&str], entrypoint: &[&str]) -> Result<()> {
        let layer = self.layer(root, exclude)?;
        let config = json!({
            "architecture": oci_architecture(),
            "os": "linux",
            "config": { "Entrypoint": entrypoint, "Env": [PATH], "WorkingDir": "/" },
            "rootfs": { "type": "layers", "diff_ids": [layer.digest] },
        });
        let config = self.put_json(&config)?;
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": descriptor("application/vnd.oci.image.config.v1+json", &config),
            "layers": [descriptor("application/vnd.oci.image.layer.v1.tar", &layer)],
        });
        let mut manifest =
            descriptor("application/vnd.oci.image.manifest.v1+json", &self.put_json(&manifest)?);
        manifest["platform"] = json!({ "architecture": oci_architecture(), "os": "linux" });
        manifest["annotations"] = json!({ "io.containerd.image.name": name });
        self.manifests.push(manifest);
        Ok(())
    }

    pub fn write(self, archive: &Path) -> Result<()> {
        fs::write(self.folder.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#)?;
        let index = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.index.v1+json",
            "manifests": self.manifests,
        });
        fs::write(self.folder.join("index.json"), serde_json::to_vec(&index)?)?;
        tar(archive, &self.folder, &[])?;
        fs::remove_dir_all(&self.folder)?;
        Ok(())
    }

    fn layer(&self, root: &Path, exclude: &[&str]) -> Result<Blob> {
        let file = self.folder.join("layer");
        tar(&file, root, exclude)?;
        let mut hash = Digest::new(&SHA256);
        let mut reader = File::open(&file)?;
        let mut buffer = vec![0; 1 << 20];
        loop {
            match reader.read(&mut buffer)? {
                0 => break,
                read => hash.update(&buffer[..read]),
            }
        }
        let hex = hex(hash.finish().as_ref());
        let size = fs::metadata(&file)?.len();
        fs::rename(&file, self.folder.join("blobs/sha256").join(&hex))?;
        Ok(Blob { digest: format!("sha256:{hex}"), size })
    }

    fn put_json(&self, value: &Value) -> Result<Blob> {
        let bytes = serde_json::to_vec(value)?;
        let hex = sha256(&bytes);
        fs::write(self.folder.join("blobs/sha256").join(&hex), &bytes)?;
        Ok(Blob { digest: format!("sha256:{hex}"), size: bytes.len() as u64 })
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

fn tar(archive: &Path, root: &Path, exclude: &[&str]) -> Result<()> {
    let mut command = Command::new("tar");
    command.args(["--create", "--numeric-owner", "--sort=name", "--xattrs", "--file"]).arg(archive);
    command.args(exclude.iter().map(|pattern| format!("--exclude={pattern}")));
    let status = command.arg("-C").arg(root).arg(".").status().context("start tar")?;
    if !status.success() {
        bail!("tar of {}: {status}", root.display());
    }
    Ok(())
}
