//! The promises, each by the name of what it protects.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Result, ensure};
use engine::{Access, access};
use http::StatusCode;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, DynamicObject, PostParams};
use kube::{Api, ResourceExt};
use nix::sys::signal::Signal;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use testkit::api_calls::{Calls, Mark};
use testkit::chaos::{Chaos, Fault};
use testkit::process::eventually;

use crate::operator::Operator;
use crate::subject::Subject;
use crate::world::{PATIENCE, World, merge, plain_kubeconfig};

const OBJECT: &str = "one";

/// An operator, and an object that it has dealt with.
async fn at_rest(subject: &Subject, name: &str) -> Result<(World, Operator, DynamicObject)> {
    let world = World::new(subject, name).await?;
    let operator = world.operator("operator").await?;
    world.create(OBJECT).await?;
    let child = world.settled(OBJECT).await?;
    Ok((world, operator, child))
}

pub async fn second_reconcile_makes_no_call(subject: &Subject) -> Result<()> {
    let (world, mut operator, _) = at_rest(subject, "second").await?;
    quiet(&world).await?;
    let calls = world.plane().api_calls();
    let mark = calls.mark(&world.client).await?;
    let before = operator.metric(RECONCILES).await?;
    // Another look, at which nothing is to be done.
    merge(
        &world.objects(),
        OBJECT,
        &json!({ "metadata": { "annotations": { "example.com/look": "again" } } }),
    )
    .await?;
    operator.measures(RECONCILES, |reconciles| reconciles > before).await?;
    let made = by_operator(&world, "operator", mark).await?;
    let made = made.filter(|call| call.resource != "leases");
    ensure!(made.is_empty(), "{made:?}\n{}", operator.log());
    operator.check_running()
}

pub async fn drift_is_corrected(subject: &Subject) -> Result<()> {
    let (world, _operator, child) = at_rest(subject, "drift").await?;
    let field = &subject.child.always;
    let wanted = at(&child, field.pointer);
    merge(&world.children(), &child.name_any(), &field.drift).await?;
    let version = child.resource_version();
    let mended = |now: &DynamicObject| now.resource_version() != version && at(now, field.pointer) == wanted;
    world.child(OBJECT, "the field back", mended).await?;
    Ok(())
}

pub async fn deleted_child_comes_back(subject: &Subject) -> Result<()> {
    let (world, _operator, child) = at_rest(subject, "deleted").await?;
    world.delete(&world.children(), &child.name_any()).await?;
    let new = |now: &DynamicObject| now.uid() != child.uid() && now.metadata.deletion_timestamp.is_none();
    world.child(OBJECT, "another", new).await?;
    Ok(())
}

pub async fn owner_deletion_leaves_nothing(subject: &Subject) -> Result<()> {
    let (world, _operator, child) = at_rest(subject, "owner").await?;
    let uid = child.owner_references().first().map(|owner| owner.uid.clone()).unwrap_or_default();
    ensure!(!world.owned_by(&uid).await?.is_empty(), "nothing is owned by {uid}");
    world.delete(&world.objects(), OBJECT).await?;
    // Kubernetes' garbage collector learns of a new kind within half a minute.
    eventually("nothing to be left", 2 * PATIENCE, async || {
        let left = world.owned_by(&uid).await?;
        ensure!(left.is_empty(), "still there: {left:?}");
        Ok(Some(()))
    })
    .await
}

pub async fn foreign_fields_survive(subject: &Subject) -> Result<()> {
    let (world, _operator, child) = at_rest(subject, "foreign").await?;
    let foreign = json!({ "metadata": {
        "annotations": { "example.com/foreign": "kept" }, "labels": { "example.com/foreign": "kept" } } });
    merge(&world.children(), &child.name_any(), &foreign).await?;
    let field = &subject.child.sometimes;
    world.edit(OBJECT, &field.set).await?;
    let now = world.child(OBJECT, "the field", |child| !at(child, field.pointer).is_null()).await?;
    for place in [now.annotations(), now.labels()] {
        ensure!(place.get("example.com/foreign").is_some_and(|value| value == "kept"), "{place:?}");
    }
    Ok(())
}

pub async fn unwanted_field_is_removed(subject: &Subject) -> Result<()> {
    let (world, _operator, child) = at_rest(subject, "unwanted").await?;
    let field = &subject.child.sometimes;
    let without = at(&child, field.pointer);
    world.edit(OBJECT, &field.set).await?;
    world.child(OBJECT, "the field", |child| at(child, field.pointer) != without).await?;
    world.edit(OBJECT, &field.unset).await?;
    world.child(OBJECT, "the field gone", |child| at(child, field.pointer) == without).await?;
    Ok(())
}

