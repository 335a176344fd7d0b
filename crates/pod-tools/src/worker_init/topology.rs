//! The place of a worker in the topology, as the operator writes it into `topology.conf`: the labels of its
//! Kubernetes node are the switches above it, and who has none goes under the unknown switch of its fabric.
//!
//! The Python program that this replaces puts `tier-0` into the path and leaves long numbers as they are; the file
//! of the operator does neither. Slurm would then get a second switch of nearly the same name, so the file decides.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use slurm::hostlist::Hostlist;

use super::wait::Probe;

/// The fabric of clusters that have only one.
pub(super) const ROOT: &str = "root";

/// Slurm reads the digits at the end of a name as a number, and more of them than this do not fit.
const MOST_DIGITS: usize = 18;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plugin {
    Tree,
    Block,
    /// The operator writes no `topology.conf` for any other.
    Other,
}

impl Plugin {
    pub(super) fn of(name: &str) -> Self {
        match name {
            "topology/tree" => Self::Tree,
            "topology/block" => Self::Block,
            _ => Self::Other,
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The switches above the node, the nearest first.
    Under(Vec<String>),
    Unknown,
    /// There are labels, but no path in them; why not.
    Unplaceable(String),
}

impl Place {
    /// The path from the root of the fabric down to the switch of the node, as `scontrol update` takes it.
    pub(super) fn path(&self, fabric: &str) -> String {
        let fabric = if fabric.is_empty() { ROOT } else { fabric };
        let unknown = if fabric == ROOT { "unknown".to_owned() } else { format!("{fabric}.unknown") };
        let switches = match self {
            Self::Under(switches) => switches.as_slice(),
            Self::Unknown | Self::Unplaceable(_) => &[unknown],
        };
        let mut path = format!("default:{}", switch_name(fabric));
        for switch in switches.iter().rev() {
            path.push(':');
            path.push_str(&switch_name(switch));
        }
        path
    }
}

fn switch_name(name: &str) -> String {
    let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
    if digits > MOST_DIGITS { format!("{name}_") } else { name.to_owned() }
}

/// Looks into the file with the labels of a node: `{"tier-0":"…","tier-1":"…"}`.
pub(super) fn read_labels(file: &Path) -> Result<Probe<Place>> {
    match std::fs::read_to_string(file) {
        Ok(text) => place_of(&text).map(Probe::Ready).with_context(|| format!("read {}", file.display())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Probe::NotYet("no such file yet".to_owned())),
        Err(error) => Err(error).with_context(|| format!("read {}", file.display())),
    }
}

fn place_of(text: &str) -> Result<Place> {
    let labels: BTreeMap<String, Value> =
        serde_json::from_str(text).context("these are no labels, which would be a JSON object of strings")?;
    let mut tiers = BTreeMap::new();
    for (label, value) in &labels {
        let Some(tier) = label.strip_prefix("tier-").and_then(|tier| tier.parse::<u32>().ok()) else {
            continue;
        };
        let switch = value.as_str().with_context(|| format!("label {label} is {value} and not a string"))?;
        // Kubernetes has empty labels, and they say as much as none.
        if switch.is_empty() {
            continue;
        }
        // The letters of labels. A colon or a comma would change the path that Slurm reads.
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        ensure!(switch.bytes().all(fits), "label {label} is no name of a switch: {switch:?}");
        tiers.insert(tier, switch.to_owned());
    }
    // Below the switches there is tier 0, the NVLink domain: a block, and no switch.
    tiers.remove(&0);
    if tiers.is_empty() {
        return Ok(Place::Unplaceable("its Kubernetes node has no label tier-1".to_owned()));
    }
    if let Some((missing, _)) = (1..).zip(tiers.keys()).find(|(expected, tier)| expected != *tier) {
        return Ok(Place::Unplaceable(format!(
            "its Kubernetes node has labels of higher tiers but not tier-{missing}"
        )));
    }
    Ok(Place::Under(tiers.into_values().collect()))
}

/// Looks for `node` in `topology.conf`, among the nodes of any switch or block.
pub(super) fn look_for(node: &str, conf: &Path) -> Probe<()> {
    match std::fs::read_to_string(conf) {
        Ok(text) if names(&text, node) => Probe::Ready(()),
        Ok(_) => Probe::NotYet("the node is not in it yet".to_owned()),
        // The file is in the shared file system: whatever is wrong with it now may be right in a second.
        Err(error) => Probe::NotYet(format!("cannot be read: {error}")),
    }
}

fn names(conf: &str, node: &str) -> bool {
    let has = |list: &str| Hostlist::parse(list).is_ok_and(|list| list.contains(node));
    let lines = conf.lines().map(|line| line.split('#').next().unwrap_or(line));
    lines
        .flat_map(str::split_whitespace)
        .filter_map(|word| word.split_once('='))
        .any(|(key, value)| key.eq_ignore_ascii_case("Nodes") && has(value.trim_matches('"')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(labels: &str, fabric: &str) -> String {
        place_of(labels).unwrap().path(fabric)
    }

    #[test]
    fn labels_make_a_path_from_the_root_down() {
        let labels = "{\"tier-0\":\"nvl7\",\"tier-1\":\"leaf3\",\"tier-2\":\"spine1\"}\n";
        assert_eq!(path(labels, "root"), "default:root:spine1:leaf3");
        assert_eq!(path(labels, "east"), "default:east:spine1:leaf3");
        assert_eq!(path(labels, ""), "default:root:spine1:leaf3");
    }

    #[test]
    fn tiers_are_numbers_and_not_text() {
        let labels: String = (1..=11).map(|tier| format!(r#""tier-{tier}":"s{tier}","#)).collect();
        let path = path(&format!("{{{labels}\"zone\":1}}"), "root");
        assert_eq!(path, "default:root:s11:s10:s9:s8:s7:s6:s5:s4:s3:s2:s1");
    }

    #[test]
    fn who_has_no_path_goes_under_the_unknown_switch_of_the_fabric() {
        assert_eq!(Place::Unknown.path("root"), "default:root:unknown");
        assert_eq!(Place::Unknown.path("east"), "default:east:east.unknown");
        for labels in [
            "{}",
            r#"{"tier-0":"nvl7"}"#,
            r#"{"tier-1":"a","tier-3":"b"}"#,
            r#"{"tier-2":"a"}"#,
            r#"{"tier-1":""}"#,
        ] {
            assert!(matches!(place_of(labels).unwrap(), Place::Unplaceable(_)), "{labels}");
            assert_eq!(path(labels, "root"), "default:root:unknown", "{labels}");
        }
    }

    #[test]
    fn names_with_long_numbers_are_those_of_the_operator() {
        let fits = "a123456789012345678";
        let long = "a1234567890123456789";
        let labels = format!(r#"{{"tier-1":"{long}","tier-2":"{fits}"}}"#);
        assert_eq!(path(&labels, "root"), format!("default:root:{fits}:{long}_"));
    }

    #[test]
    fn what_is_no_label_is_an_error_that_names_file_and_problem() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("node-1");
        assert_eq!(read_labels(&file).unwrap(), Probe::NotYet("no such file yet".to_owned()));
        for (text, problem) in [
            ("", "these are no labels"),
            ("tier-1=leaf", "these are no labels"),
            ("[]", "these are no labels"),
            (r#"{"tier-1":7}"#, "label tier-1 is 7 and not a string"),
            (r#"{"tier-1":"a:b"}"#, "label tier-1 is no name of a switch: \"a:b\""),
        ] {
            std::fs::write(&file, text).unwrap();
            let error = format!("{:#}", read_labels(&file).unwrap_err());
            assert!(error.starts_with(&format!("read {}: {problem}", file.display())), "{error}");
        }
    }

    #[test]
    fn node_is_found_in_trees_and_blocks() {
        let tree = "# written by the operator\nSwitchName=root Switches=leaf[0-1]\nSwitchName=leaf0 Nodes=gpu-[0-3],gpu-7\n";
        assert!(
            names(tree, "gpu-2") && names(tree, "gpu-7") && !names(tree, "gpu-4") && !names(tree, "leaf0")
        );
        let block = "BlockName=b1 nodes=gpu-[0-15]\nBlockSizes=16\n#BlockName=b2 Nodes=gpu-16\n";
        assert!(names(block, "gpu-15") && !names(block, "gpu-16"));
        assert!(!names("SwitchName=root\n", "gpu-0"));
        // The operator writes the file while we read it.
        assert!(!names("SwitchName=leaf0 Nodes=gpu-[0-", "gpu-0"));
    }
}
