//! The few fields that we write of other operators' kinds.
//!
//! These operators may not be installed, and their CRDs are not ours: the types hold what we apply and
//! nothing more, and leave everything else of an object alone.

pub mod kruise;
pub mod mariadb;
pub mod prometheus;
pub mod security_profiles;

#[cfg(test)]
mod round_trip {
    use serde::Serialize;
    use serde::de::DeserializeOwned;
    use serde_json::Value;

    /// Decodes an object and encodes it again.
    pub(super) fn of<K: Serialize + DeserializeOwned>(object: &Value) -> Value {
        let decoded: K = serde_json::from_value(object.clone()).unwrap();
        serde_json::to_value(decoded).unwrap()
    }
}
