//! Leader election and its fence on a real API server, beside holders of client-go's making.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use engine::fence::{Fence, fenced_client, is_fenced};
use engine::leader::{Election, Settings, Standing, Status};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client};
use serde_json::json;
use telemetry::Registry;
use testkit::ControlPlane;
use testkit::process::until;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

const PATIENCE: Duration = Duration::from_secs(30);
const NAME: &str = "leader";
const RETRY: Duration = Duration::from_millis(500);

fn settings(namespace: &str, identity: &str) -> Settings {
    Settings {
        lease_duration: Duration::from_secs(4),
        renew_deadline: Duration::from_secs(3),
        retry_period: RETRY,
        ..Settings::new(namespace, NAME, identity)
    }
}

struct Running {
    fence: Fence,
    status: Status,
    shutdown: CancellationToken,
    /// How many terms have been told to end.
    ended: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

fn start(client: Client, settings: Settings) -> Running {
    let election = Election::new(client, settings, &Registry::new());
    let (fence, status) = (election.fence(), election.status());
    let (shutdown, ended) = (CancellationToken::new(), Arc::new(AtomicUsize::new(0)));
    let over = Arc::clone(&ended);
    let task = tokio::spawn(election.run(shutdown.clone(), move |term| {
        let over = Arc::clone(&over);
        async move {
            term.cancelled().await;
            over.fetch_add(1, Ordering::Relaxed);
        }
    }));
    Running { fence, status, shutdown, ended, task }
}

impl Running {
    async fn until(&mut self, wanted: Standing) -> Result<()> {
        let reached = self.status.wait_for(|now| *now == wanted);
        let reached = tokio::time::timeout(PATIENCE, reached).await;
        ensure!(matches!(reached, Ok(true)), "not {wanted}: {}", self.status.get());
        Ok(())
    }

