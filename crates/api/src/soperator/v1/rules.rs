//! What the API server refuses of a SlurmCluster. Soperator finds most of it only when it reconciles, some of it by crashing.
//!
//! A rule must not refuse what works with Soperator: names are looked up only for the parts that are rendered at all.

use schemars::Schema;
use serde_json::json;

use crate::schema::rule::{Rule, rule};
use crate::soperator::common::{
    NO_CPU_OR_MEMORY, SAME_MOUNT_NAME, has_cpu_and_memory, one_volume, own_names, own_names_in_both,
};

/// Whether the object is of the 1.x dialect; the same as `SlurmClusterSpec::dialect`.
macro_rules! dialect_s {
    () => {
        "((has(self.crVersion) && self.crVersion.startsWith('1.')) || has(self.slurmNodes.worker) || has(self.clusterType))"
    };
}

/// Whether `$name` is one of the cluster's filters.
macro_rules! filter_exists {
    ($name:literal) => {
        concat!("self.k8sNodeFilters.exists(filter, filter.name == ", $name, ")")
    };
}

/// Whether `$volume` names one of the cluster's volume sources, if it names one.
macro_rules! source_exists {
    ($volume:literal) => {
        concat!(
            "(!has(",
            $volume,
            ".volumeSourceName) || ",
            "(has(self.volumeSources) && self.volumeSources.exists(source, source.name == ",
            $volume,
            ".volumeSourceName)))"
        )
    };
}

/// The same for each of a list of mounts.
macro_rules! sources_exist {
    ($mounts:literal) => {
        concat!("!has(", $mounts, ") || ", $mounts, ".all(mount, ", source_exists!("mount"), ")")
    };
}

/// The beginning of a rule about workers inside the cluster, if there are any.
macro_rules! no_workers {
    () => {
        "!has(self.slurmNodes.worker) || !has(self.slurmNodes.worker.size) || self.slurmNodes.worker.size == 0 || "
    };
}

/// The beginning of a rule about login nodes, if there are any: 1.x does not look at them else.
macro_rules! no_login {
    () => {
        "!has(self.slurmNodes.login.size) || self.slurmNodes.login.size == 0 || "
    };
}

/// The same in a rule at the part itself.
macro_rules! none {
    () => {
        "!has(self.size) || self.size == 0 || "
    };
}

/// The beginning of a rule at login nodes that compares a user's share with the memory of sshd, if both are given.
macro_rules! no_share {
    () => {
        "!has(self.userIsolation) || !self.userIsolation.enabled || !has(self.sshd.resources) || !('memory' in self.sshd.resources) || \
         quantity(string(self.sshd.resources['memory'])).compareTo(quantity('0')) == 0 || "
    };
}

/// The beginning of a rule about the Job that fills the jail, if there is one.
macro_rules! no_populate_jail {
    () => {
        "self.maintenance in ['skipPopulateJail', 'downscaleAndDeletePopulateJail'] || "
    };
}

const NO_FILTER: &str = "k8sNodeFilterName must be the name of an entry of spec.k8sNodeFilters: correct the name or add the filter";
const NO_SOURCE: &str =
    "volumeSourceName must be the name of an entry of spec.volumeSources: correct the name or add the volume";

