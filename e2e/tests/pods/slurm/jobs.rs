//! Jobs of a user who came over ssh: they run in the jail, on two nodes, with a terminal, and are accounted for.

use anyhow::Result;
use testkit::by_hand::Shape;
use testkit::slurm::token;

use super::site::{ALICE, DEADLINE, Site, site};

fn on(shape: Shape, test: impl AsyncFnOnce(&Site) -> Result<()>) -> Result<()> {
    testkit::run_within(DEADLINE, async { test(&site(shape).await?).await })
}

/// The file exists in no image: whoever reads it is in the jail, and is who it says.
async fn a_job_runs_in_the_jail(site: &Site) -> Result<()> {
    site.in_jail("echo only here > /opt/only-in-the-jail").await?;
    let said =
        site.ssh.run(r#"srun -N2 bash -c 'echo $(hostname) $(id -un) $(cat /opt/only-in-the-jail)'"#).await?;
    let mut lines: Vec<_> = said.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["worker-0 alice only here", "worker-1 alice only here"]);
    let files = site.slurm.exec("worker-0", "slurmd", &["ls", "/opt"]).await?;
    assert!(!files.contains("only-in-the-jail"), "the pod's own root has it: {files}");
    Ok(())
}

/// Output lands in the jail wherever it is asked for, in the folder that was asked for.
async fn a_batch_job_writes_into_the_jail(site: &Site) -> Result<()> {
    site.in_jail("install -d -m 777 /opt/results").await?;
    let script = "mkdir -p work; cd work; echo '#!/bin/bash
pwd; id -un' > batch.sh; sbatch --parsable --output /opt/results/%j batch.sh";
    let job = site.ssh.run(script).await?.trim().to_owned();
    ended(site, &job).await?;
    let file = format!("cat /opt/results/{job}; stat -c %U /opt/results/{job}");
    assert_eq!(site.in_jail(&file).await?, "/home/alice/work\nalice\nalice\n");
    Ok(())
}

async fn a_step_has_a_terminal(site: &Site) -> Result<()> {
    let said = site
        .ssh
        .run_on_terminal("srun --quiet --pty bash -c 'tty; hostname; cat /etc/soperator-jail-populated'")
        .await?;
    assert!(said.contains("/dev/pts/") && said.contains("worker-"), "{said}");
    Ok(())
}

/// From the login node on, with a key of the user's own; what is seen there is the jail again.
async fn a_worker_can_be_reached_over_ssh(site: &Site) -> Result<()> {
    site.in_jail("echo only here > /opt/seen-over-ssh").await?;
    let script = r#"
        set -eu
        [ -e .ssh/own ] || ssh-keygen -q -t ed25519 -N '' -f .ssh/own
        grep -qxFf .ssh/own.pub .ssh/authorized_keys || cat .ssh/own.pub >> .ssh/authorized_keys
        ssh -i .ssh/own -o StrictHostKeyChecking=accept-new -o LogLevel=ERROR -o BatchMode=yes \
          worker-1.demo-nodeset-svc 'hostname; id -un; cat /opt/seen-over-ssh'"#;
    assert_eq!(site.ssh.run(script).await?, "worker-1\nalice\nonly here\n");
    Ok(())
}

/// Container tools need user namespaces, which the kernel denies to processes in a chroot.
async fn a_job_may_make_user_namespaces(site: &Site) -> Result<()> {
    let said = site.ssh.run("srun --quiet unshare --user --map-root-user --mount --pid --fork --mount-proc sh -c 'id -u; echo $$'").await?;
    assert_eq!(said, "0\n1\n");
    Ok(())
}

async fn accounting_has_a_job(site: &Site) -> Result<()> {
    let job = site.ssh.run("sbatch --parsable --output /dev/null --wrap 'exit 3'").await?.trim().to_owned();
    ended(site, &job).await?;
    let query =
        format!("sacct --noheader --parsable2 --allocations --jobs {job} --format user,state,exitcode");
    let record = testkit::process::eventually("the job in the database", DEADLINE / 10, async || {
        let record = site.ssh.run(&query).await?;
        Ok(record.contains("FAILED").then_some(record))
    })
    .await?;
    assert_eq!(record, "alice|FAILED|3:0\n");
    Ok(())
}

/// Signed with the key of the Secret, as the operator will do it; asked from inside, as a user would.
async fn rest_answers_to_a_signed_token(site: &Site) -> Result<()> {
    let key = site.slurm.secret("demo-rest-jwt-key", "rest_jwt.key").await?;
    let token = token::sign(&key, ALICE, std::time::Duration::from_secs(60))?;
    let api = site.shape.slurm().newest_api();
    for path in [format!("slurm/{api}/nodes/"), format!("slurmdb/{api}/clusters/")] {
        let call = |token: &str| {
            format!(
                "curl -s -o /dev/null -w '%{{http_code}}' -H 'X-SLURM-USER-TOKEN: {token}' http://demo-rest-svc:6820/{path}"
            )
        };
        assert_eq!(site.ssh.run(&call(&token)).await?, "200", "{path}");
        let refused = site.ssh.run(&call("nonsense")).await?;
        assert_ne!(refused, "200", "{path}");
    }
    Ok(())
}

