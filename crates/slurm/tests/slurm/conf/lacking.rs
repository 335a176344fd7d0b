//! What Debian's builds do not have, and what Slurm refuses: named, so that a change is noticed.

use anyhow::{Result, ensure};
use slurm::conf::keys::{self, Values, slurm as key};
use slurm::conf::{ConfFile, FileKind, Key, Options};
use testkit::cache::SlurmVersion;

use super::bench::{Bench, FOLDER, Run};
use super::parser::sample;
use super::{examples, put_base, site};

/// A setting that this build refuses, and what it says then.
struct Lacking {
    setting: (Key, &'static str),
    says: &'static str,
}

const fn lacks(key: Key, value: &'static str, says: &'static str) -> Lacking {
    Lacking { setting: (key, value), says }
}

/// What Debian's build does not have, or the release not yet. When one of these starts to work, this test says so.
fn lacking(version: SlurmVersion) -> Vec<Lacking> {
    let mut all = vec![
        lacks(key::AcctGatherProfileType, "acct_gather_profile/hdf5", "acct_gather_profile/hdf5"),
        lacks(key::AcctGatherProfileType, "acct_gather_profile/influxdb", "acct_gather_profile/influxdb"),
        lacks(key::AccountingStorageEnforce, "none", "AccountingStorageEnforce"),
        lacks(key::LaunchParameters, "", "LaunchParameters="),
        lacks(key::PrologSlurmctld, "/missing", "Invalid PrologSlurmctld"),
    ];
    match version {
        SlurmVersion::V24_11 => all.extend([
            lacks(key::MetricsType, "metrics/openmetrics", "unrecognized key: MetricsType"),
            lacks(key::NamespaceType, "namespace/linux", "unrecognized key: NamespaceType"),
            lacks(
                key::PowerAction,
                "x Location=slurmd Program=/usr/bin/true",
                "unrecognized key: PowerAction",
            ),
            lacks(key::TopologyPlugin, "topology/flat", "topology/flat"),
            lacks(
                key::AcctGatherInterconnectType,
                "acct_gather_interconnect/ofed",
                "acct_gather_interconnect/ofed",
            ),
        ]),
        SlurmVersion::V26_05 => all.extend([
            lacks(key::PartitionName, "q Nodes=ALL QOS=\"\"", "invalid qos"),
            lacks(key::PowerAction, "x Location=slurmctld Program=/missing", "invalid power action"),
        ]),
    }
    all
}

pub(crate) async fn what_this_build_lacks_is_refused(version: SlurmVersion) -> Result<()> {
    let bench = Bench::start(version).await?;
    for Lacking { setting: (key, value), says } in lacking(version) {
        put_base(&bench, &site(), &format!("{}={value}\n", key.name))?;
        let Run { log, answer } = bench.slurmctld("").await?;
        ensure!(answer.is_none(), "{}={value} works now: take it out of the list", key.name);
        ensure!(
            log.contains(says) && log.contains("fatal"),
            "{}={value} is refused for another reason:\n{log}",
            key.name
        );
    }

    // What the tables say of values. The other way round they say nothing: ring and torus3d need files of their own.
    for rule in keys::VALUE_RULES {
        let Some(key) = FileKind::Slurm.key(rule.key) else { continue };
        let value = match rule.values {
            Values::Is(value) | Values::Has(value) => value,
            Values::Any => sample(key.kind),
            Values::AllBut(_) => "0",
        };
        let line = format!("{}={value}\n", rule.key);
        put_base(&bench, &site(), &line)?;
        if !rule.support.is_known_in(bench.release()) {
            let Run { log, answer } = bench.slurmctld("").await?;
            ensure!(answer.is_none() && log.contains("fatal"), "{line} works now:\n{log}");
        } else if value == "topology/flat" {
            bench.ask("").await?;
        }
        if let Values::AllBut(value) = rule.values {
            put_base(&bench, &site(), &format!("{}={value}\n", rule.key))?;
            bench.ask("").await?;
        }
    }

    // Not slurmctld but slurmd needs cgroups for these.
    for (key, value) in [
        (key::ProctrackType, "proctrack/cgroup"),
        (key::TaskPlugin, "task/cgroup"),
        (key::JobAcctGatherType, "jobacct_gather/cgroup"),
    ] {
        put_base(&bench, &site(), &format!("{}={value}\n", key.name))?;
        bench
            .slurmd("worker-0", "but CgroupPlugin=disabled|CgroupPlugin=disabled in cgroup.conf is not")
            .await?;
    }

    // No release of stock Slurm knows this key, and no file is written with it.
    put_base(&bench, &site(), "NodeName=z AutoResume=Off\n")?;
    let Run { log, answer } = bench.slurmctld("").await?;
    ensure!(answer.is_none() && log.contains("unrecognized key: AutoResume"), log);

    // Without GPUs and their libraries slurmd complains, and takes the devices that the file names.
    let no_nvml = match version {
        SlurmVersion::V24_11 => "libnvidia-ml.so.1: cannot open shared object file",
        SlurmVersion::V26_05 => "we weren't able to find that lib when Slurm was configured",
    };
    for (detect, says) in [("nvml", no_nvml), ("nvidia", "System GPU detection failed")] {
        put_base(&bench, &site(), "")?;
        let file = examples::gres(bench.release(), Some(detect), ["/dev/null,/dev/zero", "/dev/full"]);
        bench.file("gres.conf", &file.render()?)?;
        let said = bench.shell("timeout 5 slurmd -G -N worker-0").await?;
        ensure!(said.contains(says) && said.contains("Gres Name=gpu Type=a100 Count=2"), said);
    }

    // PMIx is there in one of the releases only. slurmctld takes any name, srun does not.
    put_base(&bench, &site(), "")?;
    let srun = bench.ask("timeout 1 srun --mpi=pmix -N1 true; srun --mpi=list").await?;
    assert_eq!(srun.contains("Invalid MPI type 'pmix'"), version == SlurmVersion::V26_05, "{srun}");
    assert_eq!(srun.contains("pmix_v5"), version == SlurmVersion::V24_11, "{srun}");

    // A file that ends with an include and no line break: the parser reads on in what an earlier line left behind.
    put_base(&bench, &site(), "")?;
    let long = format!("{}={}\n", key::SchedulerParameters.name, "defer,bf_continue,batch_sched_delay=1");
    bench.file(
        "slurm.conf",
        &format!(
            "{long}# a long line with several words in it, after which\ninclude /case/slurm_base.conf.noedit"
        ),
    )?;
    let run = bench.slurmctld("").await?;
    ensure!(run.answer.is_none(), "an include without a line break works now");
    let options = Options::new().flag("defer");
    let mut file = ConfFile::new(FileKind::Slurm, bench.release());
    file.set(&key::SchedulerParameters, options).include(&format!("{FOLDER}/slurm_base.conf.noedit"));
    bench.file("slurm.conf", &file.render()?)?;
    bench.ask("").await?;
    Ok(())
}
