//! Times and host lists of a user's text: what ends slurmctld is said before, and so is what it takes for something else.

use anyhow::{Context, Result, ensure};
use slurm::conf::{Document, FileKind, Severity};
use testkit::cache::SlurmVersion;

use super::bench::{Bench, Run};
use super::{examples, put_base, site};

/// What slurmctld says when it ends, or None where it starts all the same.
type Ends = Option<&'static str>;

const LINES: &[(&str, Ends)] = &[
    ("NodeName=z[1- State=CLOUD", Some("Unable to create NodeAddr list")),
    ("NodeName=z[5-3] State=CLOUD", Some("Unable to create NodeAddr list")),
    ("NodeName=z[1,] State=CLOUD", Some("Unable to create NodeAddr list")),
    ("NodeName=z[0-65536] State=CLOUD", Some("Unable to create NodeAddr list")),
    ("NodeName=z[1-2] NodeAddr=10.0.0.[1- State=CLOUD", Some("Unable to create NodeAddr list")),
    ("PartitionName=q Nodes=z[1-", Some("Invalid node names in partition q")),
    ("PartitionName=q MaxTime=30m", Some("Bad value")),
    ("PartitionName=q MaxTime=NONE", Some("Bad value")),
    ("PartitionName=q DefaultTime=99999999999", Some("Bad value")),
    ("PriorityMaxAge=soon", Some("Bad value")),
    ("SuspendTime=4294967296", Some("Bad value")),
    ("NodeName=z[1-4] NodeAddr=10.0.0.[1-3] State=CLOUD", Some("NodeAddr count must equal")),
    ("NodeName=z[1-4] NodeAddr=\"\" State=CLOUD", Some("NodeAddr count must equal")),
    (
        "NodeName=z[1-4] NodeAddr=10.0.0.1 NodeHostname=y[1-2] State=CLOUD",
        Some("NodeHostname count must equal"),
    ),
    ("NodeName=z[1-4] BcastAddr=10.0.0.[1-5] State=CLOUD", Some("BcastAddr count must equal")),
    ("NodeName=z[1-4] Port=7000-7001 State=CLOUD", Some("Port count must equal")),
    ("NodeName=z1 Port=0 State=CLOUD", Some("Invalid Port")),
    ("NodeName=z1 Port=abc State=CLOUD", Some("Invalid Port")),
    ("NodeName=z1 Port=65536 State=CLOUD", Some("Invalid Port")),
    ("PartitionName=q State=ENABLED", Some("Bad value")),
    ("PartitionName=q State=\"\"", Some("Bad value")),
    ("PartitionName=q OverSubscribe=TRUE", Some("Bad value")),
    ("PartitionName=q Shared=2", Some("Bad value")),
    ("PreemptMode=CANCEL,REQUEUE", Some("PreemptMode=CANCEL,REQUEUE invalid")),
    ("PreemptMode=GANG,WITHIN", Some("PreemptMode=GANG,WITHIN invalid")),
    ("PreemptMode=BANANA", Some("PreemptMode=BANANA invalid")),
    ("PartitionName=q SelectTypeParameters=CR_CPU", Some("Bad value")),
    ("PartitionName=q Exclusive=YES", Some("Exclusive")),
    // Taken for a mode that there is not, for UP, for CR_Core, for NO and for another number.
    ("PartitionName=q PreemptMode=ENABLED", None),
    ("PartitionName=q State=UPP", None),
    ("PartitionName=q SelectTypeParameters=CR_Core_Memori", None),
    ("PartitionName=q OverSubscribe=YES:1", None),
    ("PartitionName=q OverSubscribe=FORCE:32768", None),
    // Taken for z5, for nothing, and for `z]`.
    ("NodeName=z[5-] State=CLOUD", None),
    ("DownNodes=z[1-", None),
    ("NodeName=z] State=CLOUD", None),
    // Taken for 10 seconds.
    ("SuspendTime=10m", None),
    ("SuspendTime=10:00", None),
    // No power saving is INFINITE; this is 0, with which nodes are switched off as soon as they are idle.
    ("SuspendTime=UNLIMITED", None),
];

const GOOD: &str = "NodeName=y[1-4] NodeAddr=10.0.0.1 NodeHostname=x BcastAddr=10.0.0.9 Port=7000-7003 State=CLOUD\n\
                    NodeName=z[1-2] NodeAddr=10.0.0.[1-2] BcastAddr=10.0.0.3 Port=[7000,7002] State=CLOUD\n\
                    NodeName=z[3-4] NodeAddr=10.0.0.[1-2] Port=\"7000 7002\" State=CLOUD\nSuspendExcNodes=worker-[0-1]:1,static-0\nSuspendTime=none\nPreemptExemptTime=-1\nPriorityMaxAge=2-12\n\
                    PartitionName=DEFAULT SelectTypeParameters=cr_core_memory PreemptMode=gang,requeue\n\
                    PartitionName=r State=Inactive OverSubscribe=force:32767 PreemptMode=WITHIN,cluster\n\
                    PartitionName=s State=drain Shared=exclusive\nPartitionName=t SelectTypeParameters=CR_Socket\n\
                    PartitionName=q Nodes=switch{s1} MaxTime=Unlimited DefaultTime=90:30 SuspendTime=INFINITE\n";

