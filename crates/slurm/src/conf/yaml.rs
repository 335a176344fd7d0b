//! topology.yaml and namespace.yaml: the two files that newer releases read as YAML.
//!
//! Every text is in double quotes, as in JSON, so that none can be taken for a number, a key or a comment.

use std::fmt::Write;

use super::hosts::HostExpr;
use super::problem::{Problem, Problems, Reason};
use super::quote::Unwritable;
use super::release::{Release, Support};
use super::value::{Word, check_item, check_switch};

/// topology.yaml: several topologies, of which partitions may choose. Where it is, topology.conf is not read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TopologyYaml {
    pub topologies: Vec<Topology>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    pub name: Word,
    pub cluster_default: bool,
    pub shape: Shape,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    Flat,
    Tree(Vec<Switch>),
    Block { sizes: Vec<u32>, blocks: Vec<Block> },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Switch {
    pub name: Word,
    /// Switches below this one.
    pub children: Option<HostExpr>,
    pub nodes: Option<HostExpr>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    pub name: Word,
    pub nodes: Option<HostExpr>,
}

impl TopologyYaml {
    pub const FILE: &'static str = "topology.yaml";
    pub const SUPPORT: Support = Support::since(Release::V25_05);

    pub fn render(&self, release: Release) -> Result<String, Problems> {
        let mut yaml = Yaml::new(Self::FILE, Self::SUPPORT, release);
        if self.topologies.is_empty() {
            yaml.fail("a topology", Reason::Missing);
        }
        yaml.line("---");
        for topology in &self.topologies {
            yaml.text("- topology", topology.name.as_str());
            yaml.yes_no("  cluster_default", Some(topology.cluster_default));
            match &topology.shape {
                Shape::Flat => yaml.yes_no("  flat", Some(true)),
                Shape::Tree(switches) => yaml.tree(switches),
                Shape::Block { sizes, blocks } => yaml.block(sizes, blocks),
            }
        }
        yaml.finish()
    }
}

