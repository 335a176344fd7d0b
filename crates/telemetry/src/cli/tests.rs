//! Tests of the dispatch: which component is meant by which command line.

use clap::Arg;

use super::*;

fn level(command: Command) -> Command {
    command.arg(Arg::new("level").long("log-level").default_value("info"))
}

fn not_run(_: &Call<'_>) -> Result<ExitCode, clap::Error> {
    Ok(ExitCode::SUCCESS)
}

const PROGRAM: Program = Program {
    name: "slipway",
    about: "test",
    components: &[Component { name: "operator", about: "test", args: level, run: not_run }, VERSION],
    called_by: &[("slurm_operator", "operator"), ("manager", "operator"), ("soperatorchecks", "checks")],
};

fn parse(args: &[&str]) -> Result<(&'static str, ArgMatches), clap::Error> {
    let args = args.iter().map(OsString::from).collect();
    PROGRAM.parse(args).map(|(component, matches)| (component.name, matches))
}

fn level_of(args: &[&str]) -> String {
    let (component, matches) = parse(args).unwrap();
    assert_eq!(component, "operator", "{args:?}");
    matches.get_one::<String>("level").unwrap().clone()
}

#[test]
fn subcommand_and_peer_name_mean_the_same_component() {
    for args in [
        &["slipway", "operator", "--log-level=debug"][..],
        &["/usr/bin/slurm_operator", "--log-level=debug"],
        &["/manager", "--log-level", "debug"],
        &["manager", "-log-level=debug"],
        &["slipway", "operator", "-log-level", "debug"],
    ] {
        assert_eq!(level_of(args), "debug", "{args:?}");
    }
    assert_eq!(level_of(&["slurm_operator"]), "info");
}

#[test]
fn last_of_a_repeated_flag_wins() {
    assert_eq!(level_of(&["slurm_operator", "--log-level=warn", "--log-level=debug"]), "debug");
    assert_eq!(level_of(&["slipway", "operator", "--log-level=warn", "--log-level=debug"]), "debug");
}

#[test]
fn unknown_name_falls_back_to_subcommands() {
    assert_eq!(level_of(&["/opt/renamed-by-someone", "operator"]), "info");
    assert_eq!(parse(&["renamed-by-someone", "version"]).unwrap().0, "version");
}

#[test]
fn peer_name_without_component_says_what_there_is() {
    let error = parse(&["/usr/bin/soperatorchecks", "--log-level=debug"]).unwrap_err();
    assert_eq!(error.exit_code(), 2);
    let text = error.to_string();
    assert!(text.contains("called as 'soperatorchecks'"), "{text}");
    assert!(text.contains("no component 'checks'; it has: operator, version"), "{text}");
}

#[test]
fn component_that_does_not_exist_is_refused() {
    let error = parse(&["slipway", "checks"]).unwrap_err();
    assert_eq!((error.kind(), error.exit_code()), (ErrorKind::InvalidSubcommand, 2));
}

#[test]
fn no_arguments_show_the_help() {
    for args in [&["slipway"][..], &[]] {
        let error = parse(args).unwrap_err();
        assert_eq!(error.exit_code(), 2, "{args:?}");
        assert!(error.to_string().contains("operator"), "{error}");
    }
}

#[test]
fn called_by_a_peer_name_the_help_is_that_programs() {
    let error = parse(&["/usr/bin/slurm_operator", "-help"]).unwrap_err();
    assert_eq!((error.kind(), error.exit_code()), (ErrorKind::DisplayHelp, 0));
    assert!(error.to_string().contains("Usage: slurm_operator [OPTIONS]"), "{error}");
}

#[test]
fn help_describes_the_component_and_not_its_argument_type() {
    /// This comment is not for users.
    #[derive(clap::Args)]
    struct Documented {}
    let component = Component { args: <Documented as clap::Args>::augment_args, ..PROGRAM.components[0] };
    let help = component.command().render_long_help().to_string();
    assert!(help.starts_with("test\n"), "{help}");
}

#[test]
fn unknown_flag_is_refused_under_its_own_name() {
    let error = parse(&["manager", "-metrics-sekure=true"]).unwrap_err();
    assert_eq!(error.exit_code(), 2);
    assert!(error.to_string().contains("'--metrics-sekure'"), "{error}");
}

#[test]
fn the_table_makes_a_valid_command() {
    PROGRAM.command().debug_assert();
}
