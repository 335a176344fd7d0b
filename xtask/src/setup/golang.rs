//! Parts built with the machine's Go from wrapper modules, whose go.mod and go.sum pin every input.

use std::path::Path;
use std::process::Command;

use anyhow::Result;
use testkit::cache::{Cache, KUBERNETES_PROGRAMS, KUBERNETES_VERSION, Part};
use testkit::process::bound_command;

use super::step;
use crate::workspace;

/// `go build` in a wrapper module, with its result in `out`.
fn go_build(module: &str, out: &Path) -> Command {
    let mut command = bound_command("go");
    command
        .arg("build")
        .args(["-mod=readonly", "-buildvcs=false", "-trimpath", "-o"])
        .arg(out.join(""))
        .current_dir(workspace().join("testbed/go").join(module))
        .env("GOTOOLCHAIN", "local")
        .env("GOFLAGS", "")
        .env("GOWORK", "off")
        .env("CGO_ENABLED", "0");
    command
}

pub(super) fn kubernetes(cache: &Cache, out: &Path) -> Result<()> {
    // Without these the server says v0.0.0, and version checks of clients stumble.
    let mut parts = KUBERNETES_VERSION.split('.');
    let (major, minor) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let at = "k8s.io/component-base/version";
    let flags = format!(
        "-s -w -X {at}.gitVersion=v{KUBERNETES_VERSION} -X {at}.gitMajor={major} -X {at}.gitMinor={minor}"
    );
    let mut command = go_build("kubernetes", out);
    command.args(["-ldflags", &flags]);
    command.args(KUBERNETES_PROGRAMS.map(|program| format!("k8s.io/kubernetes/cmd/{program}")));
    step::run(cache, Part::Kubernetes, "building (about 12 CPU-minutes, once)", &mut command)?;
    step::write_sums(out)
}

pub(super) fn coredns(cache: &Cache, out: &Path) -> Result<()> {
    let mut command = go_build("coredns", out);
    command.args(["-ldflags", "-s -w", "github.com/coredns/coredns"]);
    step::run(cache, Part::CoreDns, "building", &mut command)?;
    step::write_sums(out)
}

/// Static, with seccomp: the pod sandbox always has a seccomp profile.
pub(super) fn runc(cache: &Cache, out: &Path) -> Result<()> {
    let usr = cache.part(Part::Debian)?.join("usr");
    let lib = usr.join("lib").join(format!("{}-linux-gnu", std::env::consts::ARCH));
    let mut command = go_build("runc", out);
    command
        .args(["-tags", "seccomp urfave_cli_no_docs netgo osusergo"])
        .args(["-ldflags", "-s -w -linkmode external -extldflags -static", "github.com/opencontainers/runc"])
        .env("CGO_ENABLED", "1")
        .env("CGO_CFLAGS", format!("-O2 -I{}", usr.join("include").display()))
        .env("CGO_LDFLAGS", format!("-L{}", lib.display()))
        .env("PKG_CONFIG_PATH", lib.join("pkgconfig"));
    step::run(cache, Part::Runc, "building", &mut command)?;
    step::write_sums(out)
}