pub(crate) async fn broken_times_and_host_lists_are_found(version: SlurmVersion) -> Result<()> {
    let bench = Bench::start(version).await?;
    for (line, ends) in LINES {
        let findings = Document::read(FileKind::Slurm, line).check(bench.release());
        ensure!(findings.iter().any(|found| found.severity == Severity::Error), "nothing is said of {line}");
        put_base(&bench, &site(), &format!("{line}\n"))?;
        let Run { log, answer } = bench.slurmctld("scontrol show config").await?;
        match ends {
            Some(says) => {
                ensure!(answer.is_none() && log.contains(says) && log.contains("fatal"), "{line}: {log}");
            }
            None => ensure!(answer.is_some(), "slurmctld does not start with {line}:\n{log}"),
        }
        if *line == "SuspendTime=UNLIMITED" {
            let answer = answer.context("no answer")?;
            ensure!(super::config(&answer).get("suspendtime").is_some_and(|time| time == "0 sec"), answer);
        }
    }
    let newer = match version {
        SlurmVersion::V24_11 => "",
        SlurmVersion::V26_05 => {
            "PartitionName=u Exclusive=Topo PreemptMode=priority,suspend\nPartitionName=v Exclusive=none\n"
        }
    };
    let good = format!("{GOOD}{newer}");
    assert_eq!(Document::read(FileKind::Slurm, &good).check(bench.release()), []);
    put_base(&bench, &site(), &good)?;
    let shown = bench.config().await?;
    assert_eq!(shown.get("suspendtime").map(String::as_str), Some("INFINITE"));
    Ok(())
}

/// Texts that end slurmctld, and what it says then.
const ENDS: &[(&str, &str)] = &[
    ("PartitionName=q Nodes=ALL\nPartitionName=q Nodes=ALL", "duplicate entry for partition q"),
    ("NodeName=z[1-3] State=CLOUD\nNodeName=y,z2 State=CLOUD", "Duplicated NodeName z2"),
    ("NodeName=z1,z1 State=CLOUD", "Duplicated NodeName z1"),
    ("NodeName=All State=CLOUD", "reserved word"),
    (
        "NodeName=z[1-3] State=CLOUD\nNodeSet=z2 Feature=x",
        "NodeSet with name z2 overlaps with an existing NodeName",
    ),
    (
        "NodeSet=z1 Nodes=z1\nNodeName=z1 State=CLOUD",
        "NodeSet with name z1 overlaps with an existing NodeName",
    ),
    ("NodeName=DEFAULT NodeAddr=10.77.9.9", "NodeAddr not allowed with NodeName=DEFAULT"),
    ("NodeName=default NodeHostname=x", "NodeHostname not allowed with NodeName=DEFAULT"),
    ("NodeName=DEFAULT BcastAddr=x", "BcastAddr not allowed with NodeName=DEFAULT"),
    ("NodeName=z1 NodeAddr=10.77.9.9 State=BANANA", "Invalid state BANANA"),
    ("NodeName=z1 NodeAddr=10.77.9.9 State=\"\"", "Invalid state"),
    ("FastSchedule=2", "FastSchedule option has been removed"),
    ("include more.conf# a note", "Parse error in file /case/slurm_extra.conf line 2"),
];

/// What looks like one of them and is none.
const STARTS: &str = "include more.conf # a note
# \u{1b}[1m\u{7}
FastSchedule=1
NodeName=DEFAULT CPUs=1
NodeName=DEFAULT RealMemory=10
NodeName=z[1-3],ALL State=CLOUD
NodeSet=Z2 Feature=x
NodeSet=z04 Feature=x
NodeSet=z04 Feature=y
NodeName=DEFAULT
NodeName=z[01-03],Z1 State=CLOUD
PartitionName=DEFAULT Nodes=ALL
PartitionName=q
PartitionName=DEFAULT State=UP
PartitionName=Q
PartitionName=ALL
";

