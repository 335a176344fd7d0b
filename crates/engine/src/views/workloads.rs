//! Workloads that Kubernetes keeps going for us. Their specifications are compared by the server when they are applied;
//! what counts here is how far it has come. A change of the specification by others shows in the generation.

use super::condition::{Condition, holds};
use super::{Kind, view};
use crate::lean::lean;
use crate::meta::Meta;
use crate::text::Text;

lean! {
    pub struct StatefulSetView {
        #[serde(rename = "metadata")]
        pub meta: Meta,
        pub spec: StatefulSetSpec,
        pub status: StatefulSetStatus,
    }
}

view!(StatefulSetView, Kind::namespaced("apps", "v1", "StatefulSet", "statefulsets"));

lean! {
    pub struct StatefulSetSpec {
        /// None is 1.
        pub replicas: Option<i32>,
        /// Cannot be changed: another one needs a new StatefulSet.
        pub service_name: Text,
    }
}

lean! {
    pub struct StatefulSetStatus {
        pub observed_generation: i64,
        pub replicas: i32,
        pub ready_replicas: i32,
        pub available_replicas: i32,
        pub current_replicas: i32,
        pub updated_replicas: i32,
        pub current_revision: Text,
        pub update_revision: Text,
    }
}

impl StatefulSetView {
    /// Every pod is there, of the newest revision and available.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        let (wanted, status) = (self.spec.replicas.unwrap_or(1), &self.status);
        status.observed_generation >= self.meta.generation
            && status.update_revision == status.current_revision
            && [status.replicas, status.available_replicas] == [wanted; 2]
    }
}

lean! {
    pub struct DeploymentView {
        #[serde(rename = "metadata")]
        pub meta: Meta,
        pub spec: DeploymentSpec,
        pub status: DeploymentStatus,
    }
}

view!(DeploymentView, Kind::namespaced("apps", "v1", "Deployment", "deployments"));

lean! {
    pub struct DeploymentSpec {
        /// None is 1.
        pub replicas: Option<i32>,
    }
}

lean! {
    pub struct DeploymentStatus {
        pub observed_generation: i64,
        pub replicas: i32,
        pub ready_replicas: i32,
        pub available_replicas: i32,
        pub updated_replicas: i32,
        pub conditions: Box<[Condition]>,
    }
}

impl DeploymentView {
    /// Every pod is there, of the newest template and available.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        let (wanted, status) = (self.spec.replicas.unwrap_or(1), &self.status);
        status.observed_generation >= self.meta.generation
            && [status.replicas, status.updated_replicas, status.available_replicas] == [wanted; 3]
    }

    /// Enough pods are available, as the rollout strategy counts.
    #[must_use]
    pub fn is_available(&self) -> bool {
        holds(&self.status.conditions, "Available")
    }
}

lean! {
    pub struct DaemonSetView {
        #[serde(rename = "metadata")]
        pub meta: Meta,
        pub status: DaemonSetStatus,
    }
}

view!(DaemonSetView, Kind::namespaced("apps", "v1", "DaemonSet", "daemonsets"));

lean! {
    pub struct DaemonSetStatus {
        pub observed_generation: i64,
        #[serde(rename = "desiredNumberScheduled")]
        pub desired: i32,
        #[serde(rename = "currentNumberScheduled")]
        pub current: i32,
        #[serde(rename = "updatedNumberScheduled")]
        pub updated: i32,
        #[serde(rename = "numberReady")]
        pub ready: i32,
        #[serde(rename = "numberAvailable")]
        pub available: i32,
    }
}

impl DaemonSetView {
    /// Every node that shall have a pod has one, of the newest template and available.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        let status = &self.status;
        status.observed_generation >= self.meta.generation
            && [status.current, status.updated, status.available] == [status.desired; 3]
    }
}

lean! {
    /// A revision of a template; which one it is, is in its name and labels.
    pub struct ControllerRevisionView {
        #[serde(rename = "metadata")]
        pub meta: Meta,
        pub revision: i64,
    }
}

view!(ControllerRevisionView, Kind::namespaced("apps", "v1", "ControllerRevision", "controllerrevisions"));

lean! {
    pub struct PodDisruptionBudgetView {
        #[serde(rename = "metadata")]
        pub meta: Meta,
        pub status: PodDisruptionBudgetStatus,
    }
}

view!(
    PodDisruptionBudgetView,
    Kind::namespaced("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets")
);

lean! {
    pub struct PodDisruptionBudgetStatus {
        pub observed_generation: i64,
        pub current_healthy: i32,
        pub desired_healthy: i32,
        pub disruptions_allowed: i32,
        pub expected_pods: i32,
    }
}
