//! Hands the compiler's version to `build_info`. It reads nothing else, so it runs again only when the compiler
//! changes; the git revision comes from the environment, since asking git here would rebuild every crate per commit.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc)
        .arg("--version")
        .output()
        .ok()
        .filter(|output| output.status.success())
        .and_then(|output| String::from_utf8(output.stdout).ok())
        .unwrap_or_default();
    // "rustc 1.95.0 (59807616e 2026-04-14)": the number is what people compare.
    let number = version.split_whitespace().nth(1).unwrap_or("unknown");
    println!("cargo::rustc-env=SLIPWAY_RUSTC={number}");
}
