//! `slipway-node slurmd`: becomes slurmd, with the arguments that the environment of a worker asks for.

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use slurm::hostlist::Hostlist;

use crate::host;

/// Before the name of a feature: which workers have it, as a host list.
const FEATURE: &str = "SLURM_FEATURE_";

#[derive(Debug, clap::Args)]
pub struct Args {
    /// More arguments for slurmd
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    more: Vec<String>,
}

type Environment = BTreeMap<String, String>;

pub fn run(args: Args) -> Result<()> {
    // What is not text is nothing that we ask for.
    let environment = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let arguments = arguments(&environment, &host::name()?, gpu_models)?;
    Err(Command::new("slurmd").args(arguments).args(args.more).exec()).context("start slurmd")
}

/// With `-b` slurmd says that it has just booted: without, a new pod reports the machine's boot, and a reboot that Slurm
/// asked for never ends.
fn arguments(
    environment: &Environment,
    host: &str,
    gpu_models: impl FnOnce() -> Result<Vec<String>>,
) -> Result<Vec<String>> {
    let given = |name: &str| environment.get(name).filter(|value| !value.is_empty());
    let mut arguments = vec!["-D".to_owned(), "-b".to_owned(), "-N".to_owned(), host.to_owned()];
    let mut add = |name: &str, value: String| arguments.extend([name.to_owned(), value]);
    if let Some(instance) = given("INSTANCE_ID") {
        add("--instance-id", instance.clone());
    }
    if let Some(extra) = given("SLURM_NODE_EXTRA") {
        add("--extra", expand(extra, environment));
    }
    // A worker that slurm.conf does not name makes itself known, as with Soperator 1.x.
    let named = given("SOPERATOR_NODE_SETS_ON").is_some_and(|value| value == "true");
    if let Some(memory) = given("SLURM_REAL_MEMORY").filter(|_| !named) {
        let need = |name: &str| {
            given(name)
                .with_context(|| format!("{name} is not set: a worker with SLURM_REAL_MEMORY is found by it"))
        };
        let (service, namespace) = (need("K8S_SERVICE_NAME")?, need("K8S_POD_NAMESPACE")?);
        let mut conf =
            format!("NodeHostname={host} NodeAddr={host}.{service}.{namespace}.svc RealMemory={memory}");
        for (key, list) in [("Gres", gres(&gpu_models()?)), ("Feature", features(environment, host))] {
            if !list.is_empty() {
                conf += &format!(" {key}={list}");
            }
        }
        arguments.extend(["-Z".to_owned(), "--conf".to_owned(), conf]);
    }
    Ok(arguments)
}

/// Replaces `$NAME` and `${NAME}` by what the environment has, or nothing. No other character means anything: the text
/// is a user's, and never a program.
fn expand(text: &str, environment: &Environment) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once('$') {
        out += before;
        let braced = after.strip_prefix('{').and_then(|inner| inner.split_once('}'));
        let end = after
            .find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
            .unwrap_or(after.len());
        let (name, tail) = match braced {
            Some((name, tail)) if is_name(name) => (name, tail),
            _ if is_name(&after[..end]) => after.split_at(end),
            _ => {
                out.push('$');
                rest = after;
                continue;
            }
        };
        out += environment.get(name).map_or("", String::as_str);
        rest = tail;
    }
    out + rest
}

fn is_name(text: &str) -> bool {
    let letters = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    !text.is_empty() && !text.starts_with(|first: char| first.is_ascii_digit()) && text.chars().all(letters)
}

fn features(environment: &Environment, host: &str) -> String {
    let lists = environment.iter().filter_map(|(name, list)| Some((name.strip_prefix(FEATURE)?, list)));
    // A broken list has nobody.
    let has = |list: &str| Hostlist::parse(list).is_ok_and(|list| list.contains(host));
    let mine = lists.filter(|(name, list)| !name.is_empty() && has(list));
    mine.map(|(name, _)| name).collect::<Vec<_>>().join(",")
}

/// `gpu:nvidia_h100_80gb_hbm3:8`, as Slurm's own detection would write it.
fn gres(models: &[String]) -> String {
    let mut counts = BTreeMap::<String, usize>::new();
    for model in models {
        *counts.entry(model.to_lowercase().replace(' ', "_")).or_default() += 1;
    }
    counts.iter().map(|(model, count)| format!("gpu:{model}:{count}")).collect::<Vec<_>>().join(",")
}

