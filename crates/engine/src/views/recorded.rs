//! Every view reads full objects that a real API server sent (see `tests/api/recorded.rs`), whatever is taken out of them.

mod checks;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Node;
use serde::Deserialize;
use serde_json::{Value, json};

use super::*;
use crate::meta::Pairs;
use crate::second::Second;
use checks::{
    Facts, check, condition_facts, decode, each_mutation, facts_of, list_facts, map, recorded, word,
};

#[test]
fn pod() {
    check("pod", |pod: &PodView| {
        let mut facts = pod_facts(pod);
        facts.extend(facts_of([
            ("/spec/hostname", json!(pod.spec.hostname)),
            ("/spec/subdomain", json!(pod.spec.subdomain)),
            ("/status/podIP", json!(pod.status.pod_ip)),
        ]));
        facts
    });
    let pod: PodView = decode(&recorded("pod")).unwrap();
    assert!(pod.is_ready() && !pod.has_ended());
    assert_eq!(pod.ready_since(), pod.condition("Ready").unwrap().since.map(Second::timestamp));
    assert_eq!(
        pod.containers().map(|container| container.name.as_str()).collect::<Vec<_>>(),
        ["prepare", "row", "watch"]
    );
    assert_eq!(
        pod.status.init_containers[0].state,
        ContainerState::Terminated { reason: "Completed".into(), exit_code: 0 }
    );
    assert_eq!(pod.status.containers[0].state, ContainerState::Running);
}

#[test]
fn crashing_pod() {
    check("pod-crashing", |pod: &PodView| {
        let mut facts = pod_facts(pod);
        facts.extend(facts_of([("/status/reason", json!(pod.status.reason))]));
        facts
    });
    let pod: PodView = decode(&recorded("pod-crashing")).unwrap();
    assert!(pod.has_ended() && !pod.is_ready() && pod.ready_since().is_none());
    let states: Vec<_> = pod.containers().map(|container| container.state.clone()).collect();
    let waiting = |reason: &str| ContainerState::Waiting { reason: reason.into() };
    let killed = ContainerState::Terminated { reason: "OOMKilled".into(), exit_code: 137 };
    assert_eq!(states, [waiting("CrashLoopBackOff"), killed, waiting("PodInitializing")]);
}

fn pod_facts(pod: &PodView) -> Facts {
    let mut facts = facts_of([
        ("/spec/nodeName", json!(pod.spec.node_name)),
        ("/spec/serviceAccountName", json!(pod.spec.service_account)),
        ("/status/phase", word(pod.status.phase)),
    ]);
    facts.extend(condition_facts(&pod.status.conditions));
    for (list, containers) in [
        ("containerStatuses", &pod.status.containers),
        ("initContainerStatuses", &pod.status.init_containers),
    ] {
        facts.extend(list_facts(&format!("/status/{list}"), containers, |container| {
            let mut facts = vec![
                ("name", json!(container.name)),
                ("image", json!(container.image)),
                ("ready", json!(container.ready)),
                ("restartCount", json!(container.restart_count)),
            ];
            match &container.state {
                ContainerState::Waiting { reason } => facts.push(("state/waiting/reason", json!(reason))),
                ContainerState::Terminated { reason, exit_code } => {
                    facts.push(("state/terminated/reason", json!(reason)));
                    facts.push(("state/terminated/exitCode", json!(exit_code)));
                }
                ContainerState::Running | ContainerState::Unknown => {}
            }
            facts
        }));
    }
    facts
}

