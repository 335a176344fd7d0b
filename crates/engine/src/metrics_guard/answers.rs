//! Answers that are remembered for a while, and never more than a few hundred of them, whatever is asked.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, SHA256_OUTPUT_LEN};
use tokio::time::Instant;

/// One Prometheus is one token; a cluster has a handful of readers.
const CAPACITY: usize = 256;

/// What stands for a token, or for all that is known of a user.
pub(super) type Digest = [u8; SHA256_OUTPUT_LEN];

pub(super) fn digest(of: &[u8]) -> Digest {
    let mut digest = [0; SHA256_OUTPUT_LEN];
    digest.copy_from_slice(aws_lc_rs::digest::digest(&SHA256, of).as_ref());
    digest
}

pub(super) struct Answers<V> {
    entries: Mutex<HashMap<Digest, Entry<V>>>,
}

struct Entry<V> {
    value: V,
    until: Instant,
}

impl<V> Default for Answers<V> {
    fn default() -> Self {
        Self { entries: Mutex::default() }
    }
}

impl<V: Clone> Answers<V> {
    pub(super) fn get(&self, key: &Digest) -> Option<V> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = entries.get(key)?;
        (Instant::now() < entry.until).then(|| entry.value.clone())
    }

    /// Remembers an answer. When there is no room, the one that would be forgotten first makes way.
    pub(super) fn put(&self, key: Digest, value: V, lifetime: Duration) {
        let now = Instant::now();
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= CAPACITY && !entries.contains_key(&key) {
            entries.retain(|_, entry| now < entry.until);
            let first = entries.iter().min_by_key(|(_, entry)| entry.until).map(|(key, _)| *key);
            if let Some(first) = first.filter(|_| entries.len() >= CAPACITY) {
                entries.remove(&first);
            }
        }
        entries.insert(key, Entry { value, until: now + lifetime });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn key(number: usize) -> Digest {
        digest(&number.to_be_bytes())
    }

    #[test]
    fn digests_are_sha_256() {
        let wanted = [0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea];
        assert_eq!(digest(b"abc")[..8], wanted);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_ends_with_its_lifetime() {
        let answers = Answers::default();
        answers.put(key(1), "yes", MINUTE);
        tokio::time::advance(MINUTE - Duration::from_millis(1)).await;
        assert_eq!(answers.get(&key(1)), Some("yes"));
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(answers.get(&key(1)), None);
        assert_eq!(answers.get(&key(2)), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_does_not_grow_it_and_what_lives_longest_stays() {
        let answers = Answers::default();
        answers.put(key(0), 0, MINUTE * 5);
        for number in 1..10 * CAPACITY {
            answers.put(key(number), number, MINUTE);
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        assert_eq!(answers.entries.lock().unwrap().len(), CAPACITY);
        assert_eq!(answers.get(&key(0)), Some(0));
        assert_eq!(answers.get(&key(1)), None);
        assert_eq!(answers.get(&key(10 * CAPACITY - 1)), Some(10 * CAPACITY - 1));
    }

    #[tokio::test(start_paused = true)]
    async fn what_has_ended_makes_way_first() {
        let answers = Answers::default();
        for number in 0..CAPACITY {
            answers.put(key(number), number, MINUTE);
        }
        tokio::time::advance(MINUTE).await;
        answers.put(key(CAPACITY), CAPACITY, MINUTE);
        assert_eq!(answers.entries.lock().unwrap().len(), 1);
    }
}
