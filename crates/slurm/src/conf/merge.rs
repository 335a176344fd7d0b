//! A user's lines win: which of ours go, and how lists of options are joined.

use std::collections::HashSet;

use super::document::Document;
use super::file::{ConfFile, Item};
use super::kept::Replaced;
use super::keys::{self, FileKind, Key, Kind, slurm};
use super::named::{MOST_RANGES, Named};
use super::problem::{Problem, Reason};
use crate::hostlist::{Hostlist, NameSet};

/// The options of both of a key that takes several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Union {
    pub key: &'static Key,
    /// To be set after the user's text.
    pub options: String,
    /// Those of the user for which ours stand there, as they were written: to be warned of.
    pub overruled: Vec<String>,
    /// Where the user has the key.
    pub line: usize,
}

/// What the user's text says of something of ours.
enum Said {
    Nothing,
    Everything,
    /// Of these nodes, the first of them on this line.
    OfSome(Hostlist, usize),
    /// This name is that of a node in one of them and of a set of nodes in the other, on this line of the text.
    NodeAndSet(String, usize),
}

/// What the user's text sets, made ready once for all of our lines.
struct Theirs<'a> {
    file: FileKind,
    /// In small letters.
    keys: HashSet<String>,
    /// What lines are about: the key in small letters, and its value.
    lines: HashSet<(String, &'a str)>,
    nodes: Named,
    sets: Named,
}

impl ConfFile {
    /// Drops what was written so far and the user's text sets too, also by another key for the same. Of the lines that
    /// add to each other, only those go that name the same nodes, partition or set. What is given back are the keys of
    /// the dropped lines.
    ///
    /// A line of ours that shares only some of its nodes with the user's is an error of this file: slurmctld does not
    /// start where two lines name a node. So is a name that is one of our nodes and one of the user's sets, or the other
    /// way round, and a text with more nodes than can be compared.
    pub fn drop_overridden(&mut self, user: &Document) -> Vec<&'static str> {
        let theirs = match Theirs::of(user) {
            Ok(theirs) => theirs,
            Err(reason) => {
                self.problems.push(Problem { place: "NodeName".to_owned(), reason });
                return Vec::new();
            }
        };
        let mut dropped = Vec::new();
        let mut problems = Vec::new();
        self.items.retain(|item| {
            let Item::Setting { key, value, .. } = item else { return true };
            match theirs.say(key, value) {
                Said::Nothing => true,
                Said::Everything => {
                    dropped.push(key.name);
                    self.replaced.extend(Replaced::by(user, key, value));
                    false
                }
                Said::OfSome(nodes, line) => {
                    let reason = Reason::SomeNodes { nodes: nodes.to_string(), line };
                    problems.push(Problem { place: format!("{}={value}", key.name), reason });
                    true
                }
                Said::NodeAndSet(name, line) => {
                    let reason = Reason::NodeAndSetOfText { name, line };
                    problems.push(Problem { place: format!("{}={value}", key.name), reason });
                    true
                }
            }
        });
        self.problems.extend(problems);
        dropped
    }

    /// For each of the keys that the user's text sets too: all options of both. An option that both name is ours, and
    /// the user's is given back. Where a user's whole value is to win, no union is asked for; of `AuthInfo` and
    /// `AuthAltParameters`, by which Slurm knows the operator, it wins only if it has what ours has, else the file is not
    /// made. Sorted, so that the order of a user's text does not matter.
    ///
    /// To be asked before [`Self::drop_overridden`], which takes ours away.
    pub fn unions(&self, user: &Document, keys: &[&str]) -> Vec<Union> {
        let union = |name: &&str| {
            let (line, theirs) = user.last(name)?;
            let key = self.kind.key(name)?;
            let ours = self.value(key.name).unwrap_or_default();
            let (options, overruled) = union_options(ours, &theirs.value);
            Some(Union { key, options, overruled, line })
        };
        keys.iter().filter_map(union).filter(|union| !union.options.is_empty()).collect()
    }
}

impl<'a> Theirs<'a> {
    fn of(user: &'a Document) -> Result<Self, Reason> {
        let settings = || user.settings().map(|(_, setting)| setting);
        Ok(Self {
            file: user.kind(),
            keys: settings().map(|setting| setting.key.to_ascii_lowercase()).collect(),
            lines: settings()
                .map(|setting| (setting.key.to_ascii_lowercase(), setting.value.as_str()))
                .collect(),
            nodes: Named::of(user, &slurm::NodeName, |setting| Hostlist::parse(&setting.value).ok())?,
            sets: Named::of(user, &slurm::NodeSet, |setting| Hostlist::from_names([&setting.value]).ok())?,
        })
    }