/// namespace.yaml of namespace/linux, which follows job_container.conf: namespaces and private folders of jobs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NamespaceYaml {
    pub defaults: Option<Namespace>,
    /// The first one that names a node counts for it, over the defaults.
    pub nodes: Vec<NamespaceNodes>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamespaceNodes {
    pub nodes: HostExpr,
    pub options: Namespace,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Namespace {
    /// `none` switches the plugin off.
    pub base_path: Option<String>,
    pub auto_base_path: Option<bool>,
    /// Left empty: `/tmp` and `/dev/shm`.
    pub dirs: Vec<String>,
    /// Instead of `dirs`, with more to say of each; 26.05 and later.
    pub dir_confs: Vec<DirConf>,
    pub shared: Option<bool>,
    pub clone_ns_flags: Vec<String>,
    pub init_script: Option<String>,
    pub user_ns_script: Option<String>,
    pub clone_ns_script: Option<String>,
    /// In seconds.
    pub clone_ns_script_wait: Option<u32>,
    pub clone_ns_epilog: Option<String>,
    /// In seconds.
    pub clone_ns_epilog_wait: Option<u32>,
    pub disable_bpf_token: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DirConf {
    pub path: String,
    pub base_path: Option<String>,
    /// Of the mount: `nosuid,size=4g`.
    pub options: Option<String>,
    pub tmpfs: Option<bool>,
}

impl NamespaceYaml {
    pub const FILE: &'static str = "namespace.yaml";
    pub const SUPPORT: Support = Support::since(Release::V25_11);
    /// Of `dir_confs`.
    pub const DIR_CONFS: Support = Support::since(Release::V26_05);

    pub fn render(&self, release: Release) -> Result<String, Problems> {
        let mut yaml = Yaml::new(Self::FILE, Self::SUPPORT, release);
        if self.defaults.is_none() && self.nodes.is_empty() {
            yaml.fail("defaults", Reason::Missing);
        }
        yaml.line("---");
        if let Some(defaults) = &self.defaults {
            yaml.line("defaults:");
            yaml.namespace("  ", defaults, release);
        }
        if !self.nodes.is_empty() {
            yaml.line("node_confs:");
        }
        for NamespaceNodes { nodes, options } in &self.nodes {
            yaml.text("- nodes", nodes.as_str());
            yaml.line("  options:");
            yaml.namespace("    ", options, release);
        }
        yaml.finish()
    }
}

/// Lines of YAML. Keys are ours and come with their indentation, values are checked and quoted.
struct Yaml {
    file: &'static str,
    text: String,
    problems: Vec<Problem>,
}

impl Yaml {
    fn new(file: &'static str, support: Support, release: Release) -> Self {
        let mut yaml = Self { file, text: String::new(), problems: Vec::new() };
        if !support.is_known_in(release) {
            yaml.fail(file, Reason::NoSuchFile(release));
        }
        yaml
    }

    fn finish(self) -> Result<String, Problems> {
        let Self { file, text, problems } = self;
        if problems.is_empty() { Ok(text) } else { Err(Problems { file, problems }) }
    }

    fn fail(&mut self, place: &str, reason: Reason) {
        let place = place.trim_start_matches(['-', ' ']).to_owned();
        self.problems.push(Problem { place, reason });
    }

    fn line(&mut self, line: &str) {
        self.text += line;
        self.text.push('\n');
    }

    fn plain(&mut self, key: &str, value: impl std::fmt::Display) {
        let _ = writeln!(self.text, "{key}: {value}");
    }

    fn text(&mut self, key: &str, value: &str) {
        match quoted(value) {
            Ok(value) => self.plain(key, value),
            Err(unwritable) => self.fail(key, unwritable.into()),
        }
    }

    fn text_opt(&mut self, key: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.text(key, value);
        }
    }

    /// Slurm has one text with commas here.
    fn list(&mut self, key: &str, items: &[String]) {
        match items.iter().try_for_each(|item| check_item(item)) {
            Err(unfit) => self.fail(key, unfit.into()),
            Ok(()) if items.is_empty() => {}
            Ok(()) => self.text(key, &items.join(",")),
        }
    }

    fn yes_no(&mut self, key: &str, value: Option<bool>) {
        if let Some(value) = value {
            self.plain(key, value);
        }
    }

    fn number(&mut self, key: &str, value: Option<u32>) {
        if let Some(value) = value {
            self.plain(key, value);
        }
    }

    fn tree(&mut self, switches: &[Switch]) {
        if switches.is_empty() {
            self.fail("switches", Reason::Missing);
        }
        self.line("  tree:\n    switches:");
        for switch in switches {
            self.text("    - switch", switch.name.as_str());
            if let Err(unfit) = check_switch(switch.name.as_str()) {
                self.fail("switch", unfit.into());
            }
            self.text_opt("      children", switch.children.as_ref().map(HostExpr::as_str));
            self.text_opt("      nodes", switch.nodes.as_ref().map(HostExpr::as_str));
        }
    }

    fn block(&mut self, sizes: &[u32], blocks: &[Block]) {
        if sizes.is_empty() || blocks.is_empty() {
            self.fail("block_sizes and blocks", Reason::Missing);
        }
        self.line("  block:\n    block_sizes:");
        for size in sizes {
            self.line(&format!("    - {size}"));
        }
        self.line("    blocks:");
        for block in blocks {
            self.text("    - block", block.name.as_str());
            self.text_opt("      nodes", block.nodes.as_ref().map(HostExpr::as_str));
        }
    }

    fn namespace(&mut self, indent: &str, namespace: &Namespace, release: Release) {
        // Every field, so that none is forgotten.
        let Namespace {
            base_path,
            auto_base_path,
            dirs,
            dir_confs,
            shared,
            clone_ns_flags,
            init_script,
            user_ns_script,
            clone_ns_script,
            clone_ns_script_wait,
            clone_ns_epilog,
            clone_ns_epilog_wait,
            disable_bpf_token,
        } = namespace;
        if *namespace == Namespace::default() {
            self.fail("options", Reason::Missing);
        }
        let key = |name: &str| format!("{indent}{name}");
        self.yes_no(&key("auto_base_path"), *auto_base_path);
        self.text_opt(&key("base_path"), base_path.as_deref());
        self.list(&key("dirs"), dirs);
        self.dir_confs(indent, dir_confs, release);
        self.yes_no(&key("shared"), *shared);
        self.list(&key("clone_ns_flags"), clone_ns_flags);
        self.text_opt(&key("init_script"), init_script.as_deref());
        self.text_opt(&key("user_ns_script"), user_ns_script.as_deref());
        self.text_opt(&key("clone_ns_script"), clone_ns_script.as_deref());
        self.number(&key("clone_ns_script_wait"), *clone_ns_script_wait);
        self.text_opt(&key("clone_ns_epilog"), clone_ns_epilog.as_deref());
        self.number(&key("clone_ns_epilog_wait"), *clone_ns_epilog_wait);
        self.yes_no(&key("disable_bpf_token"), *disable_bpf_token);
    }

    fn dir_confs(&mut self, indent: &str, dir_confs: &[DirConf], release: Release) {
        if dir_confs.is_empty() {
            return;
        }
        let support = NamespaceYaml::DIR_CONFS;
        if !support.is_known_in(release) {
            self.fail("dir_confs", Reason::Refused { release, support });
        }
        self.line(&format!("{indent}dir_confs:"));
        for DirConf { path, base_path, options, tmpfs } in dir_confs {
            self.text(&format!("{indent}- path"), path);
            self.text_opt(&format!("{indent}  base_path"), base_path.as_deref());
            self.text_opt(&format!("{indent}  options"), options.as_deref());
            self.yes_no(&format!("{indent}  tmpfs"), *tmpfs);
        }
    }
}

fn quoted(value: &str) -> Result<String, Unwritable> {
    if value.is_empty() {
        return Err(Unwritable::Empty);
    }
    let mut text = "\"".to_owned();
    for letter in value.chars() {
        match letter {
            _ if letter.is_control() => return Err(Unwritable::Control),
            '"' | '\\' => text.extend(['\\', letter]),
            // Some of Unicode's blanks end a line of YAML, and some letters of its special planes end the reader.
            _ if letter.is_ascii() || letter.is_alphanumeric() => text.push(letter),
            _ => text += &format!("\\U{:08X}", u32::from(letter)),
        }
    }
    Ok(text + "\"")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_text_is_always_quoted() {
        assert_eq!(quoted("true").unwrap(), "\"true\"");
        assert_eq!(quoted("a\"b\\c: #d").unwrap(), "\"a\\\"b\\\\c: #d\"");
        assert_eq!(quoted("a\nb"), Err(Unwritable::Control));
        assert_eq!(quoted(""), Err(Unwritable::Empty));
    }

    #[test]
    fn what_ends_a_line_or_the_reader_is_escaped() {
        assert_eq!(quoted("ü\u{2028}\u{feff}\u{ffff}").unwrap(), "\"ü\\U00002028\\U0000FEFF\\U0000FFFF\"");
    }

    /// Everything that the file says, in the order in which it says it.
    fn read(text: &str) -> serde_json::Value {
        serde_saphyr::from_str(text).unwrap()
    }

    proptest! {
        #[test]
        fn any_text_is_an_error_or_is_read_back(
            text in prop_oneof![any::<String>(), "[-:#&*!|>%@`'\"\\\\{}\\[\\], a\u{2028}\u{85}]{1,12}"]
        ) {
            let dir = DirConf { path: text.clone(), base_path: Some(text.clone()), options: Some(text.clone()), tmpfs: None };
            let options = Namespace {
                base_path: Some(text.clone()),
                dirs: vec![text.clone(), "/x".into()],
                dir_confs: vec![dir],
                init_script: Some(text.clone()),
                ..Namespace::default()
            };
            let file = NamespaceYaml { defaults: Some(options), nodes: Vec::new() };
            if let Ok(written) = file.render(Release::V26_05) {
                let dir = json!({ "path": text, "base_path": text, "options": text });
                let dirs = format!("{text},/x");
                let all = json!({ "base_path": text, "dirs": dirs, "dir_confs": [dir], "init_script": text });
                prop_assert_eq!(read(&written), json!({ "defaults": all }));
            }
            let (Ok(name), nodes) = (Word::new(&text), HostExpr::new(&text)) else { return Ok(()) };
            let block = Block { name: name.clone(), nodes: nodes.clone().ok() };
            let shape = Shape::Block { sizes: vec![2], blocks: vec![block] };
            let topologies = vec![Topology { name, cluster_default: true, shape }];
            let written = TopologyYaml { topologies }.render(Release::V26_05).unwrap();
            let mut block = json!({ "block": text });
            if nodes.is_ok() {
                block["nodes"] = json!(text);
            }
            let blocks = json!({ "block_sizes": [2], "blocks": [block] });
            prop_assert_eq!(read(&written), json!([{ "topology": text, "cluster_default": true, "block": blocks }]));
        }
    }

    #[test]
    fn a_release_that_does_not_read_the_file_is_not_given_it() {
        let defaults = Namespace { base_path: Some("/x".into()), ..Namespace::default() };
        let namespace = NamespaceYaml { defaults: Some(defaults), nodes: Vec::new() };
        let error = namespace.render(Release::V25_05).unwrap_err();
        assert_eq!(error.to_string(), "write namespace.yaml: namespace.yaml: Slurm 25.05 has no such file");
        assert!(namespace.render(Release::V25_11).is_ok());
    }

    #[test]
    fn a_switch_that_slurm_would_not_find_is_refused() {
        let render = |name: &str| {
            let switch = Switch { name: Word::new(name).unwrap(), children: None, nodes: None };
            let topology = Topology {
                name: Word::new("t").unwrap(),
                cluster_default: true,
                shape: Shape::Tree(vec![switch]),
            };
            TopologyYaml { topologies: vec![topology] }.render(Release::V26_05)
        };
        let error = render("fabric99999999999999999999").unwrap_err().to_string();
        assert!(
            error.starts_with("write topology.yaml: switch: the value ends in a number that is too large"),
            "{error}"
        );
        assert!(render(&"s".repeat(70)).is_ok());
    }

    #[test]
    fn what_is_empty_is_refused() {
        assert!(TopologyYaml::default().render(Release::V26_05).is_err());
        assert!(NamespaceYaml::default().render(Release::V26_05).is_err());
        let defaults = Some(Namespace::default());
        assert!(NamespaceYaml { defaults, nodes: Vec::new() }.render(Release::V26_05).is_err());
    }
}
