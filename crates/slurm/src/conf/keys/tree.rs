//! topology.conf of topology/tree.

use super::Key;
use super::Kind::SwitchLine;

keys! {
    SwitchName: SwitchLine(switch::ALL);
}

/// On a line `SwitchName=`.
pub mod switch {
    use super::super::Key;
    use super::super::Kind::{Hosts, U32};

    keys! {
        LinkSpeed: U32;
        Nodes: Hosts;
        Switches: Hosts;
    }
}