/// The definition is loosened, so that the server stores what no type can hold.
pub async fn one_bad_object_does_not_block(subject: &Subject) -> Result<()> {
    let world = World::bare(subject, "bad").await?;
    world.install(&subject.crds.iter().map(loosened).collect::<Vec<_>>()).await?;
    world.create_with("bad", &json!("not an object")).await?;
    let mut operator = world.operator("operator").await?;
    world.create(OBJECT).await?;
    world.settled(OBJECT).await?;
    // Also one that comes, and one that goes bad, while the watch runs.
    world.create_with("worse", &json!(5)).await?;
    world.create("two").await?;
    world.settled("two").await?;
    merge(&world.objects(), OBJECT, &json!({ "spec": [] })).await?;
    world.edit("two", &subject.child.sometimes.set).await?;
    world.child("two", "the edit", |child| !at(child, subject.child.sometimes.pointer).is_null()).await?;
    for name in ["bad", "worse", OBJECT] {
        let object = format!("{}/{name}", world.namespace);
        let fits = |line: &Value| line["level"] == "error" && line["object"] == object.as_str();
        operator.logged(&format!("{name} to be named"), fits).await?;
        let metric = format!(
            "slipway_unreadable_objects{{group=\"{}\",kind=\"{}\",namespace=\"{}\",name=\"{name}\"}}",
            subject.kind.group, subject.kind.kind, world.namespace
        );
        ensure!(operator.metric(&metric).await? > 0.0, "{metric}");
    }
    // What was there before it went bad is left alone.
    world.child(OBJECT, "the child", |_| true).await?;
    Ok(())
}

pub async fn crd_installed_later_is_used(subject: &Subject) -> Result<()> {
    let world = World::bare(subject, "later").await?;
    let mut operator = world.operator("operator").await?;
    let kind = subject.kind.kind;
    operator
        .logged("the missing kind to be told", |line| line["kind"] == kind && line["level"] == "info")
        .await?;
    eventually("readiness without the kind", PATIENCE, async || {
        let (status, text) = operator.probe("/readyz").await?;
        ensure!(status == 200, "{text}");
        Ok(Some(()))
    })
    .await?;
    world.install(&subject.crds).await?;
    world.create(OBJECT).await?;
    world.settled(OBJECT).await?;

    // And when it goes away and comes back.
    let definitions: Api<CustomResourceDefinition> = Api::all(world.client.clone());
    let name = format!("{}.{}", subject.kind.plural, subject.kind.group);
    definitions.delete(&name, &DeleteParams::default()).await?;
    eventually("the definition to go", PATIENCE, async || {
        Ok(definitions.get_opt(&name).await?.is_none().then_some(()))
    })
    .await?;
    world.install(&subject.crds).await?;
    world.create("two").await?;
    world.settled("two").await?;
    operator.check_running()
}

pub async fn relist_delivers_deletes(subject: &Subject) -> Result<()> {
    let world = World::new(subject, "relist").await?;
    let chaos = Chaos::before_api_server(world.plane().client(&world.user("operator")).await?).await?;
    let kubeconfig = plain_kubeconfig(&chaos.url());
    let mut operator = world.operator_at("operator", &kubeconfig, &world.namespace, &[]).await?;
    world.create(OBJECT).await?;
    let child = world.settled(OBJECT).await?;

    chaos.inject("", Fault::server_error(StatusCode::SERVICE_UNAVAILABLE));
    chaos.cut_connections();
    world.delete(&world.children(), &child.name_any()).await?;
    operator.logged("the broken watch to be told", |line| line["msg"] == "watch").await?;
    // The watch cannot go on where it was: whoever wants to know what happened has to list.
    let injected = chaos.injected();
    chaos.heal();
    let path = format!("/namespaces/{}/{}", world.namespace, subject.child.kind.plural);
    chaos.inject_times(&path, Fault::expired_watch(), 1);
    let new = |now: &DynamicObject| now.uid() != child.uid();
    world.child(OBJECT, "another", new).await?;
    ensure!(chaos.injected() > injected, "the watch went on");
    operator.check_running()
}

pub async fn api_server_restart_is_survived(subject: &Subject) -> Result<()> {
    let mut world = World::bare(subject, "restart").await?;
    world.install(&subject.crds).await?;
    let mut operator = world.operator("operator").await?;
    world.create(OBJECT).await?;
    world.settled(OBJECT).await?;
    world.own_plane()?.kill_api_server();
    operator.logged("the lost server to be noticed", |line| line["msg"] == "watch").await?;
    world.own_plane()?.restart_api_server().await?;
    let field = &subject.child.sometimes;
    world.edit(OBJECT, &field.set).await?;
    world.child(OBJECT, "the edit", |child| !at(child, field.pointer).is_null()).await?;
    operator.check_running()
}

