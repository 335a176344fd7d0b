//! Tests of the order of things, with a scontrol that is a list of answers and a clock that only pauses move.

use std::collections::VecDeque;
use std::fs;

use clap::{Args as _, FromArgMatches};

use super::pod::Ran;
use super::*;

const UP: &str = r#"{"pings":[{"hostname":"c0","responding":true}]}"#;
const DOWN: &str = r#"{"pings":[{"hostname":"c0","pinged":"DOWN","responding":false}]}"#;

#[derive(Default)]
struct Scripted {
    now: Duration,
    answers: VecDeque<Ran>,
    calls: Vec<String>,
    lines: Vec<String>,
    /// What happens in the world at a time.
    later: Option<(Duration, Box<dyn FnOnce()>)>,
}

impl Scripted {
    fn answering(answers: &[Ran]) -> Self {
        Self { answers: answers.to_vec().into(), ..Self::default() }
    }
}

impl Effects for Scripted {
    fn now(&self) -> Duration {
        self.now
    }

    /// The last answer is the answer from then on.
    fn scontrol(&mut self, args: &[&str]) -> Result<Ran> {
        self.calls.push(args.join(" "));
        let last = self.answers.len() == 1;
        let answer = if last { self.answers.front().cloned() } else { self.answers.pop_front() };
        answer.context("no answer is left")
    }

    fn pause(&mut self, time: Duration) -> Result<()> {
        self.now += time;
        if let Some((_, happen)) = self.later.take_if(|(at, _)| self.now >= *at) {
            happen();
        }
        Ok(())
    }

    fn say(&mut self, line: &str) {
        self.lines.push(line.to_owned());
    }
}

fn ok(stdout: &str) -> Ran {
    Ran { ok: true, stdout: stdout.to_owned(), stderr: String::new() }
}

fn fails(stderr: &str) -> Ran {
    Ran { ok: false, stdout: String::new(), stderr: stderr.to_owned() }
}

fn args(more: &[&str]) -> Args {
    // As the dispatch of the program builds its commands.
    let command = Args::augment_args(clap::Command::new("worker-init")).args_override_self(true);
    let pod = ["worker-init", "--pod-name=gpu-0", "--pod-namespace=ns", "--service-name=c-nodeset-svc"];
    let matches = command.try_get_matches_from(pod.iter().chain(more)).unwrap();
    Args::from_arg_matches(&matches).unwrap()
}

/// Arguments that look into a directory of the test.
fn args_in(dir: &Path, more: &[&str]) -> Args {
    let labels = format!("--topology-labels={}", dir.join("labels").display());
    let conf = format!("--topology-conf={}", dir.join("topology.conf").display());
    fs::create_dir(dir.join("labels")).unwrap();
    let base = ["wait-controller", "wait-topology", "--node-name=node-1", &labels, &conf];
    args(&[&base[..], more].concat())
}

#[test]
fn defaults_are_those_of_the_operator() {
    let args = args(&["wait-controller"]);
    assert_eq!(args.steps, [Step::WaitController]);
    assert_eq!((args.controller_max_attempts, args.controller_poll_interval), (60, Duration::from_secs(5)));
    assert!(!args.gpu && args.random_delay.is_zero());
}

#[test]
fn variables_may_be_fractional_empty_or_python_like() {
    assert_eq!(seconds("2.5"), Ok(Duration::from_millis(2500)));
    assert_eq!(seconds_if_any(""), Ok(Duration::ZERO));
    for odd in ["", "1e12", "-1", "NaN", "inf", "5s"] {
        assert!(seconds(odd).is_err(), "{odd}");
    }
    assert!(args(&["wait-controller", "--gpu=True"]).gpu);
    assert!(!args(&["wait-controller", "--gpu="]).gpu);
}

#[test]
fn node_is_announced_once_the_controller_answers() {
    let mut pod = Scripted::answering(&[fails("no config"), ok(DOWN), ok(DOWN), ok(UP), ok("")]);
    prepare(&args(&["wait-controller"]), Duration::ZERO, &mut pod).unwrap();
    let last = pod.calls.pop().unwrap();
    assert_eq!(last, "update nodename=gpu-0 nodeaddr=gpu-0.c-nodeset-svc.ns.svc");
    assert_eq!(pod.calls, ["ping --json"; 4]);
    assert_eq!(pod.now, Duration::from_millis(1400), "the first pings follow each other fast");
}

#[test]
fn controller_that_never_answers_is_an_error_that_says_where_to_look() {
    let mut pod = Scripted::answering(&[ok(DOWN)]);
    let error = prepare(&args(&["wait-controller"]), Duration::ZERO, &mut pod).unwrap_err().to_string();
    assert!(
        error.starts_with("waited 300 s (65 attempts) for every slurmctld to answer: c0 does not"),
        "{error}"
    );
    assert!(error.contains("look at the pod of slurmctld"), "{error}");
    assert!(pod.lines.len() >= 10, "{:?}", pod.lines);
}

#[test]
fn node_that_slurmctld_does_not_know_is_no_error() {
    let refused = fails("slurm_update error: Invalid node name specified");
    let mut pod = Scripted::answering(&[ok(UP), refused]);
    prepare(&args(&["wait-controller"]), Duration::ZERO, &mut pod).unwrap();
    assert_eq!(pod.calls.len(), 2);
    assert!(pod.lines.iter().any(|line| line.contains("does not know node gpu-0 yet")), "{:?}", pod.lines);
}