#[test]
fn a_pod_is_found_by_its_node_and_by_what_it_uses() {
    let pod: PodView = decode(&recorded("pod")).unwrap();
    let mut found = Vec::new();
    pod.facets(&mut |facet| found.push(facet));
    let (map, secret) = ("ConfigMap", "Secret");
    // The API server adds the projected token of the service account, with the cluster's certificates.
    let references = [
        ("PersistentVolumeClaim", "hold-crew-0"),
        (map, "all-of-chart"),
        (map, "chart"),
        (map, "kube-root-ca.crt"),
        (map, "projected-chart"),
        (secret, "all-of-seal"),
        (secret, "projected-seal"),
        (secret, "pull"),
        (secret, "seal"),
    ];
    let mut expected = vec![Facet::Node("yard-0".into())];
    expected.extend(references.map(|(kind, name)| Facet::Reference(kind, name.into())));
    assert_eq!(found, expected);
}

#[test]
fn node() {
    check("node", |node: &NodeView| {
        let mut facts = facts_of([
            ("/spec/unschedulable", json!(node.spec.unschedulable)),
            ("/spec/providerID", json!(node.spec.provider_id)),
            ("/status/capacity", map(&node.status.capacity)),
            ("/status/allocatable", map(&node.status.allocatable)),
            ("/status/nodeInfo/bootID", json!(node.status.info.boot_id)),
            ("/status/nodeInfo/kubeletVersion", json!(node.status.info.kubelet_version)),
            ("/status/nodeInfo/architecture", json!(node.status.info.architecture)),
        ]);
        facts.extend(list_facts("/spec/taints", &node.spec.taints, |taint| {
            vec![("key", json!(taint.key)), ("?value", json!(taint.value)), ("effect", word(taint.effect))]
        }));
        facts.extend(list_facts("/status/addresses", &node.status.addresses, |address| {
            vec![("type", json!(address.kind)), ("address", json!(address.address))]
        }));
        facts.extend(list_facts("/status/conditions", &node.status.conditions, |condition| {
            vec![
                ("type", json!(condition.kind)),
                ("status", word(condition.status)),
                ("reason", json!(condition.reason)),
                ("?message", json!(condition.message)),
                ("lastTransitionTime", json!(condition.since)),
            ]
        }));
        facts
    });
    let node: NodeView = decode(&recorded("node")).unwrap();
    assert!(node.holds("Ready") && !node.holds("DiskPressure") && !node.holds("Haunted"));
    assert_eq!(node.address("Hostname"), Some(&"yard-0".into()));
    assert_eq!(node.status.allocatable.get("nvidia.com/gpu"), Some(&"8".into()));
}

#[test]
fn a_heartbeat_changes_nothing() {
    let (before, mut later) = (recorded("node"), recorded("node"));
    for condition in later["status"]["conditions"].as_array_mut().unwrap() {
        condition["lastHeartbeatTime"] = json!("2030-01-01T00:00:00Z");
    }
    assert_ne!(before, later);
    assert_eq!(decode::<NodeView>(&before).unwrap(), decode::<NodeView>(&later).unwrap());
}

