//! What is wrong with a user's text, said before a daemon that would die of it reads it.

use std::fmt;

use super::document::{Document, Setting};
use super::keys::{self, FileKind, Key, ValueRule, Values, slurm};
use super::owned::{Guard, Owned, owned};
use super::per_node;
use super::release::Release;
use super::twice;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// It works, but hardly as meant.
    Warning,
    /// A daemon would not start, or the cluster not work.
    Error,
}

/// One thing to say about a line. Shows no values: one of them may be a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub line: usize,
    pub severity: Severity,
    /// The key that it is about, as Slurm spells it. One that Slurm does not know is as the user wrote it.
    pub key: Option<String>,
    /// What is wrong and what to do.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "line {}: {}", self.line, self.message)
    }
}

impl Document {
    /// Everything that is wrong with the text for this release, by line.
    ///
    /// Included files are not looked into, and of most texts it is not known which words Slurm takes.
    pub fn check(&self, release: Release) -> Vec<Finding> {
        let mut findings: Vec<Finding> = self
            .faults()
            .map(|(line, fault)| finding(line, Severity::Error, None, fault.to_string()))
            .collect();
        for (line, setting) in self.settings() {
            findings.extend(Check { file: self.kind(), release, line }.setting(setting));
        }
        findings.extend(twice::findings(self));
        findings.sort_by_key(|finding| finding.line);
        findings
    }

    /// What the text says that the operator decides on. For [`super::owned()`], unless a file needs a table of its own.
    pub fn check_owned(&self, owned: &[Owned]) -> Vec<Finding> {
        self.settings()
            .filter_map(|(line, setting)| {
                let owned = owned.iter().find(|owned| owned.key.eq_ignore_ascii_case(&setting.key))?;
                let (severity, verb) = match owned.guard {
                    Guard::Refuse => (Severity::Error, "is the operator's to set"),
                    Guard::Warn => (Severity::Warning, "is better left to the operator"),
                };
                let Owned { key, reason, instead, .. } = owned;
                let message = format!("{key} {verb}, since {reason}: {instead}");
                Some(finding(line, severity, Some(key), message))
            })
            .collect()
    }

    /// Both checks, by line.
    pub fn check_all(&self, release: Release) -> Vec<Finding> {
        let mut findings = self.check(release);
        findings.extend(self.check_owned(owned(self.kind())));
        findings.sort_by_key(|finding| finding.line);
        findings
    }
}

pub(super) fn finding(line: usize, severity: Severity, key: Option<&str>, message: String) -> Finding {
    Finding { line, severity, key: key.map(str::to_owned), message }
}

/// What a line is checked against.
pub(super) struct Check {
    pub(super) file: FileKind,
    pub(super) release: Release,
    pub(super) line: usize,
}

impl Check {
    fn setting(&self, setting: &Setting) -> Vec<Finding> {
        let name = self.file.file_name();
        let Some(key) = self.file.key(&setting.key) else {
            // The plugins pick their keys out of mpi.conf and read over all others.
            let severity = if self.file == FileKind::Mpi { Severity::Warning } else { Severity::Error };
            return vec![self.unknown(severity, &setting.key, name, self.file.keys())];
        };
        let mut findings = self.pair(key, &setting.value, setting.operator);
        let Some(keys) = key.kind.line() else { return findings };
        if key.is_reserved(self.file, &setting.value) {
            let (name, value) = (key.name, &setting.value);
            let (severity, message) = if name == slurm::NodeSet.name {
                let message =
                    format!("where {name}={value} is named Slurm takes all nodes: choose another name");
                (Severity::Warning, message)
            } else {
                (Severity::Error, format!("slurmctld does not start with {name}={value}: name the nodes"))
            };
            findings.push(finding(self.line, severity, Some(key.name), message));
        }
        let nodes = per_node::nodes(self.file, key, &setting.value);
        let is_defaults = key.is_defaults(&setting.value);
        for pair in &setting.more {
            if let Some(key) = keys::find(keys, &pair.key) {
                findings.extend(self.pair(key, &pair.value, pair.operator));
                if let Err(uneven) = per_node::check(nodes, key, &pair.value) {
                    let message = format!("{}: {uneven}", key.name);
                    findings.push(finding(self.line, Severity::Error, Some(key.name), message));
                }
                if is_defaults && key.is_of_one_node() {
                    let message = format!(
                        "slurmctld does not start with {} among the defaults of nodes: set it on their own lines",
                        key.name
                    );
                    findings.push(finding(self.line, Severity::Error, Some(key.name), message));
                }
            } else {
                let place = format!("a line {}= of {name}", key.name);
                findings.push(self.unknown(Severity::Error, &pair.key, &place, keys));
            }
        }
        findings
    }

