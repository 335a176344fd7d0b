//! Answers that overtake each other, which a real slurmrestd cannot be made to do on demand.

use std::sync::Mutex;

use http::{Response, StatusCode};
use http_body_util::{BodyExt, Full};
use slurm::state::Activity;
use tower::util::BoxCloneSyncService;

use super::*;
use crate::client::{Options, Transport};
use crate::token::NoToken;

const SECOND: Duration = Duration::from_secs(1);

/// A cluster of one node, by slurmctld's own clock.
#[derive(Debug, Default)]
struct Server {
    busy: bool,
    changed_at: u64,
    /// What a list takes until it is made, and a single node from then on until it arrives.
    list_is_made_after: Duration,
    node_arrives_after: Duration,
    lists: Vec<String>,
    singles: usize,
}

type Shared = Arc<Mutex<Server>>;

fn set(server: &Shared, change: impl FnOnce(&mut Server)) {
    change(&mut server.lock().unwrap());
}

async fn answer(server: Shared, path: String) -> (StatusCode, String) {
    let (before, after) = {
        let server = server.lock().unwrap();
        match path.contains("/nodes/?update_time=4000000000") {
            true => (Duration::ZERO, Duration::ZERO),
            false if path.contains("/nodes/") => (server.list_is_made_after, Duration::ZERO),
            false => (Duration::ZERO, server.node_arrives_after),
        }
    };
    tokio::time::sleep(before).await;
    let (busy, changed_at) = {
        let mut server = server.lock().unwrap();
        if path.contains("/nodes/") {
            server.lists.push(path.clone());
        }
        server.singles += usize::from(path.contains("/node/"));
        (server.busy, server.changed_at)
    };
    tokio::time::sleep(after).await;
    if path == "/openapi/v3" {
        let paths = ["nodes/", "node/{node_name}", "partitions/", "reservations/"]
            .map(|path| format!(r#""/slurm/v0.0.45/{path}":{{"get":{{}}}}"#));
        return (StatusCode::OK, format!(r#"{{"paths":{{{}}}}}"#, paths.join(",")));
    }
    let since = path.split_once("update_time=").map(|(_, since)| since.parse::<u64>().unwrap());
    if since.is_some_and(|since| changed_at <= since) {
        return (StatusCode::NOT_MODIFIED, String::new());
    }
    let (state, cpus) = if busy { ("ALLOCATED", 4) } else { ("IDLE", 0) };
    let node = format!(
        r#"{{"name":"n1","state":["{state}"],"cpus":4,"alloc_cpus":{cpus},"real_memory":1,"alloc_memory":0}}"#
    );
    let records = if path.contains("/node") { node } else { String::new() };
    let key = ["partitions", "reservations"].into_iter().find(|key| path.contains(key)).unwrap_or("nodes");
    (StatusCode::OK, format!(r#"{{"{key}":[{records}],"last_update":{changed_at},"errors":[]}}"#))
}

fn view(server: &Shared) -> View {
    let server = server.clone();
    let transport: Transport =
        BoxCloneSyncService::new(tower::service_fn(move |request: http::Request<Full<_>>| {
            let path = request.uri().path_and_query().unwrap().to_string();
            let server = server.clone();
            async move {
                let (status, text) = answer(server, path).await;
                let body = Full::from(text).map_err(|never| match never {}).boxed_unsync();
                Ok(Response::builder().status(status).body(body).unwrap())
            }
        }));
    let client =
        Client::with_transport(transport, "http://fake".to_owned(), Arc::new(NoToken), Options::new("test"));
    View::start(client, ViewOptions::default())
}

fn activity(view: &View) -> Activity {
    view.read(|facts| facts.activity("n1", Instant::now().into_std(), 10 * SECOND))
}

/// Whatever overtook what: once all answers are there and nothing changes any more, the node is known as it is.
async fn settles_on_busy(view: &View, server: &Shared) {
    set(server, |server| {
        (server.list_is_made_after, server.node_arrives_after) = (Duration::ZERO, Duration::ZERO);
    });
    tokio::time::sleep(60 * SECOND).await;
    assert_eq!(activity(view), Activity::Busy);
    assert!(server.lock().unwrap().lists.last().unwrap().ends_with("update_time=20"), "it asks for changes");
}

#[tokio::test(start_paused = true)]
async fn a_list_that_was_asked_for_first_and_made_last_is_not_lost() {
    let server = Shared::new(Mutex::new(Server { changed_at: 10, ..Server::default() }));
    let view = view(&server);
    tokio::time::sleep(SECOND).await;
    assert_eq!(activity(&view), Activity::Free);
    let waiting = view.wait_on("n1");
    // A list is asked for; single answers say "free" meanwhile; then a job begins, and then the list is made.
    set(&server, |server| server.list_is_made_after = 4 * SECOND);
    tokio::time::sleep(3 * SECOND).await;
    drop(waiting);
    tokio::time::sleep(SECOND / 2).await;
    set(&server, |server| (server.busy, server.changed_at) = (true, 20));
    tokio::time::sleep(4 * SECOND).await;
    assert_eq!(activity(&view), Activity::Free, "what was seen last");
    settles_on_busy(&view, &server).await;
}

#[tokio::test(start_paused = true)]
async fn a_single_answer_that_was_made_first_and_arrives_last_does_not_stay() {
    let server = Shared::new(Mutex::new(Server { changed_at: 10, ..Server::default() }));
    let view = view(&server);
    tokio::time::sleep(SECOND).await;
    // A list is asked for, and then a single node, which is still free. A job begins. The list arrives first.
    set(&server, |server| {
        (server.list_is_made_after, server.node_arrives_after) = (5 * SECOND, 9 * SECOND);
    });
    view.ask_soon();
    tokio::time::sleep(2 * SECOND).await;
    let waiting = view.wait_on("n1");
    tokio::time::sleep(SECOND).await;
    set(&server, |server| (server.busy, server.changed_at) = (true, 20));
    tokio::time::sleep(4 * SECOND).await;
    assert_eq!(activity(&view), Activity::Busy, "so says the list");
    tokio::time::sleep(5 * SECOND).await;
    assert_eq!(activity(&view), Activity::Free, "so says the single answer, by mistake");
    drop(waiting);
    settles_on_busy(&view, &server).await;
}

#[tokio::test(start_paused = true)]
async fn who_waits_anew_at_every_wake_makes_no_storm() {
    let server = Shared::new(Mutex::new(Server { changed_at: 10, ..Server::default() }));
    let view = view(&server);
    let mut changes = view.subscribe();
    let reconciling = async {
        let mut guards = None;
        while changes.next().await.is_some() {
            guards = Some([view.wait_on("n1"), view.wait_on("n2")]);
        }
        drop(guards);
    };
    let ended = tokio::time::timeout(10 * SECOND, reconciling).await;
    assert!(ended.is_err(), "the view goes on");
    let singles = server.lock().unwrap().singles;
    // Two nodes, in turn and anew, four times a second each.
    assert!((40..=170).contains(&singles), "{singles} questions in ten seconds");
}
