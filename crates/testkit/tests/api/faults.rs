//! `Chaos`: each fault as its victim sees it, and how the victim gets over it.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::StreamExt;
use http::{Request, StatusCode};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Client, ResourceExt};
use serde_json::Value;
use testkit::ControlPlane;
use testkit::chaos::{Chaos, Fault};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::{config_map, config_map_with, refusal, servers};

/// A ConfigMap `one` behind a proxy.
struct Behind {
    chaos: Chaos,
    client: Client,
    maps: Api<ConfigMap>,
    namespace: String,
}

async fn behind_chaos(name: &str) -> Result<Behind> {
    let plane = ControlPlane::start().await?;
    let namespace = plane.namespace("chaos").await?;
    let direct = plane.client(name).await?;
    let maps: Api<ConfigMap> = Api::namespaced(direct.clone(), &namespace);
    maps.create(&PostParams::default(), &config_map("one")).await?;
    let chaos = Chaos::before_api_server(direct).await?;
    let client = chaos.client()?;
    let maps = Api::namespaced(client.clone(), &namespace);
    Ok(Behind { chaos, client, maps, namespace })
}

#[test]
fn without_a_fault_the_proxy_is_not_felt() -> Result<()> {
    testkit::run(async {
        let Behind { chaos: _chaos, maps, .. } = behind_chaos("chaos-none").await?;
        maps.create(&PostParams::default(), &config_map("two")).await?;
        maps.delete("one", &DeleteParams::default()).await?;
        assert_eq!(refusal(maps.get("one").await)?.code, 404);
        assert_eq!(
            refusal(maps.create(&PostParams::default(), &config_map("two")).await)?.reason,
            "AlreadyExists"
        );
        let names: Vec<_> =
            maps.list(&ListParams::default()).await?.iter().map(ResourceExt::name_any).collect();
        assert!(names.contains(&"two".to_owned()), "{names:?}");
        Ok(())
    })
}

#[test]
fn a_delayed_request_is_answered_late() -> Result<()> {
    const DELAY: Duration = Duration::from_millis(300);
    testkit::run(async {
        let Behind { chaos, maps, .. } = behind_chaos("chaos-delay").await?;
        chaos.inject("/configmaps/one", Fault::Delay(DELAY));
        let begin = Instant::now();
        maps.get("one").await?;
        assert!(begin.elapsed() >= DELAY, "{:?}", begin.elapsed());
        Ok(())
    })
}

#[test]
fn a_cut_request_has_no_answer_and_does_not_reach_the_server() -> Result<()> {
    testkit::run(async {
        let Behind { chaos, maps, .. } = behind_chaos("chaos-cut").await?;
        chaos.inject("/configmaps", Fault::Cut);
        let lost = maps.create(&PostParams::default(), &config_map("two")).await;
        assert!(is_broken(&lost), "{lost:?}");
        chaos.heal();
        assert_eq!(refusal(maps.get("two").await)?.code, 404);
        Ok(())
    })
}

#[test]
fn an_answer_that_breaks_off_is_an_error_and_not_a_short_list() -> Result<()> {
    testkit::run(async {
        let Behind { chaos, maps, .. } = behind_chaos("chaos-cut-after").await?;
        chaos.inject("/configmaps", Fault::CutAfter(20));
        let lost = maps.list(&ListParams::default()).await;
        assert!(is_broken(&lost), "{lost:?}");
        chaos.heal();
        maps.list(&ListParams::default()).await?;
        Ok(())
    })
}

#[test]
fn an_injected_answer_is_what_the_client_decodes() -> Result<()> {
    testkit::run(async {
        let Behind { chaos, maps, client, namespace } = behind_chaos("chaos-answer").await?;
        for code in [StatusCode::INTERNAL_SERVER_ERROR, StatusCode::SERVICE_UNAVAILABLE] {
            chaos.inject("/configmaps", Fault::server_error(code));
            let status = refusal(maps.get("one").await)?;
            assert_eq!((status.code, status.message.as_str()), (code.as_u16(), "injected by a test"));
            chaos.heal();
        }
        chaos.inject("/configmaps", Fault::unauthorized());
        let status = refusal(maps.get("one").await)?;
        assert_eq!((status.code, status.reason.as_str()), (401, "Unauthorized"));
        // Also where the request is too long to be read by the way.
        let long = config_map_with("long", [("text", "x".repeat(500_000).as_str())]);
        for _ in 0..20 {
            assert_eq!(refusal(maps.create(&PostParams::default(), &long).await)?.code, 401);
        }
        // What the rule does not name goes on working.
        Api::<Secret>::namespaced(client, &namespace).list(&ListParams::default()).await?;
        Ok(())
    })
}

#[test]
fn a_fault_for_so_many_times_heals_by_itself() -> Result<()> {
    testkit::run(async {
        let Behind { chaos, maps, .. } = behind_chaos("chaos-times").await?;
        chaos.inject_times("/configmaps", Fault::server_error(StatusCode::BAD_GATEWAY), 2);
        chaos.inject_times("/configmaps", Fault::unauthorized(), 1);
        chaos.inject_times("/configmaps", Fault::Cut, 0);
        let mut codes = Vec::new();
        for _ in 0..3 {
            codes.push(refusal(maps.get("one").await)?.code);
        }
        assert_eq!(codes, [502, 502, 401]);
        maps.get("one").await?;
        Ok(())
    })
}

