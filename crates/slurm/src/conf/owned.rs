//! Keys that the operator decides on. A user's line that sets one would take the file and the pods apart.

use super::keys::FileKind;

/// How bad it is if a user's line sets the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// The cluster would stop working: refuse the text.
    Refuse,
    /// It may be meant, and something will not work as documented: say so.
    Warn,
}

/// A key that the operator decides on.
#[derive(Debug, Clone, Copy)]
pub struct Owned {
    pub key: &'static str,
    pub guard: Guard,
    pub reason: &'static str,
    pub instead: &'static str,
}

const fn refuse(key: &'static str, reason: &'static str, instead: &'static str) -> Owned {
    Owned { key, guard: Guard::Refuse, reason, instead }
}

const fn warn(key: &'static str, reason: &'static str, instead: &'static str) -> Owned {
    Owned { key, guard: Guard::Warn, reason, instead }
}

const REMOVE: &str = "remove the line";
/// A slurmdbd that the operator does not run is reached by these.
const RECORDS: &str = "jobs are then recorded where it says, and not by the slurmdbd that the operator runs";
const ACCOUNTING: &str = "set up accounting in the custom resource, unless another slurmdbd is meant";
const KEYS: &str = "the pods hold the keys of one way to authenticate";
const HOSTS: &str = "it names the operator's own pods and services";
const PORT: &str = "services and probes point to the port";

/// Of slurm.conf.
const SLURM: &[Owned] = &[
    warn("AccountingStorageHost", RECORDS, ACCOUNTING),
    warn("AccountingStorageBackupHost", RECORDS, ACCOUNTING),
    warn("AccountingStoragePort", RECORDS, ACCOUNTING),
    warn("AccountingStorageType", RECORDS, ACCOUNTING),
    refuse("AuthAltTypes", KEYS, REMOVE),
    refuse("AuthType", KEYS, REMOVE),
    refuse("BackupAddr", HOSTS, REMOVE),
    refuse("BackupController", HOSTS, REMOVE),
    refuse(
        "ClusterName",
        "the saved state and the accounting database belong to this name",
        "name the cluster in the custom resource",
    ),
    refuse("ControlAddr", HOSTS, REMOVE),
    refuse("ControlMachine", HOSTS, REMOVE),
    refuse("CredType", KEYS, REMOVE),
    refuse("CryptoType", KEYS, REMOVE),
    warn(
        "PlugStackConfig",
        "the operator's plugins are in its own plugstack.conf",
        "add plugins in the custom resource",
    ),
    warn("PluginDir", "plugins are where the image has them", "use an image with the plugins"),
    warn("PrivateData", "slurmctld gives no metrics when it is set", "remove it, or turn metrics off"),
    refuse("SlurmctldAddr", HOSTS, REMOVE),
    refuse("SlurmctldHost", HOSTS, REMOVE),
    warn("SlurmctldLogFile", "the pod's log shows what goes to the operator's choice", "read the pod's log"),
    refuse("SlurmctldPidFile", "the image's programs look for it", REMOVE),
    refuse("SlurmctldPort", PORT, "set the port in the custom resource"),
    warn("SlurmdLogFile", "the pod's log shows what goes to the operator's choice", "read the pod's log"),
    refuse("SlurmdPidFile", "the image's programs look for it", REMOVE),
    refuse("SlurmdPort", PORT, "set the port in the custom resource"),
    refuse("SlurmdSpoolDir", "a volume is mounted there", REMOVE),
    refuse("SlurmdUser", "keys and folders in the pods are this user's", REMOVE),
    refuse("SlurmUser", "keys and folders in the pods are this user's", REMOVE),
    refuse("StateSaveLocation", "the volume that keeps jobs over restarts is mounted there", REMOVE),
];

