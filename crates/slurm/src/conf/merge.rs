//! A user's lines win: which of ours go, and how lists of options are joined.

use super::document::{Document, Setting};
use super::file::{ConfFile, Item};
use super::keys::{FileKind, Key, Kind, slurm};
use super::problem::{Problem, Reason};
use crate::hostlist::Hostlist;

/// More ranges are not compared. Slurm reads no list that has more.
const MOST_RANGES: usize = 65_536;

/// What the user's text says of something of ours.
enum Said {
    Nothing,
    Everything,
    /// Of these nodes.
    OfSome(Hostlist),
}

struct Theirs<'a> {
    file: FileKind,
    settings: Vec<&'a Setting>,
    /// The nodes of slurm.conf that lines of both name. Few, so that each of our lines is soon compared with them.
    shared: Hostlist,
}

impl ConfFile {
    /// Drops what was written so far and the user's text sets too. Of the lines that add to each other, only those go
    /// that name the same nodes, partition or set. What is given back are the keys of the dropped lines.
    ///
    /// A line of ours that shares only some of its nodes with the user's is an error of this file: slurmctld does not
    /// start where two lines name a node.
    pub fn drop_overridden(&mut self, user: &Document) -> Vec<&'static str> {
        let theirs = Theirs::of(user, &self.items);
        let mut dropped = Vec::new();
        let mut problems = Vec::new();
        self.items.retain(|item| {
            let Item::Setting { key, value, .. } = item else { return true };
            match theirs.say(key, value) {
                Said::Nothing => true,
                Said::Everything => {
                    dropped.push(key.name);
                    false
                }
                Said::OfSome(nodes) => {
                    let place = format!("{}={value}", key.name);
                    problems.push(Problem { place, reason: Reason::SomeNodes(nodes.to_string()) });
                    true
                }
            }
        });
        self.problems.extend(problems);
        dropped
    }

    /// For each of the keys that the user's text sets too: all options of both, to be set after that text.
    /// An option that both name is ours. Sorted, so that the order of a user's text does not matter.
    ///
    /// To be asked before [`Self::drop_overridden`], which takes ours away.
    pub fn unions(&self, user: &Document, keys: &[&str]) -> Vec<(&'static Key, String)> {
        let union = |name: &&str| {
            let theirs = user.get(name)?;
            let key = self.kind.key(name)?;
            Some((key, union_options(self.value(key.name).unwrap_or_default(), theirs)))
        };
        keys.iter().filter_map(union).filter(|(_, options)| !options.is_empty()).collect()
    }
}

impl<'a> Theirs<'a> {
    fn of(user: &'a Document, ours: &[Item]) -> Self {
        let settings: Vec<&Setting> = user.settings().map(|(_, setting)| setting).collect();
        let theirs = settings.iter().map(|setting| (setting.key.as_str(), setting.value.as_str()));
        let ours = ours.iter().filter_map(|item| match item {
            Item::Setting { key, value, .. } => Some((key.name, value.as_str())),
            Item::Other(_) | Item::Text(_) => None,
        });
        let shared = shared(&nodes(user.kind(), ours), &nodes(user.kind(), theirs));
        Self { file: user.kind(), settings, shared: shared.unwrap_or_default() }
    }

    fn say(&self, key: &Key, value: &str) -> Said {
        match key.kind {
            Kind::Each => Said::Nothing,
            // The values before all others are defaults, in the order of the file.
            _ if key.is_defaults(value) => Said::Nothing,
            Kind::HostsLine(_) if is_node_name(self.file, key.name) => self.say_of_nodes(value),
            // Each line is a device: a second one of the same nodes adds to the first.
            Kind::Line(_) | Kind::HostsLine(_) if self.file == FileKind::Gres => Said::Nothing,
            Kind::Line(_) | Kind::HostsLine(_) => self.any(|setting| setting.names(key.name, value)),
            _ => self.any(|setting| setting.key.eq_ignore_ascii_case(key.name)),
        }
    }

