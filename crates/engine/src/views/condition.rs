//! Conditions, as nearly every kind has them.

use serde::Deserialize;

use crate::lean::lean;
use crate::second::Second;
use crate::text::Text;

lean! {
    /// One condition, without its message, which is for people, and without times that move while nothing changes.
    pub struct Condition {
        #[serde(rename = "type")]
        pub kind: Text,
        pub status: Truth,
        pub reason: Text,
        #[serde(rename = "lastTransitionTime")]
        pub since: Option<Second>,
    }
}

/// Whether a condition holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Deserialize)]
pub enum Truth {
    True,
    False,
    /// Also what is neither.
    #[default]
    #[serde(other)]
    Unknown,
}

impl Truth {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl From<bool> for Truth {
    fn from(so: bool) -> Self {
        if so { Self::True } else { Self::False }
    }
}

/// The condition of a type.
#[must_use]
pub fn condition<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.kind == *kind)
}

/// Whether the condition of a type is there and holds.
#[must_use]
pub fn holds(conditions: &[Condition], kind: &str) -> bool {
    condition(conditions, kind).is_some_and(|condition| condition.status == Truth::True)
}
