//! slurm.conf: what slurmctld, slurmd and every command read, and what stands on the lines of nodes and partitions.

use super::Key;
use super::Kind::{Each, Hosts, HostsLine, Line, Preempt, Seconds, Text, Time, U16, U32, U64, YesNo};
use crate::conf::release::Release::{V24_11, V25_05, V25_11, V26_05};

keys! {
    AccountingStorageBackupHost: Text;
    AccountingStorageEnforce: Text;
    AccountingStorageExternalHost: Text;
    AccountingStorageHost: Text;
    AccountingStorageLoc: Text => until(V25_05);
    AccountingStorageParameters: Text;
    AccountingStoragePass: Text;
    AccountingStoragePort: U16;
    AccountingStorageTRES: Text;
    AccountingStorageType: Text;
    AccountingStorageUser: Text => defunct(V25_11);
    AccountingStoreFlags: Text;
    AccountingStoreJobComment: YesNo;
    AcctGatherEnergyType: Text;
    AcctGatherFilesystemType: Text;
    AcctGatherInfinibandType: Text;
    AcctGatherInterconnectType: Text;
    AcctGatherNodeFreq: U16;
    AcctGatherProfileType: Text;
    AllowSpecResourcesUsage: YesNo;
    AuthAltParameters: Text;
    AuthAltTypes: Text;
    AuthInfo: Text;
    AuthType: Text;
    BackupAddr: Text;
    BackupController: Text;
    BatchStartTimeout: U16;
    BcastExclude: Text;
    BcastParameters: Text;
    BurstBufferParameters: Text;
    BurstBufferType: Text;
    CertgenParameters: Text => since(V25_05);
    CertgenType: Text => since(V25_05);
    CertmgrParameters: Text;
    CertmgrType: Text;
    CliFilterParameters: Text => since(V25_11);
    CliFilterPlugins: Text;
    ClusterName: Text;
    CommunicationParameters: Text;
    CompleteWait: U16;
    ControlAddr: Text;
    ControlMachine: Text;
    CoreSpecPlugin: Text => defunct(V24_11);
    CpuFreqDef: Text;
    CpuFreqGovernors: Text;
    CredType: Text;
    CryptoType: Text;
    DataParserParameters: Text;
    DebugFlags: Text;
    DefCPUPerGPU: U64;
    DefMemPerCPU: U64;
    DefMemPerGPU: U64;
    DefMemPerNode: U64;
    DependencyParameters: Text;
    DisableRootJobs: YesNo;
    DownNodes: HostsLine(down_nodes::ALL);
    EioTimeout: U16;
    EnforcePartLimits: Text;
    Epilog: Each;
    EpilogMsgTime: U32;
    EpilogSlurmctld: Each;
    EpilogTimeout: U16 => since(V25_05);
    ExtSensorsFreq: U16 => defunct(V24_11);
    ExtSensorsType: Text => defunct(V24_11);
    FairShareDampeningFactor: U16;
    FastSchedule: U16 => defunct(V24_11);
    FederationParameters: Text;
    FirstJobId: U32;
    GetEnvTimeout: U16 => defunct(V25_05);
    GpuFreqDef: Text;
    GresTypes: Text;
    GroupUpdateForce: U16;
    GroupUpdateTime: U16;
    HashPlugin: Text;
    HealthCheckInterval: U16;
    HealthCheckNodeState: Text;
    HealthCheckProgram: Text;
    HealthCheckTimeout: U16 => since(V26_05);
    HttpParserType: Text => since(V25_11);
    InactiveLimit: U16;
    InteractiveStepOptions: Text;
    JobAcctGatherFrequency: Text;
    JobAcctGatherParams: Text;
    JobAcctGatherType: Text;
    JobCompHost: Text;
    JobCompLoc: Text;
    JobCompParams: Text;
    JobCompPass: Text;
    JobCompPassScript: Text => since(V25_11);
    JobCompPort: U32;
    JobCompType: Text;
    JobCompUser: Text;
    JobContainerType: Text;
    JobCredentialPrivateKey: Text => defunct(V24_11);
    JobCredentialPublicCertificate: Text => defunct(V24_11);
    JobFileAppend: U16;
    JobRequeue: U16;
    JobSubmitPlugins: Text;
    KeepAliveTime: U32;
    KillOnBadExit: U16;
    KillWait: U16;
    LaunchParameters: Text;
    LaunchType: Text;
    LicenseParameters: Text => since(V26_05);
    Licenses: Text;
    LogTimeFormat: Text;
    MailDomain: Text;
    MailProg: Text;
    MaxArraySize: U32;
    MaxBatchRequeue: U32;
    MaxDBDMsgs: U32;
    MaxJobCount: U32;
    MaxJobId: U32;
    MaxMemPerCPU: U64;
    MaxMemPerNode: U64;
    MaxNodeCount: U32;
    MaxStepCount: U32;
    MaxTasksPerNode: U16;
    MCSParameters: Text;
    MCSPlugin: Text;
    MessageTimeout: U16;
    MetricsAuthUsers: Text => since(V26_05);
    MetricsParameters: Text => since(V26_05);
    MetricsType: Text => since(V25_11);
    MinJobAge: U32;
    MpiDefault: Text;
    MpiParams: Text;
    NamespaceType: Text => since(V25_11);
    NodeFeaturesPlugins: Text;
    NodeName: HostsLine(node::ALL);
    NodeSet: Line(node_set::ALL);
    OverTimeLimit: U16;
    PartitionName: Line(partition::ALL);
    PluginDir: Text;
    PlugStackConfig: Text;
    PowerAction: Line(power_action::ALL) => since(V26_05);
    PowerParameters: Text => defunct(V24_11);
    PowerPlugin: Text => defunct(V24_11);
    PreemptExemptTime: Time;
    PreemptMode: Preempt;
    PreemptParameters: Text;
    PreemptType: Text;
    PrEpParameters: Text;
    PrEpPlugins: Text;
    PriorityCalcPeriod: Time;
    PriorityDecayHalfLife: Time;
    PriorityFavorSmall: YesNo;
    PriorityFlags: Text;
    PriorityMaxAge: Time;
    PriorityParameters: Text;
    PrioritySiteFactorParameters: Text;
    PrioritySiteFactorPlugin: Text;
    PriorityType: Text;
    PriorityUsageResetPeriod: Text;
    PriorityWeightAge: U32;
    PriorityWeightAssoc: U32;
    PriorityWeightFairshare: U32;
    PriorityWeightJobSize: U32;
    PriorityWeightPartition: U32;
    PriorityWeightQOS: U32;
    PriorityWeightTRES: Text;
    PrivateData: Text;
    ProctrackType: Text;
    Prolog: Each;
    PrologEpilogTimeout: U16;
    PrologFlags: Text;
    PrologSlurmctld: Each;
    PrologTimeout: U16 => since(V25_05);
    PropagatePrioProcess: U16;
    PropagateResourceLimits: Text;
    PropagateResourceLimitsExcept: Text;
    RebootProgram: Text;
    ReconfigFlags: Text;
    RequeueExit: Text;
    RequeueExitHold: Text;
    ResumeFailProgram: Text;
    ResumeProgram: Text;
    ResumeRate: U16;
    ResumeTimeout: U16;
    ResvEpilog: Text;
    ResvOverRun: U16;
    ResvProlog: Text;
    ReturnToService: U16;
    RoutePlugin: Text;
    SallocDefaultCommand: Text;
    SbcastParameters: Text;
    SchedulerParameters: Text;
    SchedulerTimeSlice: U16;
    SchedulerType: Text;
    ScronParameters: Text;
    SelectType: Text;
    SelectTypeParameters: Text;
    SlurmctldAddr: Text;
    SlurmctldDebug: Text;
    SlurmctldHost: Each;
    SlurmctldHttpAuthParameters: Text => since(V26_05);
    SlurmctldLogFile: Text;
    SlurmctldParameters: Text;
    SlurmctldPidFile: Text;
    SlurmctldPort: Text;
    SlurmctldPrimaryOffProg: Text;
    SlurmctldPrimaryOnProg: Text;
    SlurmctldSyslogDebug: Text;
    SlurmctldTimeout: U16;
    SlurmdDebug: Text;
    SlurmdHttpAuthParameters: Text => since(V26_05);
    SlurmdLogFile: Text;
    SlurmdParameters: Text;
    SlurmdPidFile: Text;
    SlurmdPort: U32;
    SlurmdSpoolDir: Text;
    SlurmdSyslogDebug: Text;
    SlurmdTimeout: U16;
    SlurmdUser: Text;
    SlurmSchedLogFile: Text;
    SlurmSchedLogLevel: U16;
    SlurmUser: Text;
    SrunEpilog: Text;
    SrunPortRange: Text;
    SrunProlog: Text;
    StateSaveLocation: Text;
    SuspendExcNodes: Hosts;
    SuspendExcParts: Text;
    SuspendExcStates: Text;
    SuspendProgram: Text;
    SuspendRate: U16;
    SuspendTime: Seconds;
    SuspendTimeout: U16;
    SwitchParameters: Text;
    SwitchType: Text;
    TaskEpilog: Text;
    TaskPlugin: Text;
    TaskPluginParam: Text;
    TaskProlog: Text;
    TCPTimeout: U16;
    TLSParameters: Text;
    TLSType: Text;
    TmpFS: Text;
    TopologyParam: Text;
    TopologyPlugin: Text;
    TrackWCKey: YesNo;
    TreeWidth: U16;
    UnkillableStepProgram: Text;
    UnkillableStepTimeout: U16;
    UrlParserType: Text => since(V25_11);
    UsePAM: YesNo;
    VSizeFactor: U16;
    WaitTime: U16;
    X11Parameters: Text;
}

