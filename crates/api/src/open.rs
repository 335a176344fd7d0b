//! Parts of a custom resource that are Kubernetes' own types: containers, volumes, probes.
//!
//! They are kept as the JSON they came as. Decoding them into bindings would drop every field that is newer than the
//! bindings, and a user's pod template must reach the pod whole.

use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::merge;
use crate::schema::kubernetes;

/// An object with the shape of `T`, and whatever fields a newer Kubernetes gave `T` since.
#[derive(Serialize, Deserialize)]
#[serde(transparent, bound = "")]
pub struct Open<T> {
    fields: Map<String, Value>,
    #[serde(skip)]
    shape: PhantomData<fn() -> T>,
}

impl<T> Open<T> {
    /// The object as it was written.
    pub fn fields(&self) -> &Map<String, Value> {
        &self.fields
    }

    /// What we generate, with this laid over it.
    pub fn merged_over(&self, mut ours: Map<String, Value>) -> Map<String, Value> {
        merge::over(&mut ours, &self.fields);
        ours
    }
}

impl<T: DeserializeOwned> Open<T> {
    /// The fields that our bindings know. The API server has not checked the inside of every open part, so this can fail;
    /// the error names the field.
    pub fn known(&self) -> Result<T, serde_json::Error> {
        T::deserialize(Value::Object(self.fields.clone()))
    }
}

impl<T> From<Map<String, Value>> for Open<T> {
    fn from(fields: Map<String, Value>) -> Self {
        Self { fields, shape: PhantomData }
    }
}

// Derives would ask the same of `T`, which is only a name here.
impl<T> Clone for Open<T> {
    fn clone(&self) -> Self {
        self.fields.clone().into()
    }
}

impl<T> PartialEq for Open<T> {
    fn eq(&self, other: &Self) -> bool {
        self.fields == other.fields
    }
}

impl<T> Default for Open<T> {
    fn default() -> Self {
        Map::new().into()
    }
}

impl<T> fmt::Debug for Open<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fields.fmt(formatter)
    }
}

impl<T: kubernetes::Published> JsonSchema for Open<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        T::DEFINITION.into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        kubernetes::open(T::DEFINITION)
    }
}
