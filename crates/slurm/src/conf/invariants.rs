//! What must hold for any bytes that are read as a file, and for any text that is given to a writer. The fuzz target and
//! the tests call it.

use super::document::{self, Document, Setting};
use super::file::ConfFile;
use super::hosts::HostExpr;
use super::keys::{FileKind, Kind, slurm as key, slurmdbd};
use super::line::{ConfLine, Extra};
use super::lines::{
    DownNodesLine, JobContainerLine, Location, NodeLine, PartitionLine, PartitionNodes, PowerActionLine,
};
use super::plugstack::{PlugStack, Plugin, check_plugstack};
use super::release::Release;
use super::value::{Options, Value, Word};

/// Panics if a promise of the reader or of a writer is broken.
#[doc(hidden)]
pub fn check_invariants(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for file in FileKind::ALL {
        let document = Document::read(file, &text);
        reading_is_stable(&document);
        nothing_is_lost(&document, &text);
        for release in [Release::V24_11, Release::V26_05] {
            let findings = document.check_all(release);
            assert!(findings.is_sorted_by_key(|finding| finding.line), "findings out of order");
        }
        a_text_without_faults_stays_apart(&document);
    }
    a_value_stays_in_its_line(&text);
    a_line_has_the_keys_that_were_set(&text);
    a_users_pairs_stay_on_their_line(&text);
    nothing_but_comments_and_includes(&text);
    plugins_stay_apart(&text);
}

fn meaning(document: &Document) -> (Vec<&Setting>, Vec<&str>) {
    let settings = document.settings().map(|(_, setting)| setting).collect();
    (settings, document.includes().map(|(_, path)| path).collect())
}

fn reading_is_stable(document: &Document) {
    let canonical = document.canonical();
    let again = Document::read(document.kind(), &canonical);
    assert_eq!(again.faults().next(), None, "a fault in what was written");
    assert_eq!(meaning(document), meaning(&again), "another meaning when written and read");
    assert_eq!(canonical, again.canonical(), "written differently the second time");
}

fn nothing_is_lost(document: &Document, text: &str) {
    let kept = document.text();
    assert_eq!(kept.strip_suffix('\n').unwrap_or(&kept), text.strip_suffix('\n').unwrap_or(text));
    assert_eq!(&Document::read(document.kind(), &kept), document, "another document when read again");
}

/// What stands before and after a user's text means the same as without it.
fn a_text_without_faults_stays_apart(document: &Document) {
    let Some(key) = document.kind().keys().iter().find(|key| matches!(key.kind, Kind::Text)) else { return };
    let mut file = ConfFile::new(document.kind(), RELEASE);
    let text = file.set(key, "before").text(document).set(key, "after").render();
    assert_eq!(text.is_ok(), document.faults().next().is_none(), "only a fault keeps a text out");
    let Ok(text) = text else { return };
    let whole = Document::read(document.kind(), &text);
    let (settings, includes) = meaning(&whole);
    let (theirs, their_includes) = meaning(document);
    assert_eq!(settings.len(), theirs.len() + 2, "a setting more or less");
    assert_eq!(includes, their_includes);
    assert_eq!(whole.get(key.name), Some("after"), "the text swallowed what came after it");
}

const RELEASE: Release = Release::V26_05;

/// The one setting of a file that was written, with the value that was given.
fn a_value_stays_in_its_line(text: &str) {
    let values = [
        Value::from(text),
        Value::from([text, "after"]),
        Options::new().with("before", "x").flag(text).into(),
        Options::new().with(text, "x").with("after", text).into(),
    ];
    for value in values {
        let mut file = ConfFile::new(FileKind::Slurmdbd, RELEASE);
        let Ok(written) = file.set(&slurmdbd::StoragePass, value.clone()).render() else { continue };
        let document = Document::read(FileKind::Slurmdbd, &written);
        assert_eq!(document.lines().len(), 1, "a value made another line");
        assert_eq!(
            document.get("StoragePass").map(str::to_owned),
            value.text(Kind::Text).ok(),
            "another value"
        );
        assert_eq!(document.check(RELEASE), [], "a written value has findings");
    }
}