/// On a line `NodeName=`.
pub mod node {
    use super::super::Key;
    use super::super::Kind::{Hosts, NodeState, Ports, Seconds, Text, U16, U32, U64, YesNo};
    use crate::conf::release::Release::{V25_05, V25_11, V26_05};

    keys! {
        AutoResume: YesNo => never();
        BcastAddr: Hosts;
        Boards: U16;
        CoreSpecCount: U16;
        CoresPerSocket: U16;
        CpuBind: Text;
        CPUs: U16;
        CPUSpecList: Text;
        Feature: Text;
        Features: Text;
        Gres: Text;
        GresConf: Text => since(V25_11);
        MemSpecLimit: U64;
        NodeAddr: Hosts;
        NodeHostname: Hosts;
        Parameters: Text => since(V25_11);
        Port: Ports;
        Procs: U16;
        RealMemory: U64;
        Reason: Text;
        RestrictedCoresPerGPU: U16;
        Sockets: U16;
        SocketsPerBoard: U16;
        State: NodeState;
        SuspendTime: Seconds => since(V26_05);
        ThreadsPerCore: U16;
        TmpDisk: U32;
        Topology: Text => since(V25_05);
        TRESWeights: Text;
        Weight: U32;
    }
}

/// On a line `PartitionName=`.
pub mod partition {
    use super::super::Key;
    use super::super::Kind::{Hosts, OneOf, Preempt, Seconds, Share, Text, Time, U16, U32, U64, YesNo};
    use crate::conf::release::Release::{V25_05, V26_05};

