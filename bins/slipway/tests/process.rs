//! The real `slipway`, from the outside: what a kubelet, a Prometheus and a chart see of it.

mod support;

use std::os::unix::fs::symlink;
use std::path::Path;

use nix::sys::signal::Signal;
use support::{Service, command, get, output, unfinished_request};

fn slipway() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_slipway"))
}

#[test]
fn probes_tell_alive_from_ready() {
    let service = Service::start(slipway(), &["operator"]);
    let alive = get(service.probes, "/healthz");
    assert_eq!((alive.status, alive.body.as_str()), (200, "ok"));
    let reasons = "[-]controllers failed: none registered\nreadyz check failed\n";
    for path in ["/readyz", "/readyz?verbose", "/readyz/controllers"] {
        let ready = get(service.probes, path);
        assert_eq!((ready.status, ready.body.as_str()), (503, reasons), "{path}");
    }
    assert_eq!(get(service.probes, "/readyz/nonsense").status, 404);
    assert_eq!(get(service.probes, "/metrics").status, 404);
    assert_eq!(get(service.metrics, "/healthz").status, 404);
}

#[test]
fn metrics_are_exposed_for_prometheus() {
    let service = Service::start(slipway(), &["operator"]);
    let reply = get(service.metrics, "/metrics");
    assert_eq!(reply.status, 200);
    assert!(reply.head.contains("content-type: application/openmetrics-text"), "{}", reply.head);
    assert!(reply.body.contains("\nslipway_build_info{version=\""), "{}", reply.body);
    let memory = reply.body.lines().find_map(|line| line.strip_prefix("process_resident_memory_bytes "));
    let memory: u64 = memory.unwrap().parse().unwrap();
    assert!((500_000..200_000_000).contains(&memory), "{memory}");
    assert!(reply.body.ends_with("# EOF\n"));
}

#[test]
fn sigterm_and_sigint_end_it_with_success() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let service = Service::start(slipway(), &["operator"]);
        service.signal(signal);
        assert_eq!(service.exit_code(), Some(0), "{signal}");
    }
}

#[test]
fn an_unfinished_request_does_not_keep_it_running() {
    let mut service = Service::start(slipway(), &["operator"]);
    let unfinished = unfinished_request(service.probes);
    service.signal(Signal::SIGTERM);
    service.wait_for(|line| line["msg"] == "shutting down" && line["signal"] == "SIGTERM");
    service.wait_for(|line| line["msg"] == "closing connections that are still open");
    assert_eq!(service.exit_code(), Some(0));
    drop(unfinished);
}

#[test]
fn second_signal_ends_it_at_once() {
    let mut service = Service::start(slipway(), &["operator"]);
    let unfinished = unfinished_request(service.probes);
    service.signal(Signal::SIGTERM);
    service.wait_for(|line| line["msg"] == "shutting down");
    service.signal(Signal::SIGTERM);
    assert_eq!(service.exit_code(), Some(1));
    drop(unfinished);
}

#[test]
fn a_link_with_the_name_of_the_go_program_is_the_operator() {
    let directory = tempfile::tempdir().unwrap();
    let link = directory.path().join("slurm_operator");
    symlink(slipway(), &link).unwrap();
    let mut service = Service::start(&link, &["-log-level=debug", "-log-format", "json"]);
    let start = service.wait_for(|line| line["msg"] == "starting");
    assert_eq!((&start["component"], &start["level"]), (&"operator".into(), &"info".into()));
    let warning = service.wait_for(|line| line["level"] == "warn");
    assert!(warning["msg"].as_str().unwrap().starts_with("no controllers are compiled in yet"), "{warning}");
    assert_eq!(get(service.probes, "/readyz").status, 503);
    service.signal(Signal::SIGTERM);
    assert_eq!(service.exit_code(), Some(0));
}

#[test]
fn name_of_a_component_that_is_not_built_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    for (name, component) in [("soperatorchecks", "checks"), ("soperator-exporter", "exporter")] {
        let link = directory.path().join(name);
        symlink(slipway(), &link).unwrap();
        let refused = output(&link, &["--log-level=debug"]);
        assert_eq!(refused.status.code(), Some(2));
        let text = String::from_utf8(refused.stderr).unwrap();
        assert!(text.contains(&format!("called as '{name}'")), "{text}");
        assert!(
            text.contains(&format!("no component '{component}'; it has: operator, crds, version")),
            "{text}"
        );
    }
}

#[test]
fn crds_are_printed_as_one_stream_of_all_the_files() {
    let printed = output(slipway(), &["crds"]);
    assert!(printed.status.success());
    let printed = String::from_utf8(printed.stdout).unwrap();
    let mut documents: Vec<&str> = printed.split("---\n").skip(1).collect();
    documents.sort_unstable();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/crds");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<String> = files.map(|path| std::fs::read_to_string(path).unwrap()).collect();
    files.sort_unstable();
    assert_eq!(documents.len(), 12);
    assert!(documents == files, "the printed CRDs are not those in deploy/crds");
}

/// `slipway crds | head` is no failure of ours.
#[test]
fn a_reader_that_has_seen_enough_ends_the_crds_without_a_panic() {
    let mut child = command(slipway(), &["crds"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let ended = child.wait_with_output().unwrap();
    let text = String::from_utf8(ended.stderr).unwrap();
    assert!(ended.status.code() == Some(1) && text.starts_with("slipway crds: Broken pipe"), "{text}");
}

#[test]
fn taken_address_ends_it_with_the_flag_to_change() {
    let service = Service::start(slipway(), &["operator"]);
    let flag = format!("--metrics-bind-address={}", service.metrics);
    let refused = output(slipway(), &["operator", &flag, "--health-probe-bind-address=0"]);
    assert_eq!(refused.status.code(), Some(1));
    let text = String::from_utf8(refused.stderr).unwrap();
    let last: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!((&last["level"], &last["msg"]), (&"error".into(), &"failed".into()));
    let error = last["error"].as_str().unwrap();
    assert!(
        error.contains(&service.metrics.to_string()) && error.contains("--metrics-bind-address"),
        "{error}"
    );
}

#[test]
fn wrong_log_format_is_a_usage_error_from_flag_and_environment() {
    let refused = output(slipway(), &["operator", "--log-format=xml"]);
    assert_eq!(refused.status.code(), Some(2));
    let text = String::from_utf8(refused.stderr).unwrap();
    assert!(text.contains("'xml' in --log-format: choose json or plain"), "{text}");
    let refused = command(slipway(), &["operator"]).env("SLURM_OPERATOR_LOG_FORMAT", "xml").output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let text = String::from_utf8(refused.stderr).unwrap();
    assert!(text.contains("'xml' in SLURM_OPERATOR_LOG_FORMAT"), "{text}");
}

#[test]
fn version_is_printed_as_text_and_as_json() {
    let text = output(slipway(), &["version"]);
    assert!(text.status.success());
    assert!(
        String::from_utf8(text.stdout).unwrap().starts_with(concat!("slipway ", env!("CARGO_PKG_VERSION")))
    );
    let json = output(slipway(), &["version", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!((&json["program"], &json["version"]), (&"slipway".into(), &env!("CARGO_PKG_VERSION").into()));
}