/// The holder is frozen while it writes, loses the lease, and goes on: not one write of it reaches the server.
pub async fn two_replicas_one_writer(subject: &Subject) -> Result<()> {
    let world = World::new(subject, "replicas").await?;
    let mut first = world.operator("first").await?;
    first.logged("the first to lead", |line| line["msg"] == "leading").await?;
    let mut second = world.operator("second").await?;
    world.create(OBJECT).await?;
    world.settled(OBJECT).await?;
    let calls = world.plane().api_calls();
    let begin = calls.mark(&world.client).await?;

    // Edits go on all the time, so that whoever may write does.
    let (objects, field) = (world.objects(), subject.child.sometimes.clone());
    let busy = tokio::spawn(async move {
        loop {
            for spec in [&field.set, &field.unset] {
                let _ = merge(&objects, OBJECT, &json!({ "spec": spec })).await;
                tokio::time::sleep(Duration::from_millis(30)).await;
            }
        }
    });
    writes(&world, "first", begin, "the first to write").await?;
    first.signal(Signal::SIGSTOP);
    let frozen = calls.mark(&world.client).await?;
    second.logged("the second to lead", |line| line["msg"] == "leading").await?;
    writes(&world, "second", frozen, "the second to write").await?;
    let lost = calls.mark(&world.client).await?;
    first.signal(Signal::SIGCONT);
    first.logged("the first to notice", |line| line["msg"] == "controllers have ended").await?;
    writes(&world, "second", lost, "the second to go on").await?;
    let late = by_operator(&world, "first", lost).await?.writes().filter(|call| call.code < 400);
    ensure!(late.is_empty(), "written after the lease was lost: {late:?}");

    // The one that lost it is a candidate again, with warm caches, and takes over at once when it is given back.
    let given = calls.mark(&world.client).await?;
    second.signal(Signal::SIGTERM);
    ensure!(second.exit_code().await? == Some(0), "the second did not end well");
    writes(&world, "first", given, "the first to write again").await?;
    busy.abort();
    first.check_running()
}

pub async fn panic_is_contained(subject: &Subject) -> Result<()> {
    let world = World::new(subject, "panic").await?;
    let bad = format!("{}/bad", world.namespace);
    let mut operator = world.operator_with("operator", &[("SLIPWAY_TEST_PANIC_ON", &bad)]).await?;
    world.create("bad").await?;
    let panics = "controller_runtime_reconcile_panics_total";
    operator.measures(panics, |panics| panics > 0.0).await?;
    world.create(OBJECT).await?;
    world.settled(OBJECT).await?;
    world.told("bad", "Degraded", "True", "Bug").await?;
    operator.check_running()
}

