//! What holds for any value and any text, and what a file refuses.

use proptest::prelude::*;

use super::keys::{slurm as key, slurmdbd};
use super::{Below, GresLine, HostExpr, SwitchLine};
use super::{
    ConfFile, Document, Extra, ExtraError, Feature, FileKind, InitialState, NodeLine, NodeSetLine,
    OverSubscribe, PartitionLine, PartitionNodes, Release, Severity, Word, check_invariants,
};

/// What the fuzzer starts from: each piece of the grammar, and what once was read wrong.
const SEEDS: &[&[u8]] = &[
    b"",
    b"ClusterName=a\nSlurmctldHost=h(1.2.3.4)\n",
    b"# comment \\\nKillWait = 30 # more\n",
    b"NodeName=n[1-9] Reason=\"a b\" \\\n State=DOWN\n",
    b"StoragePass=\"a \\# \\\\ b\"\r\n",
    b"include a.conf\n Include b\nINCLUDE\tc d\n",
    b"PartitionName=a Nodes=\"\" Default=YES\n",
    b"A=\"b\"c\nB=\"a b\"c\nC=\"\nD==\nE+=1\n",
    b"A=1\\",
    b"A=\"x\xe2\x80\x83y\"z\n\xff=\x00\n",
    b"include \"a\\#b\"\n",
    b"A=a\"\xe2\x80\x83b\nB=\\\"a\\\"\n",
    b"include a# b c\n# \x07\x1b\nNodeName=n[1-3]\nNodeName=n2 State=CLOUD\nNodeName=ALL\n",
    b"NodeSet=n1 Feature=a=b\nNodeName=n[1-2] NodeAddr=a[1-3] Port=1-2\nPartitionName=a State=UP Shared=FORCE:2\n",
    b"Features=a Gres+=gpu:1 Reason=\"a b\" Port=7000-7001 features=b",
    b"AuthAltParameters=jwks=/x\nPreemptMode=GANG,SUSPEND\nSwitchName=s18446744073709551616\n",
    b"PartitionName=a\nPartitionName=a\nNodeName=DEFAULT NodeAddr=x\nFastSchedule=0\n",
];

#[test]
fn a_fixed_number_of_damaged_texts_keeps_every_promise() {
    testkit::mutate::cases(SEEDS, 3_000, check_invariants);
}

/// Texts made of what matters to the grammar.
fn grammar() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => prop::sample::select(vec![
            "Key", "ClusterName", "NodeName", "State", "Prolog", "include ", "=", "+=", " ", "\t", "\n", "\r\n", "\\",
            "\\\n", "#", "\"", "\"\"", ",", "a", "0", "\u{2003}", "\0", "\u{1}",
        ]).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn reader_and_writers_keep_their_promises(text in prop_oneof![3 => grammar(), 1 => any::<String>()]) {
        check_invariants(text.as_bytes());
    }
}

fn slurm() -> ConfFile {
    ConfFile::new(FileKind::Slurm, Release::V24_11)
}

fn refusal(file: &ConfFile) -> String {
    file.render().unwrap_err().to_string()
}

#[test]
fn a_key_without_a_value_is_refused_or_left_out_as_the_caller_says() {
    let empty = "write slurm.conf: LaunchParameters: the value is empty, which ends Slurm's daemons: leave the key out";
    assert_eq!(refusal(slurm().set(&key::LaunchParameters, "")), empty);
    assert_eq!(refusal(slurm().set(&key::LaunchParameters, Vec::new())), empty);
    let mut file = slurm();
    file.set_opt(&key::LaunchParameters, Some("")).set_opt(&key::KillWait, None::<u16>);
    assert_eq!(file.render().unwrap(), "");
}

