//! `slipway-node wait-jail`: returns when the jail is whole. Pods that mount it are started beside the job that
//! fills it, and must not take half a copy for a root file system.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use jail::State;

use crate::say::say;

/// Often enough that nobody notices the wait, rare enough for a network file system.
const LOOK: Duration = Duration::from_millis(200);
const SAY: Duration = Duration::from_secs(30);

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The jail
    #[arg(long, default_value = jail::JAIL)]
    jail: PathBuf,
    /// Seconds after which waiting is given up
    #[arg(long, env = "JAIL_WAIT_TIMEOUT", default_value_t = 600)]
    timeout: u64,
}

pub fn run(args: Args) -> Result<()> {
    let Args { jail, timeout } = args;
    let started = Instant::now();
    let mut next_word = Duration::ZERO;
    loop {
        let state = State::of(&jail);
        let waited = started.elapsed();
        if state.is_usable() {
            return Ok(());
        }
        if waited >= Duration::from_secs(timeout) {
            bail!("{} after {timeout} s: look at the populate-jail job", wait_for(&jail, state));
        }
        if waited >= next_word {
            say(&format!("waiting for the jail since {} s: {}", waited.as_secs(), wait_for(&jail, state)));
            next_word = waited + SAY;
        }
        pause();
    }
}

fn wait_for(jail: &Path, state: State) -> String {
    match state {
        State::Empty => format!("{} is not populated", jail.display()),
        State::Unfinished => format!("the copy into {} is not complete", jail.display()),
        State::Legacy | State::Populated => format!("{} is populated", jail.display()),
    }
}

#[allow(clippy::disallowed_methods, reason = "a shared file system tells nobody of a new file")]
fn pause() {
    std::thread::sleep(LOOK);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn it_gives_up_and_says_what_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        let wait = || run(Args { jail: folder.path().to_owned(), timeout: 0 });
        assert!(wait().unwrap_err().to_string().contains("is not populated after 0 s"));
        fs::write(folder.path().join(jail::POPULATING), "").unwrap();
        assert!(wait().unwrap_err().to_string().contains("is not complete after 0 s"));
        fs::remove_file(folder.path().join(jail::POPULATING)).unwrap();
        fs::create_dir(folder.path().join("etc")).unwrap();
        fs::write(folder.path().join(jail::POPULATED), "").unwrap();
        wait().unwrap();
    }
}
