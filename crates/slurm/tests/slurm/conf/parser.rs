//! The reader and the tables of keys, held against Slurm's own parser.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use slurm::conf::keys::slurm as key;
use slurm::conf::{
    ConfFile, Document, DownNodesLine, Extra, FileKind, InitialState, Key, Kind, NodeLine, Release, Severity,
};
use testkit::cache::SlurmVersion;

use super::bench::{Bench, config};
use super::examples::{self, hosts};
use super::{Site, base, gres, put_base, site};

/// What a text is made of that is hard to read back.
fn awkward() -> impl Strategy<Value = String> {
    let piece = proptest::sample::select(vec![
        "a", "B", "=", " ", "  ", "#", "\\", "\\\\", "\"", "'", ",", "(", ")", "+", "-", ";", "$", "ü",
        "\u{2003}", "Key=",
    ]);
    proptest::collection::vec(piece, 1..10).prop_map(|pieces| pieces.concat())
}

fn samples<T>(count: usize, strategy: &impl Strategy<Value = T>) -> Vec<T> {
    let mut runner = TestRunner::deterministic();
    (0..count).filter_map(|_| strategy.new_tree(&mut runner).ok()).map(|tree| tree.current()).collect()
}

/// Each of several programs counts and is shown, so one start of slurmctld reads many values.
const MANY: Key = key::Epilog;

fn shown_values(answer: &str) -> Vec<String> {
    let config = config(answer);
    (0..)
        .map_while(|number| config.get(&format!("{}[{number}]", MANY.name.to_lowercase())).cloned())
        .collect()
}

pub(crate) async fn values_are_read_back_as_they_were_given(version: SlurmVersion) -> Result<()> {
    let bench = Bench::start(version).await?;
    let mut file = ConfFile::new(FileKind::Slurm, bench.release());
    let mut written = Vec::new();
    for value in samples(400, &awkward()) {
        let mut next = file.clone();
        if next.set(&MANY, value.as_str()).render().is_ok() {
            file = next;
            written.push(value);
        }
    }
    ensure!(written.len() > 200, "only {} of the values can be written", written.len());
    put_base(&bench, &site(), &file.render()?)?;
    let answer = bench.ask("scontrol show config").await?;
    assert_eq!(shown_values(&answer), written);
    Ok(())
}

/// Of the same values, those that can stand among others on a line: as the reason of a node that the operator says is
/// down, and on the node's own line before another pair.
pub(crate) async fn values_on_lines_with_several_keys_are_read_back(version: SlurmVersion) -> Result<()> {
    let bench = Bench::start(version).await?;
    let mut file = ConfFile::new(FileKind::Slurm, bench.release());
    let mut written = Vec::new();
    for value in samples(200, &awkward()) {
        let name = hosts(&format!("r{}", written.len()));
        let mut next = file.clone();
        let own = Extra::read(&format!("Reason=\"{value}\" Weight=7"), key::node::ALL, &[])
            .ok()
            .filter(|extra| extra.get("Reason") == Some(&value) && extra.get("Weight") == Some("7"));
        let line = NodeLine {
            state: Some(InitialState::Cloud),
            address: Some(hosts("10.77.9.9")),
            ..NodeLine::new(name.clone())
        };
        let is_own = own.is_some();
        if let Some(extra) = own {
            next.line(NodeLine { state: Some(InitialState::Down), extra, ..line });
        } else {
            let reason = Some(value.clone());
            next.line(line).line(DownNodesLine { nodes: name, state: Some(InitialState::Down), reason });
        }
        if next.render().is_ok() {
            file = next;
            written.push((value, is_own));
        }
    }
    for place in [true, false] {
        let count = written.iter().filter(|(_, own)| *own == place).count();
        ensure!(count > 24, "only {count} of the values can be written");
    }
    put_base(&bench, &site(), &file.render()?)?;
    let answer = bench.ask("scontrol --oneliner show node").await?;
    for (number, (value, own)) in written.iter().enumerate() {
        let line = answer.lines().find(|line| line.starts_with(&format!("NodeName=r{number} ")));
        let line = line.with_context(|| format!("no node r{number} in\n{answer}"))?;
        let (_, shown) = line.split_once(" Reason=").with_context(|| format!("no reason in {line}"))?;
        // Behind that of DownNodes stands who gave it and when.
        let shown = if *own { Some(shown) } else { shown.rsplit_once(" [").map(|(shown, _)| shown) };
        assert_eq!(shown, Some(value.as_str()), "{line}");
        ensure!(!own || line.contains(" Weight=7 "), "{line}");
    }
    Ok(())
}

