//! A moment to the second, as Kubernetes writes times in metadata and conditions, in four bytes instead of the 24 of an
//! optional timestamp: ten thousand pods hold seventy thousand of them.

use std::fmt;
use std::num::NonZeroU32;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Seconds since 1970. What is earlier, or later than 2106, is taken for the nearest that fits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Second(NonZeroU32);

impl Second {
    #[must_use]
    pub fn timestamp(self) -> Timestamp {
        Timestamp::from_second(self.0.get().into()).unwrap_or(Timestamp::MAX)
    }
}

impl From<Timestamp> for Second {
    fn from(time: Timestamp) -> Self {
        let second = u32::try_from(time.as_second().max(1)).unwrap_or(u32::MAX);
        Self(NonZeroU32::new(second).unwrap_or(NonZeroU32::MIN))
    }
}

impl fmt::Display for Second {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.timestamp().fmt(out)
    }
}

impl fmt::Debug for Second {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

impl<'de> Deserialize<'de> for Second {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Timestamp::deserialize(deserializer).map(Self::from)
    }
}

impl Serialize for Second {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.timestamp().serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_come_back_as_they_were_sent() {
        let sent = "\"2026-01-02T03:04:05Z\"";
        let second: Second = serde_json::from_str(sent).unwrap();
        assert_eq!(serde_json::to_string(&second).unwrap(), sent);
        assert_eq!(second.to_string(), "2026-01-02T03:04:05Z");
    }

    #[test]
    fn what_does_not_fit_is_the_nearest_that_does() {
        let read = |time: &str| Second::from(time.parse::<Timestamp>().unwrap()).to_string();
        assert_eq!(read("1815-12-10T00:00:00Z"), "1970-01-01T00:00:01Z");
        assert_eq!(read("2200-01-01T00:00:00Z"), "2106-02-07T06:28:15Z");
        assert_eq!(size_of::<Option<Second>>(), 4);
    }
}
