//! What is known of an object whatever its kind, and of our own writes to it.

use std::hash::{DefaultHasher, Hash, Hasher};

use tokio::time::Instant;

use crate::meta::{Key, Meta, Version};
use crate::text::Text;
use crate::views::Kind;

use super::{CONTROLLER, CREATED_ONCE};

/// What apply has to know of an object, whatever its kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed {
    pub key: Key,
    pub uid: Text,
    pub version: Version,
    /// Changes when something changes that server-side apply could have to mend.
    pub fingerprint: u64,
    pub deleting: bool,
    pub created_once: bool,
    /// The uid of the object that manages it.
    pub owner: Option<Text>,
    /// The controller of ours that made it.
    pub controller: Option<Text>,
}

impl Observed {
    #[must_use]
    pub fn of(meta: &Meta) -> Self {
        let mut hasher = DefaultHasher::new();
        meta.uid.hash(&mut hasher);
        // Status does not count generations, so kinds that have one are compared by what apply writes: specification
        // (its generation), labels, annotations and owners. For the others the version has to do.
        if meta.generation > 0 {
            meta.generation.hash(&mut hasher);
            meta.labels.hash(&mut hasher);
            meta.annotations.hash(&mut hasher);
            for owner in &meta.owners {
                owner.uid.hash(&mut hasher);
            }
        } else {
            meta.version.hash(&mut hasher);
        }
        Self {
            key: meta.key.clone(),
            uid: meta.uid.clone(),
            version: meta.version,
            fingerprint: hasher.finish(),
            deleting: meta.deleting.is_some(),
            created_once: meta.annotation(CREATED_ONCE).is_some(),
            owner: meta.controller().map(|owner| owner.uid.clone()),
            controller: meta.annotation(CONTROLLER).cloned(),
        }
    }
}

/// A write of ours that the cache has to see before its owner is looked at again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Written {
    pub kind: Kind,
    pub key: Key,
    pub what: Wrote,
    pub at: Instant,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wrote {
    /// This version or a later one.
    Version(Version),
    /// The end of the object with this uid, or the mark that it is ending.
    Deletion(Text),
}

impl Written {
    pub(crate) fn version(kind: Kind, key: &Key, version: Version) -> Self {
        Self { kind, key: key.clone(), what: Wrote::Version(version), at: Instant::now() }
    }

    pub(crate) fn deletion(kind: Kind, key: &Key, uid: &Text) -> Self {
        Self { kind, key: key.clone(), what: Wrote::Deletion(uid.clone()), at: Instant::now() }
    }

    /// `progress` is how far the watch has come: an object that is gone by now has been seen too.
    pub(crate) fn is_seen(&self, observed: Option<&Observed>, progress: Version) -> bool {
        match (&self.what, observed) {
            (Wrote::Version(written), _) if progress >= *written => true,
            (Wrote::Version(written), Some(observed)) => observed.version >= *written,
            (Wrote::Version(_), None) => false,
            (Wrote::Deletion(uid), Some(observed)) => observed.uid != *uid || observed.deleting,
            (Wrote::Deletion(_), None) => true,
        }
    }
}
