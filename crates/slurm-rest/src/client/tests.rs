//! Servers that change while they are asked, and calls that no release of SchedMD serves.

use std::sync::atomic::{AtomicUsize, Ordering};

use http::Method;

use super::*;
use crate::calls::{NodeUpdate, Reboot};
use crate::fake;

const SECOND: Duration = Duration::from_secs(1);
const NODE: &str = "node/{node_name}";

fn yes() -> (StatusCode, String) {
    (StatusCode::OK, r#"{"errors":[],"warnings":[]}"#.to_owned())
}

/// slurmrestd says this of a path that it does not have, and says so in plain text.
fn no_such_path() -> (StatusCode, String) {
    (StatusCode::NOT_FOUND, "Unable find requested URL.".to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_server_that_became_another_release_is_asked_in_its_own_version() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    let client = fake::client(move |path| {
        let upgraded = counted.fetch_add(1, Ordering::Relaxed) > 1;
        async move {
            let version = if upgraded { "v0.0.45" } else { "v0.0.41" };
            match path.as_str() {
                fake::DESCRIPTION => fake::description(version, &[(Method::POST, NODE)]),
                _ if path == format!("/slurm/{version}/node/n1") => yes(),
                _ => no_such_path(),
            }
        }
    });
    let drain = NodeUpdate::drain("x");
    client.update_node("n1", &drain).await.unwrap();
    // It answered 404, so nothing was done: this holds for a write, too.
    client.update_node("n1", &drain).await.unwrap();
    assert_eq!(client.version().await.unwrap(), ApiVersion::V0_0_45);
    assert_eq!(asked.load(Ordering::Relaxed), 5, "described, asked; refused, described, asked");
}

#[tokio::test(start_paused = true)]
async fn a_404_of_somebody_else_does_not_say_that_a_call_is_missing() {
    let client = fake::client(|path| async move {
        match path.as_str() {
            fake::DESCRIPTION => fake::description("v0.0.45", &[(Method::POST, NODE)]),
            _ => no_such_path(),
        }
    });
    let error = client.update_node("n1", &NodeUpdate::drain("x")).await.unwrap_err();
    assert!(error.is_no_answer() && error.to_string().contains("404"), "{error}");
    let error = client.delete_node("n1").await.unwrap_err();
    assert!(matches!(error, RestError::NotServed { .. }), "{error}");
    let nowhere = fake::client(|_| async { no_such_path() });
    let error = nowhere.nodes().await.unwrap_err();
    assert!(error.is_no_answer(), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_try_that_is_under_way_is_not_reported_as_the_one_before() {
    let asked = Arc::new(AtomicUsize::new(0));
    let client = fake::client(move |path| {
        let asked = asked.clone();
        async move {
            if path == fake::DESCRIPTION {
                return fake::description("v0.0.45", &[(Method::GET, "nodes/")]);
            }
            if asked.fetch_add(1, Ordering::Relaxed) > 0 {
                tokio::time::sleep(3600 * SECOND).await;
            }
            (StatusCode::BAD_GATEWAY, String::new())
        }
    });
    let error = client.within(10 * SECOND).nodes().await.unwrap_err();
    assert!(matches!(error, RestError::TimedOut { .. }), "{error}");
    // Between two tries the last one is the reason.
    let away = fake::client(|_| async { (StatusCode::BAD_GATEWAY, String::new()) });
    let error = away.within(SECOND / 10).nodes().await.unwrap_err();
    assert!(matches!(error, RestError::NoAnswer { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn nodes_are_rebooted_where_that_is_served() {
    let client = fake::client(|path| async move {
        match path.as_str() {
            fake::DESCRIPTION => fake::description("v0.0.44", &[(Method::POST, "nodes/reboot")]),
            "/slurm/v0.0.44/nodes/reboot" => yes(),
            _ => no_such_path(),
        }
    });
    assert!(client.serves_reboot().await.unwrap());
    let reboot =
        Reboot { nodes: "n[1-2]".into(), asap: true, reason: Some("kernel".into()), ..Reboot::default() };
    client.reboot_nodes(&reboot).await.unwrap();
    assert_eq!(
        serde_json::to_value(reboot).unwrap(),
        serde_json::json!({"nodes": "n[1-2]", "asap": true, "force": false, "reason": "kernel"})
    );
}

#[tokio::test(start_paused = true)]
async fn what_the_server_has_is_counted_by_itself_and_calls_once() {
    let registry = telemetry::Registry::new();
    let (transport, tokens) = {
        let fake = fake::client(|path| async move {
            match path.as_str() {
                fake::DESCRIPTION => fake::description(
                    "v0.0.45",
                    &[(Method::POST, "reservation"), (Method::GET, "reservation/{reservation_name}")],
                ),
                _ => (StatusCode::OK, r#"{"reservations":[],"errors":[]}"#.to_owned()),
            }
        });
        (fake.shared.transport.clone(), Arc::new(crate::token::NoToken))
    };
    let options = Options { metrics: Metrics::register(&registry), ..Options::new("c") };
    let client = Client::with_transport(transport, "http://fake".to_owned(), tokens, options);
    let wanted = crate::calls::ReservationRequest { name: "ours".into(), ..Default::default() };
    client.create_reservation(&wanted).await.unwrap();
    client.create_reservation(&wanted).await.unwrap();
    let text = registry.encode().unwrap();
    for (call, count) in [("description", 1), ("create_reservation", 2), ("reservation", 2)] {
        let line =
            format!(r#"slipway_slurm_requests_total{{cluster="c",call="{call}",result="ok"}} {count}"#);
        assert!(text.lines().any(|found| found == line), "no {line} in\n{text}");
    }
}