pub(super) const SPEC: &[Rule] = &[
    rule(
        concat!(no_populate_jail!(), filter_exists!("self.populateJail.k8sNodeFilterName")),
        NO_FILTER,
    )
    .at(".populateJail.k8sNodeFilterName"),
    rule(filter_exists!("self.slurmNodes.controller.k8sNodeFilterName"), NO_FILTER)
        .at(".slurmNodes.controller.k8sNodeFilterName"),
    rule(concat!(no_login!(), filter_exists!("self.slurmNodes.login.k8sNodeFilterName")), NO_FILTER)
        .at(".slurmNodes.login.k8sNodeFilterName"),
    rule(
        concat!(
            "!self.slurmNodes.accounting.enabled || ",
            filter_exists!("self.slurmNodes.accounting.k8sNodeFilterName")
        ),
        NO_FILTER,
    )
    .at(".slurmNodes.accounting.k8sNodeFilterName"),
    rule(
        concat!(
            "!self.slurmNodes.rest.enabled || !self.slurmNodes.accounting.enabled || ",
            filter_exists!("self.slurmNodes.rest.k8sNodeFilterName")
        ),
        NO_FILTER,
    )
    .at(".slurmNodes.rest.k8sNodeFilterName"),
    rule(
        concat!(
            no_workers!(),
            filter_exists!("self.slurmNodes.worker.k8sNodeFilterName")
        ),
        NO_FILTER,
    )
    .at(".slurmNodes.worker.k8sNodeFilterName"),
    rule(
        concat!(
            "!has(self.sConfigController) || !has(self.sConfigController.node) || ",
            filter_exists!("self.sConfigController.node.k8sNodeFilterName")
        ),
        NO_FILTER,
    )
    .at(".sConfigController.node.k8sNodeFilterName"),
    rule(
        "has(self.volumeSources) && self.volumeSources.exists(source, source.name == 'jail')",
        "volumeSources must have an entry named jail: the shared root file system, which every part of the cluster mounts by this name",
    )
    .at(".volumeSources"),
    rule(source_exists!("self.slurmNodes.controller.volumes.spool"), NO_SOURCE)
        .at(".slurmNodes.controller.volumes.spool"),
    rule(source_exists!("self.slurmNodes.controller.volumes.jail"), NO_SOURCE)
        .at(".slurmNodes.controller.volumes.jail"),
    rule(sources_exist!("self.slurmNodes.controller.volumes.customMounts"), NO_SOURCE)
        .at(".slurmNodes.controller.volumes.customMounts"),
    rule(concat!(no_login!(), source_exists!("self.slurmNodes.login.volumes.jail")), NO_SOURCE)
        .at(".slurmNodes.login.volumes.jail"),
    rule(sources_exist!("self.slurmNodes.login.volumes.jailSubMounts"), NO_SOURCE)
        .at(".slurmNodes.login.volumes.jailSubMounts"),
    rule(sources_exist!("self.slurmNodes.login.volumes.customMounts"), NO_SOURCE)
        .at(".slurmNodes.login.volumes.customMounts"),
    rule(
        concat!(no_workers!(), source_exists!("self.slurmNodes.worker.volumes.spool")),
        NO_SOURCE,
    )
    .at(".slurmNodes.worker.volumes.spool"),
    rule(
        concat!(no_workers!(), source_exists!("self.slurmNodes.worker.volumes.jail")),
        NO_SOURCE,
    )
    .at(".slurmNodes.worker.volumes.jail"),
    rule(
        concat!(no_workers!(), sources_exist!("self.slurmNodes.worker.volumes.jailSubMounts")),
        NO_SOURCE,
    )
    .at(".slurmNodes.worker.volumes.jailSubMounts"),
    rule(
        concat!(no_workers!(), sources_exist!("self.slurmNodes.worker.volumes.customMounts")),
        NO_SOURCE,
    )
    .at(".slurmNodes.worker.volumes.customMounts"),
    rule(
        concat!(
            no_populate_jail!(),
            "!has(self.populateJail.jailSnapshotVolume) || (has(self.populateJail.jailSnapshotVolume.volumeSourceName) && ",
            source_exists!("self.populateJail.jailSnapshotVolume"),
            ")"
        ),
        NO_SOURCE,
    )
    .at(".populateJail.jailSnapshotVolume"),
    rule(
        concat!(
            "!has(self.sConfigController) || ", dialect_s!(), " || has(self.sConfigController.serviceAccountName)"
        ),
        "serviceAccountName is required: name the service account of the pods, or set crVersion to the 1.x release that this object is for",
    )
    .at(".sConfigController.serviceAccountName"),
    // The default of the timeout is that of the dialect, so it is not in the schema.
    rule(
        concat!(
            "!has(self.sConfigController) || duration(has(self.sConfigController.reconfigureWaitTimeout) ? \
             self.sConfigController.reconfigureWaitTimeout : (", dialect_s!(), " ? '1m' : '5m')) > \
             duration(self.sConfigController.reconfigurePollInterval)"
        ),
        "ReconfigureWaitTimeout must be greater than ReconfigurePollInterval",
    )
    .at(".sConfigController.reconfigureWaitTimeout"),
    rule(
        concat!(
            no_workers!(),
            "!has(self.partitionConfiguration) || !has(self.partitionConfiguration.partitions) || \
             !self.partitionConfiguration.partitions.exists(partition, has(partition.nodeSetRefs) && partition.nodeSetRefs.size() > 0)"
        ),
        "Worker size must be zero when NodeSetRefs are used in partition configuration",
    )
    .at(".slurmNodes.worker.size"),
];

