//! Carries a plan out: the only writer. Server-side apply with force, each request under its deadline; one child that fails
//! does not keep the others from being applied.

use std::sync::{Mutex, MutexGuard, PoisonError};

use futures::{FutureExt, StreamExt};
use http::HeaderValue;
use http::header::ACCEPT;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions, PropagationPolicy, Request};
use kube::core::Status;
use serde::Deserialize;
use serde_json::Value;
use tracing::info;

use crate::cache::{Observed, Written};
use crate::calls::{Calls, path};
use crate::child::{Child, Mode};
use crate::failure::Failure;
use crate::memory::Memory;
use crate::meta::{Key, Meta};
use crate::plan::{Action, Plan, Step};
use crate::views::Kind;

/// Children of one object that are written at the same time.
const TOGETHER: usize = 8;

/// Answers without content: all that is needed of a written object is its metadata.
const METADATA: HeaderValue =
    HeaderValue::from_static("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1");

/// What came of a plan.
#[derive(Debug, Default)]
pub struct Applied {
    /// Steps that were carried out, in words.
    pub done: Vec<String>,
    /// Steps that wait for something, in words.
    pub waits: Vec<String>,
    /// Objects that were deleted and made again, in words: worth an event.
    pub recreated: Vec<String>,
}

/// Writes under one field manager.
#[derive(Debug, Clone)]
pub struct Applier {
    pub(crate) calls: Calls,
    manager: String,
}

#[derive(Deserialize, Clone)]
struct Answer {
    metadata: Meta,
}

impl Applier {
    #[must_use]
    pub fn new(calls: Calls, manager: &str) -> Self {
        Self { calls, manager: manager.to_owned() }
    }

    pub(crate) fn anew(&self) -> Self {
        Self { calls: self.calls.anew(), manager: self.manager.clone() }
    }

    /// Carries out every step that can be; what could not is in the failure.
    pub async fn carry_out(
        &self,
        plan: &Plan,
        children: &[Child],
        memory: &mut Memory,
    ) -> (Applied, Option<Failure>) {
        let remembered = Mutex::new(memory);
        let applied = Mutex::new(Applied::default());
        let mut failures = Vec::new();
        for wave in WAVES {
            // What others depend on is not taken away while its successor could not be made.
            if wave == Wave::Deletions && !failures.is_empty() {
                break;
            }
            let mut steps = Vec::new();
            for step in plan.steps.iter().filter(|step| Wave::of(step) == wave) {
                steps.push(self.step(step, children, &remembered, &applied).boxed());
            }
            let results: Vec<_> = futures::stream::iter(steps).buffered(TOGETHER).collect().await;
            failures.extend(results.into_iter().filter_map(Result::err));
        }
        (applied.into_inner().unwrap_or_else(PoisonError::into_inner), Failure::all(failures))
    }

    async fn step(
        &self,
        step: &Step,
        children: &[Child],
        memory: &Mutex<&mut Memory>,
        applied: &Mutex<Applied>,
    ) -> Result<(), Failure> {
        let child = step.child.and_then(|index| children.get(index));
        let said = format!("{} {}", step.kind.kind, step.key);
        match (step.action, child) {
            (Action::Create | Action::Apply, Some(child)) => {
                if let Some(now) = self.apply(step, child, memory).await? {
                    let changed = step.observed.as_ref().is_none_or(|before| before.version != now.version);
                    if changed {
                        lock(applied).done.push(format!("applied {said}"));
                    }
                }
            }
            (Action::CreateOnce, Some(child)) => {
                self.create_once(child, memory).await?;
                lock(applied).done.push(format!("created {said}"));
            }
            (Action::RecreateOrphaning | Action::Recreate | Action::Delete, _) => {
                let orphan = step.action == Action::RecreateOrphaning;
                self.delete(step, orphan, memory).await?;
                info!(object = said, orphan, why = step.why, "deleted");
                let mut applied = lock(applied);
                if step.action != Action::Delete {
                    // The next reconcile finds it missing, once the cache has seen it go.
                    applied.waits.push(format!("{said}: to be made again"));
                    applied.recreated.push(format!("{said}: {}", step.why));
                }
                applied.done.push(format!("deleted {said}"));
            }
            (Action::Wait, _) => lock(applied).waits.push(format!("{said}: {}", step.why)),
            (_, None) => return Err(Failure::bug(format!("a step without a child: {said}"))),
        }
        Ok(())
    }