    fn any(&self, says: impl Fn(&Setting) -> bool) -> Said {
        if self.settings.iter().any(|setting| says(setting)) { Said::Everything } else { Said::Nothing }
    }

    fn say_of_nodes(&self, ours: &str) -> Said {
        if self.shared.is_empty() {
            return Said::Nothing;
        }
        let Ok(ours) = Hostlist::parse(ours) else { return Said::Nothing };
        match ours.difference(&self.shared, MOST_RANGES) {
            Ok(left) if left.is_empty() => Said::Everything,
            _ => match shared(&ours, &self.shared) {
                Some(nodes) if !nodes.is_empty() => Said::OfSome(nodes),
                _ => Said::Nothing,
            },
        }
    }
}

/// All that stands after `NodeName=` of slurm.conf. A list that is broken is for `Document::check` to tell.
fn nodes<'a>(file: FileKind, settings: impl Iterator<Item = (&'a str, &'a str)>) -> Hostlist {
    let names = settings.filter(|(key, name)| is_node_name(file, key) && !slurm::NodeName.is_defaults(name));
    let sound: Vec<&str> = names.map(|(_, name)| name).filter(|name| Hostlist::parse(name).is_ok()).collect();
    Hostlist::parse(&sound.join(",")).unwrap_or_default()
}

/// The names in both lists; None if one is too large.
fn shared(one: &Hostlist, other: &Hostlist) -> Option<Hostlist> {
    let left = one.difference(other, MOST_RANGES).ok()?;
    one.difference(&left, MOST_RANGES).ok()
}

fn is_node_name(file: FileKind, key: &str) -> bool {
    file == FileKind::Slurm && key.eq_ignore_ascii_case(slurm::NodeName.name)
}