#[test]
fn busy_controller_is_asked_again_before_the_update_fails() {
    let busy = fails("slurm_update error: Socket timed out on send/recv operation");
    let mut pod = Scripted::answering(&[ok(UP), busy.clone(), busy.clone(), ok("")]);
    prepare(&args(&["wait-controller"]), Duration::ZERO, &mut pod).unwrap();
    assert_eq!(pod.calls.len(), 4);

    let mut pod = Scripted::answering(&[ok(UP), busy]);
    let error = format!("{:#}", prepare(&args(&["wait-controller"]), Duration::ZERO, &mut pod).unwrap_err());
    assert!(error.starts_with("announce node gpu-0 to slurmctld: waited 30 s"), "{error}");
    assert!(error.contains("Socket timed out"), "{error}");
}

#[test]
fn delay_comes_first_and_is_said() {
    let mut pod = Scripted::answering(&[ok(UP), ok("")]);
    prepare(&args(&["wait-controller"]), Duration::from_secs(45), &mut pod).unwrap();
    assert_eq!(pod.now, Duration::from_secs(45));
    assert!(pod.lines[..3].iter().all(|line| line.starts_with("starting in ")), "{:?}", pod.lines);
    for _ in 0..100 {
        assert!((0.0..=1.0).contains(&random_fraction()));
    }
    assert_ne!(random_fraction().to_bits(), random_fraction().to_bits());
}

#[test]
fn gpu_node_waits_for_its_labels_and_for_the_topology() {
    let dir = tempfile::tempdir().unwrap();
    let args = args_in(dir.path(), &["--gpu=true", "--topology-fabric=east"]);
    let mut pod = Scripted::answering(&[ok(UP), ok("")]);
    let root = dir.path().to_owned();
    fs::write(root.join("topology.conf"), "SwitchName=leaf1 Nodes=gpu-[0-3]\n").unwrap();
    let labels =
        move || fs::write(root.join("labels/node-1"), r#"{"tier-1":"leaf1","tier-2":"spine"}"#).unwrap();
    pod.later = Some((Duration::from_secs(20), Box::new(labels)));
    prepare(&args, Duration::ZERO, &mut pod).unwrap();
    assert!(pod.calls[1].ends_with(".svc topology=default:east:spine:leaf1"), "{:?}", pod.calls);
    assert!(pod.lines.iter().any(|line| line.contains("no such file yet")), "{:?}", pod.lines);
}

#[test]
fn node_without_gpus_needs_no_labels() {
    let dir = tempfile::tempdir().unwrap();
    let args = args_in(dir.path(), &[]);
    fs::write(dir.path().join("topology.conf"), "SwitchName=unknown Nodes=gpu-0\n").unwrap();
    let mut pod = Scripted::answering(&[ok(UP), ok("")]);
    prepare(&args, Duration::ZERO, &mut pod).unwrap();
    assert!(pod.calls[1].ends_with(" topology=default:root:unknown"), "{:?}", pod.calls);
}

#[test]
fn topology_that_never_has_the_node_is_an_error_within_the_timeout() {
    let dir = tempfile::tempdir().unwrap();
    let args = args_in(dir.path(), &["--gpu=true", "--topology-timeout=60"]);
    let mut pod = Scripted::answering(&[ok(UP), ok("")]);
    let root = dir.path().to_owned();
    let labels = move || fs::write(root.join("labels/node-1"), r#"{"tier-1":"leaf1"}"#).unwrap();
    pod.later = Some((Duration::from_secs(30), Box::new(labels)));
    let error = prepare(&args, Duration::ZERO, &mut pod).unwrap_err().to_string();
    assert_eq!(pod.now, Duration::from_secs(60), "both waits share the time");
    assert!(error.contains("for gpu-0 in ") && error.contains("topology.conf: cannot be read"), "{error}");
}

#[test]
fn blocks_are_waited_for_but_not_part_of_the_update() {
    let dir = tempfile::tempdir().unwrap();
    let args = args_in(dir.path(), &["--topology-plugin=topology/block"]);
    fs::write(dir.path().join("topology.conf"), "BlockName=b1 Nodes=gpu-[0-3]\n").unwrap();
    let mut pod = Scripted::answering(&[ok(UP), ok("")]);
    prepare(&args, Duration::ZERO, &mut pod).unwrap();
    assert!(pod.calls[1].ends_with(".svc"), "{:?}", pod.calls);
    assert!(pod.lines.iter().any(|line| line.contains("done waiting for gpu-0 in")), "{:?}", pod.lines);
}

#[test]
fn plugin_without_a_topology_file_is_not_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let args = args_in(dir.path(), &["--gpu=true", "--topology-plugin=topology/flat"]);
    let mut pod = Scripted::answering(&[ok(UP), ok("")]);
    prepare(&args, Duration::ZERO, &mut pod).unwrap();
    assert!(pod.calls[1].ends_with(".svc") && pod.now.is_zero(), "{:?}", pod.calls);
}

#[test]
fn gpu_node_without_a_node_name_is_refused_before_any_wait() {
    let mut args = args(&["wait-controller", "wait-topology", "--gpu=true"]);
    for name in [None, Some(String::new()), Some("../secret".to_owned()), Some("..".to_owned())] {
        args.node_name = name;
        let mut pod = Scripted::answering(&[]);
        let error = prepare(&args, Duration::from_secs(9), &mut pod).unwrap_err().to_string();
        assert!(error.starts_with("K8S_NODE_NAME is ") && pod.now.is_zero(), "{error}");
    }
}