/// A role made from what is declared is enough for a whole life, and nothing in it is superfluous.
pub async fn declared_access_is_what_is_used(subject: &Subject) -> Result<()> {
    // A server of its own: this operator works in all namespaces.
    let world = World::bare(subject, "access").await?;
    world.install(&subject.crds).await?;
    let user = world.user("operator");
    let name = format!("contract-{}", world.namespace);
    create::<ClusterRole>(&Api::all(world.client.clone()), access::cluster_role(&name, &subject.access))
        .await?;
    let binding = json!({
        "metadata": { "name": name }, "subjects": [{ "kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user }],
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name } });
    create::<ClusterRoleBinding>(&Api::all(world.client.clone()), binding).await?;
    let calls = world.plane().api_calls();
    let begin = calls.mark(&world.client).await?;
    let kubeconfig = world.plane().kubeconfig(&user, "contract:nobody")?;
    let operator = world.operator_at("operator", &kubeconfig, "*", &[]).await?;
    world.create(OBJECT).await?;
    world.settled(OBJECT).await?;
    for spec in &subject.life {
        world.edit(OBJECT, spec).await?;
        world.settled(OBJECT).await?;
        quiet(&world).await?;
    }
    operator.signal(Signal::SIGTERM);
    ensure!(operator.exit_code().await? == Some(0), "the operator did not end well");

    let made = by_operator(&world, "operator", begin).await?;
    let refused = made.filter(|call| call.code == 403);
    ensure!(refused.is_empty(), "not declared: {refused:?}");
    let mut used = BTreeSet::new();
    for call in made.iter() {
        used.insert((call.resource.clone(), call.verb.clone()));
        // Server-side apply makes what is missing, which takes the permission to create.
        if call.code == 201 {
            used.insert((call.resource.clone(), "create".to_owned()));
        }
    }
    let unused: Vec<&Access> = subject
        .access
        .iter()
        .filter(|access| {
            // A list is what a server is asked for that does not stream; finalizers are for servers that check owners.
            let unseen = access.verb == "list" || access.resource.ends_with("/finalizers");
            !unseen && !used.contains(&(access.resource.clone(), access.verb.to_owned()))
        })
        .collect();
    ensure!(unused.is_empty(), "declared and never used: {unused:?}");
    Ok(())
}

/// With a list of namespaces Roles suffice, and one without a Role is told and harms nobody.
pub async fn forbidden_namespace_leaves_the_others_alone(subject: &Subject) -> Result<()> {
    let world = World::new(subject, "roles").await?;
    let forbidden = world.plane().namespace("roles-none").await?;
    let other = world.plane().namespace("roles-other").await?;
    let user = world.user("operator");
    for namespace in [&world.namespace, &other] {
        let roles: Api<Role> = Api::namespaced(world.client.clone(), namespace);
        create(&roles, access::role("operator", namespace, &subject.access)).await?;
        let bindings: Api<RoleBinding> = Api::namespaced(world.client.clone(), namespace);
        let binding = json!({
            "metadata": { "name": "operator" },
            "subjects": [{ "kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user }],
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "operator" } });
        create(&bindings, binding).await?;
    }
    let kubeconfig = world.plane().kubeconfig(&user, "contract:nobody")?;
    let namespaces = format!("{},{forbidden}, {other}", world.namespace);
    let mut operator = world.operator_at("operator", &kubeconfig, &namespaces, &[]).await?;
    world.create(OBJECT).await?;
    world.settled(OBJECT).await?;
    world.create_in(OBJECT, &other, &subject.spec).await?;
    let children = world.api_in(subject.child.kind, &other);
    eventually("the child in the other namespace", PATIENCE, async || {
        Ok(children.get_opt(&world.child_name(OBJECT)).await?)
    })
    .await?;
    let told = |line: &Value| line["level"] == "warn" && line["namespace"] == forbidden.as_str();
    operator.logged("the forbidden namespace to be told", told).await?;
    let metric = format!(
        "slipway_watch_up{{group=\"{}\",kind=\"{}\",namespace=\"{forbidden}\",state=\"forbidden\"}}",
        subject.kind.group, subject.kind.kind
    );
    let (_, page) = operator.metrics_page().await?;
    ensure!(page.contains(&format!("{metric} 0")), "{metric} in\n{page}");
    let (status, text) = operator.probe("/readyz").await?;
    ensure!(status == 200, "{text}");
    operator.check_running()
}

const RECONCILES: &str = "controller_runtime_reconcile_total";

fn at(object: &DynamicObject, pointer: &str) -> Value {
    let whole = serde_json::to_value(object).unwrap_or_default();
    whole.pointer(pointer).cloned().unwrap_or_default()
}

/// Requests of an operator of this world.
async fn by_operator(world: &World, name: &str, since: Mark) -> Result<Calls> {
    Ok(world.plane().api_calls().since(&world.client, since).await?.by(&world.user(name)))
}

async fn writes(world: &World, name: &str, since: Mark, what: &str) -> Result<()> {
    eventually(what, 2 * PATIENCE, async || {
        Ok((by_operator(world, name, since).await?.writes().len() > 2).then_some(()))
    })
    .await
}

/// Waits until the operator has made no call for a while, renewals of its lease apart.
async fn quiet(world: &World) -> Result<()> {
    let calls = world.plane().api_calls();
    eventually("the operator to be quiet", PATIENCE, async || {
        let mark = calls.mark(&world.client).await?;
        tokio::time::sleep(Duration::from_millis(700)).await;
        let made = by_operator(world, "operator", mark).await?.filter(|call| call.resource != "leases");
        Ok(made.is_empty().then_some(()))
    })
    .await
}

async fn create<K>(api: &Api<K>, object: Value) -> Result<()>
where
    K: Clone + std::fmt::Debug + DeserializeOwned + serde::Serialize,
{
    api.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
    Ok(())
}

/// A definition that takes everything.
fn loosened(crd: &Value) -> Value {
    let mut crd = crd.clone();
    for version in crd["spec"]["versions"].as_array_mut().into_iter().flatten() {
        version["schema"]["openAPIV3Schema"] =
            json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    }
    crd
}
