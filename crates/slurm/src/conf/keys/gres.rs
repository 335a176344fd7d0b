//! gres.conf: the devices of nodes.

use super::Key;
use super::Kind::{HostsLine, Line, Text};

keys! {
    AutoDetect: Text;
    Name: Line(line::ALL);
    NodeName: HostsLine(line::ALL);
}

/// On a line `Name=` or `NodeName=`.
pub mod line {
    use super::super::Key;
    use super::super::Kind::{Hosts, Text};

    keys! {
        AutoDetect: Text;
        Cores: Text;
        Count: Text;
        CPUs: Text;
        File: Hosts;
        Files: Hosts;
        Flags: Text;
        Link: Text;
        Links: Text;
        MultipleFiles: Hosts;
        Name: Text;
        Type: Text;
    }
}