    /// The object as the server has it now; none if it has to be made anew, which the next plan does.
    async fn apply(
        &self,
        step: &Step,
        child: &Child,
        memory: &Mutex<&mut Memory>,
    ) -> Result<Option<Observed>, Failure> {
        let what = format!("apply {child}");
        let answer = self.patch(&what, child.kind, &child.key, None, &child.object).await?;
        match answer {
            Ok(Answer { metadata }) => {
                let now = Observed::of(&metadata);
                let mut memory = lock(memory);
                memory.applied(child, &now);
                memory.written.push(Written::version(child.kind, &child.key, now.version));
                Ok(Some(now))
            }
            Err(kube::Error::Api(status)) if status.code == 422 && is_immutable(&status) => {
                let Some(observed) = &step.observed else {
                    return Err(Failure::conflict(format!("{what}: {}", status.message)));
                };
                lock(memory).refused(child, observed);
                Err(Failure::conflict(format!("{what}: {}", status.message)))
            }
            Err(error) => Err(Failure::api(&what, &error)),
        }
    }

    async fn create_once(&self, child: &Child, memory: &Mutex<&mut Memory>) -> Result<(), Failure> {
        let what = format!("create {child}");
        let Mode::CreateOnce(make) = &child.mode else {
            return Err(Failure::bug(format!("{what}: nothing to make it from")));
        };
        let mut object = child.object.clone();
        for (field, value) in make() {
            object[field] = value;
        }
        // Content stays out of logs and errors: only the name is said.
        let body = serde_json::to_vec(&object).map_err(|error| Failure::bug(format!("{what}: {error}")))?;
        let params = PostParams { field_manager: Some(self.manager.clone()), ..PostParams::default() };
        let request = Request::new(path(child.kind, &child.key)).create(&params, body);
        let answer = self.request(&what, request).await?;
        let mut memory = lock(memory);
        match answer {
            Ok(Answer { metadata }) => {
                memory.written.push(Written::version(child.kind, &child.key, metadata.version));
            }
            // It is there, made by whomever; the cache will say so, or does not watch it.
            Err(kube::Error::Api(status)) if status.code == 409 => memory.created_once(child),
            Err(error) => return Err(Failure::api(&what, &error)),
        }
        Ok(())
    }

    async fn delete(&self, step: &Step, orphan: bool, memory: &Mutex<&mut Memory>) -> Result<(), Failure> {
        let what = format!("delete {} {}", step.kind.kind, step.key);
        let Some(observed) = &step.observed else {
            return Err(Failure::bug(format!("{what}: it was not observed")));
        };
        // Only the object that the plan is about, never one that has its name by now.
        let only_this = Preconditions { uid: Some(observed.uid.to_string()), resource_version: None };
        let policy = if orphan { PropagationPolicy::Orphan } else { PropagationPolicy::Background };
        let params = DeleteParams { propagation_policy: Some(policy), ..DeleteParams::default() };
        let params = params.preconditions(only_this);
        let request = Request::new(path(step.kind, &step.key)).delete(&step.key.name, &params);
        let request = request.map_err(|error| Failure::bug(format!("{what}: {error}")))?;
        match self.calls.call(&what, self.calls.client.request::<Value>(request)).await? {
            Ok(_) => {
                lock(memory).written.push(Written::deletion(step.kind, &step.key, &observed.uid));
                Ok(())
            }
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => Err(Failure::api(&what, &error)),
        }
    }

