//! Times as slurmctld reads and prints them.

use anyhow::{Context, Result, ensure};
use slurm::units::TimeLimit;
use testkit::cache::SlurmVersion;
use testkit::slurm::SlurmCluster;

pub(crate) async fn time_limits_mean_what_they_mean_to_slurm(version: SlurmVersion) -> Result<()> {
    let texts = [
        "90",
        "90:01",
        "90:60",
        "1:02:03",
        "30:00:00",
        "2-3",
        "0-48",
        "2-3:4",
        "2-03:04:05",
        "1-00:00:00",
        "0:1",
        "24855-03:13:00",
        "INFINITE",
        "unlimited",
        "-1",
    ];
    let lines: Vec<String> =
        (0..).zip(texts).map(|(at, text)| format!("PartitionName=p{at} MaxTime={text}")).collect();
    let cluster = SlurmCluster::builder(version).nodes(0).extra_conf(&lines.join("\n")).start().await?;
    for (at, text) in texts.into_iter().enumerate() {
        let shown = cluster
            .exec("slurmctld", &["scontrol", "show", "--oneliner", "partition", &format!("p{at}")])
            .await?;
        let shown = shown.split_whitespace().find_map(|word| word.strip_prefix("MaxTime="));
        let shown = shown.with_context(|| format!("no MaxTime for {text}"))?;
        // Slurm keeps whole minutes.
        let own = match TimeLimit::parse(text)?.minutes() {
            Some(minutes) => TimeLimit::parse(&minutes.to_string())?,
            None => TimeLimit::Unlimited,
        };
        ensure!(own.to_string() == shown, "{text}: Slurm says {shown}, we say {own}");
    }
    Ok(())
}
