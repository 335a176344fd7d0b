//! Every file that the crate writes is loaded by the real daemons, which show what was written; and what the crate
//! says that they refuse is refused.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use slurm::conf::{
    self as api, ConfFile, Document, Extra, Feature, FileKind, NodeLine, Release, Shape, SlurmctldHost,
    Switch, Topology, TopologyYaml, keys,
};
use slurm::units;
use testkit::cache::SlurmVersion;

#[path = "conf/bench.rs"]
mod bench;
#[path = "../../src/conf/golden/examples.rs"]
#[expect(clippy::expect_used, reason = "the names in the examples are good ones")]
mod examples;
#[path = "conf/lacking.rs"]
mod lacking;
#[path = "conf/parser.rs"]
mod parser;
#[path = "conf/refused.rs"]
mod refused;

use bench::{Bench, config};
use examples::{Site, hosts, word};
pub(crate) use lacking::what_this_build_lacks_is_refused;
use parser::not_in_the_tables;
pub(crate) use parser::{
    each_release_knows_the_keys_that_the_tables_say, every_key_that_is_shown_is_in_the_tables,
    faults_are_those_that_slurm_finds, values_are_read_back_as_they_were_given,
    values_on_lines_with_several_keys_are_read_back,
};
pub(crate) use refused::{
    broken_times_and_host_lists_are_found, names_that_would_end_or_be_lost_are_guarded,
    nodes_begin_in_the_states_that_are_let_through, what_ends_slurmctld_within_one_text_is_found,
};

/// A product's site on a test machine: no cgroups, no PMIx in one of the releases, addresses without DNS.
fn site() -> Site {
    Site {
        controller: SlurmctldHost { name: word("slurmctld"), address: Some(word("10.77.0.2")) },
        port: 7817,
        plugin_dir: "/usr/lib/x86_64-linux-gnu/slurm-wlm",
        state: "/case/state",
        spool: "/case/spool",
        mpi_default: "none",
        proctrack: "proctrack/linuxproc",
        task: &["task/affinity"],
        gather: "jobacct_gather/linux",
        handoff: "/usr/bin/true",
        addresses: ["10.77.9.[1-4]", "10.77.9.[5-6]"],
        domain: "",
        includes: ["/case/slurm_base.conf.noedit", "slurm_extra.conf"],
        ..Site::of_a_product()
    }
}

/// The workers of a file where each is a name of its own.
const HOSTS: &str = "10.77.9.1 worker-0\n10.77.9.2 worker-1\n";

fn base(bench: &Bench) -> Result<String> {
    Ok(examples::base(bench.release(), &site()).render()?)
}

/// Puts down what slurm.conf in its first shape needs.
fn put_base(bench: &Bench, site: &Site, extra: &str) -> Result<()> {
    let release = bench.release();
    bench.clear()?;
    bench.file("slurm.conf", &examples::entrypoint(release, site).render()?)?;
    bench.file("slurm_base.conf.noedit", &examples::base(release, site).render()?)?;
    bench.file("slurm_extra.conf", &format!("# extra\n{extra}"))?;
    bench.file("topology.conf", &examples::tree(release).render()?)?;
    bench.file("gres.conf", &gres(release)?)
}

fn gres(release: Release) -> Result<String> {
    Ok(examples::gres(release, None, ["/dev/null,/dev/zero", "/dev/full"]).render()?)
}

