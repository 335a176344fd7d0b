//! Randomness for jitter. The standard library seeds every hasher anew, which is all that is needed to keep replicas and
//! keys from moving in step.

use std::hash::{BuildHasher, Hasher, RandomState};

/// Between 0 and 1.
pub(crate) fn fraction() -> f64 {
    let number = RandomState::new().build_hasher().finish();
    (number >> 11) as f64 / (1_u64 << 53) as f64
}