    fn say(&self, key: &'static Key, value: &str) -> Said {
        let name = |name: &str| name.to_ascii_lowercase();
        let has = match key.kind {
            Kind::Each => false,
            // The values before all others are defaults, in the order of the file.
            _ if key.is_defaults(value) => false,
            Kind::HostsLine(_) if self.is(key, &slurm::NodeName) => return self.say_of_nodes(value),
            // Each line is a device: a second one of the same nodes adds to the first.
            kind if kind.line().is_some() && self.file == FileKind::Gres => false,
            kind if kind.line().is_some() => self.lines.contains(&(name(key.name), value)),
            _ => keys::and_siblings(key.name).any(|key| self.keys.contains(&name(key))),
        };
        if has {
            return Said::Everything;
        }
        let set = Hostlist::from_names([value]).ok().filter(|_| self.is(key, &slurm::NodeSet));
        let node = set.and_then(|set| self.nodes.first_of(&set));
        node.map_or(Said::Nothing, |(name, line)| Said::NodeAndSet(name, line))
    }

    fn is(&self, key: &Key, other: &Key) -> bool {
        self.file == FileKind::Slurm && key.name == other.name
    }

    fn say_of_nodes(&self, ours: &str) -> Said {
        let ours = Hostlist::parse(ours).ok().and_then(|ours| NameSet::of(&ours, MOST_RANGES).ok());
        // Ours were looked at when they were written.
        let Some(ours) = ours else { return Said::Nothing };
        if self.nodes.names.is_empty() && self.sets.names.is_empty() {
            return Said::Nothing;
        }
        let left = ours.clone().difference(&self.nodes.names);
        if left.is_empty() && !ours.is_empty() {
            return Said::Everything;
        }
        let both =
            |theirs: &Named| ours.clone().difference(&ours.clone().difference(&theirs.names)).into_list();
        let nodes = both(&self.nodes);
        if let Some((_, line)) = self.nodes.first_of(&nodes) {
            return Said::OfSome(nodes, line);
        }
        let set = self.sets.first_of(&both(&self.sets));
        set.map_or(Said::Nothing, |(name, line)| Said::NodeAndSet(name, line))
    }
}

pub(super) fn options(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|option| !option.is_empty())
}

/// The name of an option in small letters, and its value.
pub(super) fn option(written: &str) -> (String, Option<&str>) {
    let (name, value) = written.split_once('=').map_or((written, None), |(name, value)| (name, Some(value)));
    (name.to_ascii_lowercase(), value)
}

