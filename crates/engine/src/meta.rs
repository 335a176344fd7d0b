//! What is kept of an object's metadata: everything that decisions read, and never managedFields, which are most of its bytes.

use std::fmt;

use serde::{Deserialize, Deserializer, de};

use crate::lean::lean;
use crate::second::Second;
use crate::shared::Shared;
use crate::text::Text;

/// Written by `kubectl apply` for itself: a copy of the whole object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Annotations that network, storage and machine programs write for themselves: addresses and identities, different for
/// each object. No decision reads them, and kept they would be a fifth of a node.
const OTHERS_OWN: [&str; 7] = [
    "cluster.x-k8s.io/",
    "cni.projectcalico.org/",
    "csi.volume.kubernetes.io/",
    "k8s.ovn.org/",
    "k8s.v1.cni.cncf.io/",
    "network.cilium.io/",
    "projectcalico.org/",
];

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

impl<'de> Deserialize<'de> for Version {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Version;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a string")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Version, E> {
                Ok(Version::parse(text))
            }
        }
        deserializer.deserialize_str(Visitor)
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
    /// Without those longer than [`LONGEST_ANNOTATION`], and without what other programs keep there for themselves.
    pub annotations: Pairs,
    pub owners: Box<[Owner]>,
    pub finalizers: Box<[Text]>,
    pub created: Option<Second>,
    /// Set once somebody has asked for its deletion.
    pub deleting: Option<Second>,
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

lean! {
    /// One owner reference.
    #[derive(Clone, Eq)]
    pub struct Owner {
        pub api_version: Text,
        pub kind: Text,
        pub name: Text,
        pub uid: Text,
        pub controller: bool,
    }
}

/// A small map of texts, sorted by key. Objects of one kind mostly have the same keys, so those are shared.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Pairs {
    keys: Shared<Box<[Text]>>,
    values: Box<[Text]>,
}

impl Pairs {
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Text> {
        let at = self.keys.binary_search_by(|known| known.as_str().cmp(key)).ok()?;
        self.values.get(at)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Text, &Text)> {
        self.keys.iter().zip(&self.values)
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
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
    let (keys, values): (Vec<Text>, Vec<Text>) = pairs.into_iter().unzip();
    Pairs { keys: Shared::new(keys.into()), values: values.into() }
}

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PairsVisitor { longest: usize::MAX, drop: |_| false })
    }
}

struct PairsVisitor {
    longest: usize,
    drop: fn(&str) -> bool,
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
            if (self.drop)(&key) {
                map.next_value::<de::IgnoredAny>()?;
                continue;
            }
            let value = map.next_value_seed(UpTo { longest: self.longest })?;
            pairs.extend(value.map(|value| (key, value)));
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
        deserializer.deserialize_any(self)
    }
}

impl de::Visitor<'_> for UpTo {
    type Value = Option<Text>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a string")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Option<Text>, E> {
        Ok(None)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Option<Text>, E> {
        Ok((text.len() <= self.longest).then(|| Text::new(text)))
    }
}

/// Go writes `null` for some empty lists.
pub fn null_is_empty<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

fn is_dropped(annotation: &str) -> bool {
    annotation == LAST_APPLIED || OTHERS_OWN.iter().any(|prefix| annotation.starts_with(prefix))
}

/// Pairs without those that are not kept.
#[derive(Debug, PartialEq, Default)]
struct Annotations(Pairs);

impl<'de> Deserialize<'de> for Annotations {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PairsVisitor { longest: LONGEST_ANNOTATION, drop: is_dropped }).map(Self)
    }
}

lean! {
    /// The fields as the server sends them.
    struct Wire {
        name: Text,
        namespace: Text,
        uid: Text,
        resource_version: Version,
        generation: i64,
        labels: Pairs,
        annotations: Annotations,
        owner_references: Box<[Owner]>,
        finalizers: Box<[Text]>,
        creation_timestamp: Option<Second>,
        deletion_timestamp: Option<Second>,
    }
}

