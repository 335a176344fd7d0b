//! The store against a model: whatever comes in whatever order, content, indexes and told changes agree.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde::Deserialize;

use super::*;
use crate::meta::{Meta, Owner, Pairs};
use crate::views::Kind;

#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
struct Thing {
    meta: Meta,
    word: u8,
}

impl View for Thing {
    fn kind() -> Kind {
        Kind::namespaced("", "v1", "Thing", "things")
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }

    fn facets(&self, add: &mut dyn FnMut(Facet)) {
        add(Facet::Node(node(self.word)));
        add(Facet::Reference("Secret", node(self.word)));
    }
}

fn node(word: u8) -> Text {
    Text::new(&format!("node-{}", word % 3))
}

/// What the server has: the truth that the store follows.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Truth {
    uid: u32,
    version: u64,
    word: u8,
}

fn thing(key: &Key, truth: &Truth) -> Arc<Thing> {
    let owner = Owner { uid: Text::new(&format!("owner-{}", truth.word % 2)), ..Owner::default() };
    let meta = Meta {
        key: key.clone(),
        uid: Text::new(&truth.uid.to_string()),
        version: Version(truth.version),
        labels: Pairs::from_iter([("word", truth.word.to_string().as_str()), ("other", "x")]),
        owners: Box::new([owner]),
        ..Meta::default()
    };
    Arc::new(Thing { meta, word: truth.word })
}

/// Something that happens on the server, and whether the watch tells of it.
#[derive(Debug, Clone)]
enum Happens {
    Write {
        place: u8,
        word: u8,
        told: bool,
    },
    Delete {
        place: u8,
        told: bool,
    },
    /// An object that no type can hold.
    Spoil {
        place: u8,
    },
    /// A list of one namespace, of all of them, or one that breaks off in the middle.
    List {
        namespace: Option<u8>,
        whole: bool,
    },
}

fn happens() -> impl Strategy<Value = Happens> {
    let place = 0..8_u8;
    prop_oneof![
        4 => (place.clone(), 0..6_u8, any::<bool>()).prop_map(|(place, word, told)| Happens::Write { place, word, told }),
        2 => (place.clone(), any::<bool>()).prop_map(|(place, told)| Happens::Delete { place, told }),
        1 => place.prop_map(|place| Happens::Spoil { place }),
        2 => (prop::option::of(0..2_u8), any::<bool>()).prop_map(|(namespace, whole)| Happens::List { namespace, whole }),
    ]
}

fn key(place: u8) -> Key {
    Key::new(&format!("ns-{}", place % 2), &format!("thing-{}", place / 2))
}

/// The store, and what those who listen believe.
struct Followed {
    store: Store<Thing>,
    believed: BTreeMap<Key, Arc<Thing>>,
    epoch: Epoch,
}

impl Followed {
    fn new() -> Self {
        let mut store = Store::new(&["word"]);
        let epoch = store.begin(None);
        Self { store, believed: BTreeMap::new(), epoch }
    }

    fn update(&mut self, update: impl FnOnce(&mut Store<Thing>, Epoch, &mut dyn FnMut(Change<Thing>))) {
        let Self { store, believed, epoch } = self;
        update(store, *epoch, &mut |change| match (&change.old, &change.new) {
            (None, Some(new)) => {
                assert!(
                    believed.insert(new.meta.key.clone(), Arc::clone(new)).is_none(),
                    "added twice: {change:?}"
                );
            }
            (Some(old), new) => {
                let known = believed.remove(&old.meta.key).expect("changed or deleted, but never added");
                assert_eq!(known.word, old.word, "not what was told before");
                if let Some(new) = new {
                    assert_eq!(old.meta.uid, new.meta.uid, "another object is told as a change");
                    believed.insert(new.meta.key.clone(), Arc::clone(new));
                }
            }
            (None, None) => panic!("a change of nothing"),
        });
    }

    fn apply(&mut self, key: &Key, truth: &Truth, replay: bool) {
        let thing = thing(key, truth);
        self.update(|store, epoch, emit| store.apply(thing, epoch, replay, &mut |change| emit(change)));
    }

