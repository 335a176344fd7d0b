//! What the real slurmrestd seldom does, made to happen: each fault has to be an error of its own kind, in bounded
//! time and memory.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::FutureExt;
use futures::future::BoxFuture;
use http::StatusCode;
use serde_json::json;
use slurm_rest::decode::Limits;
use slurm_rest::{
    ApiVersion, Client, Endpoint, JobDescription, JobFilter, Metrics, NodeUpdate, Options, Requeue,
    ReservationRequest, RestError,
};
use testkit::cache::SlurmVersion;
use testkit::chaos::{Chaos, Fault};
use testkit::slurm::SlurmCluster;
use tokio::net::TcpListener;

use crate::{Log, client_at, cluster, relay, root};

struct Faulty {
    cluster: SlurmCluster,
    chaos: Chaos,
    client: Client,
}

async fn faulty(release: SlurmVersion) -> Result<Faulty> {
    let cluster = cluster(release).nodes(1).start().await?;
    let address = cluster.rest_url().trim_start_matches("http://").parse()?;
    let chaos = Chaos::before_http(address).await?;
    let client = client_at(&chaos.url(), &cluster, ApiVersion::V0_0_45)?;
    // What the server serves is known from here on, so that the faults meet the calls.
    client.version().await?;
    Ok(Faulty { cluster, chaos, client })
}

/// The class of a call's error, and how long it took.
async fn class<T>(call: impl Future<Output = Result<T, RestError>>) -> (&'static str, Duration) {
    let begin = Instant::now();
    let result = call.await;
    if let Err(error) = &result {
        println!("{:?}: {error}", begin.elapsed());
    }
    (result.err().map_or("ok", |error| error.class()), begin.elapsed())
}

fn answer(status: u16, body: serde_json::Value) -> Result<Fault> {
    Ok(Fault::Answer(StatusCode::from_u16(status)?, body))
}

/// One fault, for good: the error's class, and how often it was tried.
pub(crate) async fn each_fault_is_an_error_of_its_own_kind(release: SlurmVersion) -> Result<()> {
    let Faulty { cluster: _cluster, chaos, client } = faulty(release).await?;
    let errors = |number: i64, text: &str| json!({"errors": [{"error_number": number, "error": text}], "warnings": []});
    let cases = [
        (Fault::Cut, "no_answer", 4),
        (Fault::CutAfter(100), "cut", 4),
        (answer(500, json!("no reason"))?, "no_answer", 4),
        (answer(429, json!({}))?, "no_answer", 4),
        (answer(502, errors(1800, "Unable to contact slurm controller"))?, "no_answer", 4),
        (answer(500, errors(2010, "Invalid user id"))?, "slurm", 1),
        (answer(403, errors(2002, "Access/permission denied"))?, "slurm", 1),
        (Fault::slurm_errors(1, "Unspecified error"), "slurm", 1),
        (Fault::slurm_errors(1800, "Unable to contact slurm controller"), "no_answer", 4),
        (answer(401, json!("Authentication failure"))?, "auth", 1),
        (answer(511, errors(1007, "Protocol authentication error"))?, "auth", 1),
        (answer(200, json!(["no", "object"]))?, "garbage", 1),
        (answer(200, json!({}))?, "garbage", 1),
        (answer(200, json!({"errors": []}))?, "garbage", 1),
        (answer(200, json!({"nodes": []}))?, "garbage", 1),
        (answer(200, json!({"nodes": [], "errors": []}))?, "garbage", 1),
        (Fault::Text(StatusCode::OK, "<html>It works!</html>"), "garbage", 1),
        (Fault::Text(StatusCode::OK, "{\"nodes\":[{\"name\":\"n1\"}"), "cut", 4),
        (Fault::Text(StatusCode::OK, ""), "cut", 4),
        (Fault::Text(StatusCode::BAD_GATEWAY, "<html>Bad gateway</html>"), "no_answer", 4),
        (answer(200, json!({"errors": "many", "nodes": []}))?, "slurm", 1),
        (answer(304, json!(""))?, "garbage", 1),
        (answer(404, json!({"errors": [{"error_number": 9001, "error": "x"}]}))?, "slurm", 1),
    ];
    for (fault, expected, tries) in cases {
        println!("{fault:?}");
        chaos.heal();
        let before = chaos.injected();
        chaos.inject("nodes/", fault.clone());
        let (found, took) = class(client.nodes()).await;
        let injected = chaos.injected() - before;
        assert_eq!(found, expected, "{fault:?}");
        // A token that is not brand-new is replaced once before that is believed.
        ensure!(
            injected == tries || (expected == "auth" && injected == 2),
            "{fault:?} was tried {injected} times"
        );
        ensure!(took < Duration::from_secs(10), "{fault:?} took {took:?}");
    }
    // A value that is no node: what the list says is not whole.
    chaos.heal();
    chaos.inject("nodes/", answer(200, json!({"nodes": "none", "last_update": 1, "errors": []}))?);
    ensure!(client.nodes().await?.odd.is_some());
    chaos.heal();
    ensure!(client.nodes().await?.records.len() == 1, "healed");
    Ok(())
}