    keys! {
        AllocNodes: Hosts;
        AllowAccounts: Text;
        AllowGroups: Text;
        AllowQos: Text;
        Alternate: Text;
        CpuBind: Text;
        Default: YesNo;
        DefaultTime: Time;
        DefCPUPerGPU: U64;
        DefMemPerCPU: U64;
        DefMemPerGPU: U64;
        DefMemPerNode: U64;
        DenyAccounts: Text;
        DenyQos: Text;
        DisableRootJobs: YesNo;
        Exclusive: OneOf(&["NO", "NONE", "NODE", "USER", "TOPO"]) => since(V26_05);
        ExclusiveTopo: YesNo;
        ExclusiveUser: YesNo;
        GraceTime: U32;
        Hidden: YesNo;
        LLN: YesNo;
        MaxCPUsPerNode: U32;
        MaxCPUsPerSocket: U32;
        MaxMemPerCPU: U64;
        MaxMemPerNode: U64;
        MaxNodes: U32;
        MaxTime: Time;
        MinNodes: U32;
        Nodes: Hosts;
        OverSubscribe: Share;
        OverTimeLimit: Text;
        PowerDownOnIdle: YesNo;
        PreemptMode: Preempt;
        Priority: U16;
        PriorityJobFactor: U16;
        PriorityTier: U16;
        QOS: Text;
        ReqResv: YesNo;
        ResumeTimeout: U16;
        RootOnly: YesNo;
        // Slurm looks only at how these words, and those of the state, begin.
        SelectTypeParameters: OneOf(&["CR_Core", "CR_Core_Memory", "CR_Socket", "CR_Socket_Memory"]);
        Shared: Share;
        State: OneOf(&["UP", "DOWN", "DRAIN", "INACTIVE"]);
        SuspendTime: Seconds;
        SuspendTimeout: U16;
        Topology: Text => since(V25_05);
        TRESBillingWeights: Text;
    }
}

/// On a line `NodeSet=`.
pub mod node_set {
    use super::super::Key;
    use super::super::Kind::{Hosts, Text};

    keys! {
        Feature: Text;
        Nodes: Hosts;
    }
}

/// On a line `DownNodes=`.
pub mod down_nodes {
    use super::super::Key;
    use super::super::Kind::{NodeState, Text};

    keys! {
        Reason: Text;
        State: NodeState;
    }
}

/// On a line `PowerAction=`.
pub mod power_action {
    use super::super::Key;
    use super::super::Kind::Text;

    keys! {
        Location: Text;
        Program: Text;
    }
}
