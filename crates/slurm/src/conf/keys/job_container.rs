//! job_container.conf: private folders of jobs.

use super::Key;
use super::Kind::{HostsLine, Line, Text, U32, YesNo};

keys! {
    AutoBasePath: YesNo;
    BasePath: Line(line::ALL);
    CloneNSEpilog: Text;
    CloneNSEpilog_Wait: U32;
    CloneNSScript: Text;
    CloneNSScript_Wait: U32;
    Dirs: Text;
    EntireStepInNS: YesNo;
    NodeName: HostsLine(line::ALL);
    Shared: YesNo;
}

/// On a line `BasePath=` or `NodeName=`.
pub mod line {
    use super::super::Key;
    use super::super::Kind::{Text, U32, YesNo};

    keys! {
        AutoBasePath: YesNo;
        BasePath: Text;
        CloneNSEpilog: Text;
        CloneNSEpilog_Wait: U32;
        CloneNSScript: Text;
        CloneNSScript_Wait: U32;
        Dirs: Text;
        EntireStepInNS: YesNo;
        InitScript: Text;
        Shared: YesNo;
    }
}