/// Whether `scontrol show config` shows what the files say. It adds units, and says some things in its own words.
fn shows(config: &std::collections::BTreeMap<String, String>, key: &str, value: &str) -> bool {
    let (key, value) = (key.to_lowercase(), value.to_lowercase());
    let shown = |key: &str| config.get(key).map(|shown| shown.to_lowercase()).unwrap_or_default();
    let sorted = |text: &str| text.split(',').map(str::to_owned).collect::<BTreeSet<_>>();
    match key.as_str() {
        "defcpupergpu" => shown("jobdefaults") == format!("defcpupergpu={value}"),
        "slurmctldhost" => shown("slurmctldhost[0]") == value,
        "prolog" | "epilog" => (0..4).any(|number| shown(&format!("{key}[{number}]")) == value),
        "slurmuser" | "slurmduser" => shown(&key).starts_with(&format!("{value}(")),
        "prologflags" => sorted(&shown(&key)).contains(&value),
        "mpidefault" => ["(null)", &value].contains(&shown(&key).as_str()),
        "accountingstoragetype" => ["(null)", &value].contains(&shown(&key).as_str()),
        // In an order of its own.
        "debugflags" => sorted(&shown(&key)) == sorted(&value),
        _ => {
            let shown = shown(&key);
            shown == value || shown.split(' ').next() == Some(&value)
        }
    }
}

/// The settings of a file that `scontrol show config` does not show as it should.
async fn not_shown(bench: &Bench, file: &ConfFile) -> Result<Vec<String>> {
    let shown = bench.config().await?;
    let text = file.render()?;
    let document = Document::read(FileKind::Slurm, &text);
    let lines = |key: &str| FileKind::Slurm.key(key).is_some_and(|key| key.kind.line().is_some());
    let missing = document.settings().map(|(_, setting)| setting).filter(|setting| {
        let last = document.get(&setting.key) == Some(&setting.value) || setting.key == "Prolog";
        last && !lines(&setting.key) && !shows(&shown, &setting.key, &setting.value)
    });
    Ok(missing
        .map(|setting| {
            format!("{}={} not {:?}", setting.key, setting.value, shown.get(&setting.key.to_lowercase()))
        })
        .collect())
}

pub(crate) async fn each_shape_of_slurm_conf_is_loaded_and_shown(version: SlurmVersion) -> Result<()> {
    let bench = Bench::start(version).await?;
    let (release, site) = (bench.release(), site());
    let nothing = Vec::<String>::new();

    put_base(&bench, &site, "")?;
    assert_eq!(not_shown(&bench, &examples::base(release, &site)).await?, nothing);

    bench.clear()?;
    bench.shell(&format!("echo '{HOSTS}' >> /etc/hosts")).await?;
    let one_file = examples::one_file(release, &site);
    bench.file("slurm.conf", &one_file.render()?)?;
    bench.file("slurm_extra.conf", "KillWait=31\n")?;
    let mut missing = not_shown(&bench, &one_file).await?;
    missing.retain(|line| line != "KillWait=180 not Some(\"31 sec\")");
    assert_eq!(missing, nothing, "only the user's line in the included file differs");

    bench.clear()?;
    let user = "# mine\nSlurmctldParameters=Enable_StepMgr\nPrologFlags=contain\nReturnToService=2\n\
                Include more.conf\n";
    let sections = examples::sections(release, &site, user);
    bench.file("slurm.conf", &sections.render()?)?;
    bench.file("more.conf", "WaitTime=7\n")?;
    assert_eq!(not_shown(&bench, &sections).await?, nothing);
    assert_eq!(bench.config().await?.get("waittime").map(String::as_str), Some("7 sec"));
    Ok(())
}

