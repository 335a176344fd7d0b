//! Command lines as Go's `flag` package reads them, for charts that were written for it: `-name` is `--name`, and
//! what follows a flag that takes a value is that value, even if it begins with a dash.
//!
//! The price is that one-letter options cannot be joined (`-ab`); no program here has any but `-h` and `-V`.

use std::ffi::OsString;

use clap::{Arg, Command};

/// Rewrites arguments into the form that clap reads. `command` must be built, so that it knows `--help`.
#[must_use]
pub fn normalise(command: &Command, args: Vec<OsString>) -> Vec<OsString> {
    let mut args = args.into_iter();
    let mut current = command;
    let mut out: Vec<OsString> = args.next().into_iter().collect();
    while let Some(arg) = args.next() {
        // No flag and no subcommand of ours is anything but UTF-8.
        let Some(text) = arg.to_str() else {
            out.push(arg);
            continue;
        };
        if text == "--" {
            out.push(arg);
            break;
        }
        let Some(name) = flag_name(text) else {
            current = current.find_subcommand(text).unwrap_or(current);
            out.push(arg);
            continue;
        };
        let mut flag = OsString::from(format!("--{name}"));
        if !takes_next(current, name) {
            out.push(flag);
            continue;
        }
        match args.next() {
            // clap would take such a value for a flag. One that is indeed a flag is a forgotten value: clap says so.
            Some(value) if is_odd_value(current, &value) => {
                flag.push("=");
                flag.push(value);
                out.push(flag);
            }
            value => {
                out.push(flag);
                out.extend(value.map(|value| known_flag(current, value)));
            }
        }
    }
    out.extend(args);
    out
}

/// A truth as Go's `strconv.ParseBool` reads it.
pub fn boolean(text: &str) -> Result<bool, &'static str> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err("expected true or false"),
    }
}

/// `name` or `name=value` of `-name…` and `--name…`; one-letter options are left to clap.
fn flag_name(text: &str) -> Option<&str> {
    let name = text.strip_prefix("--").or_else(|| text.strip_prefix('-'))?;
    let long = text.starts_with("--") || name.split('=').next().is_some_and(|name| name.len() > 1);
    (long && name.starts_with(|first: char| first.is_ascii_alphabetic())).then_some(name)
}

fn find<'a>(command: &'a Command, name: &str) -> Option<&'a Arg> {
    let is_named = |arg: &&Arg| {
        arg.get_long() == Some(name) || arg.get_all_aliases().is_some_and(|aliases| aliases.contains(&name))
    };
    command.get_arguments().find(is_named)
}

fn takes_next(command: &Command, name: &str) -> bool {
    find(command, name).is_some_and(|arg| {
        !arg.is_require_equals_set() && arg.get_num_args().is_some_and(|range| range.min_values() > 0)
    })
}

fn is_odd_value(command: &Command, value: &OsString) -> bool {
    let Some(text) = value.to_str() else { return false };
    text.len() > 1 && text.starts_with('-') && !is_known_flag(command, text)
}

fn is_known_flag(command: &Command, text: &str) -> bool {
    flag_name(text).is_some_and(|flag| find(command, flag.split('=').next().unwrap_or(flag)).is_some())
}

/// A value, unless it is the next flag: then in clap's form.
fn known_flag(command: &Command, value: OsString) -> OsString {
    match value.to_str() {
        Some(text) if is_known_flag(command, text) => {
            OsString::from(format!("--{}", text.trim_start_matches('-')))
        }
        _ => value,
    }
}

#[cfg(test)]
mod tests {
    use clap::ArgAction;
    use proptest::prelude::*;

    use super::*;

    fn command() -> Command {
        let flags = |command: Command| {
            command
                .arg(Arg::new("level").long("log-level"))
                .arg(Arg::new("controllers").long("controllers").alias("only"))
                .arg(Arg::new("secure").long("secure").action(ArgAction::SetTrue))
                .arg(Arg::new("elect").long("elect").num_args(0..=1).require_equals(true))
        };
        let mut command = flags(Command::new("program")).subcommand(
            Command::new("resume").arg(Arg::new("nodes").long("nodes")).arg(Arg::new("rest").num_args(0..)),
        );
        command.build();
        command
    }