#[test]
fn every_problem_is_named_and_no_value_is_shown() {
    let mut file = ConfFile::new(FileKind::Slurmdbd, Release::V24_11);
    file.set(&slurmdbd::StoragePass, "geheim\n").set(&slurmdbd::DbdPort, 70000);
    let error = file.render().unwrap_err();
    assert_eq!(error.problems.len(), 2);
    assert!(error.to_string().contains("StoragePass") && error.to_string().contains("DbdPort"), "{error}");
    assert!(!format!("{error} {error:?} {file:?}").contains("geheim"));
}

#[test]
fn what_a_release_does_not_read_is_refused() {
    for (file, expected) in [
        (slurm().set(&key::MetricsType, "metrics/openmetrics"), "MetricsType: known since 25.11"),
        (slurm().set(&key::TopologyPlugin, "topology/flat"), "TopologyPlugin: known since 25.05"),
        (slurm().set(&slurmdbd::StoragePass, "x"), "StoragePass: slurm.conf has no such key"),
        (slurm().set(&key::NodeName, "n1 State=DOWN"), "NodeName: it is a line with keys of its own"),
    ] {
        assert!(refusal(file).contains(expected), "{}", refusal(file));
    }
    let extra = Extra::read("AutoResume=no", key::node::ALL, &[]).unwrap();
    let mut file = ConfFile::new(FileKind::Slurm, Release::V26_05);
    let node = NodeLine { extra, ..NodeLine::new(HostExpr::new("n1").unwrap()) };
    assert!(refusal(file.line(node)).contains("known to no release of stock Slurm"));
}

#[test]
fn a_line_without_its_name_is_refused() {
    let mut file = ConfFile::new(FileKind::Gres, Release::V26_05);
    assert!(refusal(file.line(GresLine::default())).contains("Name: the value is empty"));
}

#[test]
fn a_switch_with_a_name_that_ends_slurmctld_is_refused() {
    let switch = |name: &str| {
        let mut file = ConfFile::new(FileKind::Tree, Release::V26_05);
        let name = Word::new(name).unwrap();
        file.line(SwitchLine { name, below: Below::Nothing, link_speed: None })
            .render()
            .map_err(|error| error.to_string())
    };
    let unknown = format!("{}.unknown", "f".repeat(63));
    assert!(
        switch(&unknown).is_err_and(|error| error.contains("SwitchName: the value is longer than 64 bytes"))
    );
    assert!(switch("leaf99999999999999999999").is_err());
    assert!(switch(&unknown[7..]).is_ok());
}

#[test]
fn a_name_that_slurm_takes_for_something_else_is_refused() {
    let line = |name: &str| PartitionLine::new(Word::new(name).unwrap());
    assert!(refusal(slurm().line(line("default"))).contains("the defaults of all lines after it"));
    assert_eq!(slurm().line(line("DEFAULT")).render().unwrap(), "PartitionName=DEFAULT\n");
    let mut file = ConfFile::new(FileKind::Gres, Release::V26_05);
    let extra = Extra::read("name=nic", super::keys::gres::line::ALL, &[]).unwrap();
    let line = GresLine { name: Word::new("gpu").ok(), extra, ..GresLine::default() };
    assert!(
        refusal(file.line(line))
            .contains("Name on the line Name=gpu: it is the first key of the line already")
    );
}

#[test]
fn a_users_pairs_win_over_ours_and_some_are_not_theirs() {
    let read = |text| Extra::read(text, key::node::ALL, &[key::node::NodeAddr]);
    let node = NodeLine {
        cpus: Some(1),
        weight: Some(2),
        extra: read("cpus=8 Gres=gpu:2").unwrap(),
        ..NodeLine::new(HostExpr::new("n1").unwrap())
    };
    assert_eq!(slurm().line(node).render().unwrap(), "NodeName=n1 Weight=2 CPUs=8 Gres=gpu:2\n");
    assert_eq!(read("nodeaddr=x"), Err(ExtraError::Owned("nodeaddr".into())));
    let procs = Extra::read("Procs=8", key::node::ALL, &[key::node::CPUs]);
    assert_eq!(procs, Err(ExtraError::Owned("Procs".into())));
    assert_eq!(read("Banana=x"), Err(ExtraError::UnknownKey("Banana".into())));
    for text in ["CPUs=8 # x", "CPUs=8\nKillWait=1", "CPUs=8\\"] {
        assert_eq!(read(text), Err(ExtraError::NotOneLine), "{text:?}");
    }
    assert!(matches!(read("CPUs="), Err(ExtraError::Fault(_))));
    assert!(matches!(read("hello"), Err(ExtraError::Fault(_))));
    assert!(read(" ").unwrap().is_empty());
}

