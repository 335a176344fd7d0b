//! Reads of named objects for `gather`: Secrets and ConfigMaps, whose content no cache holds.
//!
//! What was read is kept as long as the object stays the same, so that a reconcile with nothing to do asks for nothing.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde::de::DeserializeOwned;

use crate::cache::{Caches, Observed};
use crate::calls::Calls;
use crate::failure::Failure;
use crate::meta::{Key, Version};
use crate::text::Text;
use crate::views::Kind;

type Kept = (Text, Version, Arc<dyn Any + Send + Sync>);

/// Content that was read, by object.
#[derive(Debug, Clone, Default)]
pub(crate) struct Contents(Arc<Mutex<HashMap<(Kind, Key), Kept>>>);

/// Reads for one reconcile.
#[derive(Debug)]
pub struct Reader {
    caches: Caches,
    calls: Calls,
    contents: Contents,
}

impl Reader {
    pub(crate) fn new(caches: Caches, calls: Calls, contents: Contents) -> Self {
        Self { caches, calls, contents }
    }

    /// The content of an object whose kind is watched: one request when it has changed, else none.
    pub async fn content<T>(&self, kind: Kind, key: &Key) -> Result<Option<Arc<T>>, Failure>
    where
        T: DeserializeOwned + Clone + Send + Sync + 'static,
    {
        let place = (kind, key.clone());
        let Some(Observed { uid, version, .. }) = self.caches.observed(kind, key) else {
            self.kept().remove(&place);
            return Ok(None);
        };
        if let Some((of, at, content)) = self.kept().get(&place)
            && (of, at) == (&uid, &version)
            && let Ok(content) = Arc::clone(content).downcast::<T>()
        {
            return Ok(Some(content));
        }
        let Some(content) = self.calls.get::<T>(kind, key).await? else { return Ok(None) };
        let content = Arc::new(content);
        // It may be newer than what was observed; then it is read again when the cache has seen that.
        let mut kept = self.kept();
        kept.retain(|(kind, key), _| self.caches.observed(*kind, key).is_some());
        kept.insert(place, (uid, version, Arc::clone(&content) as Arc<dyn Any + Send + Sync>));
        Ok(Some(content))
    }

    /// Waits for something other than the API server, under a name that a stalled reconcile is reported with.
    pub fn calls(&self) -> &Calls {
        &self.calls
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, HashMap<(Kind, Key), Kept>> {
        self.contents.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
