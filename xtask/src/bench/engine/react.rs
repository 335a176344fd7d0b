//! From a change to its reconcile: the engine and kube's controller in turn, under the same load.

use std::fs;

use anyhow::{Result, ensure};
use serde_json::{Map, Value, json};
use testkit::ControlPlane;
use testkit::pki::MASTERS;

use super::subject::{Start, Subject, load, no_writes};
use super::{Measured, percentile, rounded};
use crate::tell;

const OBJECTS: usize = 400;
const PER_SECOND: u32 = 200;
const SECONDS: u32 = 15;
/// In turn, so that what else the machine does meets both.
const ROUNDS: usize = 2;
const PROGRAM: &str = "engine-bench";

pub(super) async fn measure() -> Result<Measured> {
    let plane = ControlPlane::own().await?;
    let folder = tempfile::tempdir()?;
    let kubeconfig = plane.kubeconfig("load", MASTERS)?;
    let folder = folder.path();
    let number = format!("--number={OBJECTS}");
    let args = [number.clone()];
    let start =
        Start { program: PROGRAM, mode: "load-samples", args: &args, kubeconfig: &kubeconfig, folder };
    load(&start).await?;
    let (mut ours, mut stock, mut rounds) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        for (mode, all) in [("react", &mut ours), ("stock-react", &mut stock)] {
            let round = format!("{mode}-{round}");
            let (report, load_report) = (folder.join(&round), folder.join(format!("{round}-load")));
            let user = plane.kubeconfig(mode, MASTERS)?;
            let args = [format!("--round={round}"), format!("--report={}", report.display())];
            let start = Start { program: PROGRAM, mode, args: &args, kubeconfig: &user, folder };
            let mut subject = Subject::start(&start)?;
            subject.ready().await?;
            no_writes(&plane.api_calls(), &plane.client("bench").await?, Some(mode)).await?;
            let args = [
                number.clone(),
                format!("--round={round}"),
                format!("--per-second={PER_SECOND}"),
                format!("--seconds={SECONDS}"),
                format!("--report={}", load_report.display()),
            ];
            let start = Start {
                program: PROGRAM,
                mode: "change-samples",
                args: &args,
                kubeconfig: &kubeconfig,
                folder,
            };
            load(&start).await?;
            subject.at_rest().await?;
            let (rss, processor) = (subject.mebibytes("VmRSS")?, subject.processor_seconds()?);
            subject.end().await?;
            let mut times: Vec<u64> = serde_json::from_slice(&fs::read(&report)?)?;
            // Two changes of one object that come together are one reconcile.
            let changes = (PER_SECOND * SECONDS) as usize;
            ensure!(
                times.len() * 100 >= changes * 95,
                "{round}: {} reconciles for {changes} changes",
                times.len()
            );
            times.sort_unstable();
            tell(&format!("{round}: {} reconciles, p99 {} µs", times.len(), percentile(&times, 99)));
            let made: Value = serde_json::from_slice(&fs::read(&load_report)?)?;
            rounds.push(json!({
                "round": round, "reconciles": times.len(), "p50_us": percentile(&times, 50), "p90_us": percentile(&times, 90),
                "p99_us": percentile(&times, 99), "max_us": times.last(), "load": made, "rss_mib": rounded(rss),
                "processor_seconds": rounded(processor),
            }));
            all.append(&mut times);
        }
    }
    ours.sort_unstable();
    stock.sort_unstable();
    let milliseconds = |times: &[u64], percent| rounded(percentile(times, percent) as f64 / 1000.0);
    let figures = Map::from_iter([
        ("react_p50_ms".to_owned(), milliseconds(&ours, 50)),
        ("react_p99_ms".to_owned(), milliseconds(&ours, 99)),
        ("react_stock_p99_ms".to_owned(), milliseconds(&stock, 99)),
    ]);
    let samples = json!({
        "objects": OBJECTS, "changes_per_second": PER_SECOND, "seconds": SECONDS, "reconciles": ours.len(),
        "stock_reconciles": stock.len(), "stock_p50_ms": milliseconds(&stock, 50), "rounds": rounds });
    Ok(Measured { figures, samples })
}