/// The options of two lists, without those of the second whose name the first has, and those of them that say
/// something else. Names are compared in any case, as Slurm does, and kept as they are: values may be paths.
fn union_options(ours: &str, theirs: &str) -> (String, Vec<String>) {
    let mut union: Vec<&str> = options(ours).collect();
    let claimed: Vec<_> = union.iter().copied().map(option).collect();
    let mut overruled = Vec::new();
    for written in options(theirs) {
        let theirs = option(written);
        if !claimed.iter().any(|ours| ours.0 == theirs.0) {
            union.push(written);
        } else if !claimed.contains(&theirs) {
            overruled.push(written.to_owned());
        }
    }
    union.sort_unstable();
    union.dedup();
    (union.join(","), overruled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conf::{
        ConfLine, GresLine, HostExpr, NodeLine, NodeSetLine, PartitionLine, Release, Word, keys::cgroup,
        keys::slurm as key, keys::slurmdbd, unions,
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
        let unions = file.unions(&user, unions(FileKind::Slurm));
        assert_eq!(file.drop_overridden(&user), ["KillWait", "SlurmctldParameters"]);
        file.comment(" The user's").text(&user).comment(" Options of both");
        for Union { key, options, .. } in unions {
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
        assert_eq!(file.drop_overridden(&user("NodeName=y\nNodeName=a-[1-2],z CPUs=1\n")), [""; 0]);
        assert_eq!(
            file.render().unwrap_err().to_string(),
            "write slurm.conf: NodeName=a-[0-3]: the text has its own line for a-[1-2], see line 2, and not \
             for the others, and slurmctld does not start where two lines name a node: name all of these nodes in the \
             text, or none"
        );
    }

    #[test]
    fn a_node_of_ours_and_a_set_of_the_users_never_have_one_name() {
        let refusal = |line: ConfLine, text: &str| {
            let mut file = slurm();
            assert_eq!(file.line(line).drop_overridden(&user(text)), [""; 0]);
            file.render().map_err(|error| error.to_string())
        };
        let set = |name: &str| NodeSetLine { name: Word::new(name).unwrap(), nodes: None, feature: None };
        let nodes = |names: &str| NodeLine::new(hosts(names));
        assert_eq!(
            refusal(nodes("a-[0-3]").into(), "NodeSet=b Feature=x\nNodeSet=a-3 Feature=x\n").unwrap_err(),
            "write slurm.conf: NodeName=a-[0-3]: a-3 is the name of a node and of a set of nodes, one of which is on line \
             2 of the text, and no daemon and no command of Slurm starts with that: choose another name for the set"
        );
        assert!(refusal(set("a-3").into(), "KillWait=1\nNodeName=a-[1-4]\n").is_err());
        assert!(refusal(set("a-3").into(), "NodeName=a-[03-4]\n").is_ok());
        assert!(refusal(nodes("a-[0-3]").into(), "NodeSet=a-03 Feature=x\n").is_ok());
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
    fn a_users_key_wins_also_by_its_older_name() {
        let mut file = ConfFile::new(FileKind::Slurm, Release::V26_05);
        file.set(&key::NamespaceType, "namespace/linux").set(&key::BcastParameters, "Compression=lz4");
        file.set(&key::AcctGatherInterconnectType, "acct_gather_interconnect/ofed");
        let text = "JobContainerType=job_container/tmpfs\nSbcastParameters=x\nAcctGatherInfinibandType=x\n";
        assert_eq!(file.drop_overridden(&user(text)).len(), 3);

        let mut file = ConfFile::new(FileKind::Slurmdbd, Release::V26_05);
        file.set(&slurmdbd::PurgeJobMonths, 12).set(&slurmdbd::PurgeStepAfter, "1month");
        let text = Document::read(FileKind::Slurmdbd, "PurgeJobAfter=2days\nStepPurge=3\n");
        assert_eq!(file.drop_overridden(&text), ["PurgeJobMonths", "PurgeStepAfter"]);
    }

    #[test]
    fn a_users_amount_of_memory_wins_also_by_the_other_key() {
        for (ours, theirs) in [
            (&key::DefMemPerNode, "defmempercpu=1"),
            (&key::DefMemPerCPU, "DefMemPerNode=1"),
            (&key::MaxMemPerNode, "MaxMemPerCPU=1"),
        ] {
            let mut file = slurm();
            file.set(ours, 512).set(&key::DefMemPerGPU, 1);
            assert_eq!(file.drop_overridden(&user(theirs)), [ours.name]);
            assert_eq!(file.render().unwrap(), "DefMemPerGPU=1\n");
        }
    }

    #[test]
    fn many_lines_on_both_sides_are_soon_compared() {
        let mut file = slurm();
        let mut text = String::new();
        for node in 0..10_000 {
            file.line(NodeLine::new(hosts(&format!("n{}", 2 * node))));
            file.line(PartitionLine::new(Word::new(&format!("p{node}")).unwrap()));
            text += &format!("NodeName=n{}\nPartitionName=q{node}\n", 2 * node + node % 2);
        }
        let dropped = file.drop_overridden(&user(&text));
        assert_eq!(dropped.len(), 5_000);
        assert!(file.render().is_ok());
    }

    #[test]
    fn more_nodes_than_can_be_compared_are_an_error() {
        let mut file = slurm();
        file.line(NodeLine::new(hosts("n1")));
        let text = "NodeName=n[0-32767]x[0-1]\nNodeName=m[0-32767]x[0-1]\nNodeName=n1\n";
        assert_eq!(file.drop_overridden(&user(text)), [""; 0]);
        assert_eq!(
            file.render().unwrap_err().to_string(),
            "write slurm.conf: NodeName: up to line 3 the text has nodes in more than 65536 ranges, which Slurm does not \
             read: name fewer"
        );
    }

    #[test]
    fn options_of_both_are_joined_and_ours_win() {
        assert_eq!(
            union_options("b,jwt_key=/Ours", "A,JWT_KEY=/Theirs,c=/Path/X,B"),
            ("A,b,c=/Path/X,jwt_key=/Ours".to_owned(), vec!["JWT_KEY=/Theirs".to_owned()])
        );
        assert_eq!(union_options("", " a , ,a"), ("a".to_owned(), Vec::new()));
        assert_eq!(union_options("a=1,b,c=1", "a,b=1,C=1").1, ["a", "b=1"]);
    }

    #[test]
    fn unions_are_made_only_of_what_the_user_sets() {
        let mut file = slurm();
        file.set(&key::SlurmctldParameters, "b").set(&key::AuthInfo, "use_client_ids");
        let user = user("slurmctldparameters=x\nSlurmctldParameters=a # c\n");
        let unions = file.unions(&user, unions(FileKind::Slurm));
        let options = "a,b".to_owned();
        assert_eq!(
            unions,
            [Union { key: &key::SlurmctldParameters, options, overruled: Vec::new(), line: 2 }]
        );
    }

    #[test]
    fn a_value_can_be_asked_back_before_the_file_is_made() {
        let mut file = ConfFile::new(FileKind::Cgroup, Release::V26_05);
        file.set(&cgroup::CgroupPlugin, "cgroup/v1");
        assert_eq!((file.value("cgroupplugin"), file.value("IgnoreSystemd")), (Some("cgroup/v1"), None));
    }
}
