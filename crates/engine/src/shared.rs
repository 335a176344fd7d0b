//! Values that many objects have in common, kept once: the keys of their labels, what nodes of one type can hold.
//!
//! The same idea as [`crate::text::Text`], for other types. What nobody holds any more is forgotten when the pool of its
//! type has doubled.

use std::any::{Any, TypeId};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use serde::{Deserialize, Deserializer};

/// Below this many values there is nothing worth sweeping.
const SMALL: usize = 1024;

static POOLS: LazyLock<Mutex<HashMap<TypeId, Box<dyn Any + Send>>>> = LazyLock::new(Mutex::default);

/// A handle on the one copy of a value in the process.
pub struct Shared<T>(Arc<T>);

struct Pool<T> {
    kept: HashSet<Arc<T>>,
    sweep_at: usize,
}

impl<T: Hash + Eq> Pool<T> {
    fn keep(&mut self, value: T) -> Arc<T> {
        if let Some(known) = self.kept.get(&value) {
            return Arc::clone(known);
        }
        if self.kept.len() >= self.sweep_at.max(SMALL) {
            // A count of one is the pool's own, and nobody can raise it while the pool is locked.
            self.kept.retain(|value| Arc::strong_count(value) > 1);
            self.sweep_at = self.kept.len() * 2;
        }
        let new = Arc::new(value);
        self.kept.insert(Arc::clone(&new));
        new
    }
}

impl<T: Hash + Eq + Send + Sync + 'static> Shared<T> {
    pub fn new(value: T) -> Self {
        let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
        let pool = pools
            .entry(TypeId::of::<T>())
            .or_insert_with(|| Box::new(Pool::<T> { kept: HashSet::new(), sweep_at: 0 }));
        match pool.downcast_mut::<Pool<T>>() {
            Some(pool) => Self(pool.keep(value)),
            // Every pool is filed under its own type; a value of its own would do no harm.
            None => Self(Arc::new(value)),
        }
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> PartialEq for Shared<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T> Eq for Shared<T> {}

impl<T: Hash> Hash for Shared<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl<T: Default + Hash + Eq + Send + Sync + 'static> Default for Shared<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: fmt::Debug> fmt::Debug for Shared<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

impl<'de, T: Deserialize<'de> + Hash + Eq + Send + Sync + 'static> Deserialize<'de> for Shared<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(Self::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_one() {
        let (one, two) = (Shared::new(vec![1_u8, 2]), Shared::new(vec![1_u8, 2]));
        assert!(Arc::ptr_eq(&one.0, &two.0));
        assert_eq!(one, two);
        assert_ne!(one, Shared::new(vec![3]));
    }

    #[test]
    fn what_nobody_holds_is_forgotten() {
        let mut pool = Pool { kept: HashSet::new(), sweep_at: 0 };
        let held = pool.keep(0_usize);
        for number in 1..10 * SMALL {
            pool.keep(number);
        }
        assert!(pool.kept.len() <= 2 * SMALL, "{}", pool.kept.len());
        assert!(Arc::ptr_eq(&held, &pool.keep(0)));
    }
}
