//! The engine's promises, kept by the sample controller on a real API server.

use contract::{ChildOf, Field, Subject};
use engine::views::{ConfigMapView, SecretView, StatefulSetView};
use engine::{Kind, View};
use kube::CustomResourceExt;
use sample::api::{Gadget, Sample};
use serde_json::json;

fn subject() -> Subject {
    let crds = [Sample::crd(), Gadget::crd()].map(|crd| serde_json::to_value(crd).unwrap_or_default());
    Subject {
        program: env!("CARGO_BIN_EXE_sample-operator"),
        args: &["operator"],
        crds: crds.to_vec(),
        kind: Kind::of::<Sample>(),
        spec: json!({ "message": "hello" }),
        child: ChildOf {
            kind: ConfigMapView::kind(),
            name: str::to_owned,
            always: Field {
                pointer: "/data/message",
                drift: json!({ "data": { "message": "changed by somebody" } }),
                set: json!({ "message": "other" }),
                unset: json!({ "message": "hello" }),
            },
            sometimes: Field {
                pointer: "/data/footnote",
                drift: json!({ "data": { "footnote": "changed by somebody" } }),
                set: json!({ "footnote": "small" }),
                unset: json!({ "footnote": null }),
            },
        },
        children: vec![
            ConfigMapView::kind(),
            SecretView::kind(),
            StatefulSetView::kind(),
            Kind::of::<Gadget>(),
        ],
        life: vec![
            json!({ "replicas": 1, "secret": "one-key", "extra": "more" }),
            json!({ "replicas": null, "extra": null, "gadget": false }),
        ],
        access: sample::access(),
    }
}

contract::tests!(subject);

#[path = "api/children.rs"]
mod children;
#[path = "api/faults.rs"]
mod faults;
#[path = "api/told.rs"]
mod told;