pub(crate) async fn what_ends_slurmctld_within_one_text_is_found(version: SlurmVersion) -> Result<()> {
    let bench = Bench::start(version).await?;
    let errors = |text: &str| {
        let mut findings = Document::read(FileKind::Slurm, text).check(bench.release());
        findings.retain(|found| found.severity == Severity::Error);
        findings
    };
    for (text, says) in ENDS {
        ensure!(!errors(text).is_empty(), "nothing is said of {text}");
        put_base(&bench, &site(), &format!("{text}\n"))?;
        bench.file("more.conf", "KillWait=31\n")?;
        let Run { log, answer } = bench.slurmctld("").await?;
        ensure!(answer.is_none() && log.contains(says) && log.contains("fatal"), "{text}: {log}");
    }
    assert_eq!(errors(STARTS), []);
    put_base(&bench, &site(), STARTS)?;
    bench.file("more.conf", "KillWait=31\n")?;
    bench.ask("").await?;
    Ok(())
}

/// The words that the reader takes as the state of a node, and the one that came later.
pub(crate) async fn nodes_begin_in_the_states_that_are_let_through(version: SlurmVersion) -> Result<()> {
    let bench = Bench::start(version).await?;
    let words = [
        "unknown",
        "Cloud",
        "FUTURE",
        "DOWN",
        "IDLE",
        "DRAIN",
        "DRAINED",
        "DRAINING",
        "FAIL",
        "FAILING",
        "ALLOCATED",
        "MIXED",
    ];
    let line = |(node, word): (usize, &str)| format!("NodeName=z{node} NodeAddr=10.77.9.9 State={word}\n");
    let text: String = words.into_iter().enumerate().map(line).collect();
    assert_eq!(Document::read(FileKind::Slurm, &text).check(bench.release()), []);
    put_base(&bench, &site(), &text)?;
    bench.ask("").await?;

    put_base(&bench, &site(), &line((0, "ERROR")))?;
    let Run { log, answer } = bench.slurmctld("").await?;
    ensure!(answer.is_none() && log.contains("Invalid state ERROR"), log);

    let external = line((0, "EXTERNAL"));
    let findings = Document::read(FileKind::Slurm, &external).check(bench.release());
    put_base(&bench, &site(), &external)?;
    let Run { log, answer } = bench.slurmctld("").await?;
    assert_eq!(answer.is_some(), findings.is_empty(), "{findings:?} {log}");
    assert_eq!(answer.is_some(), version == SlurmVersion::V26_05, "{log}");
    Ok(())
}

/// What the merge keeps from slurmctld: a node that two lines name, and a partition that it takes for defaults.
pub(crate) async fn names_that_would_end_or_be_lost_are_guarded(version: SlurmVersion) -> Result<()> {
    let bench = Bench::start(version).await?;
    let (release, site) = (bench.release(), site());
    let merged = |text: &str| {
        let user = Document::read(FileKind::Slurm, text);
        let mut file = examples::base(release, &site);
        file.drop_overridden(&user);
        file.text(&user).render()
    };

    let some = "NodeName=worker-1 State=CLOUD\n";
    put_base(&bench, &site, some)?;
    let Run { log, answer } = bench.slurmctld("").await?;
    ensure!(answer.is_none() && log.contains("Duplicated NodeName worker-1"), log);
    ensure!(
        merged(some).is_err_and(|error| error.to_string().contains("own line for worker-1, see line 1,"))
    );

    let set = "NodeSet=worker-1 Feature=cpu\n";
    put_base(&bench, &site, set)?;
    let Run { log, answer } = bench.slurmctld("").await?;
    ensure!(answer.is_none() && log.contains("NodeSet with name worker-1 overlaps"), log);
    let said = bench.shell("scontrol show config; slurmd -G -N worker-0").await?;
    assert_eq!(said.matches("fatal").count(), 2, "{said}");
    ensure!(
        merged(set)
            .is_err_and(|error| error.to_string().contains("worker-1 is the name of a node and of a set"))
    );

    let all = "NodeName=worker-[2-3],worker-[0-1] CPUs=3 State=CLOUD\n";
    put_base(&bench, &site, "")?;
    bench.file("slurm_base.conf.noedit", &merged(all)?)?;
    let node = bench.ask("scontrol --oneliner show node worker-1").await?;
    ensure!(node.contains("CPUTot=3 "), node);

    put_base(
        &bench,
        &site,
        "NodeSet=All Nodes=static-0\nPartitionName=p Nodes=all\nPartitionName=q Nodes=All,worker-0\n",
    )?;
    let partitions =
        bench.ask("scontrol --oneliner show partition p; scontrol --oneliner show partition q").await?;
    let counts: Vec<&str> =
        partitions.split_whitespace().filter_map(|word| word.strip_prefix("TotalNodes=")).collect();
    assert_eq!(counts, ["6", "2"], "{partitions}");

    put_base(&bench, &site, "PartitionName=default Nodes=ALL\n")?;
    let partition = bench.ask("scontrol --oneliner show partition default").await?;
    ensure!(partition.contains("Partition default not found"), partition);
    Ok(())
}