#[test]
fn a_users_pairs_win_also_in_other_words() {
    let node = NodeLine {
        cpus: Some(1),
        features: vec![Feature::new("ours").unwrap()],
        extra: Extra::read("Procs=8 Features=theirs", key::node::ALL, &[]).unwrap(),
        ..NodeLine::new(HostExpr::new("n1").unwrap())
    };
    let partition = PartitionLine {
        over_subscribe: Some(OverSubscribe::No),
        extra: Extra::read("Shared=YES", key::partition::ALL, &[]).unwrap(),
        ..PartitionLine::new(Word::new("p").unwrap())
    };
    let written = slurm().line(node).line(partition).render().unwrap();
    assert_eq!(written, "NodeName=n1 Procs=8 Features=theirs\nPartitionName=p Shared=YES\n");

    let device = GresLine {
        name: Word::new("gpu").ok(),
        file: HostExpr::new("/dev/a").ok(),
        cores: vec![Word::new("0").unwrap()],
        extra: Extra::read("MultipleFiles=/dev/b[1-2] CPUs=1", super::keys::gres::line::ALL, &[]).unwrap(),
        ..GresLine::default()
    };
    let mut file = ConfFile::new(FileKind::Gres, Release::V26_05);
    assert_eq!(file.line(device).render().unwrap(), "Name=gpu MultipleFiles=/dev/b[1-2] CPUs=1\n");
}

#[test]
fn what_a_caller_sets_itself_is_taken_out_of_a_users_pairs() {
    let text = "\n  Gres=gpu:nvidia_h100:8 Boards=1 State=UNKNOWN\tfeature=dropme State=DOWN\r\n\n";
    let mut extra = Extra::read(text, key::node::ALL, &[]).unwrap();
    assert_eq!(extra.take(&[key::node::State, key::node::Feature]), ["State", "Feature", "State"]);
    let node = NodeLine { extra, ..NodeLine::new(HostExpr::new("n1").unwrap()) };
    assert_eq!(slurm().line(node).render().unwrap(), "NodeName=n1 Gres=gpu:nvidia_h100:8 Boards=1\n");
}

#[test]
fn all_of_a_users_pairs_are_listed_and_checked() {
    let extra =
        Extra::read("Features=a Weight+=2 features=b CPUs=x AutoResume=no", key::node::ALL, &[]).unwrap();
    let pairs: Vec<_> = extra.iter().collect();
    assert_eq!(
        pairs,
        [("Features", "a"), ("Weight", "2"), ("Features", "b"), ("CPUs", "x"), ("AutoResume", "no")]
    );
    assert_eq!(extra.get("FEATURES"), Some("b"));
    let findings = extra.check(FileKind::Slurm, Release::V26_05);
    let said: Vec<_> = findings.iter().map(|found| (found.severity, &*found.message)).collect();
    assert_eq!(
        said,
        [
            (Severity::Warning, "Slurm reads Weight+= as Weight=: write the whole value after a plain ="),
            (Severity::Error, "the value of CPUs is not a whole number from 0 to 65535"),
            (
                Severity::Error,
                "AutoResume is known to no release of stock Slurm, and Slurm 26.05 does not start with it: remove it"
            ),
        ]
    );
}

