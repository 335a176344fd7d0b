//! Nodes that come and go, and waiting for what Slurm thinks of them and of jobs.

use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use http::{Method, StatusCode};
use serde_json::Value;

use super::SlurmCluster;
use super::pod::Pod;
use crate::process::eventually;

/// Longer than slurmctld needs to find that a node is gone: 42 s with `SlurmdTimeout=30`.
const WAIT: Duration = Duration::from_secs(60);
const TOKEN: Duration = Duration::from_secs(600);

impl SlurmCluster {
    /// Starts a node with a new address, as a new pod would have. `conf` is what slurmd says of itself:
    /// `CPUs=2 RealMemory=1000 Feature=dyn`. Whether to wait for its registration is the caller's choice.
    pub async fn add_node(&mut self, name: &str, conf: &str) -> Result<()> {
        if self.pods.contains_key(name) {
            bail!("there is already a pod {name}");
        }
        let address = node_address(self.nodes_made);
        self.nodes_made += 1;
        let pod = Pod::create(&self.site, &self.daemons.slurmd(name, address, conf)).await?;
        self.pods.insert(name.to_owned(), pod);
        Ok(())
    }

    /// Ends a node's pod as Kubernetes does: SIGTERM to slurmd, and after `grace` the end of every process.
    /// slurmctld is not told.
    pub async fn stop_node(&mut self, name: &str, grace: Duration) -> Result<()> {
        let mut pod = self.take_node(name)?;
        pod.stop(grace).await?;
        pod.remove(&self.site).await
    }

    /// Ends every process of a node at once, and takes its address away.
    pub async fn kill_node(&mut self, name: &str) -> Result<()> {
        let mut pod = self.take_node(name)?;
        pod.kill().await?;
        pod.remove(&self.site).await
    }

    pub(super) fn take_node(&mut self, name: &str) -> Result<Pod> {
        self.pods.remove(name).with_context(|| format!("there is no node {name}"))
    }

    /// The state of each node that slurmctld knows: `["IDLE", "DYNAMIC_NORM"]`.
    pub async fn node_states(&self) -> Result<Vec<(String, Vec<String>)>> {
        let answer = self.get(&self.slurm_path("nodes/")).await?;
        let nodes = answer["nodes"].as_array().context("an answer without nodes")?;
        Ok(nodes
            .iter()
            .map(|node| (node["name"].as_str().unwrap_or_default().to_owned(), strings(&node["state"])))
            .collect())
    }

    /// Waits until a node's state fits; `what` says what that means.
    pub async fn wait_node_state(
        &self,
        name: &str,
        what: &str,
        fits: impl Fn(&[String]) -> bool,
    ) -> Result<()> {
        let mut seen = Vec::new();
        eventually(&format!("node {name} {what}"), WAIT, async || {
            // Without its pod a node can still go down, so only a pod that failed ends the wait.
            if let Some(Err(error)) = self.pods.get(name).map(Pod::check_running) {
                return Ok(Some(Err(error)));
            }
            seen = self.node_states().await?;
            let state = seen.iter().find(|(node, _)| node == name).map(|(_, state)| state);
            Ok(state.is_some_and(|state| fits(state)).then_some(Ok(())))
        })
        .await
        .with_context(|| format!("nodes: {seen:?}; {}", self.log_tail(name)))?
    }

    /// Waits until `count` nodes are idle and nothing else.
    pub async fn wait_idle(&self, count: u32) -> Result<()> {
        let mut seen = Vec::new();
        eventually(&format!("{count} idle nodes"), WAIT, async || {
            if let Some(error) = self.pods.values().find_map(|pod| pod.check_running().err()) {
                return Ok(Some(Err(error)));
            }
            seen = self.node_states().await?;
            let idle = seen.iter().filter(|(_, state)| is_idle(state)).count();
            Ok((idle >= count as usize).then_some(Ok(())))
        })
        .await
        .with_context(|| format!("nodes: {seen:?}; {}", self.log_tail(super::CONTROLLER_POD)))?
    }

    /// Waits until a job is in `state`: `COMPLETED`.
    pub async fn wait_job(&self, job: u32, state: &str) -> Result<()> {
        let mut seen = Vec::new();
        eventually(&format!("job {job} {state}"), WAIT, async || {
            let answer = self.get(&self.slurm_path(&format!("job/{job}"))).await?;
            seen = strings(&answer["jobs"][0]["job_state"]);
            Ok(seen.iter().any(|flag| flag == state).then_some(()))
        })
        .await
        .with_context(|| format!("last seen: {seen:?}; {}", self.log_tail(super::CONTROLLER_POD)))
    }

    fn log_tail(&self, pod: &str) -> String {
        self.pods.get(pod).map_or_else(|| format!("{pod} has no pod"), Pod::log_tail)
    }

    /// Asks as root, and takes nothing but success.
    async fn get(&self, path: &str) -> Result<Value> {
        let token = self.token("root", TOKEN)?;
        let answer = self.rest(Method::GET, path, None, Some(&token)).await?;
        if answer.status != StatusCode::OK {
            bail!("GET {path}: {} {}", answer.status, answer.json["errors"]);
        }
        Ok(answer.json)
    }
}

fn strings(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn is_idle(state: &[String]) -> bool {
    !state.is_empty() && state.iter().all(|flag| flag == "IDLE" || flag == "DYNAMIC_NORM")
}

/// Addresses are not used twice, as with pods. The network is a /16; its first 256 are for other daemons.
fn node_address(number: u32) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(Ipv4Addr::new(10, 77, 1, 0)) + number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_drains_or_does_not_answer_is_not_idle() {
        let state = |flags: &[&str]| flags.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert!(is_idle(&state(&["IDLE", "DYNAMIC_NORM"])));
        assert!(!is_idle(&state(&["IDLE", "DRAIN", "DYNAMIC_NORM"])));
        assert!(!is_idle(&state(&["IDLE", "NOT_RESPONDING"])));
        assert!(!is_idle(&[]));
    }

    #[test]
    fn node_addresses_go_on_over_the_end_of_a_byte() {
        assert_eq!(node_address(0), Ipv4Addr::new(10, 77, 1, 0));
        assert_eq!(node_address(300), Ipv4Addr::new(10, 77, 2, 44));
    }
}
