//! Accounting: slurmdbd and its database.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1 as core;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::{NodeContainer, SlurmNode, rules};
use crate::Open;
use crate::default::yes;
use crate::scalar::Quantity;
use crate::schema::{AnyObject, Integer};

/// slurmdbd and its database.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::ACCOUNTING))]
pub struct Accounting {
    /// Whether there is accounting at all. Default: `false`.
    #[serde(default)]
    pub enabled: bool,
    /// A MySQL or MariaDB that exists already. Use this or `mariadbOperator`; with neither enabled the operator runs one of its own.
    #[serde(rename = "externalDB")]
    pub external_db: Option<ExternalDb>,
    /// A MariaDB that is made for the cluster. Use this or `externalDB`.
    pub mariadb_operator: Option<MariaDbOperator>,
    /// The container with munged, which authenticates Slurm's daemons to each other.
    pub munge: Option<NodeContainer>,
    #[serde(flatten)]
    pub node: SlurmNode,
    /// Keys of slurm.conf that concern accounting.
    pub slurm_config: Option<AccountingSlurmConfig>,
    /// The container with slurmdbd.
    pub slurmdbd: Option<NodeContainer>,
    /// Keys of slurmdbd.conf.
    pub slurmdbd_config: Option<SlurmdbdConfig>,
}

/// A database that exists already.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExternalDb {
    /// Whether this database is used. Default: `false`.
    #[serde(default)]
    pub enabled: bool,
    /// Host name or address of the database, for example `mysql.example.org`.
    pub host: Option<String>,
    /// The key of a Secret that holds the password.
    pub password_secret_key_ref: Option<PasswordSecretKeyRef>,
    /// Port of the database. Default: 3306.
    #[serde(default = "mysql_port")]
    pub port: i32,
    /// `StorageParameters` of slurmdbd.conf, for example `SSL_CIPHER`.
    pub storage_parameters: Option<BTreeMap<String, String>>,
    /// Certificates for an encrypted connection. Default: none.
    pub tls: Option<ExternalDbTls>,
    /// User of the database, for example `slurm`.
    pub user: Option<String>,
}

fn mysql_port() -> i32 {
    3306
}

/// A key of a Secret.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PasswordSecretKeyRef {
    /// Which key of the Secret holds the password.
    pub key: Option<String>,
    /// Name of the Secret, in the namespace of the cluster.
    pub name: Option<String>,
}

/// Certificates for a connection to the database.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExternalDbTls {
    /// Secret with `tls.crt` and `tls.key` by which slurmdbd shows who it is.
    pub client_cert_secret_ref: Option<String>,
    /// Secret with the certificate of the authority that the database's certificate is checked against.
    #[serde(rename = "serverCASecretRef")]
    pub server_ca_secret_ref: Option<String>,
}

/// A database that is made for the cluster.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MariaDbOperator {
    #[serde(flatten)]
    pub container: NodeContainer,
    /// Whether this database is used.
    pub enabled: Option<bool>,
    /// Metrics of the database. Default: none; on if this is given without `enabled`.
    pub metrics: Option<MariaDbMetrics>,
    /// Security context of the database's pods, as in a pod.
    pub pod_security_context: Option<Open<core::PodSecurityContext>>,
    /// Priority class of the database's pods. Default: the one of the Kubernetes cluster.
    pub priority_class_name: Option<String>,
    /// Whether the Secrets with the passwords are made once by us and kept when the cluster is deleted. Must not change later.
    /// Default: `false`.
    #[serde(default)]
    pub protected_secret: bool,
    /// How many copies of the database there are. Default: 1.
    #[schemars(range(min = 0))]
    pub replicas: Option<i32>,
    /// Replication between the copies, as `spec.replication` of a MariaDB object. It is passed on as it is.
    #[schemars(with = "Option<AnyObject>")]
    pub replication: Option<Open<MariaDbReplication>>,
    /// Security context of the database's container, as in a pod.
    pub security_context: Option<Open<core::SecurityContext>>,
    /// Where the database keeps its data.
    pub storage: Option<MariaDbStorage>,
}

/// Names the shape of `spec.replication` of a MariaDB object; its content is the MariaDB operator's.
#[derive(Debug)]
pub enum MariaDbReplication {}

/// Metrics of the database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MariaDbMetrics {
    /// Whether there is an exporter beside the database. Default: `true` where `metrics` is given.
    #[serde(default = "yes")]
    pub enabled: bool,
}