/// The options of two lists, without those of the second whose name the first has. Names are compared in any case, as
/// Slurm does, and kept as they are: values may be paths.
fn union_options(ours: &str, theirs: &str) -> String {
    fn options(list: &str) -> impl Iterator<Item = &str> {
        list.split(',').map(str::trim).filter(|option| !option.is_empty())
    }
    fn name(option: &str) -> String {
        option.split_once('=').map_or(option, |(name, _)| name).to_ascii_lowercase()
    }
    let mut union: Vec<&str> = options(ours).collect();
    let claimed: Vec<String> = union.iter().map(|option| name(option)).collect();
    union.extend(options(theirs).filter(|option| !claimed.contains(&name(option))));
    union.sort_unstable();
    union.dedup();
    union.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conf::{
        GresLine, HostExpr, NodeLine, PartitionLine, Release, Word, keys::cgroup, keys::slurm as key, unions,
    };

    fn slurm() -> ConfFile {
        ConfFile::new(FileKind::Slurm, Release::V24_11)
    }

    fn user(text: &str) -> Document {
        Document::read(FileKind::Slurm, text)
    }

    fn hosts(text: &str) -> HostExpr {
        HostExpr::new(text).unwrap()
    }

    #[test]
    fn a_file_of_ours_and_a_users_text_become_one() {
        let mut file = slurm();
        file.set(&key::ClusterName, "demo").set(&key::KillWait, 180);
        file.set(&key::SlurmctldParameters, ["enable_configless"]);
        file.line(NodeLine { cpus: Some(8), ..NodeLine::new(hosts("worker-[0-3]")) });

        let user = user("KillWait=30 # seconds\nSlurmctldParameters=enable_stepmgr");
        assert_eq!(user.check_all(file.release()), []);
        let options = file.unions(&user, unions(FileKind::Slurm));
        assert_eq!(file.drop_overridden(&user), ["KillWait", "SlurmctldParameters"]);
        file.comment(" The user's").text(&user).comment(" Options of both");
        for (key, options) in options {
            file.set(key, options);
        }
        let expected = "ClusterName=demo\nNodeName=worker-[0-3] CPUs=8\n# The user's\nKillWait=30 # seconds\n\
                        SlurmctldParameters=enable_stepmgr\n# Options of both\n\
                        SlurmctldParameters=enable_configless,enable_stepmgr\n";
        assert_eq!(file.render().unwrap(), expected);
    }

    #[test]
    fn a_users_line_replaces_those_of_the_same_nodes_however_they_are_written() {
        let mut file = slurm();
        for names in ["a-[0-3]", "b-0", "c-[0-1]"] {
            file.line(NodeLine::new(hosts(names)));
        }
        let text = user("NodeName=a-0,a-[1-2] CPUs=1\nNodeName=b-[0-9],a-3\nNodeName=DEFAULT CPUs=2\n");
        assert_eq!(file.drop_overridden(&text), ["NodeName", "NodeName"]);
        assert_eq!(file.render().unwrap(), "NodeName=c-[0-1]\n");
    }

    #[test]
    fn two_lines_never_name_a_node() {
        let mut file = slurm();
        file.line(NodeLine::new(hosts("a-[0-3]")));
        assert_eq!(file.drop_overridden(&user("NodeName=a-[1-2],z CPUs=1\n")), [""; 0]);
        assert_eq!(
            file.render().unwrap_err().to_string(),
            "write slurm.conf: NodeName=a-[0-3]: the text has its own line for a-[1-2] and not for the others, and \
             slurmctld does not start where two lines name a node: name all of these nodes in the text, or none"
        );
    }

    #[test]
    fn a_users_device_is_one_more() {
        let mut file = ConfFile::new(FileKind::Gres, Release::V26_05);
        let gpu = GresLine { nodes: Some(hosts("n1")), name: Word::new("gpu").ok(), ..GresLine::default() };
        file.line(gpu);
        let nic = Document::read(FileKind::Gres, "NodeName=n1 Name=nic Count=1\nName=gpu\n");
        assert_eq!(file.drop_overridden(&nic), [""; 0]);
        assert_eq!(file.render().unwrap(), "NodeName=n1 Name=gpu\n");
    }

    #[test]
    fn a_users_lines_replace_ours_and_lines_that_add_only_those_of_their_name() {
        let line = |name: &str| PartitionLine::new(Word::new(name).unwrap());
        let mut file = slurm();
        file.set(&key::KillWait, 1).set(&key::WaitTime, 1).set(&key::Prolog, "ours");
        file.line(line("DEFAULT")).line(line("a")).line(line("b")).include("x");
        let text = "killwait=2\nProlog=theirs\nPartitionName=b Default=YES\nPartitionName=DEFAULT\nPartitionName=c\n";
        let user = user(text);
        assert_eq!(file.drop_overridden(&user), ["KillWait", "PartitionName"]);
        assert_eq!(
            file.text(&user).render().unwrap(),
            format!("WaitTime=1\nProlog=ours\nPartitionName=DEFAULT\nPartitionName=a\ninclude x\n{text}")
        );
    }

    #[test]
    fn options_of_both_are_joined_and_ours_win() {
        assert_eq!(
            union_options("b,jwt_key=/Ours", "A,JWT_KEY=/Theirs,c=/Path/X,b"),
            "A,b,c=/Path/X,jwt_key=/Ours"
        );
        assert_eq!(union_options("", " a , ,a"), "a");
    }

    #[test]
    fn unions_are_made_only_of_what_the_user_sets() {
        let mut file = slurm();
        file.set(&key::SlurmctldParameters, "b").set(&key::AuthInfo, "use_client_ids");
        let user = user("slurmctldparameters=x\nSlurmctldParameters=a # c\n");
        let unions = file.unions(&user, unions(FileKind::Slurm));
        assert_eq!(unions, [(&key::SlurmctldParameters, "a,b".to_owned())]);
    }

    #[test]
    fn a_value_can_be_asked_back_before_the_file_is_made() {
        let mut file = ConfFile::new(FileKind::Cgroup, Release::V26_05);
        file.set(&cgroup::CgroupPlugin, "cgroup/v1");
        assert_eq!((file.value("cgroupplugin"), file.value("IgnoreSystemd")), (Some("cgroup/v1"), None));
    }
}