/// The GPUs of this machine; none where the driver has put no nvidia-smi.
fn gpu_models() -> Result<Vec<String>> {
    let mut command = Command::new("nvidia-smi");
    let ran = match command.args(["--query-gpu=name", "--format=csv,noheader"]).output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        ran => ran.context("start nvidia-smi")?,
    };
    // A worker that does not see its GPUs must not register without them.
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    ensure!(
        ran.status.success(),
        "nvidia-smi: {}: {said}{}",
        ran.status,
        String::from_utf8_lossy(&ran.stderr)
    );
    Ok(said.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(of: &[(&str, &str)]) -> Environment {
        of.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn words(of: &[(&str, &str)], gpus: &[&str]) -> Vec<String> {
        let gpus = gpus.iter().map(|model| (*model).to_owned()).collect();
        arguments(&environment(of), "worker-2", || Ok(gpus)).unwrap()
    }

    #[test]
    fn a_worker_that_slurm_conf_names_says_who_it_is() {
        assert_eq!(words(&[], &["unseen"]), ["-D", "-b", "-N", "worker-2"]);
        let of =
            [("INSTANCE_ID", "node-7"), ("SLURM_REAL_MEMORY", "100"), ("SOPERATOR_NODE_SETS_ON", "true")];
        assert_eq!(words(&of, &[]), ["-D", "-b", "-N", "worker-2", "--instance-id", "node-7"]);
    }

    #[test]
    fn a_worker_that_slurm_conf_does_not_name_makes_itself_known() {
        let of = [
            ("SLURM_REAL_MEMORY", "64000"),
            ("K8S_SERVICE_NAME", "demo-worker-svc"),
            ("K8S_POD_NAMESPACE", "slurm"),
            ("SLURM_FEATURE_fast", "worker-[0-3]"),
            ("SLURM_FEATURE_big", "worker-[4-5],worker-2"),
            ("SLURM_FEATURE_other", "worker-[3-9]"),
            ("SLURM_FEATURE_", "worker-2"),
            ("SLURM_FEATURE_broken", "worker-2,worker-["),
            ("SLURM_FEATURE_none", ""),
        ];
        let conf = "NodeHostname=worker-2 NodeAddr=worker-2.demo-worker-svc.slurm.svc RealMemory=64000";
        let found = words(&of, &[]);
        assert_eq!(found[4..], ["-Z".to_owned(), "--conf".to_owned(), format!("{conf} Feature=big,fast")]);
        let models = ["NVIDIA H100 80GB HBM3", "NVIDIA A10", "NVIDIA H100 80GB HBM3"];
        let gres = "Gres=gpu:nvidia_a10:1,gpu:nvidia_h100_80gb_hbm3:2";
        assert_eq!(words(&of, &models)[6], format!("{conf} {gres} Feature=big,fast"));
        let error = arguments(&environment(&of[..1]), "worker-2", || Ok(Vec::new())).unwrap_err();
        assert!(error.to_string().starts_with("K8S_SERVICE_NAME is not set"), "{error}");
    }

    #[test]
    fn text_of_users_is_expanded_and_never_run() {
        let of = environment(&[("INSTANCE_ID", "node-7"), ("_x1", "$INSTANCE_ID")]);
        for (text, expanded) in [
            (r#"{"k": "$INSTANCE_ID"}"#, r#"{"k": "node-7"}"#),
            ("${INSTANCE_ID}9 $INSTANCE_ID/x", "node-79 node-7/x"),
            ("$MISSING${MISSING}.", "."),
            // What comes out of a variable is not looked at again.
            ("$_x1", "$INSTANCE_ID"),
            ("$(touch /x) `id` \\ '\" ; rm * é", "$(touch /x) `id` \\ '\" ; rm * é"),
            ("5$ $$ ${ ${} ${a b} $1 $", "5$ $$ ${ ${} ${a b} $1 $"),
        ] {
            assert_eq!(expand(text, &of), expanded, "{text}");
        }
    }

    #[test]
    fn an_extra_is_one_argument() {
        let found = words(&[("SLURM_NODE_EXTRA", "a b \"c\"")], &[]);
        assert_eq!(found[4..], ["--extra", "a b \"c\""]);
    }
}