pub(crate) async fn nodes_partitions_and_devices_are_as_written(version: SlurmVersion) -> Result<()> {
    let bench = Bench::start(version).await?;
    put_base(&bench, &site(), "")?;
    let ask = "scontrol --all --oneliner show node; scontrol --all --oneliner show partition; slurmd -G -N worker-0";
    let answer = bench.ask(ask).await?;
    let has = |start: &str, parts: &[&str]| {
        let line = answer.lines().find(|line| line.starts_with(start));
        let line = line.with_context(|| format!("no line {start} in\n{answer}"))?;
        for part in parts {
            ensure!(line.contains(part), "no {part} in {line}");
        }
        Ok(())
    };
    has(
        "NodeName=worker-3 ",
        &[
            "NodeAddr=10.77.9.4",
            "CoresPerSocket=2",
            "RealMemory=1024",
            "=cpu,arch=x86",
            "Weight=5",
            "gpu:a100:2",
            "+CLOUD",
        ],
    )?;
    has("NodeName=static-1 ", &["State=DOWN", "Reason=waits for \\ a new disk #7 ["])?;
    has("PartitionName=main ", &["Default=YES", "PriorityTier=10", "MaxTime=UNLIMITED", "TotalNodes=6"])?;
    has("PartitionName=hidden ", &["Hidden=YES", "DefaultTime=01:30:00", "PreemptMode=OFF"])?;
    has("PartitionName=workers ", &["Nodes=worker-[0-3]", "MaxTime=1-12:00:00", "TotalNodes=4"])?;
    has("PartitionName=x86 ", &["Nodes=worker-[0-3]", "TotalNodes=4"])?;
    has("PartitionName=empty ", &["Nodes=(null)", "TotalNodes=0"])?;
    ensure!(
        answer.contains("Name=gpu Type=a100 Count=2") && answer.contains("File=/dev/null,/dev/zero"),
        answer
    );
    Ok(())
}

pub(crate) async fn topologies_are_loaded(version: SlurmVersion) -> Result<()> {
    let bench = Bench::start(version).await?;
    let release = bench.release();
    put_base(&bench, &site(), "")?;
    let tree = bench.ask("scontrol show topology").await?;
    ensure!(
        tree.contains("SwitchName=fabric-1 Level=1 LinkSpeed=400") && tree.contains("Switches=leaf-[1-2]"),
        tree
    );
    ensure!(tree.contains("SwitchName=leaf-1 Level=0 LinkSpeed=1 Nodes=worker-[0-1]"), tree);

    put_base(&bench, &Site { topology: "topology/block", ..site() }, "")?;
    bench.file("topology.conf", &examples::blocks(release).render()?)?;
    let blocks = bench.ask("scontrol show topology").await?;
    for line in ["BlockName=rack-2 BlockIndex=1 Nodes=worker-[2-3] BlockSize=2", "AggregatedBlock=rack-[1-2]"]
    {
        ensure!(blocks.contains(line), "no {line} in\n{blocks}");
    }

    // Names at and above the limits, in topology.conf and, where it is read, in topology.yaml.
    let (long, longer) = ("s".repeat(64), "s".repeat(65));
    for (name, ends) in [
        (long.as_str(), None),
        ("s18446744073709551615", None),
        (&longer, Some("must be shorter than 64 chars")),
        ("s18446744073709551616", Some("invalid child (s18446744073709551615)")),
    ] {
        put_base(&bench, &site(), "")?;
        let text = format!("SwitchName=top Switches={name}\nSwitchName={name} Nodes=worker-0\n");
        bench.file("topology.conf", &text)?;
        let run = bench.slurmctld("").await?;
        assert_eq!(run.answer.is_none(), ends.is_some(), "{name}: {}", run.log);
        ensure!(run.log.contains(ends.unwrap_or_default()), "{name}: {}", run.log);
        let findings = Document::read(FileKind::Tree, &text).check(release);
        assert_eq!(findings.is_empty(), ends.is_none(), "{findings:?}");

        let switch = |name: &str, children, nodes| Switch { name: word(name), children, nodes };
        let top = switch("top", Some(hosts(name)), None);
        let shape = Shape::Tree(vec![top, switch(name, None, Some(hosts("worker-0")))]);
        let topologies = vec![Topology { name: word("t"), cluster_default: true, shape }];
        if let Ok(yaml) = (TopologyYaml { topologies }).render(release) {
            bench.file("topology.yaml", &yaml)?;
            bench.ask("").await?;
        }
    }

    // The older release does not look at the file, and we do not write it.
    put_base(&bench, &site(), "")?;
    bench.file("topology.yaml", &examples::topology_yaml().render(Release::V26_05)?)?;
    let run = bench.slurmctld("scontrol show topology").await?;
    let shown = run.answer.with_context(|| run.log.clone())?;
    ensure!(shown.contains("SwitchName=leaf-1"), shown);
    let read = run.log.contains("Topology Name:racks") && run.log.contains("Topology Name:plain");
    assert_eq!(read, examples::topology_yaml().render(release).is_ok(), "{}", run.log);
    Ok(())
}

