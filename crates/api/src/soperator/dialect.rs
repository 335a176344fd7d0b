//! Which release of Soperator a cluster speaks, and the defaults in which the releases differ.
//!
//! Those defaults are not in the schema: the API server fills a default in before anybody can know the dialect.

use serde_json::json;

use super::common::{CgroupVersion, Image, ImagePullPolicy};
use super::v1::{ClusterType, JobAcctGatherType, SlurmClusterSpec};
use super::v1alpha1::{NodeConfiguratorSpec, NodeSetSpec};
use crate::scalar::IntOrString;

/// Which release of Soperator a cluster speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Soperator 1.x: workers belong to the cluster.
    S,
    /// Soperator 5.x: workers are NodeSets.
    H,
}

impl Dialect {
    fn choose<T>(self, s: T, h: T) -> T {
        match self {
            Self::S => s,
            Self::H => h,
        }
    }
}

impl SlurmClusterSpec {
    /// S if the object says that it is of a 1.x release or uses what only 1.x has; else H.
    pub fn dialect(&self) -> Dialect {
        let old = self.cr_version.as_deref().is_some_and(|version| version.starts_with("1."))
            || self.slurm_nodes.worker.is_some()
            || self.cluster_type.is_some();
        if old { Dialect::S } else { Dialect::H }
    }

    /// Fills in what the release that the cluster speaks would have. What is given stays.
    pub fn fill_defaults(&mut self) {
        let dialect = self.dialect();
        let plugins = &mut self.plug_stack_config;
        if dialect == Dialect::S {
            self.cluster_type.get_or_insert(ClusterType::Gpu);
            self.slurm_config.topology_block_size.get_or_insert(18);
            let images = || "/var/cache/enroot-container-images/".to_owned();
            plugins.pyxis.container_image_save.get_or_insert_with(images);
        }
        self.slurm_config.def_mem_per_node.get_or_insert(dialect.choose(1_048_576, 0));
        self.slurm_config.min_job_age.get_or_insert(dialect.choose(28_800, 1_800));
        let logs =
            dialect.choose("/opt/soperator-outputs/nccl_logs", "/opt/soperator-outputs/local/nccl_logs");
        plugins.nccl_debug.output_directory.get_or_insert_with(|| logs.to_owned());
        if let Some(writer) = &mut self.s_config_controller {
            writer.reconfigure_wait_timeout.get_or_insert_with(|| dialect.choose("1m", "5m").to_owned());
        }
        if let Some(config) = &mut self.slurm_nodes.accounting.slurm_config {
            let source = dialect.choose(JobAcctGatherType::Cgroup, JobAcctGatherType::None);
            config.job_acct_gather_type.get_or_insert(source);
        }
    }
}

impl NodeSetSpec {
    /// Fills in what the release that the cluster speaks would have. What is given stays.
    pub fn fill_defaults(&mut self, cluster: Dialect) {
        let at_a_time = || cluster.choose(IntOrString::from("20%"), IntOrString::from(500));
        self.max_unavailable.get_or_insert_with(at_a_time);
        if cluster == Dialect::S {
            self.slurmd.cgroup_version.get_or_insert(CgroupVersion::V2);
        }
    }
}

impl NodeConfiguratorSpec {
    /// S if only the container of 1.x is given; 1.x accepts no object without it.
    pub fn dialect(&self) -> Dialect {
        let old = self.node_configurator.is_some() && self.custom_container.is_none();
        if old { Dialect::S } else { Dialect::H }
    }

