//! `cargo xtask crd-diff OURS THEIRS...`: what our custom resources have otherwise than those of the
//! operators that we replace, by meaning and not by text.
//!
//! Every difference is either explained by an entry of the allow-list, which has a reason, or it fails the
//! command. The definitions to compare with stay outside the project and are named by path.

mod allow_list;
mod columns;
mod crd_set;
mod definition;
mod difference;
mod field_path;
mod keyword;
mod path_pattern;
mod report;
mod rules;
mod schema;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};

pub(crate) use allow_list::AllowList;
pub(crate) use crd_set::CrdSet;
use difference::{Difference, Place};
use field_path::FieldPath;
use report::Comparison;
pub(crate) use report::{Detail, Report};

use crate::say;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Our definitions: a YAML file, or a folder of *.yaml files
    ours: PathBuf,
    /// What they are compared with, likewise; of a folder also the folders in it, each for itself
    #[arg(required = true)]
    theirs: Vec<PathBuf>,
    /// The differences that are meant, instead of deploy/crd-differences.yaml
    #[arg(long, value_name = "FILE")]
    allow: Option<PathBuf>,
    /// Also list the differences that are meant, with the reason of each
    #[arg(long)]
    verbose: bool,
    /// Also fail on entries of the allow-list that match nothing
    #[arg(long)]
    strict: bool,
}

pub(crate) fn command(args: &Args) -> Result<ExitCode> {
    let ours = CrdSet::read(&args.ours)?;
    let theirs = args.theirs.iter().map(|path| CrdSet::read_all(path)).collect::<Result<Vec<_>>>()?.concat();
    let allowed = match &args.allow {
        Some(path) => AllowList::read(path)?,
        None => AllowList::of_workspace()?,
    };
    let report = compare(&ours, &theirs, &allowed)?;
    let detail = Detail { allowed: args.verbose, stale: args.strict };
    for line in report.lines(detail) {
        say(&line);
    }
    let failed = report.unexplained().count() > 0 || (args.strict && !report.stale().is_empty());
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Compares ours with each of theirs. Entries of the allow-list are stale if they match nothing over all of
/// them.
///
/// What only we have is not looked at: the two operators know nothing of each other's resources either.
pub(crate) fn compare<'a>(ours: &CrdSet, theirs: &[CrdSet], allowed: &'a AllowList) -> Result<Report<'a>> {
    let comparisons: Vec<Comparison> = theirs.iter().map(|theirs| compare_set(ours, theirs)).collect();
    if comparisons.iter().all(|comparison| comparison.compared == 0) {
        let names: Vec<_> = theirs.iter().map(|theirs| theirs.source.as_str()).collect();
        bail!("nothing to compare: {} has no CRD that is also in {}", ours.source, names.join(", "));
    }
    Ok(Report::new(comparisons, allowed))
}

