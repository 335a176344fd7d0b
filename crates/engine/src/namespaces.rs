//! Where the operator works: in all namespaces, or in those it is given.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use crate::text::Text;

/// Which namespaces are watched. With a list, Roles in those namespaces suffice.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Namespaces {
    #[default]
    All,
    These(Vec<Text>),
}

impl Namespaces {
    /// One watch each; `None` is a watch over everything.
    pub fn scopes(&self) -> Vec<Option<Text>> {
        match self {
            Self::All => vec![None],
            Self::These(names) => names.iter().cloned().map(Some).collect(),
        }
    }
}

/// Nothing or `*` is all; else names with commas between them, in which blanks and repetitions do not matter.
impl FromStr for Namespaces {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        let mut names: Vec<Text> =
            text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(Text::new).collect();
        names.sort_unstable();
        names.dedup();
        let all = names.is_empty() || names.iter().any(|name| *name == "*");
        Ok(if all { Self::All } else { Self::These(names) })
    }
}

impl fmt::Display for Namespaces {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => out.write_str("*"),
            Self::These(names) => {
                out.write_str(&names.iter().map(Text::as_str).collect::<Vec<_>>().join(","))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_may_have_blanks_repetitions_and_empty_places() {
        for (given, meant) in
            [("", "*"), ("*", "*"), (" , ", "*"), ("a", "a"), (" b, a ,,b", "a,b"), ("a,*", "*")]
        {
            let Ok(namespaces) = given.parse::<Namespaces>();
            assert_eq!(namespaces.to_string(), meant, "{given:?}");
        }
    }
}