    /// Writes the status of an object; gives back the version, or nothing if the object is gone.
    pub(crate) async fn status(
        &self,
        kind: Kind,
        key: &Key,
        status: &Value,
    ) -> Result<Option<Written>, Failure> {
        let what = format!("write the status of {} {key}", kind.kind);
        let object = serde_json::json!({
            "apiVersion": kind.api_version(), "kind": kind.kind,
            "metadata": { "name": key.name, "namespace": key.namespace },
            "status": status,
        });
        match self.patch(&what, kind, key, Some("status"), &object).await? {
            Ok(Answer { metadata }) => Ok(Some(Written::version(kind, key, metadata.version))),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(error) => Err(Failure::api(&what, &error)),
        }
    }

    async fn patch(
        &self,
        what: &str,
        kind: Kind,
        key: &Key,
        subresource: Option<&str>,
        object: &Value,
    ) -> Result<kube::Result<Answer>, Failure> {
        let params = PatchParams::apply(&self.manager).force();
        let request = Request::new(path(kind, key));
        let request = match subresource {
            None => request.patch(&key.name, &params, &Patch::Apply(object)),
            Some(subresource) => {
                request.patch_subresource(subresource, &key.name, &params, &Patch::Apply(object))
            }
        };
        self.request(what, request).await
    }

    async fn request(
        &self,
        what: &str,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<kube::Result<Answer>, Failure> {
        let mut request = request.map_err(|error| Failure::bug(format!("{what}: {error}")))?;
        request.headers_mut().insert(ACCEPT, METADATA);
        self.calls.call(what, self.calls.client.request::<Answer>(request)).await
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What pods need comes before the pods: a pod that starts without it waits for the kubelet's next try.
const WAVES: [Wave; 3] = [Wave::Needs, Wave::Workloads, Wave::Deletions];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wave {
    Needs,
    Workloads,
    Deletions,
}

impl Wave {
    fn of(step: &Step) -> Self {
        match (step.action, step.kind.kind) {
            (Action::Delete, _) => Self::Deletions,
            (_, "Pod" | "StatefulSet" | "Deployment" | "DaemonSet" | "Job" | "CronJob" | "ReplicaSet") => {
                Self::Workloads
            }
            _ => Self::Needs,
        }
    }
}

/// Whether nothing is wrong but that fields cannot be changed: what else is refused would be refused of a new object too.
fn is_immutable(refusal: &Status) -> bool {
    // The server has no code for this; these are the words of its validation.
    let says = |message: &str| {
        message.contains("field is immutable")
            || message.contains("cannot change roleRef")
            || message.contains("updates to statefulset spec for fields other than")
            || message.contains("may not change once set")
    };
    let causes = refusal.details.iter().flat_map(|details| &details.causes);
    let mut messages: Vec<&str> = causes.map(|cause| cause.message.as_str()).collect();
    if messages.is_empty() {
        messages.push(&refusal.message);
    }
    messages.into_iter().all(says)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(messages: &[&str]) -> Status {
        let causes: Vec<_> =
            messages.iter().map(|message| serde_json::json!({ "message": message })).collect();
        let details = serde_json::json!({ "causes": causes });
        let details = Some(serde_json::from_value(details).unwrap());
        Status { message: messages.join(", "), details, ..Status::default() }
    }

    #[test]
    fn only_what_a_new_object_would_mend_is_immutable() {
        const SET: &str = "Forbidden: updates to statefulset spec for fields other than 'replicas', ordinals";
        assert!(is_immutable(&refusal(&[SET])));
        assert!(is_immutable(&refusal(&["Invalid value: \"x\": field is immutable", SET])));
        assert!(!is_immutable(&refusal(&[SET, "Required value: name"])), "a new one would be refused too");
        assert!(!is_immutable(&refusal(&["you cannot change this, says a webhook"])));
        assert!(is_immutable(&Status { message: "cannot change roleRef".into(), ..Status::default() }));
    }
}
