//! Answers that overtake each other, which a real slurmrestd cannot be made to do on demand.

use std::sync::Mutex;

use http::{Method, StatusCode};
use slurm::state::Activity;

use super::*;
use crate::fake;

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
    jobs: usize,
    /// slurmctld is away, and slurmrestd waits for it.
    away: bool,
    /// Nobody works, and it says so at once.
    refuses: bool,
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
            false if path.contains("/nodes/") || path.contains("/jobs/") => {
                (server.list_is_made_after, Duration::ZERO)
            }
            false => (Duration::ZERO, server.node_arrives_after),
        }
    };
    if path == fake::DESCRIPTION {
        let calls = ["nodes/", "node/{node_name}", "partitions/", "reservations/", "jobs/"];
        return fake::description("v0.0.45", &calls.map(|call| (Method::GET, call)));
    }
    if path.contains("/nodes/") {
        server.lock().unwrap().lists.push(path.clone());
    }
    server.lock().unwrap().jobs += usize::from(path.contains("/jobs/"));
    if server.lock().unwrap().refuses {
        return (StatusCode::SERVICE_UNAVAILABLE, String::new());
    }
    while server.lock().unwrap().away {
        tokio::time::sleep(SECOND / 10).await;
    }
    tokio::time::sleep(before).await;
    let (busy, changed_at) = {
        let mut server = server.lock().unwrap();
        server.singles += usize::from(path.contains("/node/"));
        (server.busy, server.changed_at)
    };
    tokio::time::sleep(after).await;
    let since = path.split_once("update_time=").map(|(_, since)| since.parse::<u64>().unwrap());
    if since.is_some_and(|since| changed_at <= since) {
        return (StatusCode::NOT_MODIFIED, String::new());
    }
    let (state, cpus) = if busy { ("ALLOCATED", 4) } else { ("IDLE", 0) };
    let node = format!(
        r#"{{"name":"n1","state":["{state}"],"cpus":4,"alloc_cpus":{cpus},"real_memory":1,"alloc_memory":0,"tres_used":""}}"#
    );
    let records = if path.contains("/node") { node } else { String::new() };
    let key =
        ["partitions", "reservations", "jobs"].into_iter().find(|key| path.contains(key)).unwrap_or("nodes");
    (StatusCode::OK, format!(r#"{{"{key}":[{records}],"last_update":{changed_at},"errors":[]}}"#))
}

fn view(server: &Shared) -> View {
    let server = server.clone();
    View::start(fake::client(move |path| answer(server.clone(), path)), ViewOptions::default())
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

/// Whole lists that were asked for, and not small questions.
fn lists(server: &Shared) -> usize {
    server.lock().unwrap().lists.iter().filter(|path| !path.contains("update_time=4000000000")).count()
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_back_is_asked_soon_however_long_it_was_away() {
    for away in (1..100).chain(270..300).chain(640..680) {
        let server = Shared::new(Mutex::new(Server { changed_at: 10, ..Server::default() }));
        let view = view(&server);
        // It knows what its questions cost.
        tokio::time::sleep(30 * SECOND).await;
        let mut changes = view.subscribe();
        set(&server, |server| server.away = true);
        tokio::time::sleep(away * SECOND).await;
        set(&server, |server| server.away = false);
        let back = Instant::now();
        while view.read(|facts| facts.nodes.complete_at().is_none_or(|at| at < back.into_std())) {
            let _ = tokio::time::timeout(SECOND / 10, changes.next()).await;
        }
        // After several lists in vain it rests as long as the last one took.
        let limit = if away < 250 { 10 } else { 31 };
        assert!(back.elapsed() <= limit * SECOND, "{:?} after {away} s", back.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_too_much_for_the_server_is_not_asked_for_all_the_time() {
    let server = Shared::new(Mutex::new(Server { changed_at: 10, ..Server::default() }));
    set(&server, |server| server.list_is_made_after = 60 * SECOND);
    let view = view(&server);
    tokio::time::sleep(3000 * SECOND).await;
    // Each costs thirty seconds until it is given up.
    let asked = lists(&server);
    assert!((8..=14).contains(&asked), "{asked} lists");
    view.read(|facts| assert!(facts.nodes.complete_at().is_none() && facts.nodes.trouble().is_some()));
}

#[tokio::test(start_paused = true)]
async fn lists_that_fail_at_once_do_not_make_lists_cheap() {
    let server = Shared::new(Mutex::new(Server { changed_at: 10, ..Server::default() }));
    set(&server, |server| server.list_is_made_after = 20 * SECOND);
    let changing = async |times| {
        for _ in 0..times {
            set(&server, |server| server.changed_at += 1);
            tokio::time::sleep(10 * SECOND).await;
        }
    };
    let _view = view(&server);
    changing(20).await;
    set(&server, |server| server.refuses = true);
    tokio::time::sleep(300 * SECOND).await;
    set(&server, |server| {
        server.refuses = false;
        server.lists.clear();
    });
    changing(46).await;
    // The first after an outage rests as long as it took, and then there is one in two hundred seconds.
    let asked = lists(&server);
    assert!((3..=4).contains(&asked), "{asked} lists of twenty seconds each");
}

#[tokio::test(start_paused = true)]
async fn a_first_list_that_takes_long_does_not_stop_the_next() {
    let server = Shared::new(Mutex::new(Server { changed_at: 10, ..Server::default() }));
    set(&server, |server| server.list_is_made_after = 13 * SECOND);
    let view = view(&server);
    tokio::time::sleep(14 * SECOND).await;
    set(&server, |server| {
        (server.list_is_made_after, server.busy, server.changed_at) = (Duration::ZERO, true, 20);
    });
    tokio::time::sleep(6 * SECOND).await;
    assert_eq!(activity(&view), Activity::Busy);
}

#[tokio::test(start_paused = true)]
async fn one_list_that_takes_long_does_not_stop_the_next() {
    for changes in [true, false] {
        one_list_takes_long(changes).await;
    }
}

async fn one_list_takes_long(changes: bool) {
    let server = Shared::new(Mutex::new(Server { changed_at: 10, ..Server::default() }));
    let view = view(&server);
    for changed_at in 11..15 {
        tokio::time::sleep(10 * SECOND).await;
        set(&server, |server| server.changed_at = if changes { changed_at } else { 10 });
    }
    set(&server, |server| server.list_is_made_after = 25 * SECOND);
    if changes {
        set(&server, |server| server.changed_at = 20);
    }
    tokio::time::sleep(10 * SECOND).await;
    set(&server, |server| {
        (server.list_is_made_after, server.busy, server.changed_at) = (Duration::ZERO, true, 30);
    });
    tokio::time::sleep(30 * SECOND).await;
    assert_eq!(activity(&view), Activity::Busy, "{changes}");
}

#[tokio::test(start_paused = true)]
async fn who_gives_up_waiting_for_jobs_leaves_the_answer_to_the_next() {
    let server = Shared::new(Mutex::new(Server { changed_at: 10, ..Server::default() }));
    let view = view(&server);
    set(&server, |server| server.list_is_made_after = 20 * SECOND);
    for _ in 0..3 {
        let answer = tokio::time::timeout(5 * SECOND, view.jobs_on("n1")).await;
        assert!(answer.is_err(), "it takes 20 s");
    }
    tokio::time::sleep(10 * SECOND).await;
    let answer = tokio::time::timeout(5 * SECOND, view.jobs_on("n1")).await;
    assert_eq!(answer.unwrap().unwrap(), []);
    assert_eq!(server.lock().unwrap().jobs, 1, "one question for all of them");
}

#[tokio::test(start_paused = true)]
async fn guards_that_come_and_go_do_not_make_questions_cheap() {
    let server = Shared::new(Mutex::new(Server { changed_at: 10, ..Server::default() }));
    let view = view(&server);
    tokio::time::sleep(SECOND).await;
    set(&server, |server| server.node_arrives_after = 2 * SECOND);
    let (begin, mut random) = (Instant::now(), fastrand::Rng::with_seed(7));
    while begin.elapsed() < 200 * SECOND {
        let waiting = view.wait_on("n1");
        tokio::time::sleep(Duration::from_millis(random.u64(100..900))).await;
        drop(waiting);
        tokio::time::sleep(Duration::from_millis(random.u64(100..900))).await;
    }
    // One in twenty seconds in turn, and one in twenty for those who begin to wait.
    let singles = server.lock().unwrap().singles;
    assert!((5..=25).contains(&singles), "{singles} questions of two seconds each in two hundred");
}
