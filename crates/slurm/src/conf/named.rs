//! The nodes that a user's text has lines for, and the names of its sets of nodes: compared with ours, and found again.

use super::document::{Document, Setting};
use super::keys::{FileKind, Key};
use super::problem::Reason;
use crate::hostlist::{Hostlist, NameSet};

/// More ranges are not compared. Slurm reads no list that has more.
pub(super) const MOST_RANGES: usize = 65_536;

/// What stands after one key of slurm.conf.
pub(super) struct Named {
    pub(super) names: NameSet,
    lines: Vec<(usize, Hostlist)>,
}

impl Named {
    /// What is not read as a list is for `Document::check` to tell.
    pub(super) fn of(
        user: &Document,
        key: &Key,
        read: impl Fn(&Setting) -> Option<Hostlist>,
    ) -> Result<Self, Reason> {
        let lines = user.settings().filter(|(_, setting)| setting.key.eq_ignore_ascii_case(key.name));
        let lines =
            lines.filter(|(_, setting)| user.kind() == FileKind::Slurm && !key.is_defaults(&setting.value));
        let mut read_lines = Vec::new();
        let mut left = MOST_RANGES as u64;
        for (line, setting) in lines {
            let Some(list) = read(setting) else { continue };
            left = left
                .checked_sub(list.run_count())
                .ok_or(Reason::TooManyNodes { line, limit: MOST_RANGES })?;
            read_lines.push((line, list));
        }
        let names = NameSet::of_all(read_lines.iter().map(|(_, list)| list));
        Ok(Self { names, lines: read_lines })
    }

    /// The first name that is in the list, and the line that has it.
    pub(super) fn first_of(&self, list: &Hostlist) -> Option<(String, usize)> {
        let name = list.iter().find(|name| self.names.contains(name))?;
        let line = self.lines.iter().find(|(_, list)| list.contains(&name)).map(|(line, _)| *line)?;
        Some((name, line))
    }
}
