//! `cargo xtask generate`: files that are made from code, so that they cannot lie.
//! `cargo xtask check` makes them again and compares.

use std::fs;

use anyhow::{Result, bail};

use crate::{check, tell, workspace};

/// A generated file: its path in the workspace and what it must contain.
struct Artefact {
    path: &'static str,
    content: String,
}

fn artefacts() -> Vec<Artefact> {
    vec![Artefact { path: "docs/rooms.md", content: check::rooms_page() }]
}

pub(crate) fn command() -> Result<()> {
    for artefact in artefacts() {
        let path = workspace().join(artefact.path);
        if fs::read_to_string(&path).is_ok_and(|old| old == artefact.content) {
            continue;
        }
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&path, artefact.content)?;
        tell(&format!("wrote {}", artefact.path));
    }
    Ok(())
}

/// Fails if a generated file is not what it would be now.
pub(crate) fn up_to_date() -> Result<()> {
    let stale: Vec<_> = artefacts()
        .into_iter()
        .filter(|artefact| {
            fs::read_to_string(workspace().join(artefact.path)).ok().as_ref() != Some(&artefact.content)
        })
        .map(|artefact| artefact.path)
        .collect();
    if stale.is_empty() {
        return Ok(());
    }
    bail!("not up to date, run `cargo xtask generate`: {}", stale.join(", "))
}
