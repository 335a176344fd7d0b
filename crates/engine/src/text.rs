//! Strings that are kept once: label keys and values, namespaces, names, reasons.
//!
//! A cache of ten thousand pods holds the same few hundred strings over and over. A [`Text`] is a handle on the one copy
//! of the process, so equal texts are the same pointer. What nobody holds any more is forgotten when the pool has
//! doubled, so names that come and go do not pile up.

use std::borrow::Borrow;
use std::collections::HashSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Below this many strings there is nothing worth sweeping.
const SMALL: usize = 4096;

static POOL: LazyLock<Mutex<Pool>> = LazyLock::new(|| Mutex::new(Pool::default()));

/// An interned string: cheap to clone, to compare and to hold often. The box makes the handle one word instead of two:
/// handles are many, and each string is there once.
#[derive(Clone)]
pub struct Text(Arc<Box<str>>);

#[derive(Default)]
struct Pool {
    kept: HashSet<Text>,
    sweep_at: usize,
}

impl Pool {
    fn intern(&mut self, text: &str) -> Text {
        if let Some(known) = self.kept.get(text) {
            return known.clone();
        }
        if self.kept.len() >= self.sweep_at.max(SMALL) {
            self.sweep();
        }
        let new = Text(Arc::new(text.into()));
        self.kept.insert(new.clone());
        new
    }

    /// A count of one is the pool's own, and nobody can raise it while the pool is locked.
    fn sweep(&mut self) {
        self.kept.retain(|text| Arc::strong_count(&text.0) > 1);
        self.sweep_at = self.kept.len() * 2;
    }
}

impl Text {
    #[must_use]
    pub fn new(text: &str) -> Self {
        POOL.lock().unwrap_or_else(PoisonError::into_inner).intern(text)
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Text {
    fn default() -> Self {
        static EMPTY: LazyLock<Text> = LazyLock::new(|| Text::new(""));
        EMPTY.clone()
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Text {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Text {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Text {}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl PartialOrd for Text {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Text {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.cmp(&other.0)
    }
}

/// As `str` does, so that maps can be asked with one.
impl Hash for Text {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), out)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self)
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Text;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a string")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Text, E> {
                Ok(Text::new(text))
            }
        }
        deserializer.deserialize_str(Visitor)
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_are_one() {
        let (one, two) = (Text::new("worker"), Text::new(&["wor", "ker"].concat()));
        assert!(Arc::ptr_eq(&one.0, &two.0));
        assert_eq!(one, two);
        assert_ne!(one, Text::new("login"));
    }

    #[test]
    fn what_nobody_holds_is_forgotten() {
        let mut pool = Pool::default();
        let held = pool.intern("held");
        for number in 0..10 * SMALL {
            pool.intern(&number.to_string());
        }
        assert!(pool.kept.len() <= 2 * SMALL, "{}", pool.kept.len());
        assert_eq!(held, pool.intern("held"));
    }

    #[test]
    fn maps_are_asked_with_plain_strings() {
        let set = HashSet::from([Text::new("a"), Text::new("b")]);
        assert!(set.contains("a") && !set.contains("c"));
    }
}