pub(super) const NODE_FILTERS: &[Rule] = &[rule(
    "self.all(filter, self.exists_one(other, other.name == filter.name))",
    "names of k8sNodeFilters must be unique: rename or remove the filter that has the name of another",
)];

pub(super) const PARTITIONS: &[Rule] = &[
    rule(
        "self.configType != 'structured' || (has(self.partitions) && size(self.partitions) > 0)",
        "Structured partition configuration requires at least one partition",
    ),
    // Blanks before PartitionName work; to look behind them costs more than a rule may, so the operator does.
    rule(
        "self.configType != 'custom' || !has(self.rawConfig) || \
         self.rawConfig.all(line, ['PartitionName', ' ', '\\t', '\\n', '\\r'].exists(start, line.startsWith(start)))",
        "with configType: custom every line of rawConfig must begin with PartitionName: other lines belong into customSlurmConfig",
    )
    .at(".rawConfig"),
];

const NOT_ONE_VOLUME: &str = "exactly one of volumeSourceName and volumeClaimTemplateSpec must be set";

pub(super) const ONE_VOLUME: Rule = rule(one_volume!("self", "volumeSourceName"), NOT_ONE_VOLUME);

/// Adds the rule to each entry of a list of mounts.
pub(super) fn one_volume_each(mounts: &mut Schema) {
    if let Some(items) = mounts.get_mut("items") {
        items["x-kubernetes-validations"] = json!([ONE_VOLUME]);
    }
}

pub(super) const MOUNTS: &[Rule] = &[rule(own_names!("self", "volumeSourceName"), SAME_MOUNT_NAME)];

pub(super) const BOTH_MOUNTS: &[Rule] = &[rule(
    own_names_in_both!("self.customMounts", "self.jailSubMounts", "volumeSourceName"),
    SAME_MOUNT_NAME,
)];

pub(super) const WORKER: &[Rule] = &[rule(
    concat!(none!(), "(has(self.slurmd.resources) && ", has_cpu_and_memory!("self.slurmd.resources"), ")"),
    NO_CPU_OR_MEMORY,
)
.at(".slurmd.resources")];