    async fn stop(self) -> Result<()> {
        self.shutdown.cancel();
        Ok(self.task.await?)
    }
}

fn following(holder: &str) -> Standing {
    Standing::Following(holder.to_owned())
}

async fn spec(leases: &Api<Lease>) -> Result<LeaseSpec> {
    leases.get(NAME).await?.spec.context("no spec")
}

async fn patch(leases: &Api<Lease>, spec: serde_json::Value) -> Result<()> {
    leases.patch(NAME, &PatchParams::default(), &Patch::Merge(json!({ "spec": spec }))).await?;
    Ok(())
}

#[test]
fn the_first_leads_the_second_follows_and_takes_over_at_once() -> Result<()> {
    testkit::run(async {
        let plane = ControlPlane::start().await?;
        let namespace = plane.namespace("leader").await?;
        let client = plane.client("elections").await?;
        let leases: Api<Lease> = Api::namespaced(client.clone(), &namespace);
        let mut one = start(client.clone(), settings(&namespace, "one"));
        one.until(Standing::Leading).await?;
        let mut two = start(client, settings(&namespace, "two"));
        two.until(following("one")).await?;
        assert!(one.fence.is_open() && !two.fence.is_open());

        let lease = spec(&leases).await?;
        assert_eq!(lease.holder_identity.as_deref(), Some("one"));
        assert_eq!((lease.lease_duration_seconds, lease.lease_transitions), (Some(4), Some(0)));
        assert!(lease.acquire_time.is_some() && lease.renew_time >= lease.acquire_time);

        let fence = one.fence.clone();
        one.stop().await?;
        assert!(!fence.is_open());
        let released = Instant::now();
        two.until(Standing::Leading).await?;
        assert!(released.elapsed() < RETRY + Duration::from_secs(1), "{:?}", released.elapsed());
        assert_eq!(spec(&leases).await?.lease_transitions, Some(1));

        two.stop().await?;
        let lease = spec(&leases).await?;
        assert_eq!((lease.holder_identity.as_deref(), lease.lease_duration_seconds), (Some(""), Some(1)));
        Ok(())
    })
}

#[test]
fn a_foreign_holder_keeps_us_off_as_long_as_it_renews() -> Result<()> {
    testkit::run(async {
        let plane = ControlPlane::start().await?;
        let namespace = plane.namespace("leader").await?;
        let client = plane.client("elections").await?;
        let leases: Api<Lease> = Api::namespaced(client.clone(), &namespace);
        // Its clock is years off; it renews every second a lease of two.
        let renewal = |second: u32| {
            json!({
                "holderIdentity": "go_0a1b", "leaseDurationSeconds": 2, "leaseTransitions": 7,
                "acquireTime": "2001-01-01T00:00:00.000000Z",
                "renewTime": format!("2001-01-01T00:00:{second:02}.000000Z"),
            })
        };
        let lease = json!({ "metadata": { "name": NAME }, "spec": renewal(0) });
        leases.create(&PostParams::default(), &serde_json::from_value(lease)?).await?;
        let mut us = start(client, settings(&namespace, "us"));
        us.until(following("go_0a1b")).await?;
        for second in 1..6 {
            patch(&leases, renewal(second)).await?;
            tokio::time::sleep(Duration::from_secs(1)).await;
            assert_eq!(us.status.get(), following("go_0a1b"));
        }
        patch(&leases, renewal(6)).await?;
        let last = Instant::now();
        us.until(Standing::Leading).await?;
        assert!(last.elapsed() >= Duration::from_secs(2), "{:?}", last.elapsed());
        let taken = spec(&leases).await?;
        assert_eq!((taken.holder_identity.as_deref(), taken.lease_transitions), (Some("us"), Some(8)));
        us.stop().await
    })
}

#[test]
fn a_stolen_lease_closes_the_fence_and_ends_the_term_at_the_next_renewal() -> Result<()> {
    testkit::run(async {
        let plane = ControlPlane::start().await?;
        let namespace = plane.namespace("leader").await?;
        let client = plane.client("elections").await?;
        let leases: Api<Lease> = Api::namespaced(client.clone(), &namespace);
        let mut us = start(client, settings(&namespace, "us"));
        us.until(Standing::Leading).await?;
        patch(&leases, json!({ "holderIdentity": "thief" })).await?;
        let stolen = Instant::now();
        us.until(following("thief")).await?;
        assert!(stolen.elapsed() < RETRY + Duration::from_secs(1), "{:?}", stolen.elapsed());
        assert!(!us.fence.is_open());
        until("the term's end", PATIENCE, || Ok((us.ended.load(Ordering::Relaxed) == 1).then_some(())))
            .await?;
        us.until(Standing::Leading).await?;
        assert!(stolen.elapsed() >= Duration::from_secs(4), "the thief had its time");
        us.stop().await
    })
}

#[test]
fn a_deleted_lease_never_makes_two_leaders() -> Result<()> {
    testkit::run(async {
        let plane = ControlPlane::start().await?;
        let namespace = plane.namespace("leader").await?;
        let client = plane.client("elections").await?;
        let leases: Api<Lease> = Api::namespaced(client.clone(), &namespace);
        let mut one = start(client.clone(), settings(&namespace, "one"));
        one.until(Standing::Leading).await?;
        let mut two = start(client, settings(&namespace, "two"));
        two.until(following("one")).await?;
        for _ in 0..3 {
            leases.delete(NAME, &DeleteParams::default()).await?;
            let end = Instant::now() + 3 * RETRY;
            while Instant::now() < end {
                assert!(!(one.fence.is_open() && two.fence.is_open()), "two lead");
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            assert_eq!(spec(&leases).await?.holder_identity.as_deref(), Some("one"));
        }
        one.stop().await?;
        two.stop().await
    })
}

#[test]
fn a_leader_sends_one_patch_per_period_and_nothing_else() -> Result<()> {
    testkit::run(async {
        let plane = ControlPlane::start().await?;
        let namespace = plane.namespace("leader").await?;
        let admin = plane.client("leader-admin").await?;
        let mut us = start(plane.client("steady-leader").await?, settings(&namespace, "us"));
        us.until(Standing::Leading).await?;
        let calls = plane.api_calls();
        let mark = calls.mark(&admin).await?;
        let began = Instant::now();
        tokio::time::sleep(8 * RETRY).await;
        let seen = calls.since(&admin, mark).await?.by("steady-leader");
        let periods = began.elapsed().as_millis() / RETRY.as_millis();
        let patches = seen.of("leases").filter(|call| call.verb == "patch" && call.code == 200);
        assert_eq!(patches.len(), seen.len(), "{seen:?}");
        assert!((6..=usize::try_from(periods)? + 1).contains(&seen.len()), "{seen:?}");
        us.stop().await
    })
}

#[test]
fn a_missing_namespace_and_a_refusal_are_told_and_waited_out() -> Result<()> {
    testkit::run(async {
        let plane = ControlPlane::start().await?;
        let namespace = plane.namespace("leader").await?;
        let mut lost = start(plane.client("elections").await?, settings("no-such-namespace", "us"));
        lost.until(Standing::Failing("namespaces \"no-such-namespace\" not found".to_owned())).await?;
        let nobody = plane.client_as("unelectable", "nobody").await?;
        let mut refused = start(nobody, settings(&namespace, "us"));
        let told = refused.status.wait_for(|now| matches!(now, Standing::Failing(_)));
        assert_eq!(tokio::time::timeout(PATIENCE, told).await, Ok(true));
        let text = refused.status.get().to_string();
        assert!(text.contains("\"unelectable\" cannot get resource \"leases\""), "{text}");
        assert!(!lost.fence.is_open() && !refused.fence.is_open());
        lost.stop().await?;
        refused.stop().await
    })
}

#[test]
fn a_closed_fence_refuses_writes_and_lets_reads_pass() -> Result<()> {
    testkit::run(async {
        let plane = ControlPlane::start().await?;
        let namespace = plane.namespace("leader").await?;
        let kubeconfig: Kubeconfig = serde_json::from_value(plane.kubeconfig("fenced", "system:masters")?)?;
        let (fence, gate) = Fence::closed("default/leader");
        for retries in [true, false] {
            gate.close();
            let mut config =
                kube::Config::from_custom_kubeconfig(kubeconfig.clone(), &KubeConfigOptions::default())
                    .await?;
            config.default_retry = retries;
            let maps: Api<ConfigMap> = Api::namespaced(fenced_client(config, fence.clone())?, &namespace);
            let metadata = ObjectMeta { name: Some("fenced".to_owned()), ..ObjectMeta::default() };
            let map = ConfigMap { metadata, ..ConfigMap::default() };

            let calls = plane.api_calls();
            let admin = plane.client("leader-admin").await?;
            let mark = calls.mark(&admin).await?;
            let refused = maps.create(&PostParams::default(), &map).await.map(|_| ()).unwrap_err();
            assert!(is_fenced(&refused), "{refused:?}");
            assert!(refused.to_string().contains("default/leader is no longer held"), "{refused}");
            let deletion = maps.delete("fenced", &DeleteParams::default()).await.map(|_| ()).unwrap_err();
            assert!(is_fenced(&deletion), "{deletion:?}");
            maps.list(&ListParams::default()).await?;
            assert_eq!(calls.since(&admin, mark).await?.by("fenced").len(), 1, "only the list is sent");

            gate.open_until(tokio::time::Instant::now() + PATIENCE);
            maps.create(&PostParams::default(), &map).await?;
            let missing = maps.delete("missing", &DeleteParams::default()).await.map(|_| ()).unwrap_err();
            assert!(!is_fenced(&missing), "{missing:?}");
            maps.delete("fenced", &DeleteParams::default()).await?;
        }
        Ok(())
    })
}