/// The jail may be of any age; commands and plugins are those of the daemons.
async fn slurm_in_the_jail_is_that_of_the_image(site: &Site) -> Result<()> {
    let daemon = site.controller(&["slurmctld", "-V"]).await?;
    assert_eq!(site.ssh.run("srun --version").await?, daemon);
    let mounted = site
        .ssh
        .run("findmnt --noheadings --output TARGET --raw | grep -c -e /usr/bin/srun$ -e /slurm-wlm$")
        .await?;
    assert_eq!(mounted.trim(), "2");
    // A volume of the pod, below /mnt/jail.upper outside.
    assert_eq!(site.ssh.run("findmnt --noheadings --output FSTYPE /mnt/memory").await?, "tmpfs\n");
    assert_eq!(
        site.ssh.run("srun --quiet findmnt --noheadings --output FSTYPE /mnt/memory").await?,
        "tmpfs\n"
    );
    Ok(())
}

async fn ended(site: &Site, job: &str) -> Result<()> {
    testkit::process::eventually(&format!("the end of job {job}"), DEADLINE / 10, async || {
        let state =
            site.controller(&["squeue", "--noheader", "--states", "PD,R,CG", "--format", "%i"]).await?;
        Ok((!state.lines().any(|line| line == job)).then_some(()))
    })
    .await
}

macro_rules! in_shape {
    ($module:ident, $shape:expr, [$($test:ident),* $(,)?]) => {
        mod $module {
            use super::*;
            $(
                #[test]
                fn $test() -> Result<()> {
                    on($shape, async |site| super::$test(site).await)
                }
            )*
        }
    };
}

in_shape!(
    privileged,
    Shape::Privileged,
    [
        a_job_runs_in_the_jail,
        a_batch_job_writes_into_the_jail,
        a_step_has_a_terminal,
        a_job_may_make_user_namespaces,
        a_worker_can_be_reached_over_ssh,
        accounting_has_a_job,
        rest_answers_to_a_signed_token,
        slurm_in_the_jail_is_that_of_the_image,
    ]
);

in_shape!(
    user_namespaces,
    Shape::UserNamespaces,
    [
        a_job_runs_in_the_jail,
        a_batch_job_writes_into_the_jail,
        a_step_has_a_terminal,
        a_job_may_make_user_namespaces,
        a_worker_can_be_reached_over_ssh,
        accounting_has_a_job,
    ]
);

in_shape!(
    slurm_24_11,
    Shape::Slurm24_11,
    [
        a_job_runs_in_the_jail,
        a_batch_job_writes_into_the_jail,
        a_step_has_a_terminal,
        accounting_has_a_job,
        rest_answers_to_a_signed_token,
        slurm_in_the_jail_is_that_of_the_image,
    ]
);

/// Jobs are in cgroups of their own: one that takes too much is ended, and only that.
#[test]
fn a_job_that_takes_too_much_memory_is_ended() -> Result<()> {
    on(Shape::Privileged, async |site| {
        let greedy = "timeout 60 srun --quiet --mem=200 python3 -c 'bytearray(400000000)' 2>&1; true";
        let said = site.ssh.run(greedy).await?;
        assert!(said.contains("Out Of Memory") || said.contains("oom"), "{said}");
        assert_eq!(site.ssh.run("srun --quiet --mem=200 echo after").await?, "after\n");
        Ok(())
    })
}

/// A container's own are those of a login: no core files, a stack of 8 MiB. Others of the file need a machine on which
/// root may raise them, and the worker says which.
#[test]
fn a_job_has_the_limits_of_the_worker() -> Result<()> {
    on(Shape::Privileged, async |site| {
        let said = site.ssh.run("srun --quiet bash -c 'ulimit -Sc; ulimit -Ss; ulimit -Hl'").await?;
        let limits: Vec<_> = said.lines().collect();
        assert_eq!(limits[..2], ["unlimited"; 2]);
        let log = site.slurm.logs("worker-0", "slurmd").await?;
        let refused = log.lines().find(|line| line.starts_with("limits that this container may not set:"));
        assert_eq!(
            limits[2] == "unlimited",
            !refused.is_some_and(|line| line.contains("memlock")),
            "{said}{log}"
        );
        Ok(())
    })
}

/// Debian builds 26.05 without PMIx; 24.11 has it.
#[test]
fn pmix_is_there_with_slurm_24_11() -> Result<()> {
    on(Shape::Slurm24_11, async |site| {
        let said = site
            .ssh
            .run("srun --quiet -N2 --mpi=pmix bash -c 'echo rank $PMIX_RANK of $PMIX_NAMESPACE'")
            .await?;
        let mut lines: Vec<_> = said.lines().collect();
        lines.sort_unstable();
        assert!(
            lines.len() == 2
                && lines[0].starts_with("rank 0 of slurm")
                && lines[1].starts_with("rank 1 of slurm"),
            "{said}"
        );
        Ok(())
    })
}
