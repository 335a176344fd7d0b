//! What a line of nodes says of each of them: one value for all, or one for each. Slurm's daemons do not start with another
//! number.

use super::hosts;
use super::keys::{FileKind, Key, slurm};
use crate::hostlist::Hostlist;

/// A key with this many values on a line of so many nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there are {values} of it for {nodes} nodes: give one for all, or one for each")]
pub struct Uneven {
    pub values: u64,
    pub nodes: u64,
}

/// The values of one key of the line of these nodes. What is no list is not for this to tell.
pub(super) fn check(file: FileKind, first: &Key, nodes: &str, key: &Key, value: &str) -> Result<(), Uneven> {
    use slurm::node::{BcastAddr, NodeAddr, NodeHostname, Port};
    if file != FileKind::Slurm || first.name != slurm::NodeName.name || first.is_defaults(nodes) {
        return Ok(());
    }
    let is = |keys: &[Key]| keys.iter().any(|other| other.name == key.name);
    if !is(&[BcastAddr, NodeAddr, NodeHostname, Port]) {
        return Ok(());
    }
    let values = if is(&[Port]) { hosts::ports(value) } else { Hostlist::parse(value) };
    let (Ok(values), Ok(nodes)) = (values, Hostlist::parse(nodes)) else { return Ok(()) };
    let (values, nodes) = (values.count(), nodes.count());
    let none = values == 0 && is(&[BcastAddr, Port]);
    if none || values == 1 || values == nodes { Ok(()) } else { Err(Uneven { values, nodes }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_one_value_for_all_of_its_nodes_or_one_for_each() {
        let check = |key, value| check(FileKind::Slurm, &slurm::NodeName, "w-[0-3]", key, value);
        for (key, value) in [
            (&slurm::node::NodeAddr, "a"),
            (&slurm::node::NodeAddr, "10.0.0.[1-4]"),
            (&slurm::node::NodeHostname, "a,b,c,d"),
            (&slurm::node::BcastAddr, ""),
            (&slurm::node::Port, ""),
            (&slurm::node::Port, "7000-7003"),
            (&slurm::node::Port, "[7000,7002,7004,7006]"),
            (&slurm::node::Gres, "a,b"),
        ] {
            assert_eq!(check(key, value), Ok(()), "{}={value}", key.name);
        }
        for (key, value, values) in [
            (&slurm::node::NodeAddr, "w-[0-2].svc", 3),
            (&slurm::node::NodeHostname, "a,b", 2),
            (&slurm::node::NodeAddr, "", 0),
            (&slurm::node::BcastAddr, "a[1-5]", 5),
            (&slurm::node::Port, "7000,7001", 2),
        ] {
            assert_eq!(check(key, value), Err(Uneven { values, nodes: 4 }), "{}={value}", key.name);
        }
        let defaults = super::check(FileKind::Slurm, &slurm::NodeName, "DEFAULT", &slurm::node::Port, "1,2");
        assert_eq!(defaults, Ok(()));
    }
}
