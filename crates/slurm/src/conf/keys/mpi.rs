//! mpi.conf: settings of the PMIx plugin. Slurm reads over whatever no loaded plugin knows.

use super::Key;
use super::Kind::{Text, U32, YesNo};
use crate::conf::release::Release::V25_11;

keys! {
    PMIxCliTmpDirBase: Text;
    PMIxCollFence: Text;
    PMIxDebug: U32;
    PMIxDirectConn: YesNo;
    PMIxDirectConnEarly: YesNo;
    PMIxDirectConnUCX: YesNo;
    PMIxDirectSameArch: YesNo;
    PMIxEnv: Text;
    PMIxFenceBarrier: YesNo;
    PMIxNetDevicesUCX: Text;
    PMIxShareServerTopology: YesNo => since(V25_11);
    PMIxTimeout: U32;
    PMIxTlsUCX: Text;
}