/// Under HTTP 200, an answer that says nothing is neither a yes nor "there is no such thing".
pub(crate) async fn a_yes_is_one_only_if_slurm_says_so(release: SlurmVersion) -> Result<()> {
    let Faulty { cluster: _cluster, chaos, client } = faulty(release).await?;
    let drain = NodeUpdate::drain("x");
    chaos.inject("", answer(200, json!({}))?);
    let found = [
        class(client.node("n1")).await,
        class(client.job(1)).await,
        class(client.partition("all")).await,
        class(client.reservation("x")).await,
        class(client.update_node("n1", &drain)).await,
        class(client.update_nodes(&["n1"], &drain)).await,
        class(client.delete_node("n1")).await,
        class(client.reconfigure()).await,
        class(client.cancel(1)).await,
        class(client.jobs_on("n1")).await,
    ];
    assert_eq!(found.map(|(class, _)| class), ["garbage"; 10]);
    chaos.heal();
    chaos.inject("", answer(200, json!({"errors": []}))?);
    assert_eq!(class(client.cancel(1)).await.0, "garbage", "an answer without the job's status");
    chaos.heal();
    // The one job that is there may be on the node.
    let unreadable = json!({"jobs": [{"job_id": 7, "job_state": ["LEVITATING"], "nodes": "n1"}, {"job_id": "x"}], "errors": []});
    chaos.inject("jobs/", answer(200, unreadable)?);
    assert_eq!(class(client.jobs_on("n1")).await.0, "garbage", "a job that cannot be read may be there");
    chaos.heal();
    let unclear = json!([{"job_id": 7, "job_state": ["LEVITATING"], "nodes": "n1"}, {"job_id": 8, "job_state": ["RUNNING"], "nodes": "n[1-"}]);
    chaos.inject("jobs/", answer(200, json!({"jobs": unclear, "errors": []}))?);
    let jobs = client.jobs_on("n1").await?;
    assert_eq!(jobs.iter().map(|job| job.id).collect::<Vec<_>>(), [7, 8]);
    Ok(())
}

pub(crate) async fn a_write_that_never_left_is_tried_again(release: SlurmVersion) -> Result<()> {
    let cluster = cluster(release).nodes(1).start().await?;
    let restd: SocketAddr = cluster.rest_url().trim_start_matches("http://").parse()?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let one = tokio::spawn(async move { relay(listener.accept().await?.0, restd).await });
    let client = client_at(&format!("http://{address}"), &cluster, ApiVersion::V0_0_45)?;
    client.version().await?;
    one.abort();
    // Until the client knows that its connection is gone: what is sent on one that breaks may have arrived.
    tokio::time::sleep(Duration::from_millis(300)).await;
    // Nobody listens, and then somebody does: within the tries of one call.
    let drain = NodeUpdate::drain("in the end");
    let later = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let listener = TcpListener::bind(address).await?;
        tokio::spawn(async move {
            while let Ok((outside, _)) = listener.accept().await {
                tokio::spawn(relay(outside, restd));
            }
        });
        anyhow::Ok(())
    };
    let (updated, later) = tokio::join!(client.update_node("n1", &drain), later);
    later?;
    updated.context("nothing was sent before")?;
    assert_eq!(&*client.node("n1").await?.reason, "in the end");
    Ok(())
}

/// As small as a node can be.
const NODE: &str = r#",{"name":"n","state":["IDLE"],"cpus":1,"alloc_cpus":0,"real_memory":1,"alloc_memory":0,"tres_used":""}"#;

