//! The bytes of a file of each kind. After a change: `INSTA_UPDATE=always cargo test -p slurm`, and read the diff.

use insta::assert_snapshot;

use crate::{conf as api, units};

mod examples;

use api::{ConfFile, Document, FileKind, Finding, Release};
use examples::Site;

const NEW: Release = Release::V26_05;
const OLD: Release = Release::V24_11;

/// The file; as a user's text it would have nothing wrong with it either.
fn written(file: &ConfFile) -> String {
    let text = file.render().unwrap();
    let findings: Vec<String> =
        Document::read(file.kind(), &text).check(file.release()).iter().map(Finding::to_string).collect();
    assert_eq!(findings, Vec::<String>::new(), "{text}");
    text
}

#[test]
fn slurm_conf_of_includes() {
    let site = Site::of_a_product();
    assert_snapshot!("entrypoint", written(&examples::entrypoint(NEW, &site)));
    assert_snapshot!("base-26.05", written(&examples::base(NEW, &site)));
    assert_snapshot!("base-24.11", written(&examples::base(OLD, &site)));
}

#[test]
fn slurm_conf_in_one_file() {
    assert_snapshot!("one-file", written(&examples::one_file(OLD, &Site::of_a_product())));
}

#[test]
fn slurm_conf_with_a_users_lines_among_ours() {
    let user =
        "# mine\nSlurmctldParameters=Enable_StepMgr,jobid_dir=/Tmp\nReturnToService=2\nInclude gpu.conf\n";
    assert_snapshot!("sections", written(&examples::sections(NEW, &Site::of_a_product(), user)));
}

#[test]
fn slurmdbd_conf() {
    assert_snapshot!("slurmdbd", written(&examples::slurmdbd(NEW, "munge", "mariadb", "p\\a ss#w='ord")));
}

#[test]
fn cgroup_conf() {
    assert_snapshot!("cgroup-v1", written(&examples::cgroup_v1(OLD)));
    assert_snapshot!("cgroup-v2", written(&examples::cgroup_v2(NEW)));
}

#[test]
fn cgroup_conf_with_a_users_lines_for_ours() {
    let user = Document::read(FileKind::Cgroup, "constraincores=no\n# and\nCgroupPlugin=disabled");
    let mut file = examples::cgroup_v1(NEW);
    assert_eq!(file.drop_overridden(&user), ["ConstrainCores", "CgroupPlugin"]);
    file.comment("##\n Custom config\n##").text(&user);
    assert_snapshot!("cgroup-custom", written(&file));
}

#[test]
fn gres_and_mpi_conf() {
    assert_snapshot!(
        "gres",
        written(&examples::gres(NEW, Some("nvidia"), ["/dev/nvidia[0-1]", "/dev/nvidia2"]))
    );
    assert_snapshot!("mpi", written(&examples::mpi(NEW)));
}

#[test]
fn topologies() {
    assert_snapshot!("topology-tree", written(&examples::tree(NEW)));
    assert_snapshot!("topology-block", written(&examples::blocks(NEW)));
    assert_snapshot!("topology-yaml", examples::topology_yaml().render(NEW).unwrap());
}

#[test]
fn plugins_and_namespaces() {
    assert_snapshot!("plugstack", examples::plugstack("plugstack.conf.d/*.conf").render().unwrap());
    assert_snapshot!("job-container", written(&examples::job_container(OLD)));
    assert_snapshot!("namespace", examples::namespace().render(NEW).unwrap());
}
