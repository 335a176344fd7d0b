//! Plans, from what is wanted and what is there.

use serde_json::json;

use super::*;
use crate::meta::{Meta, Owner, Pairs, Version};
use crate::views::{ConfigMapView, StatefulSetView, View};

#[derive(Default)]
struct Known(Vec<(Kind, Meta)>);

impl World for Known {
    fn observed(&self, kind: Kind, key: &Key) -> Option<Observed> {
        self.0.iter().find(|(of, meta)| *of == kind && meta.key == *key).map(|(_, meta)| Observed::of(meta))
    }

    fn owned(&self) -> Vec<(Kind, Observed)> {
        self.0.iter().map(|(kind, meta)| (*kind, Observed::of(meta))).collect()
    }
}

const OWNER: &str = "uid-of-owner";

fn map(name: &str, word: &str) -> Child {
    let object = json!({ "metadata": { "namespace": "a", "name": name }, "data": { "word": word } });
    Child::of(ConfigMapView::kind(), object)
}

fn set(name: &str, service: &str) -> Child {
    let object =
        json!({ "metadata": { "namespace": "a", "name": name }, "spec": { "serviceName": service } });
    Child::of(StatefulSetView::kind(), object)
}

fn there(name: &str) -> Meta {
    let owner = Owner { uid: Text::new(OWNER), controller: true, ..Owner::default() };
    Meta {
        key: Key::new("a", name),
        uid: Text::new(&format!("uid-of-{name}")),
        version: Version(7),
        owners: Box::new([owner]),
        annotations: Pairs::from_iter([(crate::cache::CONTROLLER, "me")]),
        ..Meta::default()
    }
}

fn plan<'a>(children: impl IntoIterator<Item = &'a Child>, world: &Known, memory: &Memory) -> String {
    let children: Vec<Child> = children.into_iter().cloned().collect();
    Plan::make("me", &Text::new(OWNER), &children, world, memory).to_string()
}

#[test]
fn what_is_missing_is_created_what_is_unknown_applied_and_what_is_unwanted_deleted() {
    let world = Known(vec![(ConfigMapView::kind(), there("old")), (ConfigMapView::kind(), there("known"))]);
    let children = [map("new", "x"), map("known", "x"), map("secret", "x").create_once(Default::default)];
    assert_eq!(
        plan(&children, &world, &Memory::default()),
        "+ create ConfigMap a/new: missing\n\
         ~ apply ConfigMap a/known: differs, or not compared yet\n\
         + create once ConfigMap a/secret: missing\n\
         - delete ConfigMap a/old: no longer wanted\n\
         4 to do, 0 as wanted"
    );
}

#[test]
fn what_was_applied_is_left_alone_until_either_side_changes() {
    let (mut memory, child) = (Memory::default(), map("known", "x"));
    let mut world = Known(vec![(ConfigMapView::kind(), there("known"))]);
    memory.applied(&child, &Observed::of(&world.0[0].1));
    assert_eq!(plan([&child], &world, &memory), "0 to do, 1 as wanted");
    assert!(plan(&[map("known", "y")], &world, &memory).starts_with("~ apply"), "we want something else");
    world.0[0].1.version = Version(8);
    assert!(plan([&child], &world, &memory).starts_with("~ apply"), "somebody wrote it");
    world.0[0].1.version = Version(7);
    world.0[0].1.uid = Text::new("another");
    assert!(plan([&child], &world, &memory).starts_with("~ apply"), "it is another object");
}

/// A StatefulSet's status changes all the time; only what apply writes is compared.
#[test]
fn a_change_of_status_is_no_drift() {
    let (mut memory, child) = (Memory::default(), set("s", "x"));
    let mut world = Known(vec![(StatefulSetView::kind(), Meta { generation: 1, ..there("s") })]);
    memory.applied(&child, &Observed::of(&world.0[0].1));
    world.0[0].1.version = Version(99);
    assert_eq!(plan([&child], &world, &memory), "0 to do, 1 as wanted");
    world.0[0].1.labels = Pairs::from_iter([("a", "b")]);
    assert!(plan([&child], &world, &memory).starts_with("~ apply"), "a label changed");
    world.0[0].1.labels = Pairs::default();
    world.0[0].1.generation = 2;
    assert!(plan([&child], &world, &memory).starts_with("~ apply"), "the specification changed");
}