pub(crate) async fn an_endless_answer_ends_in_bounded_time_and_memory(release: SlurmVersion) -> Result<()> {
    let Faulty { cluster, chaos, client } = faulty(release).await?;
    let mut options = Options::new("test");
    options.limits = Limits { record: 1 << 20, total: 64 << 20, ..Limits::default() };
    let limited = Client::new(Endpoint::parse(&chaos.url(), None)?, Arc::new(root(&cluster)), options);
    limited.version().await?;
    let endless = [
        // One record without end, blanks without end, depth without end.
        (&limited, Fault::Endless("{\"nodes\":[{\"name\":\"", "x")),
        (&limited, Fault::Endless("{\"nodes\":[", "        ")),
        (&limited, Fault::Endless("{\"nodes\":", "[")),
        // One list without end, with the limits that all have.
        (&client, Fault::Endless("{\"errors\":[],\"nodes\":[{}", NODE)),
    ];
    for (client, fault) in endless {
        println!("{fault:?}");
        chaos.heal();
        chaos.inject("nodes/", fault.clone());
        let before = forget_peak_mib()?;
        let (found, took) = class(client.nodes()).await;
        let grown = mib("VmHWM")? - before;
        assert_eq!(found, "garbage", "{fault:?}");
        ensure!(took < Duration::from_secs(20), "{fault:?} took {took:?}");
        // Also of what other tests of this process do meanwhile.
        ensure!(grown < 200.0, "{fault:?} took {grown} MiB");
    }
    chaos.heal();
    chaos.inject("nodes/", Fault::Delay(Duration::from_secs(60)));
    let (found, took) = class(client.within(Duration::from_millis(300)).nodes()).await;
    ensure!(found == "timeout" && took < Duration::from_secs(5), "{found} after {took:?}");
    Ok(())
}

/// From here on the peak is that since now. Says how much there is now.
fn forget_peak_mib() -> Result<f64> {
    std::fs::write("/proc/self/clear_refs", "5")?;
    mib("VmRSS")
}

fn mib(field: &str) -> Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    Ok(line.context("no such field")?.trim().trim_end_matches(" kB").parse::<f64>()? / 1024.0)
}

pub(crate) async fn reads_are_tried_again_and_writes_are_not(release: SlurmVersion) -> Result<()> {
    let Faulty { cluster: _cluster, chaos, client } = faulty(release).await?;
    chaos.inject_times("nodes/", Fault::Cut, 2);
    ensure!(client.nodes().await?.records.len() == 1, "the third try is answered");

    let before = chaos.injected();
    chaos.inject("node/n1", Fault::CutAfter(0));
    let (found, _) = class(client.update_node("n1", &NodeUpdate::drain("once"))).await;
    assert_eq!(
        (found, chaos.injected() - before),
        ("cut", 1),
        "a write whose answer is lost is not repeated"
    );
    chaos.heal();
    ensure!(&*client.node("n1").await?.reason == "once", "it was carried out all the same");

    // Never past the deadline, and with the reason for the last try.
    chaos.inject("nodes/", Fault::Cut);
    let begin = Instant::now();
    let error =
        client.within(Duration::from_millis(1250)).nodes().await.err().context("a cut is no answer")?;
    // In the middle of the third pause.
    ensure!(begin.elapsed() < Duration::from_secs(4), "{:?}", begin.elapsed());
    assert_eq!(error.class(), "no_answer", "{error}");
    Ok(())
}