/// slurmctld shows all of it. slurmd reads it too, and ends where the cgroups are not: the pods of these tests have
/// none of their own, and those of the machine are not theirs to change.
pub(crate) async fn slurmctld_shows_cgroup_conf_and_slurmd_misses_the_cgroups_it_names(
    version: SlurmVersion,
) -> Result<()> {
    let bench = Bench::start(version).await?;
    let release = bench.release();
    for (file, misses) in [
        (examples::cgroup_v1(release), "/case/cgroups/freezer/"),
        (examples::cgroup_v2(release), "/case/cgroups is not a valid cgroup2 mountpoint"),
    ] {
        // Without something that uses it, nobody reads the file.
        let site = Site { proctrack: "proctrack/cgroup", task: &["task/cgroup", "task/affinity"], ..site() };
        put_base(&bench, &site, "")?;
        let text = file.render()?.replace("/sys/fs/cgroup", "/case/cgroups");
        bench.file("cgroup.conf", &text)?;
        let config = bench.config().await?;
        let mut missing = Vec::new();
        for (_, setting) in Document::read(FileKind::Cgroup, &text).settings() {
            let value = setting.value.clone();
            let shown = config.get(&setting.key.to_lowercase()).cloned();
            let same =
                shown.clone().is_some_and(|shown| shown == value || shown.trim_end_matches('%') == value);
            if !same {
                missing.push(format!("{}={value} not {shown:?}", setting.key));
            }
        }
        assert_eq!(missing, Vec::<String>::new());
        bench.slurmd("worker-0", misses).await?;
    }
    Ok(())
}

/// Every key, with a value that is not Slurm's own.
const MPI: &[(keys::Key, &str)] = &[
    (keys::mpi::PMIxCliTmpDirBase, "/tmp/pmix"),
    (keys::mpi::PMIxCollFence, "ring"),
    (keys::mpi::PMIxDebug, "1"),
    (keys::mpi::PMIxDirectConn, "no"),
    (keys::mpi::PMIxDirectConnEarly, "yes"),
    (keys::mpi::PMIxDirectConnUCX, "yes"),
    (keys::mpi::PMIxDirectSameArch, "yes"),
    (keys::mpi::PMIxEnv, "OMPI_MCA_btl=^uct;UCX_TLS=all"),
    (keys::mpi::PMIxFenceBarrier, "yes"),
    (keys::mpi::PMIxNetDevicesUCX, "mlx5_0:1"),
    (keys::mpi::PMIxShareServerTopology, "no"),
    (keys::mpi::PMIxTimeout, "120"),
    (keys::mpi::PMIxTlsUCX, "tcp"),
];

pub(crate) async fn mpi_conf_is_shown_by_the_build_that_has_pmix(version: SlurmVersion) -> Result<()> {
    let bench = Bench::start(version).await?;
    assert_eq!(MPI.len(), keys::mpi::ALL.len());
    let mut file = examples::mpi(bench.release());
    let written: Vec<_> = MPI.iter().filter(|(key, _)| file.reads(key)).collect();
    for (key, value) in &written {
        if file.value(key.name).is_none() {
            file.set(key, *value);
        }
    }
    put_base(&bench, &site(), "")?;
    bench.file("mpi.conf", &file.render()?)?;
    let config = bench.config().await?;
    // Debian's 26.05 has no PMIx, which takes its keys out of the file: nobody shows them, and nobody minds.
    let has_pmix = version == SlurmVersion::V24_11;
    for (key, value) in written {
        let shown = config.get(&key.name.to_lowercase()).map(String::as_str);
        assert_eq!(shown, has_pmix.then_some(*value), "{}", key.name);
    }
    Ok(())
}