/// Lines as users write them, good and bad, of keys that may be there several times.
fn lines() -> impl Strategy<Value = String> {
    let piece = proptest::sample::select(vec![
        "Epilog=",
        "Epilog = ",
        "epilog+=",
        " Epilog=",
        "a",
        "b",
        " ",
        "\t",
        "\"",
        "\"\"",
        "#",
        "\\",
        "\\\\",
        "\\\n",
        "\n",
        "\r\n",
        "\n",
        "=",
        "MailDomain=1",
        "DownNodes=x ",
        "State=DOWN",
        "Reason=",
        "\nEpilog=",
        "\nEpilog=\"",
        "\" \n",
    ]);
    proptest::collection::vec(piece, 1..40).prop_map(|pieces| pieces.concat() + "\n")
}

pub(crate) async fn faults_are_those_that_slurm_finds(version: SlurmVersion) -> Result<()> {
    let bench = Bench::start(version).await?;
    put_base(&bench, &site(), "")?;
    let texts = samples(150, &lines());
    for (number, text) in texts.iter().enumerate() {
        bench.file(&format!("texts/{number}"), &format!("{text}# end\n"))?;
    }
    // A program that only reads the file: it says what is wrong and with which line.
    let script = "for text in texts/*; do cp slurm_base.conf.noedit all.conf; echo \"include /case/$text\" >> all.conf
echo \"@ ${text#texts/}\"; SLURM_CONF=/case/all.conf timeout 2 slurmd -G -N worker-0 2>&1 >/dev/null | grep 'Parse error in file /case/texts'; done";
    let said = bench.shell(script).await?;
    let mut faulty = vec![BTreeSet::new(); texts.len()];
    let mut current = 0;
    for line in said.lines() {
        if let Some(number) = line.strip_prefix("@ ") {
            current = number.parse::<usize>()?;
        } else if let Some((_, rest)) = line.split_once(" line ") {
            let number = rest.split(':').next().unwrap_or_default().parse::<usize>()?;
            faulty[current].insert(number);
        }
    }
    let mut with_faults = 0;
    for (number, text) in texts.iter().enumerate() {
        let document = Document::read(FileKind::Slurm, &format!("{text}# end\n"));
        // Of an unknown key Slurm does not say the line.
        let ours: BTreeSet<usize> = document
            .check(bench.release())
            .into_iter()
            .filter(|finding| finding.severity == Severity::Error)
            .filter(|finding| !finding.message.contains(" is not a key of slurm.conf"))
            // That is not the parser's to say.
            .filter(|finding| !finding.message.contains("the value of State "))
            .map(|finding| finding.line)
            .collect();
        assert_eq!(ours, faulty[number], "lines of {text:?}: {:?}", document.faults().collect::<Vec<_>>());
        with_faults += usize::from(!ours.is_empty());
    }
    ensure!((30..140).contains(&with_faults), "{with_faults} texts with faults say little");

    // And what is no fault has the value that Slurm reads.
    let good: Vec<Document> = texts
        .iter()
        .map(|text| Document::read(FileKind::Slurm, text))
        .filter(|document| {
            document.check(bench.release()).iter().all(|found| found.severity != Severity::Error)
        })
        .collect();
    let text: String = good.iter().map(Document::text).collect();
    let text = text
        .lines()
        .filter(|line| !line.contains("DownNodes"))
        .fold(String::new(), |all, line| all + line + "\n");
    let document = Document::read(FileKind::Slurm, &text);
    ensure!(document.faults().next().is_none());
    put_base(&bench, &site(), &text)?;
    let shown = shown_values(&bench.ask("scontrol show config").await?);
    assert_eq!(shown, document.get_all(MANY.name).collect::<Vec<_>>());
    Ok(())
}

/// A value that the kind takes.
pub(super) fn sample(kind: Kind) -> &'static str {
    match kind {
        Kind::U16 | Kind::U32 | Kind::U64 | Kind::Float | Kind::Ports => "1",
        Kind::Time | Kind::Seconds => "1",
        Kind::YesNo => "yes",
        Kind::NodeState => "UNKNOWN",
        Kind::OneOf(words) => words.first().unwrap_or(&"x"),
        Kind::Share => "NO",
        Kind::Preempt => "OFF",
        Kind::Text | Kind::Each | Kind::Hosts | Kind::Line(_) | Kind::HostsLine(_) | Kind::SwitchLine(_) => {
            "x"
        }
    }
}

/// Every key of a file, each on a line, and one that nobody knows.
fn every_key(file: FileKind) -> String {
    let mut text = "Banana=1\n".to_owned();
    for key in file.keys() {
        let line = format!("{}={}", key.name, sample(key.kind));
        match key.kind.line() {
            Some(keys) => {
                text += &keys
                    .iter()
                    .map(|more| format!("{line} {}={}\n", more.name, sample(more.kind)))
                    .collect::<String>();
            }
            None => text += &format!("{line}\n"),
        }
    }
    text
}

