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

/// How many nodes a line is of, if it is one of nodes. Read once for all pairs of the line.
pub(super) fn nodes(file: FileKind, first: &Key, names: &str) -> Option<u64> {
    if file != FileKind::Slurm || first.name != slurm::NodeName.name || first.is_defaults(names) {
        return None;
    }
    // What is no list is not for this to tell.
    Hostlist::parse(names).ok().map(|nodes| nodes.count())
}

/// The values of one key on such a line.
pub(super) fn check(nodes: Option<u64>, key: &Key, value: &str) -> Result<(), Uneven> {
    use slurm::node::{BcastAddr, NodeAddr, NodeHostname, Port};
    let is = |keys: &[Key]| keys.iter().any(|other| other.name == key.name);
    let Some(nodes) = nodes.filter(|_| is(&[BcastAddr, NodeAddr, NodeHostname, Port])) else { return Ok(()) };
    let values = if is(&[Port]) { hosts::ports(value) } else { Hostlist::parse(value) };
    let Ok(values) = values.map(|values| values.count()) else { return Ok(()) };
    let none = values == 0 && is(&[BcastAddr, Port]);
    if none || values == 1 || values == nodes { Ok(()) } else { Err(Uneven { values, nodes }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_one_value_for_all_of_its_nodes_or_one_for_each() {
        let of = |names: &str| nodes(FileKind::Slurm, &slurm::NodeName, names);
        let check = |key, value| check(of("w-[0-3]"), key, value);
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
        assert_eq!((of("w-[0-3]"), of("default"), of("w-[")), (Some(4), None, None));
        assert_eq!(nodes(FileKind::Gres, &slurm::NodeName, "w"), None);
    }
}