#[test]
fn workloads() {
    check("statefulset", |set: &StatefulSetView| {
        facts_of([
            ("/spec/replicas", json!(set.spec.replicas)),
            ("/spec/serviceName", json!(set.spec.service_name)),
            ("/status/observedGeneration", json!(set.status.observed_generation)),
            ("/status/replicas", json!(set.status.replicas)),
            ("/status/readyReplicas", json!(set.status.ready_replicas)),
            ("/status/availableReplicas", json!(set.status.available_replicas)),
            ("/status/currentReplicas", json!(set.status.current_replicas)),
            ("/status/updatedReplicas", json!(set.status.updated_replicas)),
            ("/status/currentRevision", json!(set.status.current_revision)),
            ("/status/updateRevision", json!(set.status.update_revision)),
        ])
    });
    check("deployment", |deployment: &DeploymentView| {
        let mut facts = facts_of([
            ("/spec/replicas", json!(deployment.spec.replicas)),
            ("/status/observedGeneration", json!(deployment.status.observed_generation)),
            ("/status/replicas", json!(deployment.status.replicas)),
            ("/status/readyReplicas", json!(deployment.status.ready_replicas)),
            ("/status/availableReplicas", json!(deployment.status.available_replicas)),
            ("/status/updatedReplicas", json!(deployment.status.updated_replicas)),
        ]);
        facts.extend(condition_facts(&deployment.status.conditions));
        facts
    });
    check("daemonset", |set: &DaemonSetView| {
        facts_of([
            ("/status/observedGeneration", json!(set.status.observed_generation)),
            ("/status/desiredNumberScheduled", json!(set.status.desired)),
            ("/status/currentNumberScheduled", json!(set.status.current)),
            ("/status/updatedNumberScheduled", json!(set.status.updated)),
            ("/status/numberReady", json!(set.status.ready)),
            ("/status/numberAvailable", json!(set.status.available)),
        ])
    });
    check("controllerrevision", |revision: &ControllerRevisionView| {
        facts_of([("/revision", json!(revision.revision))])
    });
    check("poddisruptionbudget", |budget: &PodDisruptionBudgetView| {
        facts_of([
            ("/status/observedGeneration", json!(budget.status.observed_generation)),
            ("/status/currentHealthy", json!(budget.status.current_healthy)),
            ("/status/desiredHealthy", json!(budget.status.desired_healthy)),
            ("/status/disruptionsAllowed", json!(budget.status.disruptions_allowed)),
            ("/status/expectedPods", json!(budget.status.expected_pods)),
        ])
    });
}

#[test]
fn a_workload_is_settled_when_all_of_it_is() {
    let changed = |file: &str, pointer: &str, value: Value| {
        let mut object = recorded(file);
        *object.pointer_mut(pointer).unwrap() = value;
        object
    };
    let set: StatefulSetView = decode(&recorded("statefulset")).unwrap();
    assert!(set.is_settled());
    for (pointer, value) in [
        ("/metadata/generation", json!(9)),
        ("/spec/replicas", json!(3)),
        ("/status/availableReplicas", json!(0)),
        ("/status/updateRevision", json!("crew-new")),
    ] {
        assert!(!decode::<StatefulSetView>(&changed("statefulset", pointer, value)).unwrap().is_settled());
    }
    for (pointer, value) in [
        ("/metadata/generation", json!(9)),
        ("/spec/replicas", json!(3)),
        ("/status/availableReplicas", json!(0)),
        ("/status/updatedReplicas", json!(1)),
    ] {
        assert!(!decode::<DeploymentView>(&changed("deployment", pointer, value)).unwrap().is_settled());
    }
    for (pointer, value) in [
        ("/metadata/generation", json!(9)),
        ("/status/desiredNumberScheduled", json!(2)),
        ("/status/updatedNumberScheduled", json!(0)),
        ("/status/numberAvailable", json!(0)),
    ] {
        assert!(!decode::<DaemonSetView>(&changed("daemonset", pointer, value)).unwrap().is_settled());
    }
}

#[test]
fn batch() {
    check("job", |job: &JobView| {
        let mut facts = facts_of([
            ("/spec/suspend", json!(job.spec.suspend)),
            ("/spec/completions", json!(job.spec.completions)),
            ("/spec/backoffLimit", json!(job.spec.backoff_limit)),
            ("?/status/active", json!(job.status.active)),
            ("/status/ready", json!(job.status.ready)),
            ("/status/succeeded", json!(job.status.succeeded)),
            ("?/status/failed", json!(job.status.failed)),
            ("/status/startTime", json!(job.status.start_time)),
            ("/status/completionTime", json!(job.status.completion_time)),
        ]);
        facts.extend(condition_facts(&job.status.conditions));
        facts
    });
    check("cronjob", |job: &CronJobView| {
        let mut facts = facts_of([
            ("/spec/schedule", json!(job.spec.schedule)),
            ("/spec/suspend", json!(job.spec.suspend)),
            ("/status/lastScheduleTime", json!(job.status.last_schedule_time)),
            ("/status/lastSuccessfulTime", json!(job.status.last_successful_time)),
        ]);
        facts.extend(list_facts("/status/active", &job.status.active, |active| {
            vec![("name", json!(active.name)), ("uid", json!(active.uid))]
        }));
        facts
    });
}

