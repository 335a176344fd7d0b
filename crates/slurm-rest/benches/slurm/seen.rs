//! A few fields of a record, whoever decoded it: what proves that all of an answer was decoded, and rightly.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;
use slurm::state::{JobState, NodeState};
use slurm_rest::record::{job, node};
use slurm_rest::wire::Number;

use crate::answers::List;
use crate::typed;

#[derive(Debug, Clone, PartialEq, Hash)]
pub(crate) struct Seen {
    id: u64,
    name: String,
    state: String,
    numbers: [u64; 3],
    texts: [String; 2],
}

impl Seen {
    /// The same of another record: a job's number is its id, and a name has it where the mark was.
    pub(crate) fn numbered(&self, mark: &str, number: u64) -> Self {
        let id = if self.id == 0 { 0 } else { number };
        Self { id, name: self.name.replace(mark, &number.to_string()), ..self.clone() }
    }

    pub(crate) fn of_value(list: List, record: &Value) -> Self {
        let text = |key: &str| record[key].as_str().unwrap_or_default().to_owned();
        let words = |key: &str| -> Vec<&str> {
            record[key].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
        };
        let bare = |key: &str| record[key].as_u64().unwrap_or_default();
        let number = |key: &str| match &record[key] {
            number if number["set"] == true => number["number"].as_u64().unwrap_or_default(),
            _ => 0,
        };
        match list {
            // Nodes have none.
            List::Nodes => Self {
                id: 0,
                name: text("name"),
                state: NodeState::from_words(words("state")).to_string(),
                numbers: [bare("cpus"), bare("alloc_memory"), number("boot_time")],
                texts: [text("reason"), words("partitions").join(",")],
            },
            List::Jobs => Self {
                id: bare("job_id"),
                name: text("name"),
                state: JobState::from_words(words("job_state")).to_string(),
                numbers: [number("cpus"), number("start_time"), number("priority")],
                texts: [text("user_name"), text("nodes")],
            },
        }
    }
}

fn whole(number: Number) -> u64 {
    number.to_u64().unwrap_or_default()
}

impl From<&node::Node> for Seen {
    fn from(node: &node::Node) -> Self {
        Self {
            id: 0,
            name: node.name.to_string(),
            state: node.state.to_string(),
            numbers: [whole(node.cpus), whole(node.alloc_memory), whole(node.boot_time)],
            texts: [node.reason.to_string(), node.partitions.to_string()],
        }
    }
}

impl From<&job::Job> for Seen {
    fn from(job: &job::Job) -> Self {
        Self {
            id: job.job_id.into(),
            name: job.name.to_string(),
            state: job.job_state.to_string(),
            numbers: [whole(job.cpus), whole(job.start_time), whole(job.priority)],
            texts: [job.user_name.to_string(), job.nodes.to_string()],
        }
    }
}

impl From<&typed::Node> for Seen {
    fn from(node: &typed::Node) -> Self {
        Self {
            id: 0,
            name: node.name.clone(),
            state: NodeState::from_words(node.state.iter().map(String::as_str)).to_string(),
            numbers: [node.cpus, node.alloc_memory, node.boot_time.get()],
            texts: [node.reason.clone(), node.partitions.join(",")],
        }
    }
}

impl From<&typed::Job> for Seen {
    fn from(job: &typed::Job) -> Self {
        Self {
            id: job.job_id,
            name: job.name.clone(),
            state: JobState::from_words(job.job_state.iter().map(String::as_str)).to_string(),
            numbers: [job.cpus.get(), job.start_time.get(), job.priority.get()],
            texts: [job.user_name.clone(), job.nodes.clone()],
        }
    }
}

/// How many records, and which, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Sum {
    pub(crate) records: u64,
    hash: u64,
}

impl Sum {
    pub(crate) fn add(&mut self, seen: &Seen) {
        let mut hasher = DefaultHasher::new();
        seen.hash(&mut hasher);
        self.records += 1;
        self.hash = self.hash.rotate_left(1).wrapping_add(hasher.finish());
    }
}

/// What a contender keeps of an answer.
pub(crate) trait Kept {
    fn sum(&self) -> Sum;
}

fn sum(records: impl Iterator<Item = Seen>) -> Sum {
    let mut sum = Sum::default();
    records.for_each(|seen| sum.add(&seen));
    sum
}

impl<T> Kept for Vec<T>
where
    for<'a> Seen: From<&'a T>,
{
    fn sum(&self) -> Sum {
        sum(self.iter().map(Seen::from))
    }
}

impl Kept for typed::Nodes {
    fn sum(&self) -> Sum {
        self.nodes.sum()
    }
}

impl Kept for typed::Jobs {
    fn sum(&self) -> Sum {
        self.jobs.sum()
    }
}

impl Kept for Value {
    fn sum(&self) -> Sum {
        let list = if self["nodes"].is_array() { List::Nodes } else { List::Jobs };
        sum(self[list.key()].as_array().into_iter().flatten().map(|record| Seen::of_value(list, record)))
    }
}
