//! `slurm.nebius.ai/v1alpha1`: what surrounds a cluster.

mod active_check;
mod jailed_config;
mod node_configurator;
mod node_set;
mod node_set_power_state;
mod reaction;

pub use active_check::*;
pub use jailed_config::*;
pub use node_configurator::*;
pub use node_set::*;
pub use node_set_power_state::*;
pub use reaction::*;

use serde_json::Value;

use crate::schema::crd;

pub(crate) fn crds() -> Vec<Value> {
    vec![
        crd::<NodeSet, NodeSetSpec, NodeSetStatus>(
            "Workers of a SlurmCluster that are all alike: the same image, resources and volumes. Each is a pod and a Slurm node of the \
             name `<nodeset>-<ordinal>`.",
        ),
        crd::<NodeSetPowerState, NodeSetPowerStateSpec, NodeSetPowerStateStatus>(
            "Which nodes of an ephemeral NodeSet are powered on. slurmctld writes it when it resumes and suspends nodes.",
        ),
        crd::<NodeConfigurator, NodeConfiguratorSpec, NodeConfiguratorStatus>(
            "A program on every Kubernetes node of a kind: the rebooter, which drains and reboots nodes, or a container of your own.",
        ),
        crd::<JailedConfig, JailedConfigSpec, JailedConfigStatus>(
            "Files that are copied from a ConfigMap into the jail, and what Slurm is told afterwards. The label \
             `app.kubernetes.io/instance` names the cluster.",
        ),
        crd::<ActiveCheck, ActiveCheckSpec, ActiveCheckStatus>(
            "A check of the cluster that runs at intervals, as a Kubernetes Job or as Slurm jobs on the workers, and what is done about \
             nodes that pass or fail.",
        ),
    ]
}
