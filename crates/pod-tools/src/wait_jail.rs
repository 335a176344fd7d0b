//! `slipway-node wait-jail`: returns when the jail is whole. Pods that mount it are started beside the job that
//! fills it, and must not take half a copy for a root file system.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use jail::State;

use crate::patience::until;

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
    until(Duration::from_secs(timeout), "look at the populate-jail job", || {
        Ok(match State::of(&jail) {
            State::Populated | State::Legacy => Ok(()),
            State::Empty => Err(format!("the jail {} is not populated", jail.display())),
            State::Unfinished => Err(format!("the copy into the jail {} is not complete", jail.display())),
        })
    })
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
