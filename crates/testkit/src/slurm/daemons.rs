//! What each daemon's pod holds and runs.

use std::net::Ipv4Addr;

use anyhow::{Result, anyhow};
use aws_lc_rs::rand;

use super::config::{Auth, CONTROLLER, Config, DATABASE, DBD, RESTD};
use super::pod::{PodFile, PodSpec};

/// Users of images/layers/base.sh.
const SLURM: u32 = 64030;
const MUNGE: u32 = 64031;
const AS_SLURM: &str = "setpriv --reuid slurm --regid slurm --clear-groups";
/// Returns when its socket is there.
const START_MUNGED: &str = "install -d -o munge -g munge /run/munge
setpriv --reuid munge --regid munge --clear-groups munged --syslog --force
";

/// Secrets of one cluster.
#[derive(Debug, Clone)]
pub(super) struct Keys {
    slurm: Vec<u8>,
    munge: Vec<u8>,
    pub(super) jwt: Vec<u8>,
}

impl Keys {
    pub(super) fn generate() -> Result<Self> {
        Ok(Self { slurm: random(1024)?, munge: random(128)?, jwt: random(32)? })
    }
}

fn random(length: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    rand::fill(&mut bytes).map_err(|_| anyhow!("no random bytes"))?;
    Ok(bytes)
}

/// Everything that the daemons of a cluster share.
#[derive(Debug, Clone)]
pub(super) struct Daemons {
    pub(super) config: Config,
    pub(super) keys: Keys,
}

impl Daemons {
    /// In daemon mode: `slurmctld -D` dies when a reconfigure meets a bad slurm.conf. A daemon is in no
    /// process group that tini could signal, logs to a file only, and is another process after each
    /// reconfigure; the script makes up for that, so that the pod ends with slurmctld and not before.
    pub(super) fn slurmctld(&self) -> PodSpec {
        let script = format!(
            "install -d -o slurm -g slurm /run/slurmctld /var/spool/slurmctld /var/log/slurm
log=/var/log/slurm/slurmctld.log
install -o slurm -g slurm /dev/null $log
end() {{
  pid=$(cat /run/slurmctld/slurmctld.pid)
  kill $pid
  tail --pid=$pid --sleep-interval=0.02 --follow /dev/null
  exit 0
}}
trap end TERM
{AS_SLURM} slurmctld
tail --lines=+1 --follow --sleep-interval=0.1 $log &
alive() {{
  pgrep --exact slurmctld > /dev/null || kill -0 $(cat /run/slurmctld/slurmctld.pid) 2> /dev/null
}}
# A look at the moment of a fork can miss both processes, and the next ones can meet the next reconfigures.
gone=0
while [ $gone -lt 10 ]; do
  if alive; then gone=0; else gone=$((gone + 1)); fi
  sleep 0.1
done
echo slurmctld is gone
tail --lines=12 $log
exit 1"
        );
        let mut files = self.auth_files();
        files.push(readable("/etc/slurm/slurm.conf", self.config.slurm_conf()));
        files.push(readable("/etc/slurm/cgroup.conf", "CgroupPlugin=disabled\n"));
        files.push(self.jwt_key());
        pod("slurmctld", CONTROLLER, files, self.with_auth(&script))
    }

    /// A node that makes itself known to slurmctld and gets its configuration from there. With `-b` it says
    /// that it has just booted: without, a restarted pod reports the machine's boot and never ends a reboot.
    pub(super) fn slurmd(&self, name: &str, address: Ipv4Addr, conf: &str) -> PodSpec {
        let script = format!(
            "mkdir -p /var/spool/slurmd
exec slurmd -D -b -N \"$0\" -Z --conf \"$1\" --conf-server {CONTROLLER}:6817"
        );
        let mut command = self.with_auth(&script);
        command.extend([name.to_owned(), conf.to_owned()]);
        pod(name, address, self.auth_files(), command)
    }

    /// Without a key: it passes on the tokens that it gets.
    pub(super) fn slurmrestd(&self) -> PodSpec {
        let files = vec![readable("/etc/slurm/slurm.conf", self.config.slurm_conf())];
        let mut command = words(
            "setpriv --reuid nobody --regid nogroup --clear-groups \
             env SLURM_JWT=daemon SLURMRESTD_JSON=compact slurmrestd -a rest_auth/jwt",
        );
        if !self.config.accounting {
            // 24.11 would not start: its slurmdbd paths need a slurmdbd.
            command.extend(words("-s slurmctld"));
        }
        command.extend(words("0.0.0.0:6820"));
        pod("slurmrestd", RESTD, files, command)
    }

    /// On the empty database of the testbed layer. Its files must have one owner from the start: a chown
    /// here would copy all of them, not only what is written. An init file has one statement a line.
    pub(super) fn mariadb(&self) -> PodSpec {
        let script = "install -d -o mysql -g mysql /run/mysqld
exec mariadbd --no-defaults --user=mysql --datadir=/var/lib/mysql --socket=/run/mysqld/socket --pid-file=/run/mysqld/pid \
  --bind-address=0.0.0.0 --skip-name-resolve --init-file=/etc/slurm-database.sql \
  --innodb-buffer-pool-size=128M --innodb-flush-log-at-trx-commit=0 \
  --innodb-lock-wait-timeout=900 --innodb-snapshot-isolation=OFF";
        let statements = "CREATE DATABASE slurm_acct_db;
CREATE USER slurm@'%' IDENTIFIED BY 'slurm';
GRANT ALL ON slurm_acct_db.* TO slurm@'%';
";
        let files = vec![readable("/etc/slurm-database.sql", statements)];
        pod("mariadb", DATABASE, files, bash(script))
    }

    pub(super) fn slurmdbd(&self) -> PodSpec {
        let script = format!(
            "install -d -o slurm -g slurm /run/slurmdbd
exec {AS_SLURM} slurmdbd -D"
        );
        let mut files = self.auth_files();
        files.push(secret("/etc/slurm/slurmdbd.conf", SLURM, self.config.slurmdbd_conf()));
        files.push(self.jwt_key());
        pod("slurmdbd", DBD, files, self.with_auth(&script))
    }

    fn auth_files(&self) -> Vec<PodFile> {
        vec![match self.config.auth {
            Auth::Slurm => secret("/etc/slurm/slurm.key", SLURM, self.keys.slurm.clone()),
            Auth::Munge => secret("/etc/munge/munge.key", MUNGE, self.keys.munge.clone()),
        }]
    }

    fn jwt_key(&self) -> PodFile {
        secret("/etc/slurm/jwt_hs256.key", SLURM, self.keys.jwt.clone())
    }

    fn with_auth(&self, script: &str) -> Vec<String> {
        match self.config.auth {
            Auth::Slurm => bash(script),
            Auth::Munge => bash(&format!("{START_MUNGED}{script}")),
        }
    }
}

fn pod(name: &str, address: Ipv4Addr, files: Vec<PodFile>, command: Vec<String>) -> PodSpec {
    PodSpec { name: name.to_owned(), address, files, command }
}

fn bash(script: &str) -> Vec<String> {
    ["bash", "-eu", "-c", script].map(str::to_owned).to_vec()
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn readable(path: &'static str, content: impl Into<Vec<u8>>) -> PodFile {
    PodFile { path, owner: SLURM, mode: 0o644, content: content.into() }
}

/// Slurm refuses a key that others could read.
fn secret(path: &'static str, owner: u32, content: impl Into<Vec<u8>>) -> PodFile {
    PodFile { path, owner, mode: 0o600, content: content.into() }
}