pub(crate) async fn plugins_and_private_folders_are_loaded(version: SlurmVersion) -> Result<()> {
    let bench = Bench::start(version).await?;
    let release = bench.release();
    let (extra, until) = match version {
        SlurmVersion::V24_11 => (
            "JobContainerType=job_container/tmpfs\nDebugFlags=JobContainer\n",
            "job_container tmpfs plugin loaded",
        ),
        SlurmVersion::V26_05 => {
            ("NamespaceType=namespace/linux\nDebugFlags=Namespace\n", "namespace linux plugin loaded")
        }
    };
    put_base(&bench, &site(), extra)?;
    bench.file("job_container.conf", &examples::job_container(release).render()?)?;
    bench.file("namespace.yaml", &examples::namespace().render(Release::V26_05)?)?;
    assert_eq!(examples::namespace().render(release).is_ok(), version == SlurmVersion::V26_05);

    // A plugin that is required and not there ends slurmd and every srun.
    let plugins = examples::plugstack("plugstack.conf.d/*.conf").render()?;
    bench.file("plugstack.conf", &plugins)?;
    bench.file("plugstack.conf.d/a.conf", "optional included.so\n")?;
    let refusal = "plugstack.conf:2: Failed to load plugin chroot.so. Aborting.";
    bench.slurmd("worker-0", refusal).await?;
    let srun = bench.ask("srun true").await?;
    ensure!(srun.contains(refusal), srun);

    bench.file("plugstack.conf", &plugins.replace("required", "optional"))?;
    let log = bench.slurmd("worker-0", until).await?;
    for line in [
        "plugstack.conf:2:Failed to load optional plugin chroot.so",
        "plugstack.conf:3:Failed to load optional plugin spank_pyxis.so",
        "plugstack.conf:4:Failed to load optional plugin /opt/missing.so",
        "plugstack.conf.d/a.conf:1:Failed to load optional plugin included.so",
        "AutoBasePath=1",
    ] {
        ensure!(log.contains(line), "no {line} in\n{log}");
    }
    let own: &[&str] = match version {
        SlurmVersion::V24_11 => &["BasePath=/var/spool/private/worker-0", "Dirs=/tmp,/dev/shm", "Shared=1"],
        SlurmVersion::V26_05 => &[
            "BasePath=/var/spool/private #1 ü\u{2003}/worker-0",
            "path=/tmp base_path=(null) opts=nosuid tmpfs=0",
            "path=/dev/shm base_path=(null) opts=(null) tmpfs=1",
            "CloneNSFlags=CLONE_NEWPID",
            "CloneNSScript_Wait=20",
        ],
    };
    for line in own {
        ensure!(log.contains(line), "no {line} in\n{log}");
    }
    let log = bench.slurmd("worker-3", until).await?;
    ensure!(log.contains("Plugin is disabled on this node"), log);

    // The newer release reads the older file too, under the older name of the plugin.
    put_base(&bench, &site(), "JobContainerType=job_container/tmpfs\n")?;
    bench.file("job_container.conf", &examples::job_container(release).render()?)?;
    bench.slurmd("worker-0", "job_container.conf read successfully").await?;
    Ok(())
}

