//! Daemons of one release that start with the files of a test, one set of files after the other.
//!
//! They run beside those of a test cluster, in their pods: what they need is Slurm, a munged and a name.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use slurm::conf::Release;
use testkit::cache::SlurmVersion;
use testkit::slurm::{Auth, SlurmCluster, SlurmClusterBuilder};

/// Where the files are, in the pod.
pub(crate) const FOLDER: &str = "/case";

/// Ends with the shell. Answers, or has ended, when the loop is over.
const START: &str = "
rm -f ended; : > log
slurmctld -D > log 2>&1 & daemon=$!
trap 'kill -KILL $daemon 2> /dev/null; wait' EXIT
for try in {1..500}; do
  scontrol ping > /dev/null 2>&1 && break
  kill -0 $daemon 2> /dev/null || { touch ended; exit; }
  sleep 0.02
done
";

pub(crate) struct Bench {
    cluster: SlurmCluster,
    pod: &'static str,
}

/// What `slurmctld` did with the files.
pub(crate) struct Run {
    pub(crate) log: String,
    /// What the commands said; None if slurmctld ended.
    pub(crate) answer: Option<String>,
}

impl Bench {
    pub(crate) async fn start(version: SlurmVersion) -> Result<Self> {
        Self::with(SlurmCluster::builder(version), "slurmctld").await
    }

    pub(crate) async fn start_with_accounting(version: SlurmVersion) -> Result<Self> {
        Self::with(SlurmCluster::builder(version).accounting(), "slurmdbd").await
    }

    async fn with(builder: SlurmClusterBuilder, pod: &'static str) -> Result<Self> {
        let bench = Self { cluster: builder.nodes(0).auth(Auth::Munge).start().await?, pod };
        bench.clear()?;
        Ok(bench)
    }

    pub(crate) fn cluster(&self) -> &SlurmCluster {
        &self.cluster
    }

    pub(crate) fn release(&self) -> Release {
        match self.cluster.version() {
            SlurmVersion::V24_11 => Release::V24_11,
            SlurmVersion::V26_05 => Release::V26_05,
        }
    }

    /// Takes the files of the case before away. All daemons need a cgroup.conf, as the machine's cgroups are not theirs.
    pub(crate) fn clear(&self) -> Result<()> {
        let folder = self.path("")?;
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        for name in ["state", "spool"] {
            fs::create_dir_all(folder.join(name))?;
        }
        self.file("cgroup.conf", "CgroupPlugin=disabled\n")
    }

    pub(crate) fn file(&self, name: &str, content: &str) -> Result<()> {
        let path = self.path(name)?;
        fs::create_dir_all(path.parent().context("no folder")?)?;
        fs::write(&path, content).with_context(|| format!("write {}", path.display()))?;
        // slurmdbd reads no file that others could.
        fs::set_permissions(
            &path,
            Permissions::from_mode(if name == "slurmdbd.conf" { 0o600 } else { 0o644 }),
        )?;
        Ok(())
    }

    pub(crate) fn read(&self, name: &str) -> Result<String> {
        let path = self.path(name)?;
        let bytes = fs::read(&path).with_context(|| format!("read {}", path.display()))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn path(&self, name: &str) -> Result<PathBuf> {
        self.cluster.path(self.pod, &format!("{FOLDER}/{name}"))
    }

    /// Runs a script among the files, and gives what it says, also as errors.
    pub(crate) async fn shell(&self, script: &str) -> Result<String> {
        let script =
            format!("exec 2>&1; cd {FOLDER}; export SLURM_CONF={FOLDER}/slurm.conf\n(\n{script}\n)\ntrue");
        self.cluster.exec(self.pod, &["bash", "-c", &script]).await
    }

    /// Starts slurmctld and runs a script while it is there.
    pub(crate) async fn slurmctld(&self, ask: &str) -> Result<Run> {
        let answer = self.shell(&format!("{START}{ask}")).await?;
        let ended = self.path("ended")?.exists();
        Ok(Run { log: self.read("log")?, answer: (!ended).then_some(answer) })
    }

    /// The same where slurmctld must start.
    pub(crate) async fn ask(&self, ask: &str) -> Result<String> {
        let run = self.slurmctld(ask).await?;
        run.answer.with_context(|| format!("slurmctld did not start:\n{}", run.log))
    }

    /// What `scontrol show config` says, by the name of the key in small letters.
    pub(crate) async fn config(&self) -> Result<BTreeMap<String, String>> {
        Ok(config(&self.ask("scontrol show config").await?))
    }

    /// The log of a slurmd of this name up to a line that has one of the texts, beside slurmctld.
    pub(crate) async fn slurmd(&self, name: &str, until: &str) -> Result<String> {
        let script = format!(
            ": > slurmd.log
slurmd -D -vv -N {name} > slurmd.log 2>&1 & slurmd=$!
for try in {{1..250}}; do
  grep -qE '{until}' slurmd.log && break
  kill -0 $slurmd 2> /dev/null || break
  sleep 0.02
done
kill -KILL $slurmd
cat slurmd.log"
        );
        let log = self.ask(&script).await?;
        if !log.lines().any(|line| until.split('|').any(|text| line.contains(text))) {
            bail!("slurmd {name} does not say {until}:\n{log}");
        }
        Ok(log)
    }
}

pub(crate) fn config(text: &str) -> BTreeMap<String, String> {
    let pair = |line: &str| {
        let (key, value) = line.split_once('=')?;
        // One blank is of the table, all others are of the value.
        Some((key.trim_end().to_lowercase(), value.strip_prefix(' ').unwrap_or(value).to_owned()))
    };
    text.lines().filter_map(pair).collect()
}