#[test]
fn a_job_is_in_one_phase() {
    let phase = |job: Value| decode::<JobView>(&job).unwrap().phase();
    let held =
        |kind: &str| json!({ "status": { "active": 1, "conditions": [{ "type": kind, "status": "True" }] } });
    assert_eq!(phase(json!({})), JobPhase::Pending);
    assert_eq!(phase(json!({ "status": { "active": 1 } })), JobPhase::Active);
    assert_eq!(phase(json!({ "spec": { "suspend": true } })), JobPhase::Suspended);
    assert_eq!(phase(held("Suspended")), JobPhase::Suspended);
    assert_eq!(phase(held("Complete")), JobPhase::Complete);
    assert_eq!(phase(held("Failed")), JobPhase::Failed);
    // Pods are still being ended: it is not over yet.
    assert_eq!(phase(held("FailureTarget")), JobPhase::Active);
}

#[test]
fn network() {
    check("service", |service: &ServiceView| {
        let spec = &service.spec;
        let mut facts = facts_of([
            ("/spec/type", word(spec.kind)),
            ("/spec/clusterIP", json!(spec.cluster_ip)),
            ("/spec/selector", map(&spec.selector)),
            ("/spec/publishNotReadyAddresses", json!(spec.publish_not_ready_addresses)),
            ("/spec/externalTrafficPolicy", json!(spec.external_traffic_policy)),
            ("/spec/sessionAffinity", json!(spec.session_affinity)),
            ("/spec/loadBalancerClass", json!(spec.load_balancer_class)),
            ("/spec/loadBalancerIP", json!(spec.load_balancer_ip)),
            ("?/spec/externalName", json!(spec.external_name)),
        ]);
        facts.extend(list_facts("/spec/ports", &spec.ports, |port| {
            let target = match &port.target_port {
                PortRef::Number(number) => json!(number),
                PortRef::Name(name) => json!(name),
            };
            vec![
                ("name", json!(port.name)),
                ("protocol", json!(port.protocol)),
                ("port", json!(port.port)),
                ("targetPort", target),
                ("nodePort", json!(port.node_port)),
            ]
        }));
        facts.extend(list_facts(
            "/status/loadBalancer/ingress",
            &service.status.load_balancer.ingress,
            |ingress| vec![("?ip", json!(ingress.ip)), ("?hostname", json!(ingress.hostname))],
        ));
        assert!(!service.is_headless());
        facts
    });
    check("endpointslice", |slice: &EndpointSliceView| {
        list_facts("/endpoints", &slice.endpoints, |endpoint| {
            vec![
                ("addresses", json!(endpoint.addresses)),
                ("conditions/ready", json!(endpoint.conditions.ready)),
                ("conditions/terminating", json!(endpoint.conditions.terminating)),
                ("hostname", json!(endpoint.hostname)),
                ("nodeName", json!(endpoint.node_name)),
                ("targetRef/kind", json!(endpoint.target_ref.kind)),
                ("targetRef/name", json!(endpoint.target_ref.name)),
                ("targetRef/uid", json!(endpoint.target_ref.uid)),
            ]
        })
    });
}

#[test]
fn storage() {
    check("persistentvolumeclaim", |claim: &PersistentVolumeClaimView| {
        facts_of([
            ("/spec/accessModes", json!(claim.spec.access_modes)),
            ("/spec/storageClassName", json!(claim.spec.storage_class_name)),
            ("/spec/volumeName", json!(claim.spec.volume_name)),
            ("/spec/resources/requests", map(&claim.spec.resources.requests)),
            ("/spec/resources/requests/storage", json!(claim.requested())),
            ("/status/phase", word(claim.status.phase)),
            ("/status/capacity", map(&claim.status.capacity)),
            ("/status/capacity/storage", json!(claim.capacity())),
        ])
    });
}