/// Where the database keeps its data.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MariaDbStorage {
    /// Whether the data is lost with the pod: for trials only. Default: `false`.
    pub ephemeral: Option<bool>,
    /// What becomes of the claims when the database is deleted or scaled in.
    pub pvc_retention_policy: Option<MariaDbClaimPolicy>,
    /// Whether a volume that is in use may be made larger. Default: `true`.
    pub resize_in_use_volumes: Option<bool>,
    /// Size of the volume, for example `30Gi`.
    pub size: Option<Quantity>,
    /// Storage class of the volume. Default: the one of the Kubernetes cluster.
    pub storage_class_name: Option<String>,
    /// The whole claim, as in a StatefulSet, where size and class do not say enough.
    pub volume_claim_template: Option<Open<core::PersistentVolumeClaimSpec>>,
    /// Whether to wait until a volume has become larger before going on. Default: `true`.
    pub wait_for_volume_resize: Option<bool>,
}

/// What becomes of the database's claims.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MariaDbClaimPolicy {
    /// When the database is deleted: `Retain` or `Delete`. Default: `Retain`.
    pub when_deleted: Option<String>,
    /// When the database is scaled in: `Retain` or `Delete`. Default: `Retain`.
    pub when_scaled: Option<String>,
}

/// Keys of slurm.conf that concern accounting. A field without a default here has one that differs between 1.x and 5.x.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AccountingSlurmConfig {
    /// `AccountingStorageTRES`: which resources are accounted for, separated by commas. Default: `CPU,Mem,Node,VMem,Gres/gpu`.
    #[serde(rename = "accountingStorageTRES")]
    #[schemars(regex(
        pattern = r"^((Billing|CPU|Mem|VMem|Node|Energy|Pages|FS/Disk|FS/Lustre|Gres/gpu)(,)?)+$"
    ))]
    pub accounting_storage_tres: String,
    /// `AccountingStoreFlags`: what more is stored of a job, for example `job_comment,job_script`.
    pub accounting_store_flags: Option<String>,
    /// `AcctGatherFilesystemType`, for example `acct_gather_filesystem/lustre`.
    pub acct_gather_filesystem_type: Option<String>,
    /// `AcctGatherInterconnectType`, for example `acct_gather_interconnect/ofed`.
    pub acct_gather_interconnect_type: Option<String>,
    /// `AcctGatherProfileType`, for example `acct_gather_profile/hdf5`.
    pub acct_gather_profile_type: Option<String>,
    /// `JobAcctGatherFrequency`, in seconds: how often the use of running jobs is sampled; 0 is at their end only. Default: 0.
    #[schemars(with = "Integer")]
    pub job_acct_gather_frequency: i64,
    /// `JobAcctGatherParams`: how memory is counted and enforced. Default: none.
    pub job_acct_gather_params: Option<JobAcctGatherParams>,
    /// `JobAcctGatherType`: where the use of jobs is read from. Default: `jobacct_gather/none` (1.x: `jobacct_gather/cgroup`).
    pub job_acct_gather_type: Option<JobAcctGatherType>,
    /// `PriorityWeightAge`: how much waiting raises a job's priority. Default: 0.
    #[schemars(with = "Integer")]
    pub priority_weight_age: i64,
    /// `PriorityWeightFairshare`: how much a user's unused share raises a job's priority. Default: 0.
    #[schemars(with = "Integer")]
    pub priority_weight_fairshare: i64,
    /// `PriorityWeightQOS`: how much the quality of service raises a job's priority. Default: 0.
    #[serde(rename = "priorityWeightQOS")]
    #[schemars(with = "Integer")]
    pub priority_weight_qos: i64,
    /// `PriorityWeightTRES`: weights by resource, for example `CPU=1000,GRES/gpu=3000`.
    #[serde(rename = "priorityWeightTRES")]
    pub priority_weight_tres: Option<String>,
}

impl Default for AccountingSlurmConfig {
    fn default() -> Self {
        Self {
            accounting_storage_tres: "CPU,Mem,Node,VMem,Gres/gpu".to_owned(),
            accounting_store_flags: None,
            acct_gather_filesystem_type: None,
            acct_gather_interconnect_type: None,
            acct_gather_profile_type: None,
            job_acct_gather_frequency: 0,
            job_acct_gather_params: None,
            job_acct_gather_type: None,
            priority_weight_age: 0,
            priority_weight_fairshare: 0,
            priority_weight_qos: 0,
            priority_weight_tres: None,
        }
    }
}

/// A value of `JobAcctGatherParams`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum JobAcctGatherParams {
    NoShared,
    UsePss,
    OverMemoryKill,
    #[serde(rename = "DisableGPUAcct")]
    DisableGpuAcct,
}

