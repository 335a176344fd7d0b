//! `cargo xtask setup`: brings every part of the testbed into the cache, each once.
//!
//! A part is made in a temporary folder and renamed when it is complete, so an interrupted set-up goes on
//! where it stopped. Go parts and Debian parts use different resources and are made side by side.

mod debian;
mod golang;
mod images;
mod prerequisites;
mod step;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use nix::fcntl::{Flock, FlockArg};
use testkit::cache::{Cache, KUBERNETES_PROGRAMS, Part, SlurmVersion, own_program};
use testkit::cluster::State;

use crate::tell;

/// In the cache: parts that are being made.
const UNFINISHED: &str = "tmp";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Compare the files in the cache with their checksums
    #[arg(long)]
    verify: bool,
    /// Remove what no longer belongs to this version of the project
    #[arg(long)]
    prune: bool,
}

pub(crate) fn command(args: &Args) -> Result<()> {
    let cache = ensure(&Part::all())?;
    if args.verify {
        for part in Part::all().into_iter().filter(|part| cache.has(*part)) {
            let checked = step::verify(&cache.folder(part))?;
            let verdict = if checked {
                "checksums right"
            } else {
                "no checksums of its own; apt checked its packages, and blobs are named by theirs"
            };
            tell(&format!("{}: {verdict}", part.name()));
        }
    }
    if args.prune {
        prune(&cache)?;
    }
    Ok(())
}

/// Makes the parts that are missing; says nothing and takes no time when none is.
pub(crate) fn ensure(wanted: &[Part]) -> Result<Cache> {
    let cache = Cache::locate()?;
    let todo = missing(&cache, wanted);
    if !wanted.is_empty() {
        prerequisites::check(&todo)?;
    }
    if todo.is_empty() {
        return Ok(cache);
    }
    fs::create_dir_all(cache.root().join("log"))
        .with_context(|| format!("make the cache directory {}", cache.root().display()))?;
    let _lock = lock(&cache)?;
    // Another set-up may have made them while this one waited for the lock.
    let todo = missing(&cache, wanted);
    if todo.is_empty() {
        return Ok(cache);
    }
    // What an interrupted set-up was making.
    let unfinished = cache.root().join(UNFINISHED);
    if unfinished.exists() {
        fs::remove_dir_all(&unfinished).with_context(|| format!("remove {}", unfinished.display()))?;
    }
    fs::create_dir_all(&unfinished)?;
    let started = Instant::now();
    tell(&format!("set-up: {} parts into {}", todo.len(), cache.root().display()));
    make_all(&cache, &todo)?;
    tell(&format!("set-up: done in {} s", started.elapsed().as_secs()));
    Ok(cache)
}

/// What has to be made for the wanted parts: those that are not there, and what they are made from.
fn missing(cache: &Cache, wanted: &[Part]) -> Vec<Part> {
    let supplied = |part: Part| {
        part == Part::Kubernetes && KUBERNETES_PROGRAMS.iter().all(|name| own_program(name).is_some())
    };
    closure(wanted, |part| !cache.has(part) && !supplied(part))
}

fn closure(wanted: &[Part], is_missing: impl Fn(Part) -> bool) -> Vec<Part> {
    let mut missing = Vec::new();
    let mut next = wanted.to_vec();
    while let Some(part) = next.pop() {
        if is_missing(part) && !missing.contains(&part) {
            missing.push(part);
            next.extend(part.needs());
        }
    }
    missing
}

fn lock(cache: &Cache) -> Result<Flock<File>> {
    let path = cache.root().join("lock");
    let open = || File::options().create(true).append(true).open(&path);
    match Flock::lock(open()?, FlockArg::LockExclusiveNonblock) {
        Ok(lock) => Ok(lock),
        Err(_) => {
            tell("set-up: waiting for another set-up to end");
            Flock::lock(open()?, FlockArg::LockExclusive)
                .map_err(|(_, error)| error)
                .context("lock the cache")
        }
    }
}