#[test]
fn a_watcher_misses_nothing_when_connections_are_cut() -> Result<()> {
    testkit::run(async {
        let Behind { chaos, maps, namespace, .. } = behind_chaos("chaos-watch").await?;
        // Changes are made past the proxy, so that they come while the watch is broken.
        let direct = ControlPlane::start().await?.client("chaos-watch-direct").await?;
        let direct: Api<ConfigMap> = Api::namespaced(direct, &namespace);
        let mut events =
            watcher(maps, watcher::Config::default().fields("metadata.name!=kube-root-ca.crt")).boxed();
        let mut seen = Seen::default();
        seen.until(&mut events, |seen| seen.listed).await?;

        for round in 0..3 {
            let (before, after) = (format!("before-{round}"), format!("after-{round}"));
            direct.create(&PostParams::default(), &config_map(&before)).await?;
            seen.until(&mut events, |seen| seen.names.contains(&before)).await?;
            chaos.cut_connections();
            // Nor may a watch come back before the changes are made.
            chaos.inject("", Fault::server_error(StatusCode::SERVICE_UNAVAILABLE));
            direct.delete(&before, &DeleteParams::default()).await?;
            direct.create(&PostParams::default(), &config_map(&after)).await?;
            let broken = seen.broken;
            seen.until(&mut events, |seen| seen.broken > broken).await?;
            chaos.heal();
            seen.until(&mut events, |seen| seen.names.contains(&after) && !seen.names.contains(&before))
                .await?;
        }
        assert_eq!(seen.names, ["after-0", "after-1", "after-2", "one"].map(String::from).into());
        Ok(())
    })
}

#[test]
fn slurm_errors_come_with_status_200_and_the_rest_passes() -> Result<()> {
    testkit::run(async {
        let server = servers::plain(r#"{"pings":[{"hostname":"real"}]}"#).await?;
        let chaos = Chaos::before_http(server.address).await?;
        let client = chaos.client()?;
        let get = async |path: &str| -> Result<Value> {
            Ok(client.request(Request::get(path).body(Vec::new())?).await?)
        };
        chaos.inject_times("/nodes", Fault::slurm_errors(1007, "Protocol authentication error"), 1);

        let answer = get("/slurm/v0.0.42/nodes?update_time=1").await?;
        assert_eq!(answer["errors"][0]["error_number"], 1007);
        assert_eq!(answer["errors"][0]["error"], "Protocol authentication error");
        for path in ["/slurm/v0.0.42/nodes", "/slurm/v0.0.42/ping"] {
            assert_eq!(get(path).await?["pings"][0]["hostname"], "real");
        }
        Ok(())
    })
}

#[test]
fn exactly_so_many_bytes_pass_before_an_answer_breaks_off() -> Result<()> {
    testkit::run(async {
        let server = servers::plain("0123456789").await?;
        let chaos = Chaos::before_http(server.address).await?;
        for (limit, expected) in [(0, ""), (4, "0123"), (10, "0123456789"), (11, "0123456789")] {
            chaos.heal();
            chaos.inject("", Fault::CutAfter(limit));
            let answer = raw_answer(&chaos).await?;
            let (head, body) =
                answer.split_once("\r\n\r\n").with_context(|| format!("no head: {answer:?}"))?;
            ensure!(head.starts_with("HTTP/1.1 200"), "{head}");
            assert_eq!(body, expected, "with a limit of {limit}");
        }
        Ok(())
    })
}

/// Everything that a client gets before the connection ends.
async fn raw_answer(chaos: &Chaos) -> Result<String> {
    let mut stream = TcpStream::connect(chaos.url().trim_start_matches("http://")).await?;
    stream.write_all(b"GET / HTTP/1.1\r\nhost: any\r\nconnection: close\r\n\r\n").await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    Ok(String::from_utf8(answer)?)
}

/// Neither an answer nor a refusal: the connection broke.
fn is_broken<T>(answer: &kube::Result<T>) -> bool {
    matches!(answer, Err(kube::Error::Service(_) | kube::Error::HyperError(_) | kube::Error::ReadEvents(_)))
}

/// What a watcher's events add up to.
#[derive(Debug, Default)]
struct Seen {
    names: BTreeSet<String>,
    listing: BTreeSet<String>,
    listed: bool,
    broken: usize,
}

impl Seen {
    async fn until<S>(&mut self, events: &mut S, done: impl Fn(&Self) -> bool) -> Result<()>
    where
        S: futures::Stream<Item = watcher::Result<watcher::Event<ConfigMap>>> + Unpin,
    {
        while !done(self) {
            match events.next().await.context("the watcher ended")? {
                Ok(watcher::Event::Init) => self.listing.clear(),
                Ok(watcher::Event::InitApply(map)) => drop(self.listing.insert(map.name_any())),
                Ok(watcher::Event::InitDone) => {
                    self.names = std::mem::take(&mut self.listing);
                    self.listed = true;
                }
                Ok(watcher::Event::Apply(map)) => drop(self.names.insert(map.name_any())),
                Ok(watcher::Event::Delete(map)) => drop(self.names.remove(&map.name_any())),
                Err(_) => self.broken += 1,
            }
        }
        Ok(())
    }
}
