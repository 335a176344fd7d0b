//! The form of `scontrol show hostlist`: order and repeats kept, neighbours with the same prefix in one bracket.

use std::fmt::{self, Display, Formatter};

use super::product::Product;
use super::run::{Range, joined};
use super::{Hostlist, Item, MOST_NUMBERS, Run};

impl Display for Hostlist {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        // One that unfolds to more, which Slurm refuses, keeps its brackets as they were read.
        if self.run_count() <= MOST_NUMBERS || self.items.iter().all(|item| item.as_product().is_none()) {
            return write_runs(out, self.runs());
        }
        let mut separator = "";
        for items in self.items.chunk_by(|a, b| a.as_product().is_none() && b.as_product().is_none()) {
            out.write_str(separator)?;
            separator = ",";
            match items {
                [Item::Product(product)] => write_folded(out, product)?,
                runs => write_runs(out, runs.iter().filter_map(Item::as_run))?,
            }
        }
        Ok(())
    }
}

impl Item {
    fn as_product(&self) -> Option<&Product> {
        match self {
            Self::Run(_) => None,
            Self::Product(product) => Some(product),
        }
    }

    fn as_run(&self) -> Option<Run<'_>> {
        match self {
            Self::Run(run) => Some(run.borrowed()),
            Self::Product(_) => None,
        }
    }
}

fn write_runs<'a>(out: &mut Formatter<'_>, runs: impl Iterator<Item = Run<'a>>) -> fmt::Result {
    let mut runs = joined(runs).peekable();
    let mut separator = "";
    while let Some(run) = runs.next() {
        write!(out, "{separator}{}", run.prefix)?;
        separator = ",";
        let Some(range) = run.range else { continue };
        let mut beside = || {
            let next = runs.next_if(|next| next.range.is_some() && next.prefix == run.prefix);
            next.and_then(|next| next.range)
        };
        let mut next = beside();
        if range.lo == range.hi && next.is_none() {
            write_range(out, range)?;
            continue;
        }
        out.write_str("[")?;
        write_range(out, range)?;
        while let Some(range) = next {
            out.write_str(",")?;
            write_range(out, range)?;
            next = beside();
        }
        out.write_str("]")?;
    }
    Ok(())
}

fn write_folded(out: &mut Formatter<'_>, product: &Product) -> fmt::Result {
    for part in &product.parts {
        write!(out, "{}[", part.text)?;
        for (at, range) in part.ranges.iter().enumerate() {
            out.write_str(if at == 0 { "" } else { "," })?;
            write_range(out, *range)?;
        }
        out.write_str("]")?;
    }
    out.write_str(&product.suffix)
}

fn write_range(out: &mut Formatter<'_>, Range { lo, hi, width }: Range) -> fmt::Result {
    write!(out, "{lo:0width$}")?;
    if lo < hi { write!(out, "-{hi:0width$}") } else { Ok(()) }
}
