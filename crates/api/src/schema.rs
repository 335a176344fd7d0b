//! From the types of this crate to the CRDs that an API server takes.
//!
//! The types say what a field is, its default and what it is for; `schemars` reads that, [`structural`] turns it into
//! the dialect of CRDs, and [`kubernetes`] brings the schemas of Kubernetes' own types.

pub mod kubernetes;
pub(crate) mod rule;
mod structural;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, json_schema};
use serde_json::{Value, json};

/// The CRD of a kind whose spec and status are `S` and `T`, as JSON: bindings of the CRD type would drop what they do not know.
pub(crate) fn crd<K: CustomResourceExt, S: JsonSchema, T: JsonSchema>(about: &str) -> Value {
    let definition: CustomResourceDefinition = K::crd();
    let mut crd = serde_json::to_value(definition).unwrap_or_default();
    crd["spec"]["versions"][0]["schema"] = json!({ "openAPIV3Schema": {
        "type": "object",
        "description": about,
        "required": ["spec"],
        "properties": {
            "apiVersion": { "type": "string", "description": "Group and version of this object's schema." },
            "kind": { "type": "string", "description": "The kind of this object, in CamelCase." },
            "metadata": { "type": "object" },
            "spec": of::<S>(),
            "status": of::<T>(),
        },
    } });
    crd
}

/// The structural schema of a type.
fn of<T: JsonSchema>() -> Value {
    let mut settings = SchemaSettings::draft2020_12().for_deserialize();
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    let schema = settings.into_generator().into_root_schema_for::<T>();
    structural::of(schema.into())
}

/// A type whose schema stands where it is used and is written by hand.
macro_rules! inline_schema {
    ($kind:ident, $schema:expr) => {
        impl schemars::JsonSchema for $kind {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($kind).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                $schema
            }
        }
    };
}
pub(crate) use inline_schema;

/// `type: integer` without a format: what Go's `int` became in the CRDs of the Go operators.
#[derive(Debug)]
pub(crate) struct Integer;

inline_schema!(Integer, json_schema!({ "type": "integer" }));

/// An object that the API server takes as it is.
#[derive(Debug)]
pub(crate) struct AnyObject;

inline_schema!(AnyObject, json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true }));

/// A point in time that we write. The format alone lets through what no clock can read (`00:00:00x5+99:99`), and an object with
/// such a status could not be decoded; the pattern leaves what every program of Kubernetes writes.
#[derive(Debug)]
pub(crate) struct DateTime;

pub(crate) const DATE_TIME: &str = r"^[12][0-9]{3}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$";

inline_schema!(DateTime, json_schema!({ "type": "string", "format": "date-time", "pattern": DATE_TIME }));