pub(crate) async fn slurmdbd_gets_an_awkward_password_and_all_else_as_it_is(
    version: SlurmVersion,
) -> Result<()> {
    const PASSWORD: &str = "p#a s=s\\w'o;r,d$(x)`y`ü\\";
    let bench = Bench::start_with_accounting(version).await?;
    let sql = format!(
        "CREATE DATABASE other; CREATE USER other@'%' IDENTIFIED BY '{0}'; GRANT ALL ON other.* TO other@'%';",
        PASSWORD.replace('\\', "\\\\").replace('\'', "''")
    );
    bench
        .cluster()
        .exec(
            "mariadb",
            &["mariadb", "--socket=/run/mysqld/socket", "--default-character-set=utf8mb4", "-e", &sql],
        )
        .await?;

    let file = |password: &str| {
        let mut file = examples::slurmdbd(bench.release(), "munge", "10.77.0.4", password);
        file.set(&keys::slurmdbd::StorageUser, "other").set(&keys::slurmdbd::StorageLoc, "other");
        file.set(&keys::slurmdbd::DbdPort, 7819).set(&keys::slurmdbd::PidFile, "/case/slurmdbd.pid");
        file
    };
    let run = "chown -R slurm .; : > log
setpriv --reuid slurm --regid slurm --clear-groups slurmdbd -D -vvv > log 2>&1 & slurmdbd=$!
for try in {1..500}; do
  grep -qE 'slurmdbd version .* started|Access denied' log && break
  kill -0 $slurmdbd || break
  sleep 0.02
done
kill -KILL $slurmdbd
cat log";
    let written = file(PASSWORD).render()?;
    bench.file("slurmdbd.conf", &written)?;
    let log = bench.shell(run).await?;
    ensure!(log.contains(" started") && !log.contains("Access denied"), "slurmdbd did not start:\n{log}");

    // It says what it has read, but for the password. The option that makes it say so is a level of its own.
    let said: Vec<&str> = log.lines().filter_map(|line| Some(line.split_once(" debug2: ")?.1)).collect();
    let said = said.join("\n");
    assert_eq!(not_in_the_tables(&said, &[FileKind::Slurmdbd], bench.release()), BTreeSet::new(), "{said}");
    let shown = config(&said);
    let document = Document::read(FileKind::Slurmdbd, &written);
    for (_, setting) in document.settings() {
        let key = setting.key.as_str();
        if ["StoragePass", "DebugLevel"].contains(&key) || document.get(key) != Some(&setting.value) {
            continue;
        }
        let shown = shown.get(&key.to_lowercase()).with_context(|| format!("no {key} in\n{log}"))?;
        ensure!(says_the_same(shown, &setting.value), "{key}={} is shown as {shown}", setting.value);
    }

    // Of the names of one thing slurmdbd prefers one, wherever it stands.
    for (key, ours, theirs, [preferred, counts]) in [
        (&keys::slurmdbd::PurgeJobMonths, 11, "PurgeJobAfter=48hours\n", ["11 months", "48 hours"]),
        (&keys::slurmdbd::StepPurge, 3, "PurgeStepMonths=5\nPurgeStepAfter=4\n", ["3 months", "5 months"]),
    ] {
        let user = Document::read(FileKind::Slurmdbd, theirs);
        let shown_as = format!("{}After", key.name.replace("Months", "").replace("StepPurge", "PurgeStep"));
        for (drop, counts) in [(false, preferred), (true, counts)] {
            let mut file = file(PASSWORD);
            file.set(key, ours);
            if drop {
                assert!(file.drop_overridden(&user).contains(&key.name));
            }
            bench.file("slurmdbd.conf", &file.text(&user).render()?)?;
            let log = bench.shell(run).await?;
            let said = log.lines().filter_map(|line| line.split_once(" debug2: ")).map(|(_, said)| said);
            let said = said.filter_map(|said| said.split_once('=')).find(|(key, _)| key.trim() == shown_as);
            let (_, said) = said.with_context(|| format!("no {shown_as} in\n{log}"))?;
            ensure!(said.trim().trim_end_matches('*') == counts, "{theirs} is shown as {said}");
        }
    }

    // The password counts at all.
    bench.file("slurmdbd.conf", &file("wrong").render()?)?;
    let log = bench.shell(run).await?;
    ensure!(log.contains("Access denied"), log);
    Ok(())
}