pub(super) const LOGIN: &[Rule] = &[
    // At its volumes only where there are login nodes at all: 1.x does not look at them else.
    rule(
        concat!(
            none!(),
            "(",
            one_volume!("self.volumes.jail", "volumeSourceName"),
            " && (!has(self.volumes.customMounts) || self.volumes.customMounts.all(mount, ",
            one_volume!("mount", "volumeSourceName"),
            ")) && (!has(self.volumes.jailSubMounts) || self.volumes.jailSubMounts.all(mount, ",
            one_volume!("mount", "volumeSourceName"),
            ")))"
        ),
        NOT_ONE_VOLUME,
    )
    .at(".volumes"),
    rule(
        concat!(
            none!(),
            "((!has(self.volumes.customMounts) || ",
            own_names!("self.volumes.customMounts", "volumeSourceName"),
            ") && (!has(self.volumes.jailSubMounts) || ",
            own_names!("self.volumes.jailSubMounts", "volumeSourceName"),
            ") && ",
            own_names_in_both!("self.volumes.customMounts", "self.volumes.jailSubMounts", "volumeSourceName"),
            ")"
        ),
        SAME_MOUNT_NAME,
    )
    .at(".volumes"),
    rule(
        "self.sshdServiceType != 'NodePort' || (self.sshdServiceNodePort >= 30000 && self.sshdServiceNodePort <= 32768)",
        "sshdServiceNodePort must be between 30000 and 32768 with sshdServiceType: NodePort",
    )
    .at(".sshdServiceNodePort"),
    rule(
        concat!(no_share!(), "((!has(self.userIsolation.memoryHigh) || quantity(string(self.userIsolation.memoryHigh)).isLessThan(quantity(string(self.sshd.resources['memory'])))) && \
         (!has(self.userIsolation.memoryMax) || quantity(string(self.userIsolation.memoryMax)).isLessThan(quantity(string(self.sshd.resources['memory'])))))"),
        "memoryHigh and memoryMax of one user must be less than the memory of the sshd container: lower them or raise sshd.resources.memory",
    )
    .at(".userIsolation"),
    rule(
        concat!(no_share!(), "has(self.userIsolation.memoryHigh) == has(self.userIsolation.memoryMax) || (has(self.userIsolation.memoryHigh) ? \
         quantity(string(self.userIsolation.memoryHigh)).asApproximateFloat() <= 0.9 * quantity(string(self.sshd.resources['memory'])).asApproximateFloat() : \
         quantity(string(self.userIsolation.memoryMax)).asApproximateFloat() >= 0.8 * quantity(string(self.sshd.resources['memory'])).asApproximateFloat())"),
        "memoryHigh (default: 80 % of sshd.resources.memory) must not exceed memoryMax (default: 90 % of it): set both",
    )
    .at(".userIsolation"),
];

pub(super) const USER_ISOLATION: &[Rule] = &[
    rule(
        "!has(self.memoryHigh) || !has(self.memoryMax) || \
         quantity(string(self.memoryHigh)).compareTo(quantity(string(self.memoryMax))) <= 0",
        "memoryHigh must not exceed memoryMax",
    ),
    rule(
        "!self.enabled || ((!has(self.memoryHigh) || quantity(string(self.memoryHigh)).isGreaterThan(quantity('0'))) && \
         (!has(self.memoryMax) || quantity(string(self.memoryMax)).isGreaterThan(quantity('0'))))",
        "memoryHigh and memoryMax must be more than zero: remove the field to use its default",
    ),
];

pub(super) const ACCOUNTING: &[Rule] = &[
    rule(
        "!self.enabled || (has(self.slurmdbd) && has(self.munge))",
        "accounting needs the containers slurmdbd and munge: give the images of both, or set enabled to false",
    ),
    rule(
    "!self.enabled || !has(self.externalDB) || !self.externalDB.enabled || !has(self.externalDB.passwordSecretKeyRef) || \
     !has(self.externalDB.passwordSecretKeyRef.name) || self.externalDB.passwordSecretKeyRef.name == '' || \
     (has(self.externalDB.host) && self.externalDB.host != '' && has(self.externalDB.user) && self.externalDB.user != '' && \
     has(self.externalDB.passwordSecretKeyRef.key) && self.externalDB.passwordSecretKeyRef.key != '')",
    "externalDB with a password needs host, user and passwordSecretKeyRef.key: set those that are missing",
    )
    .at(".externalDB"),
];

pub(super) const LOOKBACK: Rule =
    rule("self.matches('[1-9]')", "accountingJobsLookback must be greater than zero");
