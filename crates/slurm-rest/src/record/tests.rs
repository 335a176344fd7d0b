//! Recorded answers of real slurmrestd, of clusters with nodes and jobs in every state that one could be brought
//! into.

use std::time::Instant;

use serde_json::Value;
use slurm::state::Activity;

use super::accounting::{Association, Job as PastJob, Qos, User};
use super::cluster::{Diag, License, Partition, Ping, Reservation, Share};
use super::job::Job;
use super::node::Node;
use super::{Json, Record};
use crate::decode::{Decoded, Decoder, Limits};

const RECORDED: [&str; 2] = ["24.11.5-v0.0.42", "26.05.5-v0.0.45"];

fn text(of: &str, file: &str) -> String {
    let path = format!("{}/tests/recorded/{of}/{file}.json", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn decode<T: Record>(of: &str, file: &str, key: &'static str) -> (Vec<T>, Decoded) {
    decode_in(of, file, None, key)
}

fn decode_in<T: Record>(
    of: &str,
    file: &str,
    outer: Option<&'static str>,
    key: &'static str,
) -> (Vec<T>, Decoded) {
    let mut records = Vec::new();
    let decoder = Decoder::new(key, Limits::default(), |record| records.push(record));
    let mut decoder = decoder.within(outer);
    decoder.push(text(of, file).as_bytes()).unwrap();
    let decoded = decoder.finish().unwrap();
    assert_eq!((decoded.odd, decoded.found), (0, true), "{of}/{file}: {decoded:?}");
    assert!(decoded.envelope.errors.is_empty(), "{of}/{file}: {decoded:?}");
    (records, decoded)
}

fn values(of: &str, file: &str, key: &str) -> Vec<Value> {
    let answer: Value = serde_json::from_str(&text(of, file)).unwrap();
    answer[key].as_array().unwrap().clone()
}

#[test]
fn every_recorded_node_is_read_as_it_is() {
    for of in RECORDED {
        let (nodes, decoded) = decode::<Node>(of, "nodes", "nodes");
        let expected = values(of, "nodes", "nodes");
        assert_eq!(nodes.len(), expected.len());
        assert!(nodes.len() >= 24 && decoded.envelope.last_update.to_u64().is_some());
        assert_eq!(decoded.envelope.release.as_deref(), of.split_once('-').map(|(release, _)| release));
        let (mut busy, mut free) = (0, 0);
        for (node, expected) in nodes.into_iter().zip(expected) {
            let words = expected["state"].as_array().unwrap();
            assert_eq!(node.state.flags().count() + 1, words.len(), "{}: {words:?}", &*node.name);
            let fact = node.into_fact(Instant::now());
            assert_eq!(*fact.name, *expected["name"].as_str().unwrap());
            assert_eq!(*fact.address, *expected["address"].as_str().unwrap());
            assert_eq!(*fact.allocated_tres, *expected["tres_used"].as_str().unwrap());
            assert_eq!(fact.allocated_cpus.map(u64::from), expected["alloc_cpus"].as_u64());
            assert_eq!(fact.allocated_memory_mib, expected["alloc_memory"].as_u64());
            assert_eq!(u64::from(fact.cpus), expected["cpus"].as_u64().unwrap());
            assert_eq!(
                fact.boot_time.map_or(0, |time| time.0),
                expected["boot_time"]["number"].as_u64().unwrap()
            );
            let features: Vec<_> = fact.features.iter().collect();
            assert_eq!(serde_json::json!(features), expected["features"]);
            match fact.activity() {
                Activity::Busy => busy += 1,
                Activity::Free => free += 1,
                Activity::Unclear => assert!(fact.state.to_string().contains("UNKNOWN"), "{fact:?}"),
            }
        }
        assert!(busy > 3 && free > 10, "{of}: {busy} busy, {free} free");
    }
}

#[test]
fn every_recorded_job_is_read_as_it_is() {
    for of in RECORDED {
        let (jobs, _) = decode::<Job>(of, "jobs", "jobs");
        let expected = values(of, "jobs", "jobs");
        assert_eq!(jobs.len(), expected.len());
        for (job, expected) in jobs.into_iter().zip(expected) {
            assert_eq!(u64::from(job.job_id), expected["job_id"].as_u64().unwrap());
            let words = expected["job_state"].as_array().unwrap();
            assert_eq!(job.job_state.flags().count() + 1, words.len(), "{words:?}");
            assert!(job.job_state.unknown().next().is_none(), "{words:?}");
            assert_eq!(*job.nodes, *expected["nodes"].as_str().unwrap());
            assert_eq!(*job.tres_alloc_str, *expected["tres_alloc_str"].as_str().unwrap());
            assert_eq!(job.submit_time.to_u64(), expected["submit_time"]["number"].as_u64());
            let limit = &expected["time_limit"];
            assert_eq!(job.time_limit == crate::wire::Number::Infinite, limit["infinite"].as_bool().unwrap());
            assert_eq!(
                job.job_state.holds_nodes(),
                !job.nodes.is_empty() && !job.job_state.is_over(),
                "{job:?}"
            );
        }
    }
}

#[test]
fn every_other_recorded_answer_is_read() {
    fn count<T: serde::de::DeserializeOwned>(of: &str, file: &str, key: &'static str) -> usize {
        decode::<Json<T>>(of, file, key).0.len()
    }
    for of in RECORDED {
        assert!(count::<Partition>(of, "partitions", "partitions") > 3);
        assert_eq!(
            count::<Reservation>(of, "reservations", "reservations"),
            values(of, "reservations", "reservations").len()
        );
        assert!(count::<License>(of, "licenses", "licenses") > 0);
        assert!(count::<PastJob>(of, "dbd-jobs", "jobs") > 0);
        assert!(count::<Association>(of, "dbd-associations", "associations") > 2);
        assert!(count::<User>(of, "dbd-users", "users") > 0);
        assert!(count::<Qos>(of, "dbd-qos", "qos") > 0);
        assert_eq!(count::<Ping>(of, "ping", "pings"), 1);
        let (diag, _) = decode::<Json<Diag>>(of, "diag", "statistics");
        assert!(diag[0].0.jobs_submitted.to_u64() > Some(0));
        let (shares, _) = decode_in::<Json<Share>>(of, "shares", Some("shares"), "shares");
        assert!(shares.iter().any(|share| &*share.0.name == "root"));
    }
}
