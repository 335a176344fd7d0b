//! Releases of Slurm, as far as configuration files differ between them.

use std::fmt;
use std::str::FromStr;

/// A release of Slurm. Ordered: a newer one is greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Release {
    V24_11,
    V25_05,
    V25_11,
    V26_05,
}

impl Release {
    pub const ALL: [Self; 4] = [Self::V24_11, Self::V25_05, Self::V25_11, Self::V26_05];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::V24_11 => "24.11",
            Self::V25_05 => "25.05",
            Self::V25_11 => "25.11",
            Self::V26_05 => "26.05",
        }
    }

    fn year_and_month(self) -> (u16, u16) {
        match self {
            Self::V24_11 => (24, 11),
            Self::V25_05 => (25, 5),
            Self::V25_11 => (25, 11),
            Self::V26_05 => (26, 5),
        }
    }
}

impl fmt::Display for Release {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnknownRelease {
    #[error("read {0:?} as a release of Slurm: write year and month, such as 26.05 or 26.05.3")]
    NotARelease(String),
    #[error("Slurm {0} is older than 24.11, the oldest release whose configuration files are known here")]
    TooOld(String),
}

impl FromStr for Release {
    type Err = UnknownRelease;

    /// Reads `26.05`, `26.05.3`, `26.05.3-1`, with `slurm ` or `slurm-wlm ` before it or not. Between two known
    /// releases, and after the last, counts the older one: what it reads is what is known.
    fn from_str(text: &str) -> Result<Self, UnknownRelease> {
        let not_a_release = || UnknownRelease::NotARelease(text.to_owned());
        let version = text.split_whitespace().last().ok_or_else(not_a_release)?;
        let mut parts = version.split(['.', '-']);
        let mut part = || parts.next().and_then(|part| part.parse::<u16>().ok()).ok_or_else(not_a_release);
        let wanted = (part()?, part()?);
        Self::ALL
            .into_iter()
            .rfind(|release| release.year_and_month() <= wanted)
            .ok_or_else(|| UnknownRelease::TooOld(version.to_owned()))
    }
}

/// Which releases take a key, or a value of one. A daemon that meets an unknown key does not start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Support {
    /// The first release that knows it; none: it is older than all of ours.
    pub since: Option<Release>,
    /// The last release that knows it.
    pub until: Option<Release>,
    /// From here on it does nothing but log an error.
    pub defunct: Option<Release>,
    /// Read by a fork only, by no release of stock Slurm.
    pub never: bool,
}

impl Support {
    pub(super) const ALWAYS: Self = Self { since: None, until: None, defunct: None, never: false };
    pub(super) const NEVER: Self = Self { never: true, ..Self::ALWAYS };

    pub(super) const fn since(release: Release) -> Self {
        Self { since: Some(release), ..Self::ALWAYS }
    }

    pub(super) const fn until(release: Release) -> Self {
        Self { until: Some(release), ..Self::ALWAYS }
    }

    pub(super) const fn defunct(release: Release) -> Self {
        Self { defunct: Some(release), ..Self::ALWAYS }
    }

    /// Whether a daemon of this release starts with it.
    pub fn is_known_in(self, release: Release) -> bool {
        !self.never
            && self.since.is_none_or(|since| release >= since)
            && self.until.is_none_or(|until| release <= until)
    }

    pub fn is_defunct_in(self, release: Release) -> bool {
        self.defunct.is_some_and(|defunct| release >= defunct)
    }
}

impl fmt::Display for Support {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self { never: true, .. } => out.write_str("known to no release of stock Slurm"),
            Self { since: Some(since), .. } => write!(out, "known since {since}"),
            Self { until: Some(until), .. } => write!(out, "known until {until}"),
            Self { defunct: Some(defunct), .. } => write!(out, "without effect since {defunct}"),
            _ => out.write_str("known to all releases"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_read_from_what_slurm_and_packages_call_themselves() {
        for text in ["26.05", "26.05.3", "slurm 26.05.5", "slurm-wlm 26.05.5", "26.05.5-1"] {
            assert_eq!(text.parse(), Ok(Release::V26_05), "{text}");
        }
        assert_eq!("24.11.5".parse(), Ok(Release::V24_11));
    }

    #[test]
    fn a_newer_release_counts_as_the_newest_known() {
        assert_eq!("26.11.0".parse(), Ok(Release::V26_05));
        assert_eq!("25.08".parse(), Ok(Release::V25_05));
    }

    #[test]
    fn what_is_no_release_or_too_old_is_an_error() {
        assert_eq!("23.11".parse::<Release>(), Err(UnknownRelease::TooOld("23.11".into())));
        for text in ["", "latest", "26", "x.y"] {
            assert_eq!(text.parse::<Release>(), Err(UnknownRelease::NotARelease(text.into())), "{text:?}");
        }
    }
}