    fn check(&self) {
        let all = self.store.all();
        let told: Vec<_> = self.believed.values().map(|thing| (thing.meta.key.clone(), thing.word)).collect();
        let kept: Vec<_> = all.iter().map(|thing| (thing.meta.key.clone(), thing.word)).collect();
        assert_eq!(told, kept, "told and kept differ");
        assert_eq!(self.store.len(), all.len());
        for word in 0..6_u8 {
            let with = |facet: Facet| -> BTreeSet<Key> {
                self.store.with(&facet).iter().map(|thing| thing.meta.key.clone()).collect()
            };
            let expected = |fits: &dyn Fn(&Thing) -> bool| -> BTreeSet<Key> {
                all.iter().filter(|thing| fits(thing)).map(|thing| thing.meta.key.clone()).collect()
            };
            assert_eq!(with(Facet::Node(node(word))), expected(&|thing| thing.word % 3 == word % 3));
            let label = Facet::Label(Text::new("word"), Text::new(&word.to_string()));
            assert_eq!(with(label), expected(&|thing| thing.word == word));
            let owner = Facet::Owner(Text::new(&format!("owner-{}", word % 2)));
            assert_eq!(with(owner), expected(&|thing| thing.word % 2 == word % 2));
        }
        let unknown = Facet::Label(Text::new("other"), Text::new("x"));
        assert!(self.store.with(&unknown).is_empty(), "a label that nobody asked to index");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn the_store_follows_the_server_whatever_the_watch_misses(events in prop::collection::vec(happens(), 1..60)) {
        let mut followed = Followed::new();
        let mut server: BTreeMap<Key, Truth> = BTreeMap::new();
        let mut spoilt: BTreeSet<Key> = BTreeSet::new();
        let (mut version, mut uid) = (1, 0);
        for event in events {
            version += 1;
            match event {
                Happens::Write { place, word, told } => {
                    let key = key(place);
                    spoilt.remove(&key);
                    let known = server.get(&key).map(|truth| truth.uid);
                    let uid = known.unwrap_or_else(|| { uid += 1; uid });
                    let truth = Truth { uid, version, word };
                    if told {
                        followed.apply(&key, &truth, false);
                    }
                    server.insert(key, truth);
                }
                Happens::Delete { place, told } => {
                    let key = key(place);
                    let was_there = server.remove(&key).is_some() | spoilt.remove(&key);
                    if told && was_there {
                        followed.update(|store, _, emit| store.remove(&key, &mut |change| emit(change)));
                    }
                }
                Happens::Spoil { place } => {
                    let key = key(place);
                    if server.contains_key(&key) {
                        spoilt.insert(key.clone());
                        followed.update(|store, epoch, _| assert!(store.skip(key, format!("{version}"), epoch)));
                    }
                }
                Happens::List { namespace, whole } => {
                    let namespace = namespace.map(|number| Text::new(&format!("ns-{number}")));
                    followed.epoch = followed.store.begin(namespace.as_ref());
                    let inside: Vec<_> = server
                        .iter()
                        .filter(|(key, _)| namespace.as_ref().is_none_or(|namespace| key.namespace == *namespace))
                        .map(|(key, truth)| (key.clone(), truth.clone()))
                        .collect();
                    for (number, (key, truth)) in inside.iter().enumerate() {
                        if spoilt.contains(key) {
                            followed.update(|store, epoch, _| {
                                store.skip(key.clone(), "why".into(), epoch);
                            });
                        } else {
                            followed.apply(key, truth, true);
                        }
                        if !whole && number > 0 {
                            break;
                        }
                    }
                    if whole {
                        let namespace = namespace.clone();
                        followed.update(|store, epoch, emit| store.sweep(namespace.as_deref(), epoch, &mut |change| emit(change)));
                        // Now it is in step with the server, but for what cannot be read.
                        for (key, truth) in &inside {
                            let kept = followed.store.get(key).map(|thing| thing.word);
                            prop_assert!(spoilt.contains(key) || kept == Some(truth.word), "{key}");
                        }
                        let extra = followed.store.all().into_iter().filter(|thing| {
                            namespace.as_ref().is_none_or(|namespace| thing.meta.key.namespace == *namespace)
                                && !server.contains_key(&thing.meta.key)
                        });
                        prop_assert_eq!(extra.count(), 0, "a ghost");
                    }
                }
            }
            followed.check();
        }
    }
}

#[test]
fn a_write_that_changes_nothing_kept_wakes_nobody_and_moves_the_version() {
    let mut followed = Followed::new();
    let place = key(0);
    followed.apply(&place, &Truth { uid: 1, version: 5, word: 1 }, false);
    let mut changes = 0;
    let again = thing(&place, &Truth { uid: 1, version: 6, word: 1 });
    followed.store.apply(again, followed.epoch, false, &mut |_| changes += 1);
    assert_eq!(changes, 0);
    assert_eq!(followed.store.get(&place).map(|thing| thing.meta.version), Some(Version(6)));
}

#[test]
fn an_object_made_again_under_its_name_is_a_deletion_and_an_addition() {
    let mut followed = Followed::new();
    let place = key(0);
    followed.apply(&place, &Truth { uid: 1, version: 5, word: 1 }, false);
    let mut told = Vec::new();
    let other = thing(&place, &Truth { uid: 2, version: 9, word: 1 });
    followed.store.apply(other, followed.epoch, true, &mut |change| {
        told.push((change.old.is_some(), change.new.is_some()));
    });
    assert_eq!(told, [(true, false), (false, true)]);
}

#[test]
fn an_object_that_goes_bad_keeps_its_last_good_state_and_is_news_once() {
    let mut followed = Followed::new();
    let place = key(0);
    followed.apply(&place, &Truth { uid: 1, version: 5, word: 1 }, false);
    let epoch = followed.epoch;
    assert!(followed.store.skip(place.clone(), "why".into(), epoch));
    assert!(!followed.store.skip(place.clone(), "why".into(), epoch));
    assert!(followed.store.skip(place.clone(), "another".into(), epoch));
    assert!(followed.store.get(&place).is_some());
    assert!(followed.store.unreadable().map(|(key, _)| key).eq([&place]));
    followed.apply(&place, &Truth { uid: 1, version: 6, word: 2 }, false);
    assert_eq!(followed.store.unreadable().count(), 0);
}

#[test]
fn what_a_watch_has_delivered_is_forgotten_when_a_list_begins() {
    let mut store = Store::<Thing>::new(&[]);
    let namespace = Text::new("a");
    store.advance(None, Version(7));
    store.advance(None, Version(5));
    assert_eq!(store.progress(&namespace), Version(7));
    store.advance(Some(&namespace), Version(9));
    assert_eq!(store.progress(&namespace), Version(9));
    store.begin(Some(&namespace));
    assert_eq!(store.progress(&namespace), Version(7));
}
