//! The configuration files of a test cluster.
//!
//! They hold what works without cgroups and without real hardware, and short intervals. A test adds lines
//! of its own at the end, where Slurm lets the last value win.

use std::fmt::Write;
use std::net::Ipv4Addr;

use crate::cache::SlurmVersion;

pub(super) const CONTROLLER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
pub(super) const DBD: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 3);
pub(super) const DATABASE: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 4);
pub(super) const RESTD: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 5);

/// How the daemons know each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Auth {
    /// A key file read by the daemons themselves.
    Slurm,
    /// A munged in each pod.
    Munge,
}

impl Auth {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Slurm => "slurm",
            Self::Munge => "munge",
        }
    }
}

/// What decides the content of the files.
#[derive(Debug, Clone)]
pub(super) struct Config {
    pub(super) version: SlurmVersion,
    pub(super) auth: Auth,
    pub(super) accounting: bool,
    pub(super) extra_conf: String,
}

/// What stays the same in every cluster.
const COMMON: &str = "\
ClusterName=test
SlurmUser=slurm
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key=/etc/slurm/jwt_hs256.key
SlurmctldParameters=enable_configless
StateSaveLocation=/var/spool/slurmctld
SlurmctldPidFile=/run/slurmctld/slurmctld.pid
SlurmctldLogFile=/var/log/slurm/slurmctld.log
SlurmdSpoolDir=/var/spool/slurmd
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=100
MailProg=/usr/bin/true
RebootProgram=/usr/bin/true
ReturnToService=2
SchedulerParameters=batch_sched_delay=0
SlurmdTimeout=30
MaxNodeCount=2000
TreeWidth=65533
DebugFlags=NO_CONF_HASH
NodeSet=dyn Feature=dyn
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
PartitionName=dyn Nodes=dyn MaxTime=1-00:00:00 State=UP
";

impl Config {
    pub(super) fn slurm_conf(&self) -> String {
        let mut text = COMMON.to_owned();
        let _ = writeln!(text, "SlurmctldHost=slurmctld({CONTROLLER})");
        text += &self.auth_lines();
        let _ = writeln!(text, "CredType=cred/{}", self.auth.as_str());
        if self.version != SlurmVersion::V24_11 {
            text += "MetricsType=metrics/openmetrics\n";
        }
        if self.accounting {
            let _ = writeln!(
                text,
                "AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageHost={DBD}"
            );
        }
        text + &self.extra_conf
    }

    pub(super) fn slurmdbd_conf(&self) -> String {
        format!(
            "{}AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key=/etc/slurm/jwt_hs256.key
DbdHost=slurmdbd
DbdAddr={DBD}
SlurmUser=slurm
PidFile=/run/slurmdbd/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost={DATABASE}
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm_acct_db
",
            self.auth_lines()
        )
    }

    fn auth_lines(&self) -> String {
        let mut lines = format!("AuthType=auth/{}\n", self.auth.as_str());
        if self.auth == Auth::Slurm {
            // Users of login pods and tokens need not exist where slurmctld runs.
            lines += "AuthInfo=use_client_ids\n";
        }
        lines
    }
}

/// The names that every pod knows; there is no DNS.
pub(super) fn hosts() -> String {
    format!("{CONTROLLER} slurmctld\n{DBD} slurmdbd\n{DATABASE} mariadb\n{RESTD} slurmrestd\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(version: SlurmVersion, auth: Auth) -> Config {
        Config { version, auth, accounting: false, extra_conf: String::new() }
    }

    fn has(text: &str, line: &str) -> bool {
        text.lines().any(|candidate| candidate == line)
    }

    #[test]
    fn both_files_agree_on_authentication() {
        for (auth, client_ids) in [(Auth::Slurm, true), (Auth::Munge, false)] {
            let config = config(SlurmVersion::V26_05, auth);
            for text in [config.slurm_conf(), config.slurmdbd_conf()] {
                assert!(has(&text, &format!("AuthType=auth/{}", auth.as_str())), "{text}");
                // Munge would take it for the path of a socket.
                assert_eq!(has(&text, "AuthInfo=use_client_ids"), client_ids, "{text}");
            }
        }
    }

    #[test]
    fn accounting_is_named_only_when_there_is_a_slurmdbd() {
        let without = config(SlurmVersion::V24_11, Auth::Slurm);
        assert!(!without.slurm_conf().contains("AccountingStorage"));
        let with = Config { accounting: true, ..without };
        assert!(has(&with.slurm_conf(), "AccountingStorageHost=10.77.0.3"));
    }

    #[test]
    fn old_releases_are_not_given_what_they_refuse() {
        assert!(!config(SlurmVersion::V24_11, Auth::Slurm).slurm_conf().contains("MetricsType"));
        assert!(config(SlurmVersion::V26_05, Auth::Slurm).slurm_conf().contains("MetricsType"));
    }

    #[test]
    fn lines_of_the_test_come_last() {
        let extra_conf = "SlurmdTimeout=5\n".to_owned();
        let text = Config { extra_conf, ..config(SlurmVersion::V26_05, Auth::Slurm) }.slurm_conf();
        assert!(text.ends_with("\nSlurmdTimeout=5\n"), "{text}");
    }
}