    /// Says in the words of 5.x what an object of 1.x means: a container that sleeps, without the network of the host, after one that
    /// sets a sysctl.
    pub fn fill_defaults(&mut self) {
        if self.dialect() == Dialect::H {
            return;
        }
        self.host_network = false;
        if self.init_containers.as_ref().is_none_or(Vec::is_empty) {
            let sysctl = json!({
                "name": "node-sysctl",
                "image": "busybox",
                "command": ["/bin/sh", "-c", "sysctl -w kernel.unprivileged_userns_clone=1"],
                "securityContext": { "privileged": true, "runAsUser": 0 },
            });
            self.init_containers = sysctl.as_object().map(|sysctl| vec![sysctl.clone().into()]);
        }
        if let Some(mut sleeping) = self.node_configurator.take() {
            let words = ["/bin/sh", "-c", "sleep infinity"];
            sleeping.program.command = Some(words.map(str::to_owned).to_vec());
            let image = sleeping.program.image.get_or_insert_with(|| Image {
                pull_policy: ImagePullPolicy::default(),
                repository: "busybox".to_owned(),
                tag: None,
            });
            image.tag.get_or_insert_with(|| "latest".to_owned());
            self.custom_container = Some(sleeping);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::soperator::v1::SlurmCluster;
    use crate::soperator::v1alpha1::NodeSet;

    fn cluster() -> SlurmClusterSpec {
        let sample = include_str!("../../../../deploy/samples/slurm.nebius.ai/slurmcluster-minimal.yaml");
        let mut cluster: SlurmCluster = serde_saphyr::from_str(sample).unwrap();
        cluster.spec.slurm_nodes.accounting.slurm_config = Some(Default::default());
        cluster.spec
    }

    type Chosen = (Option<i32>, Option<i32>, Option<i64>, Option<String>, Option<JobAcctGatherType>);

    fn chosen(mut spec: SlurmClusterSpec) -> Chosen {
        spec.fill_defaults();
        let timeout = spec.s_config_controller.and_then(|writer| writer.reconfigure_wait_timeout);
        let gather = spec.slurm_nodes.accounting.slurm_config.and_then(|config| config.job_acct_gather_type);
        let slurm = spec.slurm_config;
        (slurm.def_mem_per_node, slurm.min_job_age, slurm.topology_block_size, timeout, gather)
    }

    #[test]
    fn each_dialect_has_the_defaults_of_its_release() {
        let new = chosen(cluster());
        assert_eq!(new, (Some(0), Some(1800), None, Some("5m".to_owned()), Some(JobAcctGatherType::None)));
        let old = chosen(SlurmClusterSpec { cr_version: Some("1.22.2".to_owned()), ..cluster() });
        assert_eq!(
            old,
            (Some(1_048_576), Some(28_800), Some(18), Some("1m".to_owned()), Some(JobAcctGatherType::Cgroup))
        );
    }

    #[test]
    fn what_is_given_stays() {
        let mut spec = cluster();
        spec.slurm_config.def_mem_per_node = Some(7);
        spec.slurm_config.topology_block_size = Some(4);
        spec.cluster_type = Some(ClusterType::Cpu);
        spec.fill_defaults();
        assert_eq!(spec.slurm_config.def_mem_per_node, Some(7));
        assert_eq!(spec.slurm_config.topology_block_size, Some(4));
        assert_eq!(spec.cluster_type, Some(ClusterType::Cpu));
    }

    /// Else a cluster would change its dialect by being looked at.
    #[test]
    fn filling_in_defaults_does_not_change_the_dialect() {
        for version in ["1.22.2", "5.0.0"] {
            let mut spec = SlurmClusterSpec { cr_version: Some(version.to_owned()), ..cluster() };
            let dialect = spec.dialect();
            spec.fill_defaults();
            assert_eq!(spec.dialect(), dialect, "{version}");
        }
    }

    #[test]
    fn a_node_set_has_the_defaults_of_its_cluster() {
        let sample = include_str!("../../../../deploy/samples/slurm.nebius.ai/nodeset-minimal.yaml");
        let node_set: NodeSet = serde_saphyr::from_str(sample).unwrap();
        for (dialect, at_a_time, cgroups) in
            [(Dialect::S, "20%".into(), Some(CgroupVersion::V2)), (Dialect::H, 500.into(), None)]
        {
            let mut spec = node_set.spec.clone();
            spec.fill_defaults(dialect);
            assert_eq!((spec.max_unavailable, spec.slurmd.cgroup_version), (Some(at_a_time), cgroups));
        }
    }

    fn configurator(spec: serde_json::Value) -> NodeConfiguratorSpec {
        serde_json::from_value(spec).unwrap()
    }

    #[test]
    fn a_container_of_1x_still_sleeps() {
        let mut spec = configurator(json!({
            "rebooter": { "enabled": false },
            "nodeConfigurator": { "enabled": true, "command": ["ignored"], "nodeSelector": { "gpu": "yes" } },
        }));
        spec.fill_defaults();
        let container = spec.custom_container.clone().unwrap();
        assert!(container.enabled && !spec.rebooter.enabled && !spec.host_network);
        assert_eq!(container.program.command.unwrap(), ["/bin/sh", "-c", "sleep infinity"]);
        let image = container.program.image.unwrap();
        assert_eq!((image.repository.as_str(), image.tag.as_deref()), ("busybox", Some("latest")));
        assert_eq!(container.program.node_selector.unwrap()["gpu"], "yes");
        assert_eq!(spec.init_containers.as_ref().map(Vec::len), Some(1));
        let once = spec.clone();
        spec.fill_defaults();
        assert_eq!(spec, once);
    }

    #[test]
    fn what_a_1x_object_gives_stays() {
        let mut spec = configurator(json!({
            "initContainers": [{ "name": "mine" }],
            "nodeConfigurator": { "enabled": false, "image": { "repository": "alpine", "tag": "3" } },
        }));
        spec.fill_defaults();
        assert!(spec.rebooter.enabled && !spec.custom_container.as_ref().unwrap().enabled);
        assert_eq!(spec.init_containers.unwrap()[0].fields()["name"], "mine");
        assert_eq!(spec.custom_container.unwrap().program.image.unwrap().repository, "alpine");
    }

    #[test]
    fn a_configurator_of_5x_is_left_as_it_is() {
        for spec in [
            json!({}),
            json!({ "customContainer": { "enabled": true }, "nodeConfigurator": { "enabled": false } }),
        ] {
            let mut spec = configurator(spec);
            let before = spec.clone();
            spec.fill_defaults();
            assert!(spec == before && spec.host_network);
        }
    }
}
