//! topology.conf of topology/block.

use super::Key;
use super::Kind::{Line, Text};

keys! {
    BlockName: Line(line::ALL);
    BlockSizes: Text;
}

/// On a line `BlockName=`.
pub mod line {
    use super::super::Key;
    use super::super::Kind::Hosts;

    keys! {
        Nodes: Hosts;
    }
}