#[test]
fn lease_and_crd() {
    check("lease", |lease: &LeaseView| {
        facts_of([
            ("/spec/holderIdentity", json!(lease.spec.holder)),
            ("/spec/acquireTime", json!(lease.spec.acquire_time)),
            ("/spec/renewTime", json!(lease.spec.renew_time)),
            ("/spec/leaseDurationSeconds", json!(lease.duration().as_secs())),
            ("/spec/leaseTransitions", json!(lease.spec.transitions)),
        ])
    });
    check("customresourcedefinition", |crd: &CrdView| {
        let mut facts = facts_of([
            ("/spec/group", json!(crd.spec.group)),
            ("/spec/names/kind", json!(crd.spec.names.kind)),
            ("/spec/names/plural", json!(crd.spec.names.plural)),
            ("/status/storedVersions", json!(crd.status.stored_versions)),
        ]);
        facts.extend(list_facts("/spec/versions", &crd.spec.versions, |version| {
            vec![
                ("name", json!(version.name)),
                ("served", json!(version.served)),
                ("storage", json!(version.storage)),
            ]
        }));
        facts.extend(condition_facts(&crd.status.conditions));
        facts
    });
    let crd: CrdView = decode(&recorded("customresourcedefinition")).unwrap();
    assert!(crd.serves("v2") && !crd.serves("v1") && !crd.serves("v3"));
}

#[test]
fn metadata_only() {
    check("configmap", |_: &ConfigMapView| Facts::new());
    check("secret", |_: &SecretView| Facts::new());
    check("serviceaccount", |_: &ServiceAccountView| Facts::new());
    check("role", |_: &RoleView| Facts::new());
    check("rolebinding", |_: &RoleBindingView| Facts::new());
}

#[test]
fn what_is_not_known_here_is_something_else() {
    let pod: PodView =
        decode(&json!({ "status": { "phase": "Dreaming", "conditions": [{ "status": "Maybe" }] } })).unwrap();
    assert_eq!((pod.status.phase, pod.status.conditions[0].status), (PodPhase::Unknown, Truth::Unknown));
    let node: NodeView = decode(&json!({ "spec": { "taints": [{ "effect": "NoDream" }] } })).unwrap();
    assert_eq!(node.spec.taints[0].effect, Effect::Other);
    let service: ServiceView = decode(&json!({ "spec": { "type": "Dream", "clusterIP": "None" } })).unwrap();
    assert_eq!((service.spec.kind, service.is_headless()), (ServiceType::Other, true));
    let claim: PersistentVolumeClaimView = decode(&json!({ "status": { "phase": "Dreaming" } })).unwrap();
    assert_eq!(claim.status.phase, ClaimPhase::Unknown);
    let endpoint: EndpointSliceView = decode(&json!({ "endpoints": [{}] })).unwrap();
    assert!(endpoint.endpoints[0].is_ready());
}

#[test]
fn a_whole_object_is_the_typed_one_without_managed_fields_and_version() {
    for file in ["deployment", "deployment-owned"] {
        let mut object = recorded("deployment");
        if file == "deployment-owned" {
            object["metadata"]["ownerReferences"] = json!([{ "apiVersion": "v1", "kind": "ConfigMap", "name": "chart", "uid": "u", "controller": true }]);
            object["metadata"]["finalizers"] = json!(["harbor.example/hold"]);
            object["metadata"]["deletionTimestamp"] = json!("2026-01-02T03:04:05Z");
        }
        let whole: Whole<Deployment> = decode(&object).unwrap();
        let mut full: Deployment = Deployment::deserialize(&object).unwrap();
        full.metadata.managed_fields = None;
        full.metadata.resource_version = None;
        assert_eq!(whole.object, full);
        assert_eq!(whole.meta, decode::<DeploymentView>(&object).unwrap().meta);
    }
}

