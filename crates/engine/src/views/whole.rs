//! Custom resources, of which controllers read everything that their authors wrote: the whole typed object is kept.
//!
//! Only the metadata is ours. It is taken out while the object is decoded, so managedFields are never built: they are
//! several times the object in memory.

use std::any::TypeId;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Debug};
use std::marker::PhantomData;
use std::sync::{Mutex, PoisonError};

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use serde::de::value::{MapAccessDeserializer, StringDeserializer};
use serde::de::{self, DeserializeOwned, DeserializeSeed, IntoDeserializer, MapAccess};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::{Kind, View};
use crate::meta::{Meta, Owner, Pairs};
use crate::text::Text;

/// A kind whose type is known when this is compiled.
pub trait Typed:
    kube::Resource<DynamicType = (), Scope: 'static>
    + DeserializeOwned
    + PartialEq
    + Debug
    + Send
    + Sync
    + 'static
{
}

impl<K> Typed for K where
    K: kube::Resource<DynamicType = (), Scope: 'static>
        + DeserializeOwned
        + PartialEq
        + Debug
        + Send
        + Sync
        + 'static
{
}

/// The whole object, with lean metadata.
#[derive(Debug, PartialEq)]
pub struct Whole<K> {
    pub meta: Meta,
    /// Its own metadata say the same as `meta`, but for the version: two that differ in nothing else are equal.
    pub object: K,
}

impl<K: Typed> View for Whole<K> {
    fn kind() -> Kind {
        Kind::of::<K>()
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}

impl Kind {
    /// The kind of a type that is known when this is compiled.
    #[must_use]
    pub fn of<K: kube::Resource<DynamicType = (), Scope: 'static>>() -> Self {
        Self {
            group: lasting(K::group(&())),
            version: lasting(K::version(&())),
            kind: lasting(K::kind(&())),
            plural: lasting(K::plural(&())),
            namespaced: TypeId::of::<K::Scope>() == TypeId::of::<NamespaceResourceScope>(),
        }
    }
}

/// Derived kinds give constants. A name that was made at run time is kept for good, once.
fn lasting(name: Cow<'static, str>) -> &'static str {
    static MADE: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    match name {
        Cow::Borrowed(name) => name,
        Cow::Owned(name) => {
            let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(known) = made.get(name.as_str()) {
                return known;
            }
            let name: &'static str = name.leak();
            made.insert(name);
            name
        }
    }
}

impl<'de, K: Typed> Deserialize<'de> for Whole<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(WholeVisitor(PhantomData))
    }
}

struct WholeVisitor<K>(PhantomData<K>);

impl<'de, K: Typed> de::Visitor<'de> for WholeVisitor<K> {
    type Value = Whole<K>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Whole<K>, A::Error> {
        let mut meta = Meta::default();
        let rest = WithoutMetadata { map, meta: &mut meta, at: At::Fields };
        let mut object = K::deserialize(MapAccessDeserializer::new(rest))?;
        *object.meta_mut() = object_meta(&meta);
        Ok(Whole { meta, object })
    }
}

/// The fields of an object, in which `metadata` comes last and is empty. What was there is put aside.
struct WithoutMetadata<'a, A> {
    map: A,
    meta: &'a mut Meta,
    at: At,
}

enum At {
    Fields,
    Metadata,
    End,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for WithoutMetadata<'_, A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        if let At::Metadata = self.at {
            self.at = At::End;
        }
        if let At::End = self.at {
            return Ok(None);
        }
        while let Some(key) = self.map.next_key::<String>()? {
            if key != "metadata" {
                let key: StringDeserializer<A::Error> = key.into_deserializer();
                return seed.deserialize(key).map(Some);
            }
            *self.meta = self.map.next_value::<Option<Meta>>()?.unwrap_or_default();
        }
        self.at = At::Metadata;
        let key: StringDeserializer<A::Error> = "metadata".to_owned().into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        match self.at {
            At::Fields => self.map.next_value_seed(seed),
            At::Metadata | At::End => {
                seed.deserialize(Value::Object(serde_json::Map::new())).map_err(de::Error::custom)
            }
        }
    }
}

fn object_meta(meta: &Meta) -> ObjectMeta {
    ObjectMeta {
        name: some(meta.name()),
        namespace: some(meta.namespace()),
        uid: some(&meta.uid),
        generation: (meta.generation != 0).then_some(meta.generation),
        labels: map(&meta.labels),
        annotations: map(&meta.annotations),
        owner_references: list(&meta.owners, owner_reference),
        finalizers: list(&meta.finalizers, ToString::to_string),
        creation_timestamp: meta.created.map(|time| Time(time.timestamp())),
        deletion_timestamp: meta.deleting.map(|time| Time(time.timestamp())),
        ..ObjectMeta::default()
    }
}

fn owner_reference(owner: &Owner) -> OwnerReference {
    OwnerReference {
        api_version: owner.api_version.to_string(),
        kind: owner.kind.to_string(),
        name: owner.name.to_string(),
        uid: owner.uid.to_string(),
        controller: owner.controller.then_some(true),
        block_owner_deletion: None,
    }
}

fn some(text: &Text) -> Option<String> {
    (!text.is_empty()).then(|| text.to_string())
}

fn map(pairs: &Pairs) -> Option<BTreeMap<String, String>> {
    (!pairs.is_empty())
        .then(|| pairs.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect())
}

fn list<T, U>(items: &[T], each: impl FnMut(&T) -> U) -> Option<Vec<U>> {
    (!items.is_empty()).then(|| items.iter().map(each).collect())
}