#[test]
fn what_cannot_be_changed_in_place_is_made_again_only_where_that_is_safe() {
    let mut memory = Memory::default();
    let children = [set("s", "x"), map("m", "x"), map("b", "x").recreate(Recreate::Delete)];
    let world = Known(vec![
        (StatefulSetView::kind(), there("s")),
        (ConfigMapView::kind(), there("m")),
        (ConfigMapView::kind(), there("b")),
    ]);
    for (child, (_, meta)) in children.iter().zip(&world.0) {
        memory.refused(child, &Observed::of(meta));
    }
    assert_eq!(
        plan(&children, &world, &memory),
        "! recreate, keeping its pods, StatefulSet a/s: a field cannot be changed in place\n\
         . wait with ConfigMap a/m: an edit, or its deletion: a field cannot be changed in place\n\
         ! recreate ConfigMap a/b: a field cannot be changed in place\n\
         3 to do, 0 as wanted"
    );
    // Another wish is another try.
    assert!(
        plan(&[set("s", "y")], &Known(vec![(StatefulSetView::kind(), there("s"))]), &memory).starts_with("~")
    );
}

#[test]
fn an_object_that_goes_or_belongs_to_another_is_waited_for() {
    let deleting = Meta { deleting: Some(jiff::Timestamp::UNIX_EPOCH.into()), ..there("gone") };
    let other = Owner { uid: Text::new("another"), controller: true, ..Owner::default() };
    let foreign = Meta { owners: Box::new([other]), ..there("foreign") };
    let nobodys = Meta { owners: Box::default(), ..there("nobodys") };
    let world = Known([deleting, foreign, nobodys].map(|meta| (ConfigMapView::kind(), meta)).to_vec());
    assert_eq!(
        plan(&[map("gone", "x"), map("foreign", "x"), map("nobodys", "x")], &world, &Memory::default()),
        ". wait with ConfigMap a/gone: the old one to be gone\n\
         . wait with ConfigMap a/foreign: somebody else's object of this name to be renamed or deleted\n\
         . wait with ConfigMap a/nobodys: somebody else's object of this name to be renamed or deleted\n\
         3 to do, 0 as wanted"
    );
}

#[test]
fn what_was_created_once_is_never_touched_nor_removed() {
    let once = Meta {
        annotations: Pairs::from_iter([
            (crate::cache::CREATED_ONCE, "true"),
            (crate::cache::CONTROLLER, "me"),
        ]),
        ..there("key")
    };
    let world = Known(vec![(ConfigMapView::kind(), once)]);
    let child = map("key", "x").create_once(Default::default);
    assert_eq!(plan([&child], &world, &Memory::default()), "0 to do, 1 as wanted");
    assert_eq!(plan([], &world, &Memory::default()), "0 to do, 0 as wanted");
    // Known to exist, though the cache does not see it.
    let mut memory = Memory::default();
    memory.created_once(&child);
    assert_eq!(plan([&child], &Known::default(), &memory), "0 to do, 1 as wanted");
}

#[test]
fn a_plan_is_json_for_programs() {
    let plan = Plan::make("me", &Text::new(OWNER), &[set("s", "x")], &Known::default(), &Memory::default());
    assert_eq!(
        serde_json::to_value(&plan).unwrap(),
        json!({ "unchanged": 0, "steps": [{
            "action": "create", "apiVersion": "apps/v1", "kind": "StatefulSet", "namespace": "a", "name": "s",
            "why": "missing" }] })
    );
}

#[test]
fn the_order_of_fields_is_no_difference() {
    let one = Child::of(ConfigMapView::kind(), json!({ "a": { "x": 1, "y": [1, 2] }, "b": null }));
    let text = r#"{ "b": null, "a": { "y": [1, 2], "x": 1 } }"#;
    let other = Child::of(ConfigMapView::kind(), serde_json::from_str(text).unwrap());
    assert_eq!(one.intent(), other.intent());
    let different = Child::of(ConfigMapView::kind(), json!({ "a": { "x": 1, "y": [2, 1] }, "b": null }));
    assert_ne!(one.intent(), different.intent());
}

#[test]
fn children_of_another_controller_are_left_alone() {
    let other =
        Meta { annotations: Pairs::from_iter([(crate::cache::CONTROLLER, "other")]), ..there("theirs") };
    let unmarked = Meta { annotations: Pairs::default(), ..there("older") };
    let world = Known([other, unmarked, there("mine")].map(|meta| (ConfigMapView::kind(), meta)).to_vec());
    assert_eq!(
        plan([], &world, &Memory::default()),
        "- delete ConfigMap a/mine: no longer wanted\n1 to do, 0 as wanted"
    );
}

/// A generated secret that somebody deletes is made again by the process that made it.
#[test]
fn what_exists_is_remembered_only_until_the_cache_shows_it() {
    let (child, mut memory) = (map("key", "x").create_once(Default::default), Memory::default());
    memory.created_once(&child);
    let seen = Known(vec![(ConfigMapView::kind(), there("key"))]);
    memory.keep_only(std::slice::from_ref(&child), &seen);
    assert!(plan([&child], &Known::default(), &memory).starts_with("+ create once"));
}
