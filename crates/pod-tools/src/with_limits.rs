//! `slipway-node with-limits`: becomes another program, under the limits of `/etc/security/limits.conf`. Logins get them
//! from PAM; a daemon that a container starts does not, and jobs have the limits of their slurmd.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit, rlim_t, setrlimit};

use crate::say::say;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The limits; a file that is not there has none
    #[arg(long, default_value = "/etc/security/limits.conf")]
    file: PathBuf,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<String>,
}

pub fn run(args: Args) -> Result<()> {
    let Args { file, command } = args;
    let Some((program, arguments)) = command.split_first() else { bail!("no command") };
    let text = match fs::read_to_string(&file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        read => read.with_context(|| format!("read {}", file.display()))?,
    };
    let (limits, ignored) = parse(&text);
    for line in ignored {
        say(&format!("{}: `{line}` is no limit for a daemon of root", file.display()));
    }
    let refused: Vec<_> =
        limits.iter().filter(|(item, limit)| !apply(item, **limit)).map(|(item, _)| *item).collect();
    if !refused.is_empty() {
        say(&format!("limits that this container may not set: {}", refused.join(", ")));
    }
    Err(Command::new(program).args(arguments).exec()).with_context(|| format!("start {program}"))
}

/// What a file says of one resource.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Limit {
    soft: Option<rlim_t>,
    hard: Option<rlim_t>,
}

/// `DOMAIN TYPE ITEM VALUE` a line. Daemons are root's: a line for root wins over one for everybody, wherever it stands.
/// Also gives the lines that nothing can be done with; those for others are none of them.
fn parse(text: &str) -> (BTreeMap<&str, Limit>, Vec<&str>) {
    let lines: Vec<&str> = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default().trim())
        .filter(|line| !line.is_empty())
        .collect();
    let (mut limits, mut ignored) = (BTreeMap::<&str, Limit>::new(), Vec::new());
    for domain in ["*", "root"] {
        for line in lines.iter().filter(|line| line.split_whitespace().next() == Some(domain)) {
            let words: Vec<_> = line.split_whitespace().collect();
            let parsed = match words[..] {
                [_, kind, item, value] => value_of(item, value).map(|value| (kind, item, value)),
                _ => None,
            };
            match parsed {
                Some((kind @ ("soft" | "hard" | "-"), item, value)) => {
                    let limit = limits.entry(item).or_default();
                    if kind != "hard" {
                        limit.soft = Some(value);
                    }
                    if kind != "soft" {
                        limit.hard = Some(value);
                    }
                }
                _ => ignored.push(*line),
            }
        }
    }
    (limits, ignored)
}

/// In the kernel's unit. `limits.conf(5)` has sizes in KiB, time in minutes, and a niceness that the kernel counts from 20 down.
fn value_of(item: &str, value: &str) -> Option<rlim_t> {
    resource(item)?;
    if item == "nice" {
        let nice: i64 = value.parse().ok()?;
        return rlim_t::try_from(20 - nice.clamp(-20, 19)).ok();
    }
    if ["unlimited", "infinity", "-1"].contains(&value) {
        return Some(RLIM_INFINITY);
    }
    let unit = match item {
        "core" | "data" | "fsize" | "memlock" | "rss" | "stack" | "as" => 1024,
        "cpu" => 60,
        _ => 1,
    };
    value.parse::<rlim_t>().ok()?.checked_mul(unit)
}

fn resource(item: &str) -> Option<Resource> {
    Some(match item {
        "as" => Resource::RLIMIT_AS,
        "core" => Resource::RLIMIT_CORE,
        "cpu" => Resource::RLIMIT_CPU,
        "data" => Resource::RLIMIT_DATA,
        "fsize" => Resource::RLIMIT_FSIZE,
        "locks" => Resource::RLIMIT_LOCKS,
        "memlock" => Resource::RLIMIT_MEMLOCK,
        "msgqueue" => Resource::RLIMIT_MSGQUEUE,
        "nice" => Resource::RLIMIT_NICE,
        "nofile" => Resource::RLIMIT_NOFILE,
        "nproc" => Resource::RLIMIT_NPROC,
        "rss" => Resource::RLIMIT_RSS,
        "rtprio" => Resource::RLIMIT_RTPRIO,
        "sigpending" => Resource::RLIMIT_SIGPENDING,
        "stack" => Resource::RLIMIT_STACK,
        _ => return None,
    })
}

/// Whether the kernel has taken it. Both at once: a soft limit may rise only as far as the hard one. Where that may not
/// rise, the soft one rises to it.
fn apply(item: &str, limit: Limit) -> bool {
    let Some(resource) = resource(item) else { return false };
    let Ok((soft, hard)) = getrlimit(resource) else { return false };
    let wanted = merged(limit, soft, hard);
    if setrlimit(resource, wanted.0, wanted.1).is_ok() {
        return true;
    }
    let _ = setrlimit(resource, wanted.0.min(hard), hard);
    false
}

/// The wanted limits, over those of now. A hard limit wins over a soft one that is above it.
fn merged(limit: Limit, soft: rlim_t, hard: rlim_t) -> (rlim_t, rlim_t) {
    let hard = limit.hard.unwrap_or(hard);
    (limit.soft.unwrap_or(soft).min(hard), hard)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(soft: Option<rlim_t>, hard: Option<rlim_t>) -> Limit {
        Limit { soft, hard }
    }

    #[test]
    fn values_are_in_the_units_of_the_kernel() {
        let (limits, ignored) = parse(
            "# everything\n* soft memlock unlimited\n* hard memlock unlimited # for RDMA\n\
             * - stack 8192\n* hard cpu 2\n* soft nice -20\n* soft nofile 1048576\n* hard core infinity\n",
        );
        assert_eq!(ignored, [""; 0]);
        assert_eq!(limits["memlock"], limit(Some(RLIM_INFINITY), Some(RLIM_INFINITY)));
        assert_eq!(limits["stack"], limit(Some(8 << 20), Some(8 << 20)));
        assert_eq!(limits["cpu"], limit(None, Some(120)));
        assert_eq!(limits["nice"], limit(Some(40), None));
        assert_eq!(limits["nofile"], limit(Some(1 << 20), None));
        assert_eq!(limits["core"], limit(None, Some(RLIM_INFINITY)));
    }

    #[test]
    fn lines_for_root_win_and_those_for_others_are_not_ours() {
        let (limits, ignored) =
            parse("root soft nofile 10\n* soft nofile 20\n@students hard nproc 50\nalice - core 0\n");
        assert_eq!(limits["nofile"].soft, Some(10));
        assert_eq!((limits.len(), ignored.len()), (1, 0));
    }

    #[test]
    fn what_is_no_limit_is_named() {
        let lines =
            ["* soft", "* soft nofile many", "* sometimes nofile 5", "* hard maxlogins 4", "* - stack 1 2"];
        let (text, one_too_many) = (lines.join("\n"), format!("* hard stack {}", u64::MAX));
        let (limits, ignored) = parse(&text);
        assert!(limits.is_empty(), "{limits:?}");
        assert_eq!(ignored, lines);
        assert_eq!(parse(&one_too_many).1, [one_too_many.as_str()]);
    }

    #[test]
    fn a_soft_limit_stays_below_the_hard_one() {
        assert_eq!(merged(limit(Some(9), None), 1, 5), (5, 5));
        assert_eq!(merged(limit(None, Some(3)), 5, 8), (3, 3));
        assert_eq!(
            merged(limit(Some(RLIM_INFINITY), Some(RLIM_INFINITY)), 1, 2),
            (RLIM_INFINITY, RLIM_INFINITY)
        );
    }
}
