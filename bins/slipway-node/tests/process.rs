//! The real `slipway-node`, from the outside. What it shares with `slipway` is tested there in full.

#[path = "../../slipway/tests/support/mod.rs"]
mod support;

use std::os::unix::fs::symlink;
use std::path::Path;

use nix::sys::signal::Signal;
use support::{Service, get, output};

fn slipway_node() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_slipway-node"))
}

#[test]
fn rebooter_is_alive_not_ready_measured_and_ends_on_sigterm() {
    let mut service = Service::start(slipway_node(), &["rebooter"]);
    service.wait_for(|line| line["level"] == "warn");
    assert_eq!(get(service.probes, "/healthz").status, 200);
    let ready = get(service.probes, "/readyz");
    assert_eq!(ready.status, 503);
    assert!(ready.body.contains("controllers failed: none registered"), "{}", ready.body);
    let metrics = get(service.metrics, "/metrics").body;
    assert!(metrics.contains("\nslipway_build_info{"), "{metrics}");
    assert!(metrics.contains("\nprocess_resident_memory_bytes "), "{metrics}");
    service.signal(Signal::SIGTERM);
    assert_eq!(service.exit_code(), Some(0));
}

#[test]
fn names_of_the_go_programs_are_understood() {
    let directory = tempfile::tempdir().unwrap();
    let link = |name: &str| {
        let link = directory.path().join(name);
        symlink(slipway_node(), &link).unwrap();
        link
    };
    let mut service = Service::start(&link("rebooter"), &["-log-level=info"]);
    assert_eq!(service.wait_for(|line| line["msg"] == "starting")["component"], "rebooter");
    drop(service);
    let refused = output(&link("power-manager"), &["resume", "--nodes", "a-[0-3]"]);
    assert_eq!(refused.status.code(), Some(2));
    let text = String::from_utf8(refused.stderr).unwrap();
    assert!(text.contains("no component 'power-manager'; it has: rebooter, version"), "{text}");
}
