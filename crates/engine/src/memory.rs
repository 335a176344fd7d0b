//! What a controller remembers of its own writes for one owner, so that it does not repeat them.
//!
//! All of it can be lost: the worst that follows is a server-side apply that changes nothing.

use std::collections::HashMap;

use crate::cache::{Observed, Written};
use crate::child::Child;
use crate::meta::Key;
use crate::plan::World;
use crate::text::Text;
use crate::views::Kind;

#[derive(Debug, Clone, Default)]
pub struct Memory {
    /// Of whom: another object under the same name starts without memories.
    owner: Option<Text>,
    children: HashMap<(Kind, Key), Remembered>,
    /// Writes that the cache may not have seen yet.
    pub(crate) written: Vec<Written>,
    /// Of the status that was written last.
    pub(crate) status: Option<u64>,
    /// What is waited for, and since when.
    pub(crate) waiting: Option<(String, jiff::Timestamp)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Remembered {
    /// This intent gave this object.
    Applied { uid: Text, fingerprint: u64, intent: u64 },
    /// The server refused to bring this object to this intent.
    Immutable { uid: Text, intent: u64 },
    /// Created once, by whomever.
    Exists,
}

impl Memory {
    /// Forgets what was known of another owner, but for writes that the cache has yet to see.
    pub(crate) fn begin(&mut self, owner: &Text) {
        if self.owner.as_ref() != Some(owner) {
            let written = std::mem::take(&mut self.written);
            *self = Self { owner: Some(owner.clone()), written, ..Self::default() };
        }
    }

    pub(crate) fn is_current(&self, child: &Child, observed: &Observed) -> bool {
        let Observed { uid, fingerprint, .. } = observed.clone();
        self.of(child) == Some(&Remembered::Applied { uid, fingerprint, intent: child.intent() })
    }

    pub(crate) fn is_immutable(&self, child: &Child, observed: &Observed) -> bool {
        self.of(child) == Some(&Remembered::Immutable { uid: observed.uid.clone(), intent: child.intent() })
    }

    pub(crate) fn exists(&self, child: &Child) -> bool {
        self.of(child) == Some(&Remembered::Exists)
    }

    pub(crate) fn applied(&mut self, child: &Child, now: &Observed) {
        let (uid, fingerprint) = (now.uid.clone(), now.fingerprint);
        self.remember(child, Remembered::Applied { uid, fingerprint, intent: child.intent() });
    }

    pub(crate) fn refused(&mut self, child: &Child, observed: &Observed) {
        self.remember(child, Remembered::Immutable { uid: observed.uid.clone(), intent: child.intent() });
    }

    pub(crate) fn created_once(&mut self, child: &Child) {
        self.remember(child, Remembered::Exists);
    }

    /// Forgets children that nobody wants any more, and that something is there which the cache shows by now.
    pub(crate) fn keep_only(&mut self, children: &[Child], world: &impl World) {
        let wanted =
            |kind: Kind, key: &Key| children.iter().any(|child| child.kind == kind && child.key == *key);
        self.children.retain(|(kind, key), what| {
            wanted(*kind, key) && (*what != Remembered::Exists || world.observed(*kind, key).is_none())
        });
    }

    fn of(&self, child: &Child) -> Option<&Remembered> {
        self.children.get(&(child.kind, child.key.clone()))
    }

    fn remember(&mut self, child: &Child, what: Remembered) {
        self.children.insert((child.kind, child.key.clone()), what);
    }
}
