//! Amounts of memory, in whole MiB.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use super::{Problem, UnitError};

const WHAT: &str = "an amount of memory";
const FORMS: &str = "a number with K, M, G, T or P (times 1024 each), such as `2000`, `191356M` or `62.50G`; \
                     without a unit it is MiB";
/// Where sums of many still fit into what Slurm counts with.
const MOST_MIB: u64 = 1 << 54;
const MOST: &str = "16777216P";

/// Memory as Slurm counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Memory {
    mib: u64,
}

impl Memory {
    pub const ZERO: Self = Self { mib: 0 };

    /// More than Slurm can count becomes the most that it can.
    pub fn from_mib(mib: u64) -> Self {
        Self { mib: mib.min(MOST_MIB) }
    }

    /// What has no unit in slurm.conf: `RealMemory`, `DefMemPerCPU`, `MaxMemPerNode`.
    pub fn mib(self) -> u64 {
        self.mib
    }

    /// Reads an amount. A number without unit is MiB, as in slurm.conf and in `--mem`. Part of a MiB counts as a whole
    /// one, as Slurm has it for kilobytes. A `B` may follow the unit.
    pub fn parse(text: &str) -> Result<Self, UnitError> {
        let form = || Problem::Form(FORMS).of(text, WHAT);
        let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        let kib_each = kib_per_unit(unit).ok_or_else(form)?;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        // Slurm writes two digits. With more than nine a fraction could not be exact.
        if whole.is_empty() || fraction.is_empty() || fraction.contains('.') || fraction.len() > 9 {
            return Err(form());
        }
        let too_large = || Problem::TooLarge(MOST).of(text, WHAT);
        let whole: u64 = whole.parse().map_err(|_| too_large())?;
        let scale = 10_u128.pow(fraction.len().try_into().unwrap_or(0));
        let fraction: u128 = fraction.parse().map_err(|_| form())?;
        // Of 2^64, 2^40 and 10^9 each two multiplied are below 2^128.
        let kib = u128::from(whole) * u128::from(kib_each);
        let kib = kib + (fraction * u128::from(kib_each)).div_ceil(scale);
        let mib = u64::try_from(kib.div_ceil(1024)).ok().filter(|mib| *mib <= MOST_MIB);
        Ok(Self { mib: mib.ok_or_else(too_large)? })
    }
}

fn kib_per_unit(unit: &str) -> Option<u64> {
    let unit = unit.strip_suffix(['B', 'b']).filter(|rest| !rest.is_empty()).unwrap_or(unit);
    Some(match unit {
        "K" | "k" => 1,
        "" | "M" | "m" => 1 << 10,
        "G" | "g" => 1 << 20,
        "T" | "t" => 1 << 30,
        "P" | "p" => 1 << 40,
        _ => return None,
    })
}

impl FromStr for Memory {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        Self::parse(text)
    }
}

/// In the largest unit that leaves a whole number: `191356M`, `64000M`, `64G`.
impl Display for Memory {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let steps = (self.mib.trailing_zeros() / 10).min(3);
        match (self.mib, steps) {
            (0, _) => out.write_str("0"),
            (mib, 0) => write!(out, "{mib}M"),
            (mib, 1) => write!(out, "{}G", mib >> 10),
            (mib, 2) => write!(out, "{}T", mib >> 20),
            (mib, _) => write!(out, "{}P", mib >> 30),
        }
    }
}