#[test]
fn what_a_caller_sets_itself_is_taken_out_also_in_other_words() {
    let mut extra = Extra::read("Features=dropme Weight=2", key::node::ALL, &[]).unwrap();
    assert_eq!(extra.take(&[key::node::Feature]), ["Features"]);
    let features = vec![Feature::new("cpu").unwrap()];
    let node = NodeLine { features, extra, ..NodeLine::new(HostExpr::new("n1").unwrap()) };
    assert_eq!(slurm().line(node).render().unwrap(), "NodeName=n1 Feature=cpu Weight=2\n");
    let mut extra = Extra::read("shared=YES Default=NO", key::partition::ALL, &[]).unwrap();
    assert_eq!(extra.take(&[key::partition::OverSubscribe]), ["Shared"]);
}

#[test]
fn what_ends_slurmctld_is_not_written() {
    let node = |name: &str| NodeLine::new(HostExpr::new(name).unwrap());
    let external = || NodeLine { state: Some(InitialState::External), ..node("n1") };
    let set = |name: &str| NodeSetLine { name: Word::new(name).unwrap(), nodes: None, feature: None };
    let nodes = |nodes: &str| PartitionLine {
        nodes: HostExpr::new(nodes).ok().map(PartitionNodes::Some),
        ..PartitionLine::new(Word::new("p").unwrap())
    };
    let sharing =
        |share| PartitionLine { over_subscribe: Some(share), ..PartitionLine::new(Word::new("p").unwrap()) };
    let removed = "known to no release of stock Slurm";
    for (file, expected) in [
        (slurm().line(external()), "State on the line NodeName=n1: known since 25.05"),
        (slurm().line(node("All")), "NodeName: this name stands for all nodes"),
        (
            slurm().line(NodeLine { address: HostExpr::new("w-[0-2].svc").ok(), ..node("w-[0-3]") }),
            "NodeAddr on the line NodeName=w-[0-3]: there are 3 of it for 4 nodes",
        ),
        (
            slurm().line(NodeLine { port: Some(0), ..node("n1") }),
            "Port on the line NodeName=n1: the value is no port from 1 to 65535",
        ),
        (slurm().line(set("all")), "NodeSet: this name stands for all nodes"),
        (
            slurm().line(nodes("All")),
            "Nodes on the line PartitionName=p: Slurm would take this name for all nodes",
        ),
        (
            slurm().line(node("n[1-2]")).line(set("n2")),
            "NodeSet=n2: n2 is the name of a node and of a set of nodes, and no daemon",
        ),
        (
            slurm().line(NodeLine { address: HostExpr::new("a").ok(), ..node("DEFAULT") }),
            "NodeAddr on the line NodeName=DEFAULT: slurmctld does not start with it among the defaults",
        ),
        (
            slurm().line(sharing(OverSubscribe::Yes(Some(1)))),
            "OverSubscribe on the line PartitionName=p: the value is none",
        ),
        (slurm().line(sharing(OverSubscribe::Force(Some(0)))), "FORCE:n from 1 on"),
        (slurm().set(&key::AccountingStoreJobComment, true), removed),
        (slurm().set(&key::AccountingStorageLoc, "x"), removed),
        (slurm().set(&key::SallocDefaultCommand, "x"), removed),
        (slurm().set(&key::FastSchedule, 0), removed),
    ] {
        assert!(refusal(file).contains(expected), "{}", refusal(file));
    }
    let mut file = ConfFile::new(FileKind::Slurm, Release::V25_05);
    assert_eq!(file.line(external()).render().unwrap(), "NodeName=n1 State=EXTERNAL\n");
}

#[test]
fn a_users_text_with_faults_is_refused_with_the_line() {
    let user = Document::read(FileKind::Slurm, "KillWait=1\nWaitTime=\n");
    let error = refusal(slurm().text(&user));
    assert!(error.contains("line 2 of the text: WaitTime has no value"), "{error}");
    let other = Document::read(FileKind::Cgroup, "ConstrainCores=yes\n");
    assert!(refusal(slurm().text(&other)).contains("this text is for cgroup.conf"));
}