impl From<Wire> for Meta {
    fn from(wire: Wire) -> Self {
        Self {
            key: Key { namespace: wire.namespace, name: wire.name },
            uid: wire.uid,
            version: wire.resource_version,
            generation: wire.generation,
            labels: wire.labels,
            annotations: wire.annotations.0,
            owners: wire.owner_references,
            finalizers: wire.finalizers,
            created: wire.creation_timestamp,
            deleting: wire.deletion_timestamp,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn meta(json: &Value) -> Meta {
        serde_json::from_str(&json.to_string()).unwrap()
    }

    #[test]
    fn nothing_is_needed_and_null_is_nothing() {
        let nulls = json!({
            "name": null, "namespace": null, "uid": null, "resourceVersion": null, "generation": null,
            "labels": null, "annotations": null, "ownerReferences": null, "finalizers": null,
            "creationTimestamp": null, "deletionTimestamp": null, "managedFields": null,
        });
        assert_eq!(meta(&nulls), Meta::default());
        assert_eq!(meta(&json!({})), Meta::default());
        assert_eq!(
            meta(&json!({ "labels": { "a": null, "b": "c" } })).labels,
            [("b", "c")].into_iter().collect()
        );
    }

    #[test]
    fn every_field_is_read() {
        let meta = meta(&json!({
            "name": "crew-0", "namespace": "yard", "uid": "u", "resourceVersion": "77", "generation": 3,
            "labels": { "b": "2", "a": "1" }, "annotations": { "note": "x" }, "finalizers": ["hold"],
            "creationTimestamp": "2026-01-02T03:04:05Z", "deletionTimestamp": "2026-01-02T03:05:05Z",
            "ownerReferences": [
                { "apiVersion": "v1", "kind": "ConfigMap", "name": "friend", "uid": "f" },
                { "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "crew", "uid": "s", "controller": true },
            ],
        }));
        assert_eq!(
            (meta.key.to_string(), meta.version, meta.generation),
            ("yard/crew-0".to_owned(), Version(77), 3)
        );
        assert_eq!(meta.uid, "u");
        assert_eq!(meta.label("b"), Some(&Text::new("2")));
        assert_eq!(meta.annotation("note"), Some(&Text::new("x")));
        assert_eq!(*meta.finalizers, [Text::new("hold")]);
        assert_eq!(meta.controller().map(|owner| owner.uid.as_str()), Some("s"));
        assert_eq!(meta.created.map(|time| time.to_string()).as_deref(), Some("2026-01-02T03:04:05Z"));
        assert_eq!(meta.deleting.map(|time| time.to_string()).as_deref(), Some("2026-01-02T03:05:05Z"));
    }

    #[test]
    fn long_annotations_and_copies_of_the_object_are_dropped() {
        let (fits, too_long) = ("x".repeat(LONGEST_ANNOTATION), "x".repeat(LONGEST_ANNOTATION + 1));
        let kept = meta(&json!({
            "annotations": { "fits": fits, "long": too_long, LAST_APPLIED: "{}", "network.cilium.io/ipv4-pod-cidr": "10.0.0.0/24" }, "labels": { "long": too_long },
        }));
        assert_eq!(kept.annotations, [("fits", fits.as_str())].into_iter().collect());
        assert!(kept.label("long").is_some(), "only annotations are cut");
    }

    #[test]
    fn a_write_that_changed_nothing_we_keep_is_equal() {
        let at = |version: &str, label: &str| {
            meta(&json!({
                "name": "a", "resourceVersion": version, "labels": { "l": label },
                "managedFields": [{ "manager": version, "fieldsV1": { "f:metadata": {} } }],
            }))
        };
        assert_eq!(at("1", "x"), at("2", "x"));
        assert_ne!(at("1", "x").version, at("2", "x").version);
        assert_ne!(at("1", "x"), at("1", "y"));
        assert_eq!(at("not a number", "x").version, Version(0));
    }

    proptest! {
        #[test]
        fn pairs_are_a_map(map: BTreeMap<String, String>, others: Vec<String>) {
            let json = serde_json::to_string(&map).unwrap();
            let decoded: Pairs = serde_json::from_str(&json).unwrap();
            let built: Pairs = map.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
            prop_assert_eq!(&decoded, &built);
            prop_assert_eq!(decoded.len(), map.len());
            prop_assert_eq!(decoded.is_empty(), map.is_empty());
            for key in map.keys().chain(&others) {
                prop_assert_eq!(decoded.get(key).map(Text::as_str), map.get(key).map(String::as_str));
            }
            let in_order: Vec<_> = decoded.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
            prop_assert_eq!(in_order, map.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect::<Vec<_>>());
        }
    }
}