    fn normalised(args: &[&str]) -> Vec<String> {
        let args = std::iter::once("program").chain(args.iter().copied()).map(OsString::from).collect();
        normalise(&command(), args).into_iter().skip(1).map(|arg| arg.into_string().unwrap()).collect()
    }

    #[test]
    fn single_dash_becomes_double() {
        for (given, wanted) in [
            (&["-log-level=debug"][..], &["--log-level=debug"][..]),
            (&["-log-level", "debug"], &["--log-level", "debug"]),
            (&["--log-level", "debug"], &["--log-level", "debug"]),
            (&["-secure", "-log-level=warn"], &["--secure", "--log-level=warn"]),
            (&["-elect=false", "-elect", "-secure"], &["--elect=false", "--elect", "--secure"]),
            (&["-help"], &["--help"]),
            (&["-unknown=1"], &["--unknown=1"]),
            (&["resume", "-nodes", "a-[0-3]"], &["resume", "--nodes", "a-[0-3]"]),
        ] {
            assert_eq!(normalised(given), wanted, "{given:?}");
        }
    }

    #[test]
    fn values_with_a_dash_stay_with_their_flag() {
        assert_eq!(normalised(&["-controllers", "-nodeset"]), ["--controllers=-nodeset"]);
        assert_eq!(normalised(&["--only", "-nodeset,*"]), ["--only=-nodeset,*"]);
        assert_eq!(normalised(&["--log-level", "-1"]), ["--log-level=-1"]);
        assert_eq!(normalised(&["--controllers=*,-nodeset"]), ["--controllers=*,-nodeset"]);
    }

    #[test]
    fn forgotten_value_does_not_swallow_the_next_flag() {
        assert_eq!(normalised(&["-log-level", "-secure"]), ["--log-level", "--secure"]);
        let error = command().try_get_matches_from(["program", "--log-level", "--secure"]).unwrap_err();
        assert!(error.to_string().contains("--log-level"), "{error}");
    }

    #[test]
    fn everything_else_is_left_alone() {
        for args in [
            &["-h"][..],
            &["-"],
            &["-1"],
            &["plain", "a=b"],
            &["resume", "--", "-nodes=x"],
            &["--log-level"],
            &["--log-level", ""],
            &["--"],
            &[],
        ] {
            assert_eq!(normalised(args), args);
        }
    }

    #[test]
    fn bytes_that_are_no_text_pass_through() {
        use std::os::unix::ffi::OsStringExt;
        let odd = OsString::from_vec(vec![b'-', 0xff, 0xfe]);
        let args = vec!["program".into(), odd.clone(), "--log-level".into(), odd.clone()];
        assert_eq!(normalise(&command(), args.clone()), args);
    }

    fn any_args() -> impl Strategy<Value = Vec<String>> {
        let known =
            prop::sample::select(vec!["log-level", "controllers", "secure", "resume", "nodes", "--", "x"]);
        let arg =
            (prop::sample::select(vec!["", "-", "--"]), known, prop::sample::select(vec!["", "=v", "=-v"]))
                .prop_map(|(dashes, name, value)| format!("{dashes}{name}{value}"));
        prop::collection::vec(prop_oneof![arg, "[-=a-z1]{0,6}"], 0..8)
    }

    proptest! {
        #[test]
        fn normalising_twice_changes_nothing_more(args in any_args()) {
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            let once = normalised(&args);
            let twice = normalised(&once.iter().map(String::as_str).collect::<Vec<_>>());
            prop_assert_eq!(once, twice);
        }

        #[test]
        fn one_dash_and_two_are_read_alike(level in "[a-z]{1,6}", joined: bool) {
            let read = |dashes: &str| {
                let args = if joined {
                    vec![format!("{dashes}log-level={level}")]
                } else {
                    vec![format!("{dashes}log-level"), level.clone()]
                };
                let args = normalised(&args.iter().map(String::as_str).collect::<Vec<_>>());
                let args = std::iter::once("program".to_owned()).chain(args);
                command().try_get_matches_from(args).unwrap().get_one::<String>("level").cloned()
            };
            prop_assert_eq!(read("-"), Some(level.clone()));
            prop_assert_eq!(read("--"), Some(level.clone()));
        }
    }
}
