//! An object off the wire, decoded straight into its view. One that cannot be read is an object too, with a name and a
//! reason, so that it is skipped instead of ending the list or the watch that it came in.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use kube::api::ObjectMeta;
use kube::core::DynamicResourceScope;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::meta::{Key, Meta, Version};
use crate::views::View;

/// What came, and where it belongs.
pub(crate) struct Decoded<V> {
    /// Holds the resourceVersion only: what kube's watcher asks for.
    wire: ObjectMeta,
    pub key: Key,
    pub version: Version,
    /// The view, or why there is none.
    pub view: Result<Arc<V>, String>,
}

#[derive(Deserialize, Default)]
struct Head {
    #[serde(default)]
    metadata: Meta,
}

impl<'de, V: View> Deserialize<'de> for Decoded<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?;
        let (key, version, view) = match serde_json::from_str::<V>(raw.get()) {
            Ok(view) => (view.meta().key.clone(), view.meta().version, Ok(Arc::new(view))),
            Err(error) => {
                let Head { metadata } = serde_json::from_str(raw.get()).unwrap_or_default();
                (metadata.key, metadata.version, Err(error.to_string()))
            }
        };
        let wire = ObjectMeta { resource_version: Some(version.0.to_string()), ..ObjectMeta::default() };
        Ok(Self { wire, key, version, view })
    }
}

impl<V> Clone for Decoded<V> {
    fn clone(&self) -> Self {
        let Self { wire, key, version, view } = self;
        Self { wire: wire.clone(), key: key.clone(), version: *version, view: view.clone() }
    }
}

impl<V> fmt::Debug for Decoded<V> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} at {}", self.key, self.version.0)
    }
}

impl<V: View> kube::Resource for Decoded<V> {
    type DynamicType = ();
    type Scope = DynamicResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        V::kind().kind.into()
    }

    fn group((): &()) -> Cow<'_, str> {
        V::kind().group.into()
    }

    fn version((): &()) -> Cow<'_, str> {
        V::kind().version.into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        V::kind().plural.into()
    }

    fn metadata_api() -> bool {
        V::METADATA_ONLY
    }

    fn meta(&self) -> &ObjectMeta {
        &self.wire
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.wire
    }
}