/// Of the reason slurmctld makes what it likes. Were it not read as one value, nothing behind it would be.
pub(crate) async fn a_node_that_makes_itself_known_has_what_it_was_given(
    version: SlurmVersion,
) -> Result<()> {
    let bench = Bench::start(version).await?;
    let text = "CPUs=1 Reason=\"a  b=c\" Features=own Weight=7 Features=arch=x86";
    let mut extra = Extra::read(text, keys::slurm::node::ALL, &[])?;
    let mut features = vec![word("worker").into()];
    for (_, feature) in extra.iter().filter(|(key, _)| *key == "Features") {
        features.push(Feature::new(feature)?);
    }
    extra.take(&[keys::slurm::node::Feature]);
    let node = NodeLine { features, extra, ..NodeLine::new(hosts("dynamic-0")) };
    let conf = node.slurmd_conf(bench.release())?;
    put_base(&bench, &site(), "")?;
    let script = format!(
        "slurmd -D -Z -N dynamic-0 --conf '{conf}' > slurmd.log 2>&1 & slurmd=$!
for try in {{1..250}}; do
  scontrol --oneliner show node dynamic-0 2> /dev/null | grep 'NodeName=dynamic-0 ' && break
  kill -0 $slurmd 2> /dev/null || break
  sleep 0.02
done
kill -KILL $slurmd
cat slurmd.log"
    );
    let said = bench.ask(&script).await?;
    for part in ["AvailableFeatures=worker,own,arch=x86 ", "CPUTot=1 ", "Weight=7 "] {
        ensure!(said.contains(part), "no {part} in\n{said}");
    }
    Ok(())
}

/// slurmdbd adds units, the number of a user, and blanks.
fn says_the_same(shown: &str, value: &str) -> bool {
    let plain = |text: &str| text.replace(' ', "").trim_end_matches(['*', 's']).to_owned();
    shown == value || shown.split([' ', '(']).next() == Some(value) || plain(shown) == plain(value)
}

pub(crate) async fn a_users_lines_win(version: SlurmVersion) -> Result<()> {
    let bench = Bench::start(version).await?;
    let (release, site) = (bench.release(), site());
    let text = "killwait=33\nDefMemPerCPU=9\nPartitionName=main Nodes=static-0\n\
                SlurmctldParameters=Max_Dbd_Msg_Action=discard,conmgr_threads=8\n";
    let user = Document::read(FileKind::Slurm, text);
    assert_eq!(user.check_all(release), []);

    let mut file = examples::base(release, &site);
    let unions = file.unions(&user, api::unions(FileKind::Slurm));
    assert_eq!(
        file.drop_overridden(&user),
        ["DefMemPerNode", "KillWait", "SlurmctldParameters", "PartitionName"]
    );
    file.comment(" CUSTOM").text(&user);
    assert_eq!(unions.iter().flat_map(|union| &union.overruled).collect::<Vec<_>>(), ["conmgr_threads=8"]);
    for api::Union { key, options, .. } in unions {
        file.set(key, options);
    }
    put_base(&bench, &site, "")?;
    bench.file("slurm_base.conf.noedit", &file.render()?)?;
    let run = bench.slurmctld("scontrol show config; scontrol --oneliner show partition main").await?;
    let answer = run.answer.with_context(|| run.log.clone())?;
    let shown = config(&answer);
    assert_eq!(shown.get("killwait").map(String::as_str), Some("33 sec"));
    assert_eq!(shown.get("defmempercpu").map(String::as_str), Some("9"));
    ensure!(
        shows(&shown, "SlurmctldParameters", file.value("SlurmctldParameters").unwrap_or_default()),
        answer
    );
    ensure!(answer.contains("Max_Dbd_Msg_Action=discard") && answer.contains("enable_stepmgr"), answer);
    ensure!(answer.contains(" Nodes=static-0 "), answer);
    ensure!(!run.log.contains("KillWait 1 specified more than once"), run.log);

    // Slurm prefers one of the names, wherever it stands.
    let older = Document::read(FileKind::Slurm, "SbcastParameters=Compression=none\n");
    let ours = "Compression=lz4";
    for (drop, counts) in [(false, ours), (true, "Compression=none")] {
        let mut file = examples::base(release, &site);
        file.set(&keys::slurm::BcastParameters, ours);
        if drop {
            assert_eq!(file.drop_overridden(&older), ["BcastParameters"]);
        }
        bench.file("slurm_base.conf.noedit", &file.text(&older).render()?)?;
        assert_eq!(bench.config().await?.get("bcastparameters").map(String::as_str), Some(counts));
    }
    Ok(())
}
