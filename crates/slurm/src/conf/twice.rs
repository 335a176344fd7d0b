//! What a text names twice and slurmctld takes once: a node, a partition, and a name for a node or for a set of nodes.

use std::collections::HashMap;

use super::check::{Finding, Severity, finding};
use super::document::{Document, Setting};
use super::keys::{FileKind, slurm};
use crate::hostlist::{Hostlist, repeats};

/// Slurm can have no more nodes.
const MOST_NODES: u64 = 65_536;

pub(super) fn findings(document: &Document) -> Vec<Finding> {
    if document.kind() != FileKind::Slurm {
        return Vec::new();
    }
    let mut findings = partitions(document);
    findings.extend(nodes(document));
    findings
}

fn named<'a>(document: &'a Document, name: &'static str) -> impl Iterator<Item = (usize, &'a Setting)> {
    document.settings().filter(move |(_, setting)| {
        setting.key.eq_ignore_ascii_case(name) && !setting.value.eq_ignore_ascii_case("DEFAULT")
    })
}

fn partitions(document: &Document) -> Vec<Finding> {
    let mut seen = HashMap::new();
    let again = named(document, slurm::PartitionName.name).filter_map(|(line, setting)| {
        let first = *seen.entry(setting.value.as_str()).or_insert(line);
        (first != line).then(|| {
            said_twice(line, slurm::PartitionName.name, &format!("PartitionName={}", setting.value), first)
        })
    });
    again.collect()
}

fn nodes(document: &Document) -> Vec<Finding> {
    let mut lists = Vec::new();
    let mut count = 0_u64;
    for (line, setting) in named(document, slurm::NodeName.name) {
        // One that is broken is a finding already.
        let Ok(list) = Hostlist::parse(&setting.value) else { continue };
        count = count.saturating_add(list.count());
        if count > MOST_NODES {
            let message =
                format!("the text has more than {MOST_NODES} nodes up to here, which Slurm cannot have");
            return vec![finding(line, Severity::Error, Some(slurm::NodeName.name), message)];
        }
        lists.push((line, setting, list));
    }
    let nodes = lists.len();
    for (line, setting) in named(document, slurm::NodeSet.name) {
        // No node has a name that is none.
        let Ok(list) = Hostlist::from_names([&setting.value]) else { continue };
        lists.push((line, setting, list));
    }
    let places = lists.iter().enumerate().map(|(place, (.., list))| (place, list));
    let repeats = repeats(places).into_iter().filter_map(|repeat| {
        let (line, setting, _) = lists.get(repeat.again)?;
        let (first, ..) = lists.get(repeat.first)?;
        match (repeat.first < nodes, repeat.again < nodes) {
            (_, true) => {
                Some(said_twice(*line, slurm::NodeName.name, &format!("the node {}", repeat.name), *first))
            }
            (true, false) => Some(named_as_a_node(*line, &setting.value, *first)),
            (false, false) => None,
        }
    });
    repeats.collect()
}

fn said_twice(line: usize, key: &str, what: &str, first: usize) -> Finding {
    let message =
        format!("{what} is on line {first} already, and slurmctld starts with one only: take it out here");
    finding(line, Severity::Error, Some(key), message)
}

fn named_as_a_node(line: usize, set: &str, first: usize) -> Finding {
    let message = format!(
        "NodeSet={set} has the name of a node, see line {first}, with which no daemon and no command of Slurm starts: \
         choose another"
    );
    finding(line, Severity::Error, Some(slurm::NodeSet.name), message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conf::Release;

    fn check(text: &str) -> Vec<String> {
        let findings = Document::read(FileKind::Slurm, text).check(Release::V26_05);
        findings.iter().map(Finding::to_string).collect()
    }

    #[test]
    fn a_partition_or_a_node_on_two_lines_is_an_error() {
        let text = "PartitionName=a\nNodeName=n[1-4]\nPartitionName=b\npartitionname=a\nNodeName=m,n[3-9]\n";
        assert_eq!(
            check(text),
            [
                "line 4: PartitionName=a is on line 1 already, and slurmctld starts with one only: take it out here",
                "line 5: the node n3 is on line 2 already, and slurmctld starts with one only: take it out here",
            ]
        );
        assert_eq!(check("NodeName=n1,n1\n").len(), 1);
    }

    #[test]
    fn defaults_and_other_names_may_follow_each_other() {
        let text = "NodeName=DEFAULT CPUs=1\nNodeName=n1\nNodeName=DEFAULT CPUs=2\nNodeName=n2,n01\n\
                    PartitionName=DEFAULT State=UP\nPartitionName=a\nPartitionName=DEFAULT\nPartitionName=A\n";
        assert_eq!(check(text), [""; 0]);
    }

    #[test]
    fn a_set_with_the_name_of_a_node_is_an_error() {
        let text =
            "NodeSet=n3 Feature=x\nNodeName=m\nNodeName=n[1-4]\nNodeSet=n03 Feature=x\nNodeSet=m Nodes=n1\n";
        let ends = "with which no daemon and no command of Slurm starts: choose another";
        assert_eq!(
            check(text),
            [
                format!("line 1: NodeSet=n3 has the name of a node, see line 3, {ends}"),
                format!("line 5: NodeSet=m has the name of a node, see line 2, {ends}"),
            ]
        );
        assert_eq!(
            check("NodeSet=a Nodes=n1\nNodeSet=a Feature=x\nNodeName=n1\nNodeSet=N1 Feature=x\n"),
            [""; 0]
        );
    }

    #[test]
    fn many_lines_are_soon_looked_through() {
        let text: String = (0..10_000)
            .map(|node| format!("NodeName=n{node}-x\nPartitionName=p{node}\nNodeSet=s{node}\n"))
            .collect();
        assert_eq!(check(&text), [""; 0]);
        assert_eq!(check(&format!("{text}NodeName=n[0-9999]-x\n")).len(), 1);
    }

    #[test]
    fn more_nodes_than_slurm_can_have_are_not_compared() {
        let text = "NodeName=a[0-65535]\nNodeName=b[0-65535]c[1-2]\n";
        let message = "the text has more than 65536 nodes up to here, which Slurm cannot have";
        assert_eq!(check(text), [format!("line 2: {message}")]);
    }
}