fn compare_set(ours: &CrdSet, theirs: &CrdSet) -> Comparison {
    let mut comparison = Comparison { source: theirs.source.clone(), compared: 0, differences: Vec::new() };
    for their_crd in theirs.crds.values() {
        if let Some(our_crd) = ours.crds.get(&their_crd.name) {
            comparison.compared += 1;
            comparison.differences.extend(definition::compare(their_crd, our_crd));
        } else {
            comparison.differences.push(Difference {
                place: Place { group: their_crd.group.clone(), version: None, kind: their_crd.kind.clone() },
                path: FieldPath::of(["crd"]),
                what: "crd".to_owned(),
                theirs: Some(their_crd.name.as_str().into()),
                ours: None,
            });
        }
    }
    comparison
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::{Value, json};

    use super::*;

    /// A CRD of two fields, the second with this default.
    fn crd(kind: &str, default: &str) -> Value {
        let plural = kind.to_lowercase() + "s";
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.example.org")},
            "spec": {
                "group": "example.org",
                "names": {"kind": kind, "plural": plural},
                "scope": "Namespaced",
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "properties": {"spec": {"type": "object", "properties": {
                        "size": {"type": "integer"},
                        "colour": {"type": "string", "default": default},
                    }}},
                }}}],
            },
        })
    }

    fn set(source: &str, crds: &[Value]) -> CrdSet {
        CrdSet::new(source, crds.to_vec()).unwrap()
    }

    fn allow(yaml: &str) -> AllowList {
        AllowList::parse("allowed.yaml", yaml).unwrap()
    }

    #[test]
    fn a_crd_that_only_they_have_is_a_difference_and_one_that_only_we_have_is_not() {
        let ours = set("ours", &[crd("Boat", "red"), crd("Raft", "red")]);
        let theirs = set("theirs", &[crd("Boat", "red"), crd("Ship", "red")]);
        let allowed = AllowList::default();
        let report = compare(&ours, &[theirs], &allowed).unwrap();
        assert_eq!(
            report.lines(Detail::default()),
            [
                r#"example.org Ship crd  crd: theirs "ships.example.org", ours nothing"#,
                "compared 1 CRD: 1 difference, 0 allowed, 1 unexplained",
            ]
        );
    }

    #[test]
    fn nothing_to_compare_is_an_error() {
        let (ours, theirs) = (set("ours", &[crd("Boat", "red")]), set("theirs", &[crd("Ship", "red")]));
        let error = compare(&ours, &[theirs], &AllowList::default()).unwrap_err().to_string();
        assert_eq!(error, "nothing to compare: ours has no CRD that is also in theirs");
    }

    #[test]
    fn an_entry_is_stale_only_if_it_matches_nothing_in_all_of_theirs() {
        let ours = set("ours", &[crd("Boat", "red")]);
        let theirs = [set("old", &[crd("Boat", "red")]), set("new", &[crd("Boat", "blue")])];
        let allowed = allow(
            "- {kind: Boat, path: spec.colour, what: default, reason: Red is easier to see at sea.}\n\
             - {kind: Boat, path: spec.size, what: default, reason: There is no default for a size.}\n",
        );
        let report = compare(&ours, &theirs, &allowed).unwrap();
        assert_eq!(report.unexplained().count(), 0);
        assert_eq!(
            report.lines(Detail { allowed: false, stale: true }),
            [
                "stale: allowed.yaml:2: Boat spec.size (default) matches nothing",
                "compared 2 CRDs: 1 difference, 1 allowed, 0 unexplained, 1 stale",
            ]
        );
    }

    /// The whole command on files, since the exit code is what CI looks at.
    #[test]
    fn only_what_is_unexplained_fails_and_with_strict_what_is_stale_too() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, content: String| {
            fs::write(folder.path().join(name), content).unwrap();
            folder.path().join(name)
        };
        let ours = file("ours.yaml", crd("Boat", "red").to_string());
        let same = file("same.yaml", crd("Boat", "red").to_string());
        let other = file("other.yaml", crd("Boat", "blue").to_string());
        let nothing = file("nothing.yaml", "[]".to_owned());
        let explains = file(
            "explains.yaml",
            "[{kind: Boat, path: spec.colour, what: default, reason: Red is easier to see at sea.}]"
                .to_owned(),
        );
        let run = |theirs: &PathBuf, allow: &PathBuf, strict| {
            let (theirs, allow) = (vec![theirs.clone()], Some(allow.clone()));
            command(&Args { ours: ours.clone(), theirs, allow, verbose: true, strict }).unwrap()
        };
        assert_eq!(run(&same, &nothing, true), ExitCode::SUCCESS);
        assert_eq!(run(&other, &nothing, false), ExitCode::FAILURE);
        assert_eq!(run(&other, &explains, true), ExitCode::SUCCESS);
        assert_eq!(run(&same, &explains, false), ExitCode::SUCCESS);
        assert_eq!(run(&same, &explains, true), ExitCode::FAILURE);
    }
}