/// Of slurmdbd.conf.
const SLURMDBD: &[Owned] = &[
    refuse("AuthAltTypes", KEYS, REMOVE),
    refuse("AuthType", KEYS, REMOVE),
    refuse("DbdAddr", HOSTS, REMOVE),
    refuse("DbdBackupHost", HOSTS, REMOVE),
    refuse("DbdHost", HOSTS, REMOVE),
    refuse("DbdPort", PORT, "set the port in the custom resource"),
    warn("LogFile", "the pod's log shows what goes to the operator's choice", "read the pod's log"),
    refuse("PidFile", "the image's programs look for it", REMOVE),
    warn("PluginDir", "plugins are where the image has them", "use an image with the plugins"),
    refuse("SlurmUser", "keys and folders in the pods are this user's", REMOVE),
    refuse("StorageBackupHost", DATABASE, DATABASE_INSTEAD),
    refuse("StorageHost", DATABASE, DATABASE_INSTEAD),
    refuse("StorageLoc", DATABASE, DATABASE_INSTEAD),
    refuse("StoragePass", DATABASE, "put the password into the Secret that the custom resource names"),
    refuse("StoragePassScript", DATABASE, "put the password into the Secret that the custom resource names"),
    refuse("StoragePort", DATABASE, DATABASE_INSTEAD),
    refuse("StorageType", DATABASE, REMOVE),
    refuse("StorageUser", DATABASE, DATABASE_INSTEAD),
];

const DATABASE: &str = "the operator waits for and connects to the database of the custom resource";
const DATABASE_INSTEAD: &str = "describe the database in the custom resource";

/// Of cgroup.conf. CgroupPlugin is the user's: only they know what the machines have.
const CGROUP: &[Owned] =
    &[warn("CgroupMountpoint", "the pods have their cgroups at the operator's choice", REMOVE)];

/// The keys that the operator decides on in a file; in the others there are none.
pub fn owned(file: FileKind) -> &'static [Owned] {
    match file {
        FileKind::Slurm => SLURM,
        FileKind::Slurmdbd => SLURMDBD,
        FileKind::Cgroup => CGROUP,
        FileKind::Gres | FileKind::Mpi | FileKind::Tree | FileKind::Block | FileKind::JobContainer => &[],
    }
}

/// Keys whose value is a list of options, to which a user may add without losing the operator's.
pub fn unions(file: FileKind) -> &'static [&'static str] {
    match file {
        FileKind::Slurm => &["SlurmctldParameters", "AuthInfo", "AuthAltParameters"],
        FileKind::Slurmdbd => &["AuthInfo", "AuthAltParameters"],
        FileKind::Cgroup
        | FileKind::Gres
        | FileKind::Mpi
        | FileKind::Tree
        | FileKind::Block
        | FileKind::JobContainer => &[],
    }
}

/// Those of them whose options of ours no text may take away: with them the daemons know the operator and its tokens.
pub(super) fn kept(file: FileKind) -> &'static [&'static str] {
    match file {
        FileKind::Slurm | FileKind::Slurmdbd => &["AuthInfo", "AuthAltParameters"],
        FileKind::Cgroup
        | FileKind::Gres
        | FileKind::Mpi
        | FileKind::Tree
        | FileKind::Block
        | FileKind::JobContainer => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conf::{Document, Release, Severity};

    #[test]
    fn a_users_own_slurmdbd_is_warned_of_and_let_through() {
        let text = "AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageHost=dbd\n\
                    AccountingStorageBackupHost=other\nAccountingStoragePort=6819\nAccountingStorageUser=x\n";
        let findings = Document::read(FileKind::Slurm, text).check_all(Release::V24_11);
        assert_eq!(findings.len(), 4);
        assert!(findings.iter().all(|found| found.severity == Severity::Warning), "{findings:?}");
    }

    #[test]
    fn every_owned_key_is_one_of_its_file_and_listed_once() {
        for file in FileKind::ALL {
            for entry in owned(file) {
                let known = file.key(entry.key).map(|key| key.name);
                assert_eq!(known, Some(entry.key), "{}", file.file_name());
                let same = owned(file).iter().filter(|other| other.key == entry.key);
                assert_eq!(same.count(), 1, "{}", entry.key);
            }
            assert!(unions(file).iter().all(|key| file.key(key).is_some()));
            assert!(kept(file).iter().all(|key| unions(file).contains(key)));
        }
    }
}