/// Debian packages first, since others use them; then Go beside the layers; then what needs both.
fn make_all(cache: &Cache, todo: &[Part]) -> Result<()> {
    let lane = |parts: &[Part]| -> Result<()> {
        parts.iter().filter(|part| todo.contains(part)).try_for_each(|part| make(cache, *part))
    };
    lane(&[Part::Debian])?;
    std::thread::scope(|scope| {
        let go = scope.spawn(|| lane(&[Part::Kubernetes, Part::CoreDns, Part::Runc]));
        let layers: Vec<_> = SlurmVersion::ALL.into_iter().flat_map(Part::layers).collect();
        let layers = lane(&layers);
        let go = go.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        go.and(layers)
    })?;
    lane(&[Part::Images, Part::ContainerdRoot])
}

fn make(cache: &Cache, part: Part) -> Result<()> {
    let started = Instant::now();
    // Dropped, it is removed: after a failure nothing is left, and after success it has moved.
    let unfinished =
        tempfile::Builder::new().prefix(&part.name()).tempdir_in(cache.root().join(UNFINISHED))?;
    let out = unfinished.path().join("part");
    fs::create_dir(&out)?;
    match part {
        Part::Debian => debian::packages(cache, &out),
        Part::Kubernetes => golang::kubernetes(cache, &out),
        Part::CoreDns => golang::coredns(cache, &out),
        Part::Runc => golang::runc(cache, &out),
        Part::Layer(version, layer) => debian::layer(cache, version, layer, &out),
        Part::Images => images::layout(cache, &out),
        Part::ContainerdRoot => images::containerd_root(cache, &out),
    }
    .with_context(|| format!("make {} (log: {})", part.name(), step::log_path(cache, part).display()))?;
    fs::rename(&out, cache.folder(part))?;
    tell(&format!("set-up: {}: done in {} s", part.name(), started.elapsed().as_secs()));
    Ok(())
}

fn prune(cache: &Cache) -> Result<()> {
    let _lock = lock(cache)?;
    let running = State::names(cache);
    if !running.is_empty() {
        bail!("clusters are up and may use what would be removed: {}", running.join(", "));
    }
    let parts = Part::all();
    let keep: Vec<PathBuf> = parts.iter().map(|part| cache.folder(*part)).collect();
    for entry in fs::read_dir(cache.root())? {
        let path = entry?.path();
        let of_a_part = parts.iter().any(|part| is_version_of(&path, *part));
        if of_a_part && !keep.contains(&path) {
            tell(&format!("set-up: removing {}", path.display()));
            fs::remove_dir_all(&path)?;
        }
    }
    Ok(())
}

/// A folder of the same part with another recipe, or of another version of it.
fn is_version_of(path: &Path, part: Part) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let Some((stem, hash)) = name.rsplit_once('-') else { return false };
    let of =
        |name: &str| name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-').to_owned();
    path.is_dir()
        && of(stem) == of(&part.name())
        && hash.len() == 12
        && hash.chars().all(|c| c.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::layers::Layer;

    #[test]
    fn only_folders_of_parts_are_pruned() {
        let base = tempfile::tempdir().unwrap();
        let is_part = |name: &str| {
            let path = base.path().join(name);
            fs::create_dir(&path).unwrap();
            Part::all().iter().any(|part| is_version_of(&path, *part))
        };
        for name in
            ["kubernetes-1.35.0-0123456789ab", "layer-slurm-25.11-0123456789ab", "debian-0123456789ab"]
        {
            assert!(is_part(name), "{name}");
        }
        for name in ["debian-backup", "images-of-my-cat-0123456789ab", "clusters", "layer-slurm-0123"] {
            assert!(!is_part(name), "{name}");
        }
    }

    #[test]
    fn a_missing_part_brings_what_it_is_made_from() {
        let all = closure(&[Part::ContainerdRoot], |_| true);
        let slurm = Part::Layer(SlurmVersion::V26_05, Layer::Slurm);
        for part in [Part::Debian, slurm, Part::Images, Part::ContainerdRoot] {
            assert!(all.contains(&part), "{part:?}");
        }
        assert_eq!(
            closure(&[Part::ContainerdRoot], |part| part == Part::ContainerdRoot),
            [Part::ContainerdRoot]
        );
    }
}