/// slurmctld is away, and slurmrestd there: reads say so, and nothing looks like an empty cluster.
pub(crate) async fn without_slurmctld_nothing_looks_empty(release: SlurmVersion) -> Result<()> {
    let mut cluster = cluster(release).nodes(1).start().await?;
    let client =
        client_at(&cluster.rest_url(), &cluster, ApiVersion::V0_0_45)?.within(Duration::from_secs(5));
    ensure!(client.nodes().await?.records.len() == 1);
    cluster.stop_controller().await?;
    let jobs = JobFilter::default();
    let drain = NodeUpdate::drain("x");
    let job = JobDescription {
        script: "#!/bin/sh\ntrue\n".into(),
        current_working_directory: "/tmp".into(),
        environment: vec!["A=b".into()],
        ..JobDescription::default()
    };
    let line = "NodeName=new State=CLOUD";
    let wanted = ReservationRequest { name: "x".into(), ..ReservationRequest::default() };
    let calls: [(&str, BoxFuture<'_, (&str, Duration)>); 20] = [
        ("nodes", class(client.nodes()).boxed()),
        ("nodes_since", class(client.nodes_since(1)).boxed()),
        ("recount_nodes", class(client.recount_nodes()).boxed()),
        ("node", class(client.node("n1")).boxed()),
        ("update_node", class(client.update_node("n1", &drain)).boxed()),
        ("update_nodes", class(client.update_nodes(&["n1"], &drain)).boxed()),
        ("delete_node", class(client.delete_node("nobody")).boxed()),
        ("create_node", class(client.create_node(line)).boxed()),
        ("jobs", class(client.jobs(&jobs)).boxed()),
        ("job", class(client.job(1)).boxed()),
        ("submit", class(client.submit(&job)).boxed()),
        ("cancel", class(client.cancel(1)).boxed()),
        ("requeue", class(client.requeue(1, Requeue::Pending)).boxed()),
        ("partitions", class(client.partitions()).boxed()),
        ("reservations", class(client.reservations()).boxed()),
        ("create_reservation", class(client.create_reservation(&wanted)).boxed()),
        ("diag", class(client.diag()).boxed()),
        ("conf", class(client.conf()).boxed()),
        ("licenses", class(client.licenses()).boxed()),
        ("reconfigure", class(client.reconfigure()).boxed()),
    ];
    let served = futures::future::join_all(calls.map(async |(call, class)| (call, class.await.0))).await;
    for (call, found) in served {
        let missing = found == "not_served" && release == SlurmVersion::V24_11;
        ensure!(missing || matches!(found, "no_answer" | "timeout"), "{call} without slurmctld: {found}");
    }
    // slurmrestd may be so busy with waiting that it does not answer for itself, either.
    match client.ping().await {
        Ok(pings) => ensure!(pings.iter().all(|ping| !ping.responding), "{pings:?}"),
        Err(error) => ensure!(error.is_no_answer(), "{error}"),
    }
    cluster.start_controller().await?;
    // slurmrestd can still carry out what nobody waits for any more: there may be a node more.
    testkit::process::eventually("an answer", Duration::from_secs(30), async || {
        Ok(client.nodes().await?.records.iter().find(|node| &*node.name == "n1").map(drop))
    })
    .await
}

/// Nobody listens.
pub(crate) async fn without_slurmrestd_the_reason_is_said(release: SlurmVersion) -> Result<()> {
    let cluster = cluster(release).nodes(0).start().await?;
    let gone = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let client = client_at(&format!("http://{gone}"), &cluster, ApiVersion::V0_0_45)?;
    let error = client.within(Duration::from_secs(2)).nodes().await.err().context("an answer from nobody")?;
    ensure!(error.class() == "no_answer" && error.to_string().contains("refused"), "{error}");
    Ok(())
}

/// Slurm repeats its warnings with every answer.
pub(crate) async fn warnings_are_logged_once(release: SlurmVersion) -> Result<()> {
    let Faulty { cluster: _cluster, chaos, client } = faulty(release).await?;
    let log = Log::begin()?;
    let warnings = |text: &str| json!([{"description": format!("{text} {release:?}"), "source": "kitchen"}]);
    let nodes = json!({"nodes": [], "last_update": 1, "errors": [], "warnings": warnings("too many cooks")});
    chaos.inject("nodes/", answer(200, nodes)?);
    let no =
        json!({"errors": [{"error_number": 2010, "error": "no"}], "warnings": warnings("too few cooks")});
    chaos.inject("job/submit", answer(500, no)?);
    for _ in 0..3 {
        client.nodes().await?;
        ensure!(client.submit(&JobDescription::default()).await.is_err());
    }
    let log = log.read()?;
    for text in ["too many cooks", "too few cooks"] {
        let text = format!("{text} {release:?}");
        let told: Vec<&str> = log.lines().filter(|line| line.contains(&text)).collect();
        ensure!(told.len() == 1 && told[0].contains("WARN") && told[0].contains("kitchen"), "{told:?}");
    }
    Ok(())
}

pub(crate) async fn metrics_tell_what_calls_cost_and_how_they_end(release: SlurmVersion) -> Result<()> {
    let cluster = cluster(release).nodes(1).start().await?;
    let chaos = Chaos::before_http(cluster.rest_url().trim_start_matches("http://").parse()?).await?;
    let registry = telemetry::Registry::new();
    let options = Options { metrics: Metrics::register(&registry), ..Options::new("ns/one") };
    let client = Client::new(Endpoint::parse(&chaos.url(), None)?, Arc::new(root(&cluster)), options);
    client.nodes().await?;
    chaos.inject_times("nodes/", Fault::Cut, 1);
    client.nodes().await?;
    chaos.inject_times("nodes/", Fault::slurm_errors(1, "Unspecified error"), 1);
    ensure!(client.nodes().await.is_err());
    ensure!(client.node("nobody").await.is_err());
    let text = registry.encode()?;
    for line in [
        r#"slipway_slurm_requests_total{cluster="ns/one",call="nodes",result="ok"} 2"#,
        r#"slipway_slurm_requests_total{cluster="ns/one",call="nodes",result="slurm"} 1"#,
        r#"slipway_slurm_requests_total{cluster="ns/one",call="node",result="not_found"} 1"#,
        r#"slipway_slurm_retries_total{cluster="ns/one",call="nodes"} 1"#,
        r#"slipway_slurm_request_seconds_count{cluster="ns/one",call="nodes"} 3"#,
    ] {
        ensure!(text.lines().any(|found| found == line), "no {line} in\n{text}");
    }
    let bytes = text.lines().find_map(|line| {
        line.strip_prefix(r#"slipway_slurm_response_bytes_total{cluster="ns/one",call="nodes"} "#)
    });
    ensure!(bytes.context("no bytes")?.parse::<u64>()? > 1000, "{text}");
    Ok(())
}
