//! What is kept of an object's metadata: everything that decisions read, and never managedFields, which are most of its bytes.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, de};

use crate::text::Text;

/// Written by `kubectl apply` for itself: a copy of the whole object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Annotations with a longer value are not kept. Other programs store whole documents there; decisions need words.
pub const LONGEST_ANNOTATION: usize = 1024;

/// Where an object is: namespace (empty for cluster-scoped kinds) and name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Key {
    pub namespace: Text,
    pub name: Text,
}

impl Key {
    #[must_use]
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: Text::new(namespace), name: Text::new(name) }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            return out.write_str(&self.name);
        }
        write!(out, "{}/{}", self.namespace, self.name)
    }
}

/// A `resourceVersion`, in the order in which the server gave them out. Kubernetes promises that they are numbers of
/// growing size since 1.35, and has kept to it since etcd 3. Zero is "cannot tell".
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Version(pub u64);

impl Version {
    #[must_use]
    pub fn parse(text: &str) -> Self {
        Self(text.parse().unwrap_or_default())
    }
}

/// Lean metadata.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(from = "Wire")]
pub struct Meta {
    pub key: Key,
    pub uid: Text,
    /// When this was written; takes no part in comparisons.
    pub version: Version,
    /// Counts changes of the specification; 0 for kinds that do not count.
    pub generation: i64,
    pub labels: Pairs,
    /// Without those longer than [`LONGEST_ANNOTATION`].
    pub annotations: Pairs,
    pub owners: Box<[Owner]>,
    pub finalizers: Box<[Text]>,
    pub created: Option<Timestamp>,
    /// Set once somebody has asked for its deletion.
    pub deleting: Option<Timestamp>,
}

impl Meta {
    #[must_use]
    pub fn name(&self) -> &Text {
        &self.key.name
    }

    #[must_use]
    pub fn namespace(&self) -> &Text {
        &self.key.namespace
    }

    #[must_use]
    pub fn label(&self, key: &str) -> Option<&Text> {
        self.labels.get(key)
    }

    #[must_use]
    pub fn annotation(&self, key: &str) -> Option<&Text> {
        self.annotations.get(key)
    }

    /// The owner that manages this object, if there is one.
    #[must_use]
    pub fn controller(&self) -> Option<&Owner> {
        self.owners.iter().find(|owner| owner.controller)
    }
}

/// Two versions of an object that say the same are equal, so that a write that changed nothing we keep wakes nobody.
impl PartialEq for Meta {
    fn eq(&self, other: &Self) -> bool {
        let Self {
            key,
            uid,
            version: _,
            generation,
            labels,
            annotations,
            owners,
            finalizers,
            created,
            deleting,
        } = self;
        *key == other.key
            && *uid == other.uid
            && *generation == other.generation
            && *labels == other.labels
            && *annotations == other.annotations
            && *owners == other.owners
            && *finalizers == other.finalizers
            && *created == other.created
            && *deleting == other.deleting
    }
}

/// One owner reference.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct Owner {
    pub api_version: Text,
    pub kind: Text,
    pub name: Text,
    pub uid: Text,
    pub controller: bool,
}

/// A small map of texts, sorted by key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Pairs(Box<[(Text, Text)]>);

impl Pairs {
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Text> {
        let at = self.0.binary_search_by(|(known, _)| known.as_str().cmp(key)).ok()?;
        Some(&self.0[at].1)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Text, &Text)> {
        self.0.iter().map(|(key, value)| (key, value))
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'a> FromIterator<(&'a str, &'a str)> for Pairs {
    fn from_iter<I: IntoIterator<Item = (&'a str, &'a str)>>(pairs: I) -> Self {
        sorted(pairs.into_iter().map(|(key, value)| (Text::new(key), Text::new(value))).collect())
    }
}

fn sorted(mut pairs: Vec<(Text, Text)>) -> Pairs {
    pairs.sort_unstable();
    pairs.dedup_by(|later, earlier| later.0 == earlier.0);
    Pairs(pairs.into_boxed_slice())
}

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PairsVisitor { longest: usize::MAX })
    }
}

struct PairsVisitor {
    longest: usize,
}

impl<'de> de::Visitor<'de> for PairsVisitor {
    type Value = Pairs;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a map of strings")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Pairs, E> {
        Ok(Pairs::default())
    }

    fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
        let mut pairs = Vec::with_capacity(map.size_hint().unwrap_or_default());
        while let Some(key) = map.next_key::<Text>()? {
            match map.next_value_seed(UpTo { longest: self.longest })? {
                Some(value) if key != LAST_APPLIED => pairs.push((key, value)),
                _ => {}
            }
        }
        Ok(sorted(pairs))
    }
}

/// A string that is interned only if it is short enough to be kept.
struct UpTo {
    longest: usize,
}

impl<'de> de::DeserializeSeed<'de> for UpTo {
    type Value = Option<Text>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<Text>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl de::Visitor<'_> for UpTo {
    type Value = Option<Text>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a string")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Option<Text>, E> {
        Ok((text.len() <= self.longest).then(|| Text::new(text)))
    }
}

fn annotations<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Pairs, D::Error> {
    deserializer.deserialize_any(PairsVisitor { longest: LONGEST_ANNOTATION })
}

/// Go writes `null` for some empty lists.
pub fn null_is_empty<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// The fields as the server sends them; what is not named here is skipped without being built.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Wire<'a> {
    name: Text,
    namespace: Text,
    uid: Text,
    #[serde(borrow)]
    resource_version: std::borrow::Cow<'a, str>,
    generation: i64,
    labels: Pairs,
    #[serde(deserialize_with = "annotations")]
    annotations: Pairs,
    #[serde(deserialize_with = "null_is_empty")]
    owner_references: Box<[Owner]>,
    #[serde(deserialize_with = "null_is_empty")]
    finalizers: Box<[Text]>,
    creation_timestamp: Option<Timestamp>,
    deletion_timestamp: Option<Timestamp>,
}

impl From<Wire<'_>> for Meta {
    fn from(wire: Wire<'_>) -> Self {
        Self {
            key: Key { namespace: wire.namespace, name: wire.name },
            uid: wire.uid,
            version: Version::parse(&wire.resource_version),
            generation: wire.generation,
            labels: wire.labels,
            annotations: wire.annotations,
            owners: wire.owner_references,
            finalizers: wire.finalizers,
            created: wire.creation_timestamp,
            deleting: wire.deletion_timestamp,
        }
    }
}
