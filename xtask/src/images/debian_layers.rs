//! Which blob each of Debian's layers is, as set-up packed it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use testkit::cache::SlurmVersion;
use testkit::layers::Layer;
use testkit::oci::Blob;

const FILE: &str = "layers.json";

#[derive(Debug, Default)]
pub(crate) struct DebianLayers(BTreeMap<String, Blob>);

fn key(version: SlurmVersion, layer: Layer) -> String {
    format!("{}-{}", layer.name(), version.as_str())
}

impl DebianLayers {
    pub(crate) fn read(images: &Path) -> Result<Self> {
        let path = images.join(FILE);
        let text = fs::read(&path).with_context(|| format!("read {}", path.display()))?;
        Ok(Self(serde_json::from_slice(&text).with_context(|| format!("read {}", path.display()))?))
    }

    pub(crate) fn write(&self, images: &Path) -> Result<()> {
        fs::write(images.join(FILE), serde_json::to_vec_pretty(&self.0)?).context("write down the layers")
    }

    pub(crate) fn put(&mut self, version: SlurmVersion, layer: Layer, blob: Blob) {
        self.0.insert(key(version, layer), blob);
    }

    pub(crate) fn get(&self, version: SlurmVersion, layer: Layer) -> Option<&Blob> {
        self.0.get(&key(version, layer))
    }

    /// The blobs of a stack, bottom first.
    pub(crate) fn stack(&self, version: SlurmVersion, layers: &[Layer]) -> Result<Vec<Blob>> {
        let find = |layer: &Layer| {
            self.get(version, *layer).cloned().with_context(|| format!("no layer {}", key(version, *layer)))
        };
        layers.iter().map(find).collect()
    }
}
