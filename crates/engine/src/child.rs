//! An object that a controller wants to exist, as JSON: what is not in it is not ours to say.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::cache::{CONTROLLER, CREATED_ONCE};
use crate::failure::Failure;
use crate::meta::{Key, Meta};
use crate::views::Kind;

/// What to do where the server says that a field cannot be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recreate {
    /// Tell the user: something would be lost.
    Never,
    /// Delete it without its pods, which the new one takes over.
    Orphan,
    /// Delete it, and make it again.
    Delete,
}

impl Recreate {
    /// Where nothing else is said. A StatefulSet takes over pods of its names; what another kind leaves behind when its
    /// selector has changed, nobody takes over.
    fn usual(kind: &str) -> Self {
        match kind {
            "StatefulSet" => Self::Orphan,
            "RoleBinding" | "ClusterRoleBinding" => Self::Delete,
            _ => Self::Never,
        }
    }
}

/// How a child is kept.
#[derive(Clone)]
pub enum Mode {
    /// By server-side apply.
    Apply(Recreate),
    /// Created if it is missing, with what the function makes, and never touched again.
    CreateOnce(Arc<dyn Fn() -> Map<String, Value> + Send + Sync>),
}

impl fmt::Debug for Mode {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Apply(recreate) => write!(out, "Apply({recreate:?})"),
            Self::CreateOnce(_) => out.write_str("CreateOnce"),
        }
    }
}

/// An object that is wanted.
#[derive(Debug, Clone)]
pub struct Child {
    pub kind: Kind,
    pub key: Key,
    pub object: Value,
    pub mode: Mode,
}

impl Child {
    /// Kept by server-side apply, exactly as given.
    pub fn apply<K>(object: &K) -> Result<Self, Failure>
    where
        K: kube::Resource<DynamicType = (), Scope: 'static> + Serialize,
    {
        let kind = Kind::of::<K>();
        let mut value = serde_json::to_value(object)
            .map_err(|error| Failure::bug(format!("write {} as JSON: {error}", kind.kind)))?;
        value["apiVersion"] = kind.api_version().into();
        value["kind"] = kind.kind.into();
        Ok(Self::of(kind, value))
    }

    /// The same from JSON, for what has fields that the bindings do not know.
    #[must_use]
    pub fn of(kind: Kind, object: Value) -> Self {
        let text = |place: &str| object.pointer(place).and_then(Value::as_str).unwrap_or_default();
        let key = Key::new(text("/metadata/namespace"), text("/metadata/name"));
        Self { kind, key, object, mode: Mode::Apply(Recreate::usual(kind.kind)) }
    }

    /// Created with what `make` adds at its top level (`data`, say), and then left alone.
    #[must_use]
    pub fn create_once(mut self, make: impl Fn() -> Map<String, Value> + Send + Sync + 'static) -> Self {
        self.object["metadata"]["annotations"][CREATED_ONCE] = "true".into();
        self.mode = Mode::CreateOnce(Arc::new(make));
        self
    }

    #[must_use]
    pub fn recreate(mut self, how: Recreate) -> Self {
        self.mode = Mode::Apply(how);
        self
    }

    /// The child is managed by this object and goes with it. Kubernetes deletes what names an owner in another namespace.
    pub(crate) fn owned_by(&mut self, controller: &str, kind: Kind, owner: &Meta) -> Result<(), Failure> {
        if kind.namespaced && self.key.namespace != *owner.namespace() {
            return Err(Failure::bug(format!("{self} is not in the namespace of its owner, {}", owner.key)));
        }
        self.object["metadata"]["annotations"][CONTROLLER] = controller.into();
        self.object["metadata"]["ownerReferences"] = json!([{
            "apiVersion": kind.api_version(), "kind": kind.kind, "name": owner.name(), "uid": owner.uid,
            "controller": true, "blockOwnerDeletion": true,
        }]);
        Ok(())
    }

    /// Changes with anything that we want differently.
    #[must_use]
    pub fn intent(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        hash_json(&self.object, &mut hasher);
        hasher.finish()
    }
}

impl fmt::Display for Child {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.kind.kind, self.key)
    }
}

/// The order of fields does not matter.
pub(crate) fn hash_json(value: &Value, hasher: &mut impl Hasher) {
    match value {
        Value::Null => 0_u8.hash(hasher),
        Value::Bool(so) => (1_u8, so).hash(hasher),
        Value::Number(number) => (2_u8, number).hash(hasher),
        Value::String(text) => (3_u8, text).hash(hasher),
        Value::Array(items) => {
            (4_u8, items.len()).hash(hasher);
            items.iter().for_each(|item| hash_json(item, hasher));
        }
        Value::Object(fields) => {
            (5_u8, fields.len()).hash(hasher);
            let mut sorted: Vec<_> = fields.iter().collect();
            sorted.sort_unstable_by_key(|(name, _)| name.as_str());
            for (name, value) in sorted {
                name.hash(hasher);
                hash_json(value, hasher);
            }
        }
    }
}
