//! The controller of `Sample`, step by step.

use std::sync::Arc;
use std::time::Duration;

use engine::views::{ConfigMapView, SecretView, StatefulSetView, Whole};
use engine::{
    Access, Cache, Caches, Child, Controller, Failure, Key, Kind, Reader, Report, Seen, View, Wait, Watch,
    When, Wiring,
};
use k8s_openapi::api::core::v1::Secret;
use serde_json::{Map, json};

use crate::api::{Gadget, Sample};

/// Every object of ours carries it, so that nothing else is watched.
const OURS: &str = "app.kubernetes.io/managed-by=sample";
/// Pods that are not there after this are worth a look.
const PATIENCE: Duration = Duration::from_secs(300);

pub(crate) struct SampleController {
    caches: Caches,
    stateful_sets: Cache<StatefulSetView>,
}

impl SampleController {
    pub(crate) fn wire(wiring: &mut Wiring<'_>, samples: &Cache<Whole<Sample>>) -> Self {
        let ours = || Watch { labels: Some(OURS), ..Watch::default() };
        wiring.owns::<ConfigMapView>(ours());
        wiring.owns::<Whole<Gadget>>(ours());
        let stateful_sets = wiring.owns::<StatefulSetView>(ours());
        // Secrets are ours or the users': one that is named by a Sample wakes it.
        wiring.creates::<SecretView>(Watch::default());
        wiring.may(Access::to(SecretView::kind(), &["get"]));
        let samples = samples.clone();
        wiring.watches::<SecretView>(Watch::default(), When::Now, move |change| {
            let Some(secret) = change.latest() else { return Vec::new() };
            let named = |sample: &Arc<Whole<Sample>>| {
                sample.meta.namespace() == secret.meta().namespace()
                    && sample.object.spec.secret.as_deref() == Some(secret.meta().name())
            };
            samples
                .all()
                .iter()
                .filter(|sample| named(sample))
                .map(|sample| sample.meta.key.clone())
                .collect()
        });
        Self { caches: wiring.caches().clone(), stateful_sets }
    }
}

pub(crate) struct Facts {
    ready_pods: i32,
    gadgets: bool,
    secret: Option<Arc<Secret>>,
}

pub(crate) struct Model {
    message: String,
    footnote: Option<String>,
    extra: Option<String>,
    pods: Option<(i32, String)>,
    gadget: bool,
}

impl Controller for SampleController {
    type Object = Whole<Sample>;
    type Facts = Facts;
    type Model = Model;

    const NAME: &'static str = "sample";

    async fn gather(&self, sample: &Whole<Sample>, reader: &Reader) -> Result<Facts, Failure> {
        let key = &sample.meta.key;
        let secret = match &sample.object.spec.secret {
            Some(name) => reader.content(SecretView::kind(), &Key::new(&key.namespace, name)).await?,
            None => None,
        };
        let ready_pods = self.stateful_sets.get(key).map_or(0, |set| set.status.ready_replicas);
        Ok(Facts { ready_pods, gadgets: self.caches.available(Whole::<Gadget>::kind()), secret })
    }

    fn resolve(&self, sample: &Whole<Sample>, facts: &Facts) -> Result<Model, Failure> {
        let spec = &sample.object.spec;
        if spec.replicas.is_some_and(|replicas| replicas < 0) {
            return Err(Failure::invalid("spec.replicas must not be negative: set it to 0 for no pods"));
        }
        if let Some(name) = spec.secret.as_ref().filter(|_| facts.secret.is_none()) {
            return Err(Failure::blocked("SecretMissing", format!("Secret {name}, named by spec.secret")));
        }
        let service = spec.service_name.clone().unwrap_or_else(|| sample.meta.name().to_string());
        Ok(Model {
            message: spec.message.clone(),
            footnote: spec.footnote.clone(),
            extra: spec.extra.clone(),
            pods: spec.replicas.map(|replicas| (replicas, service)),
            gadget: facts.gadgets && spec.gadget != Some(false),
        })
    }

    fn render(&self, sample: &Whole<Sample>, model: &Model) -> Result<Vec<Child>, Failure> {
        let name = sample.meta.name();
        let metadata = |name: &str| {
            json!({ "name": name, "namespace": sample.meta.namespace(),
                "labels": { "app.kubernetes.io/managed-by": "sample", "app.kubernetes.io/instance": sample.meta.name() } })
        };
        let object = |kind: Kind, name: &str, body: serde_json::Value| {
            let mut object =
                json!({ "apiVersion": kind.api_version(), "kind": kind.kind, "metadata": metadata(name) });
            if let (Some(object), serde_json::Value::Object(body)) = (object.as_object_mut(), body) {
                object.extend(body);
            }
            Child::of(kind, object)
        };
        let mut data = Map::from_iter([("message".to_owned(), model.message.as_str().into())]);
        data.extend(model.footnote.iter().map(|footnote| ("footnote".to_owned(), footnote.as_str().into())));
        let mut children = vec![object(ConfigMapView::kind(), name, json!({ "data": data }))];
        if let Some(extra) = &model.extra {
            let data = json!({ "data": { "extra": extra } });
            children.push(object(ConfigMapView::kind(), &format!("{name}-extra"), data));
        }
        children.push(object(SecretView::kind(), &format!("{name}-key"), json!({})).create_once(|| {
            let key = engine::leader::identity();
            Map::from_iter([("stringData".to_owned(), json!({ "key": key }))])
        }));
        if let Some((replicas, service)) = &model.pods {
            let labels = json!({ "app.kubernetes.io/instance": name });
            let pod = json!({
                "metadata": { "labels": labels },
                "spec": { "containers": [{ "name": "main", "image": "none.example.com/none:1",
                    "envFrom": [{ "configMapRef": { "name": name } }] }] },
            });
            let spec = json!({
                "replicas": replicas, "serviceName": service, "selector": { "matchLabels": labels }, "template": pod });
            children.push(object(StatefulSetView::kind(), name, json!({ "spec": spec })));
        }
        if model.gadget {
            let spec = json!({ "message": model.message });
            children.push(object(Whole::<Gadget>::kind(), name, json!({ "spec": spec })));
        }
        Ok(children)
    }

    fn report(&self, seen: &Seen<'_, Self>) -> Report {
        let mut report = Report::default();
        report.fields.insert("observedGeneration".into(), seen.object.meta.generation.into());
        let Some(facts) = seen.facts else { return report };
        report.fields.insert("readyPods".into(), facts.ready_pods.into());
        if let Some(secret) = &facts.secret {
            let keys = secret.data.as_ref().map_or(0, std::collections::BTreeMap::len);
            report.fields.insert("secretKeys".into(), keys.into());
        }
        let wanted = seen.object.object.spec.replicas.unwrap_or(0);
        if facts.ready_pods < wanted {
            let on = format!("{wanted} pods of StatefulSet {} to be ready", seen.object.meta.name());
            report.waits.push(Wait { reason: "PodsNotReady", on, patience: PATIENCE });
        }
        report
    }
}
