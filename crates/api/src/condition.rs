//! Conditions: what is true of an object now, in the form that every tool of Kubernetes reads.

pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use schemars::json_schema;

use crate::schema::{DATE_TIME, inline_schema};

/// The schema of a list of conditions, one for each type. The bindings' own lacks the bounds that Kubernetes' documentation asks for.
#[derive(Debug)]
pub(crate) struct Conditions;

inline_schema!(
    Conditions,
    json_schema!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "description": "One thing that is or is not so.",
            "required": ["lastTransitionTime", "message", "reason", "status", "type"],
            "properties": {
                "lastTransitionTime": {
                    "type": "string", "format": "date-time", "pattern": DATE_TIME,
                    "description": "When the status of this condition last changed.",
                },
                "message": {
                    "type": "string", "maxLength": 32768,
                    "description": "For people: what is so, or what is waited for and what to do. May be empty.",
                },
                "observedGeneration": {
                    "type": "integer", "format": "int64", "minimum": 0,
                    "description": "The `metadata.generation` that this condition speaks of; older than the object's own: out of date.",
                },
                "reason": {
                    "type": "string", "minLength": 1, "maxLength": 1024,
                    "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
                    "description": "For programs: why, in one CamelCase word.",
                },
                "status": {
                    "type": "string", "enum": ["True", "False", "Unknown"],
                    "description": "Whether it is so; `Unknown` if that could not be found out.",
                },
                "type": {
                    "type": "string", "maxLength": 316,
                    "pattern": "^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
                    "description": "What this condition is about, in CamelCase.",
                },
            },
        },
    })
);
