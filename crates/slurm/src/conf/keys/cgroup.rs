//! cgroup.conf: how slurmd confines jobs.

use super::Key;
use super::Kind::{Float, Text, U64, YesNo};
use crate::conf::release::Release::{V24_11, V25_05, V25_11, V26_05};

keys! {
    AllowedDevicesFile: Text;
    AllowedRAMSpace: Float;
    AllowedSwapSpace: Float;
    CgroupAutomount: YesNo => defunct(V24_11);
    CgroupJobIdPaths: YesNo => since(V26_05);
    CgroupMountpoint: Text;
    CgroupPlugin: Text;
    CgroupReleaseAgentDir: Text => until(V25_05);
    CgroupSlice: Text => since(V25_11);
    ConstrainCores: YesNo;
    ConstrainDevices: YesNo;
    ConstrainRAMSpace: YesNo;
    ConstrainSwapSpace: YesNo;
    EnableControllers: YesNo;
    EnableExtraControllers: Text => since(V25_05);
    IgnoreSystemd: YesNo;
    IgnoreSystemdOnFailure: YesNo;
    MaxRAMPercent: Float;
    MaxSwapPercent: Float;
    MemoryLimitEnforcement: YesNo;
    MemoryLimitThreshold: Float;
    MemorySwappiness: U64;
    MinRAMSpace: U64;
    SignalChildrenProcesses: YesNo;
    SystemdTimeout: U64;
}