    fn unknown(&self, severity: Severity, key: &str, place: &str, keys: &[Key]) -> Finding {
        let advice = match keys::nearest(keys, key) {
            Some(nearest) => format!("did you mean {nearest}?"),
            None => "remove it".to_owned(),
        };
        finding(self.line, severity, Some(key), format!("{key} is not a key of {place}: {advice}"))
    }

    pub(super) fn pair(&self, key: &Key, value: &str, operator: Option<char>) -> Vec<Finding> {
        let mut findings = Vec::new();
        let mut say =
            |severity, message| findings.push(finding(self.line, severity, Some(key.name), message));
        let (name, release) = (key.name, self.release);
        let refusal = keys::refusal(self.file, name, value, release);
        if !key.support.is_known_in(release) {
            let support = key.support;
            say(
                Severity::Error,
                format!("{name} is {support}, and Slurm {release} does not start with it: remove it"),
            );
        } else if let Some(ValueRule { values, support, instead, .. }) = refusal {
            let what = match values {
                Values::Is(_) | Values::Has(_) => format!("this value of {name} is {support}"),
                Values::Any | Values::AllBut(_) => format!("{name} was removed"),
            };
            say(Severity::Error, format!("{what}, and Slurm {release} does not start with it: {instead}"));
        } else if key.support.is_defunct_in(release) {
            say(Severity::Warning, format!("{name} is {}: remove it", key.support));
        }
        // Partitions without nodes are the one use that is known.
        if value.is_empty() && name != "Nodes" {
            say(Severity::Warning, format!("{name} is empty, which some daemons refuse: remove it"));
        }
        if let Err(unfit) = key.kind.check(value) {
            say(Severity::Error, format!("the value of {name} {unfit}"));
        }
        if key.is_defaults(value) && value != "DEFAULT" {
            let message = format!(
                "Slurm takes {name}={value} for the defaults of the lines after it: write DEFAULT if that is meant"
            );
            say(Severity::Warning, message);
        }
        if let Some(operator) = operator {
            say(
                Severity::Warning,
                format!("Slurm reads {name}{operator}= as {name}=: write the whole value after a plain ="),
            );
        }
        findings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(file: FileKind, release: Release, text: &str) -> Vec<String> {
        Document::read(file, text).check_all(release).iter().map(Finding::to_string).collect()
    }

    fn errors(text: &str) -> Vec<usize> {
        let findings = Document::read(FileKind::Slurm, text).check(Release::V26_05);
        findings
            .iter()
            .filter(|finding| finding.severity == Severity::Error)
            .map(|found| found.line)
            .collect()
    }

    #[test]
    fn what_would_end_a_daemon_is_an_error_with_its_line() {
        let text = "KillWait=30\nKillWiat=30\nLaunchParameters=\nMaxJobCount=many\nnonsense\nUsePAM=on\n";
        assert_eq!(errors(text), [2, 3, 4, 5, 6]);
        assert_eq!(errors("NodeName=n1 AutoResume=no\n"), [1]);
        assert_eq!(errors("PartitionName=a Nodez=ALL\n# b\nPartitionName=b Default=maybe\n"), [1, 3]);
    }

    #[test]
    fn what_works_is_let_through() {
        let text = "include more.conf\nKillWait=30\nkillwait=INFINITE\nNodeName=n[1-9] CPUs=4 State=CLOUD\n\
                    PartitionName=a Nodes=\"\" Default=YES\nProlog=a\nProlog=b\n";
        assert_eq!(check(FileKind::Slurm, Release::V24_11, text), Vec::<String>::new());
    }

    #[test]
    fn messages_say_what_to_do() {
        assert_eq!(
            check(FileKind::Slurm, Release::V24_11, "KillWiat=30\nMetricsType=metrics/openmetrics\n"),
            [
                "line 1: KillWiat is not a key of slurm.conf: did you mean KillWait?",
                "line 2: MetricsType is known since 25.11, and Slurm 24.11 does not start with it: remove it",
            ]
        );
        assert_eq!(
            check(FileKind::Slurm, Release::V26_05, "SchedulerParameters+=defer\n"),
            [
                "line 1: Slurm reads SchedulerParameters+= as SchedulerParameters=: write the whole value after a plain ="
            ]
        );
    }

    #[test]
    fn empty_quotes_are_warned_of() {
        let findings = Document::read(FileKind::Slurm, "PartitionName=a QOS=\"\"\n").check(Release::V26_05);
        assert_eq!(findings.iter().map(|found| found.severity).collect::<Vec<_>>(), [Severity::Warning]);
    }

    #[test]
    fn a_partition_that_is_called_default_is_warned_of() {
        let warned = "line 1: Slurm takes PartitionName=default for the defaults of the lines after it: write DEFAULT \
                      if that is meant";
        assert_eq!(check(FileKind::Slurm, Release::V26_05, "PartitionName=default Nodes=ALL\n"), [warned]);
        assert_eq!(check(FileKind::Slurm, Release::V26_05, "NodeName=DEFAULT CPUs=2\n").len(), 0);
    }

    #[test]
    fn values_that_a_release_refuses_are_errors() {
        let text = "TopologyPlugin=topology/flat\n";
        assert_eq!(check(FileKind::Slurm, Release::V24_11, text).len(), 1);
        assert_eq!(check(FileKind::Slurm, Release::V26_05, text).len(), 0);
    }

    #[test]
    fn keys_that_were_removed_are_errors_that_name_their_successor() {
        let text = "AccountingStoreJobComment=no\nSallocDefaultCommand=x\nFastSchedule=2\nFastSchedule=1\n\
                    AccountingStorageLoc=x\nFirstJobId=0\n";
        let ends = |text: &str| format!("was removed, and Slurm 24.11 does not start with it: {text}");
        assert_eq!(
            check(FileKind::Slurm, Release::V24_11, text),
            [
                format!(
                    "line 1: AccountingStoreJobComment {}",
                    ends("set AccountingStoreFlags=job_comment instead")
                ),
                format!(
                    "line 2: SallocDefaultCommand {}",
                    ends("set LaunchParameters=use_interactive_step instead")
                ),
                format!(
                    "line 3: FastSchedule {}",
                    ends("remove it, and for FastSchedule=2 set SlurmdParameters=config_overrides instead")
                ),
                "line 4: FastSchedule is without effect since 24.11: remove it".to_owned(),
                format!("line 5: AccountingStorageLoc {}", ends("remove it")),
                "line 6: this value of FirstJobId is known to no release of stock Slurm, and Slurm 24.11 does not \
                 start with it: set 1 or more"
                    .to_owned(),
            ]
        );
        assert_eq!(errors(text), [1, 2, 3, 5, 6]);
    }

    #[test]
    fn a_state_that_no_node_begins_with_is_an_error() {
        assert_eq!(
            errors("NodeName=n1 State=BANANA\nNodeName=n2 State=cloud\nDownNodes=n2 State=\"\"\n"),
            [1, 3]
        );
        let external = |release| check(FileKind::Slurm, release, "NodeName=n1 State=External\n");
        assert_eq!(
            external(Release::V24_11),
            [
                "line 1: this value of State is known since 25.05, and Slurm 24.11 does not start with it: choose another"
            ]
        );
        assert_eq!(external(Release::V25_05), [""; 0]);
    }

    #[test]
    fn a_node_that_is_called_all_and_defaults_with_an_address_are_errors() {
        assert_eq!(errors("NodeName=all\nNodeName=ALL,n1\nPartitionName=ALL Nodes=ALL\n"), [1]);
        let text = "NodeName=DEFAULT CPUs=1\nNodeName=default nodeaddr=x\nNodeName=DEFAULT NodeHostname=x\n\
                    NodeName=DEFAULT BcastAddr=x\nNodeName=n1 NodeAddr=x\n";
        assert_eq!(errors(text), [2, 3, 4]);
    }

    #[test]
    fn a_line_with_more_or_fewer_addresses_than_nodes_is_an_error() {
        let message = "line 1: NodeAddr: there are 3 of it for 4 nodes: give one for all, or one for each";
        let text = "NodeName=w-[0-3] NodeAddr=w-[0-2].svc Port=7000\n";
        assert_eq!(check(FileKind::Slurm, Release::V26_05, text), [message]);
        assert_eq!(errors("NodeName=n1 Port=0\nNodeName=n2 Port=7000\nNodeName=n3 Port=abc\n"), [1, 3]);
    }

    #[test]
    fn a_switch_with_too_long_a_name_is_an_error() {
        let text = format!("SwitchName={0} Nodes=a\nSwitchName={0}s Nodes=b\n", "s".repeat(64));
        let findings = check(FileKind::Tree, Release::V24_11, &text);
        assert_eq!(findings.len(), 1);
        assert!(
            findings[0].starts_with("line 2: the value of SwitchName is longer than 64 bytes"),
            "{findings:?}"
        );
    }

    #[test]
    fn many_addresses_on_a_line_of_many_nodes_are_soon_counted() {
        let nodes: Vec<String> = (0..60_000).map(|node| format!("n{node}x")).collect();
        let text = format!("NodeName={}{}\n", nodes.join(","), " NodeAddr=a".repeat(20_000));
        assert_eq!(Document::read(FileKind::Slurm, &text).check(Release::V26_05), []);
    }

    #[test]
    fn a_finding_names_its_key_as_slurm_spells_it() {
        let text = "killwait=x\nCLUSTERNAME=x\nnodename=all\nnodename=n1 port=0 nodeaddr=a,b\nnodename=n1\n\
                    nodeset=n1 x=1\n";
        let findings = Document::read(FileKind::Slurm, text).check_all(Release::V26_05);
        let keys: Vec<&str> = findings.iter().filter_map(|found| found.key.as_deref()).collect();
        let expected =
            ["KillWait", "ClusterName", "NodeName", "Port", "NodeAddr", "NodeName", "x", "NodeSet"];
        assert_eq!(keys, expected);
    }

    #[test]
    fn a_set_that_is_called_all_is_warned_of() {
        assert_eq!(
            check(FileKind::Slurm, Release::V26_05, "NodeSet=all Feature=all\nPartitionName=all Nodes=all\n"),
            ["line 1: where NodeSet=all is named Slurm takes all nodes: choose another name"]
        );
    }

    #[test]
    fn keys_of_the_operator_are_guarded() {
        let findings = check(FileKind::Slurm, Release::V26_05, "KillWait=1\nclustername=mine\n");
        assert_eq!(
            findings,
            [
                "line 2: ClusterName is the operator's to set, since the saved state and the accounting database \
              belong to this name: name the cluster in the custom resource"
            ]
        );
        let document = Document::read(FileKind::Slurmdbd, "StoragePass=geheim\nLogFile=/x\n");
        let severities: Vec<_> = document
            .check_owned(owned(FileKind::Slurmdbd))
            .into_iter()
            .inspect(|finding| assert!(!finding.message.contains("geheim")))
            .map(|finding| finding.severity)
            .collect();
        assert_eq!(severities, [Severity::Error, Severity::Warning]);
    }

    #[test]
    fn mpi_conf_may_have_keys_of_plugins_that_are_not_known() {
        let findings = Document::read(FileKind::Mpi, "PMIxDebug=1\nOther=1\n").check(Release::V26_05);
        assert_eq!(findings.iter().map(|found| found.severity).collect::<Vec<_>>(), [Severity::Warning]);
    }
}