#[test]
fn a_whole_object_is_read_whenever_its_type_is() {
    let mut object = recorded("deployment");
    let metadata = object.as_object_mut().unwrap().remove("metadata").unwrap();
    each_mutation(&mut object, |object, _| {
        let whole = decode::<Whole<Deployment>>(object).map_err(|error| error.to_string());
        let full = Deployment::deserialize(object).map_err(|error| error.to_string());
        assert_eq!(whole.map(|whole| whole.object), full);
    });
    object["metadata"] = metadata;
    let first: Whole<Deployment> = decode(&object).unwrap();
    each_mutation(&mut object, |object, mutation| {
        if mutation.path == "/metadata" || mutation.path.starts_with("/metadata/") {
            let whole: Option<Whole<Deployment>> = decode(object).ok();
            assert!(whole.is_some() || !mutation.must_decode(), "{mutation:?}");
            assert!(whole.is_none_or(|whole| whole.object.spec == first.object.spec), "{mutation:?}");
        }
    });
    object["metadata"]["resourceVersion"] = json!("999999");
    object["metadata"]["managedFields"] = json!([]);
    assert_eq!(decode::<Whole<Deployment>>(&object).unwrap(), first);
    object["spec"]["replicas"] = json!(77);
    assert_ne!(decode::<Whole<Deployment>>(&object).unwrap(), first);
}

#[test]
fn a_whole_object_knows_its_kind() {
    assert_eq!(Whole::<Deployment>::kind(), DeploymentView::kind());
    assert_eq!(Whole::<Node>::kind(), NodeView::kind());
    assert!(decode::<Whole<Node>>(&json!("text")).is_err());
}

/// What an object costs in the cache: every allocation that is its own, as glibc rounds it, and the places of its texts
/// in the pool, which is a quarter empty on average.
#[test]
fn views_are_small() {
    fn allocation(bytes: usize) -> usize {
        if bytes == 0 { 0 } else { (bytes + 8).next_multiple_of(16).max(32) }
    }
    fn list<T>(list: &[T]) -> usize {
        allocation(size_of_val(list))
    }
    fn pairs(pairs: &Pairs) -> usize {
        allocation(pairs.len() * size_of::<Text>())
    }
    fn texts(texts: &[&str]) -> usize {
        let counters_and_box = allocation(2 * size_of::<usize>() + size_of::<Box<str>>());
        let place = (size_of::<Text>() + 1) * 4 / 3;
        texts.iter().map(|text| allocation(text.len()) + counters_and_box + place).sum()
    }
    fn object<V: View>(view: &V, own: &[&str]) -> usize {
        let meta = view.meta();
        let in_meta =
            pairs(&meta.labels) + pairs(&meta.annotations) + list(&meta.owners) + list(&meta.finalizers);
        allocation(size_of_val(view)) + in_meta + texts(&[meta.name(), &meta.uid]) + texts(own)
    }

    let pod: PodView = decode(&recorded("pod")).unwrap();
    let PodView { spec, status, .. } = &pod;
    let size = object(&pod, &[&status.pod_ip, &spec.claims[0]])
        + list(&spec.claims)
        + list(&spec.config_maps)
        + list(&spec.secrets)
        + list(&status.conditions)
        + list(&status.containers)
        + list(&status.init_containers);
    assert!(size <= 1536, "a pod takes {size} bytes");

    let node: NodeView = decode(&recorded("node")).unwrap();
    let NodeView { spec, status, .. } = &node;
    let size = object(&node, &[&spec.provider_id, &status.info.boot_id, &status.addresses[0].address])
        + list(&spec.taints)
        + list(&status.conditions)
        + list(&status.addresses);
    assert!(size <= 1536, "a node takes {size} bytes");
}