/// Any text in each place of a line that takes one.
fn a_line_has_the_keys_that_were_set(text: &str) {
    let given = || text.to_owned();
    let container = |nodes| JobContainerLine {
        nodes,
        base_path: given(),
        auto_base_path: None,
        dirs: vec![given()],
        shared: None,
        init_script: Some(given()),
        extra: Extra::default(),
    };
    let mut lines: Vec<(FileKind, ConfLine, &[&str])> =
        vec![(FileKind::JobContainer, container(None).into(), &["Dirs", "InitScript"])];
    let hosts = HostExpr::new(text);
    for nodes in [&HostExpr::new("n1"), &hosts].into_iter().flatten().cloned() {
        let node = NodeLine { gres: vec![given()], ..NodeLine::new(nodes.clone()) };
        lines.push((FileKind::Slurm, node.into(), &["Gres"]));
        let private = container(Some(nodes.clone()));
        lines.push((FileKind::JobContainer, private.into(), &["BasePath", "Dirs", "InitScript"]));
        let down = DownNodesLine { nodes, state: None, reason: Some(given()) };
        lines.push((FileKind::Slurm, down.into(), &["Reason"]));
    }
    if let Ok(word) = Word::new(text) {
        let action = PowerActionLine { name: word.clone(), location: Location::Slurmd, program: given() };
        lines.push((FileKind::Slurm, action.into(), &["Location", "Program"]));
        let nodes = hosts.map_or(PartitionNodes::None, PartitionNodes::Some);
        let partition = PartitionLine { nodes: Some(nodes), ..PartitionLine::new(word) };
        lines.push((FileKind::Slurm, partition.into(), &["Nodes"]));
    }
    for (kind, line, keys) in lines {
        let mut file = ConfFile::new(kind, RELEASE);
        let Ok(written) = file.line(line).render() else { continue };
        let document = Document::read(kind, &written);
        assert_eq!(document.lines().len(), 1, "a line became several: {written:?}");
        let pairs: Vec<_> = document.settings().flat_map(|(_, setting)| &setting.more).collect();
        let found: Vec<&str> = pairs.iter().map(|pair| &*pair.key).collect();
        // A value that is empty is left out.
        assert!(found == keys || text.is_empty(), "other keys: {written:?}");
        let theirs = pairs.iter().filter(|pair| pair.key != "Location" && !pair.value.is_empty());
        theirs.for_each(|pair| assert_eq!(pair.value, text, "another value: {written:?}"));
    }
}

fn a_users_pairs_stay_on_their_line(text: &str) {
    let (Ok(extra), Ok(nodes)) =
        (Extra::read(text, key::node::ALL, &[key::node::NodeAddr]), HostExpr::new("n1"))
    else {
        return;
    };
    let node = NodeLine { extra: extra.clone(), ..NodeLine::new(nodes) };
    if let Ok(conf) = node.clone().slurmd_conf(RELEASE) {
        let pairs = document::pairs(&conf).unwrap_or_default();
        let pairs: Vec<_> = pairs.iter().map(|pair| (&*pair.key, &*pair.value)).collect();
        let ours: Vec<(&str, &str)> = extra.iter().collect();
        assert_eq!(pairs, ours, "other pairs for slurmd: {conf:?}");
    }
    let mut file = ConfFile::new(FileKind::Slurm, RELEASE);
    let Ok(written) = file.line(node).render() else { return };
    let document = Document::read(FileKind::Slurm, &written);
    assert_eq!(document.lines().len(), 1, "pairs became lines: {written:?}");
    assert_eq!(document.get("NodeName"), Some("n1"));
    let pairs = document.settings().flat_map(|(_, setting)| &setting.more);
    assert!(
        pairs.filter(|pair| pair.key == "NodeAddr").count() == 0,
        "a key that is not the user's: {written:?}"
    );
}

fn nothing_but_comments_and_includes(text: &str) {
    let mut file = ConfFile::new(FileKind::Slurm, RELEASE);
    if let Ok(written) = file.comment(text).set(&key::KillWait, 1).render() {
        let document = Document::read(FileKind::Slurm, &written);
        assert_eq!(document.canonical(), "KillWait=1\n", "a comment says something: {written:?}");
        assert_eq!(document.faults().next(), None, "{written:?}");
    }
    let mut file = ConfFile::new(FileKind::Slurm, RELEASE);
    if let Ok(written) = file.include(text).set(&key::KillWait, 1).render() {
        let document = Document::read(FileKind::Slurm, &written);
        assert_eq!(document.includes().collect::<Vec<_>>(), [(1, text)], "another file");
        assert_eq!(document.get("KillWait"), Some("1"));
    }
}

fn plugins_stay_apart(text: &str) {
    let word = || text.to_owned();
    for plugin in [
        Plugin { required: true, path: word(), args: vec!["x".to_owned()] },
        Plugin { required: true, path: "x".to_owned(), args: vec![word()] },
    ] {
        let Ok(written) = PlugStack::new().comment(text).plugin(&plugin).render() else { continue };
        let expected = format!("required {} {}\n", plugin.path, plugin.args.concat());
        let lines: Vec<&str> = written.split_inclusive('\n').filter(|line| !line.starts_with('#')).collect();
        assert_eq!(lines, [expected], "a plugin more or less");
        assert_eq!(check_plugstack(&written), []);
    }
    if let Ok(written) = PlugStack::new().include(text).render() {
        assert_eq!(written, format!("include {text}\n"));
        assert_eq!(written.split_ascii_whitespace().count(), 2);
    }
}