/// What the tables say that a release does not know.
fn unknown_keys(file: FileKind, release: Release) -> BTreeSet<String> {
    let all = file.keys().iter().flat_map(|key| {
        let more = key.kind.line().unwrap_or_default();
        let known = key.support.is_known_in(release);
        // Of a line that is not known nothing else is looked at.
        [*key].into_iter().chain(more.iter().copied().filter(move |_| known))
    });
    let unknown = all.filter(|key| !key.support.is_known_in(release)).map(|key| key.name.to_owned());
    unknown.chain(["Banana".to_owned()]).collect()
}

pub(crate) async fn each_release_knows_the_keys_that_the_tables_say(version: SlurmVersion) -> Result<()> {
    let bench = Bench::start_with_accounting(version).await?;
    let release = bench.release();
    let base = base(&bench)?;
    for file in FileKind::ALL {
        // Each plugin of MPI reads over the keys of the others; see the test of its file.
        if file == FileKind::Mpi {
            continue;
        }
        bench.clear()?;
        let topology = if file == FileKind::Block { "topology/block" } else { "topology/tree" };
        let here = base
            .replace("SlurmctldHost=slurmctld", "SlurmctldHost=slurmdbd")
            .replace("topology/tree", topology);
        let private = match version {
            SlurmVersion::V24_11 => "JobContainerType=job_container/tmpfs\n",
            SlurmVersion::V26_05 => "NamespaceType=namespace/tmpfs\n",
        };
        bench.file("slurm.conf", &(here + if file == FileKind::JobContainer { private } else { "" }))?;
        bench.file("gres.conf", &gres(release)?)?;
        bench.file("topology.conf", &examples::tree(release).render()?)?;
        if file == FileKind::Slurm {
            bench.file("slurm.conf", &every_key(file))?;
        } else {
            bench.file(file.file_name(), &every_key(file))?;
        }
        let reader = match file {
            FileKind::Slurm => "scontrol show config",
            FileKind::Slurmdbd => {
                "chown -R slurm .; timeout 5 setpriv --reuid slurm --clear-groups slurmdbd -D"
            }
            FileKind::Gres => "timeout 5 slurmd -G -N worker-0",
            FileKind::JobContainer => "timeout 5 slurmd -D -N worker-0",
            FileKind::Cgroup | FileKind::Mpi | FileKind::Tree | FileKind::Block => "timeout 5 slurmctld -D",
        };
        let said = bench.shell(reader).await?;
        let unknown: BTreeSet<String> = said
            .lines()
            .filter_map(|line| Some(line.split_once("unrecognized key: ")?.1.trim().to_owned()))
            .collect();
        assert_eq!(unknown, unknown_keys(file, release), "{file:?}: {said}");
    }
    Ok(())
}

/// What daemons show among their keys and read from no file.
const NO_KEYS: [&str; 9] = [
    "BOOT_TIME",
    "HASH_VAL",
    "JobDefaults",
    "MULTIPLE_SLURMD",
    "NEXT_JOB_ID",
    "SLURM_CONF",
    "SLURM_VERSION",
    "SLURMDBD_CONF",
    "SLURMDBD_VERSION",
];

/// What is shown as a key and is none of these files in this release.
pub(super) fn not_in_the_tables(shown: &str, files: &[FileKind], release: Release) -> BTreeSet<String> {
    let names = shown.lines().filter_map(|line| line.split_once(" = ")).map(|(name, _)| name.trim_end());
    let keys = names.map(|name| name.split('[').next().unwrap_or_default());
    let known = |name: &str| {
        let mut found = files.iter().filter_map(|file| file.key(name));
        found.any(|key| key.support.is_known_in(release)) || NO_KEYS.contains(&name)
    };
    keys.filter(|name| !name.contains([' ', ':']) && !known(name)).map(str::to_owned).collect()
}

pub(crate) async fn every_key_that_is_shown_is_in_the_tables(version: SlurmVersion) -> Result<()> {
    let bench = Bench::start(version).await?;
    // Without something that uses it, nobody reads cgroup.conf.
    put_base(&bench, &Site { proctrack: "proctrack/cgroup", ..site() }, "")?;
    let shown = bench.ask("scontrol show config").await?;
    for shown_at_all in ["ClusterName ", "SlurmctldHost[0] ", "CgroupPlugin "] {
        ensure!(shown.contains(shown_at_all), shown);
    }
    let files = [FileKind::Slurm, FileKind::Cgroup, FileKind::Mpi];
    assert_eq!(not_in_the_tables(&shown, &files, bench.release()), BTreeSet::new(), "{shown}");
    Ok(())
}