/// A value of `JobAcctGatherType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum JobAcctGatherType {
    #[serde(rename = "jobacct_gather/linux")]
    Linux,
    #[serde(rename = "jobacct_gather/cgroup")]
    Cgroup,
    #[serde(rename = "jobacct_gather/none")]
    None,
}

/// Keys of slurmdbd.conf. Ages are a number and a unit: `12month`, `30day`, `48hours`.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SlurmdbdConfig {
    /// `ArchiveEvents`: whether events are written to a file before they are purged. Default: `yes`.
    pub archive_events: YesNo,
    /// `ArchiveJobs`: whether jobs are written to a file before they are purged. Default: `yes`.
    pub archive_jobs: YesNo,
    /// `ArchiveResvs`: whether reservations are written to a file before they are purged. Default: `yes`.
    pub archive_resvs: YesNo,
    /// `ArchiveSteps`: whether job steps are written to a file before they are purged. Default: `no`.
    pub archive_steps: YesNo,
    /// `ArchiveSuspend`: whether suspensions are written to a file before they are purged. Default: `no`.
    pub archive_suspend: YesNo,
    /// `ArchiveTXN`: whether transactions are written to a file before they are purged. Default: `no`.
    #[serde(rename = "archiveTXN")]
    pub archive_txn: YesNo,
    /// `ArchiveUsage`: whether usage is written to a file before it is purged. Default: `yes`.
    pub archive_usage: YesNo,
    /// `DebugFlags`: a part of slurmdbd that says more in its log. Default: none.
    pub debug_flags: Option<SlurmdbdDebugFlag>,
    /// `DebugLevel`: how much slurmdbd says in its log. Default: `info`.
    pub debug_level: SlurmdbdDebugLevel,
    /// `PrivateData`: what users may not see of each other, for example `jobs,usage`.
    pub private_data: Option<String>,
    /// `PurgeEventAfter`: age at which events are deleted. Default: `1month`.
    pub purge_event_after: String,
    /// `PurgeJobAfter`: age at which jobs are deleted. Default: `12month`.
    pub purge_job_after: String,
    /// `PurgeResvAfter`: age at which reservations are deleted. Default: `1month`.
    pub purge_resv_after: String,
    /// `PurgeStepAfter`: age at which job steps are deleted. Default: `1month`.
    pub purge_step_after: String,
    /// `PurgeSuspendAfter`: age at which suspensions are deleted. Default: `1month`.
    pub purge_suspend_after: String,
    /// `PurgeTXNAfter`: age at which transactions are deleted. Default: `12month`.
    #[serde(rename = "purgeTXNAfter")]
    pub purge_txn_after: String,
    /// `PurgeUsageAfter`: age at which usage is deleted. Default: `24month`.
    pub purge_usage_after: String,
    /// `TCPTimeout`, in seconds: how long a connection may take. Default: 2.
    #[schemars(with = "Integer")]
    pub tcp_timeout: i64,
}

impl Default for SlurmdbdConfig {
    fn default() -> Self {
        Self {
            archive_events: YesNo::Yes,
            archive_jobs: YesNo::Yes,
            archive_resvs: YesNo::Yes,
            archive_steps: YesNo::No,
            archive_suspend: YesNo::No,
            archive_txn: YesNo::No,
            archive_usage: YesNo::Yes,
            debug_flags: None,
            debug_level: SlurmdbdDebugLevel::Info,
            private_data: None,
            purge_event_after: "1month".to_owned(),
            purge_job_after: "12month".to_owned(),
            purge_resv_after: "1month".to_owned(),
            purge_step_after: "1month".to_owned(),
            purge_suspend_after: "1month".to_owned(),
            purge_txn_after: "12month".to_owned(),
            purge_usage_after: "24month".to_owned(),
            tcp_timeout: 2,
        }
    }
}

/// A switch of slurmdbd.conf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum YesNo {
    Yes,
    No,
}

/// A value of `DebugLevel` in slurmdbd.conf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SlurmdbdDebugLevel {
    Quiet,
    Fatal,
    Error,
    Info,
    Verbose,
    Debug,
    Debug2,
    Debug3,
    Debug4,
    Debug5,
}

/// A value of `DebugFlags` in slurmdbd.conf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum SlurmdbdDebugFlag {
    #[serde(rename = "AuditRPCs")]
    AuditRpcs,
    DbArchive,
    DbAssoc,
    DbEvent,
    DbJob,
    DbQos,
    DbQuery,
    DbReservation,
    DbResource,
    DbStep,
    DbTres,
    DbUsage,
    #[serde(rename = "Network")]
    Network,
}
