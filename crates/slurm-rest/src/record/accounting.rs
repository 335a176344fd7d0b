//! What slurmdbd keeps: jobs, associations, users, qualities of service.

use serde::Deserialize;
use slurm::state::JobState;

use crate::wire::{Number, Text, Words};

/// A job of the past or the present. Memory in TRES is in MiB.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Job {
    pub job_id: u32,
    pub state: State,
    #[serde(default)]
    pub cluster: Text,
    #[serde(default)]
    pub name: Text,
    #[serde(default)]
    pub user: Text,
    #[serde(default)]
    pub account: Text,
    #[serde(default)]
    pub partition: Text,
    #[serde(default)]
    pub qos: Text,
    #[serde(default, deserialize_with = "nodes")]
    pub nodes: Text,
    #[serde(default)]
    pub time: Times,
    #[serde(default)]
    pub tres: JobTres,
    #[serde(default)]
    pub exit_code: ExitCode,
    #[serde(default)]
    pub restart_cnt: Number,
}

impl Job {
    #[must_use]
    pub fn state(&self) -> JobState {
        JobState::from_words(self.state.current.iter())
    }
}

/// slurmdbd has words for "no nodes".
fn nodes<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Text, D::Error> {
    let text = Text::deserialize(deserializer)?;
    Ok(if matches!(text.trim(), "" | "None assigned" | "(null)") { Text::default() } else { text })
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
pub struct State {
    pub current: Words,
    #[serde(default)]
    pub reason: Text,
}

/// Seconds since 1970, and `elapsed` in seconds, `limit` in minutes.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct Times {
    pub submission: Number,
    pub eligible: Number,
    pub start: Number,
    pub end: Number,
    pub elapsed: Number,
    pub limit: Number,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct JobTres {
    pub allocated: Vec<Tres>,
    pub requested: Vec<Tres>,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct Tres {
    #[serde(rename = "type")]
    pub kind: Text,
    pub name: Text,
    pub count: Number,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct ExitCode {
    pub status: Words,
    pub return_code: Number,
}

/// Who may use which account where.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct Association {
    pub id: Number,
    pub cluster: Text,
    pub account: Text,
    /// Empty for the account itself.
    pub user: Text,
    pub partition: Text,
    pub parent_account: Text,
    pub shares_raw: Number,
    pub qos: Words,
    pub is_default: bool,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct User {
    pub name: Text,
    #[serde(default)]
    pub administrator_level: Words,
    #[serde(default)]
    pub default: UserDefault,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct UserDefault {
    pub account: Text,
    pub wckey: Text,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Qos {
    pub name: Text,
    #[serde(default)]
    pub id: Number,
    #[serde(default)]
    pub description: Text,
    #[serde(default)]
    pub priority: Number,
    #[serde(default)]
    pub flags: Words,
    #[serde(default)]
    pub preempt: Preempt,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct Preempt {
    pub mode: Words,
}
