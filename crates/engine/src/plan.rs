//! What will be done: wanted against observed, decided without a client. The same plan is printed and carried out.

use std::collections::HashSet;
use std::fmt;

use serde::Serialize;

use crate::cache::Observed;
use crate::child::{Child, Mode, Recreate};
use crate::memory::Memory;
use crate::meta::Key;
use crate::text::Text;
use crate::views::Kind;

/// One thing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Action {
    Create,
    /// Created with generated content, and never written again.
    CreateOnce,
    Apply,
    /// Deleted without its pods, then made again.
    RecreateOrphaning,
    /// Deleted, then made again.
    Recreate,
    Delete,
    /// Nothing, since it cannot be done now; the reason says what is waited for.
    Wait,
}

/// A step of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub action: Action,
    pub kind: Kind,
    pub key: Key,
    pub why: &'static str,
    /// Which child this is about; none for what is to go.
    pub(crate) child: Option<usize>,
    pub(crate) observed: Option<Observed>,
}

/// All that is to be done for one object.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    pub steps: Vec<Step>,
    /// Children that are as wanted.
    pub unchanged: usize,
}

/// What is known of the world, as the plan asks for it.
pub trait World {
    fn observed(&self, kind: Kind, key: &Key) -> Option<Observed>;
    /// All objects of the kinds that the controller renders which this owner manages.
    fn owned(&self) -> Vec<(Kind, Observed)>;
}

impl Plan {
    /// The way from what is to what is wanted.
    #[must_use]
    pub fn make(
        controller: &str,
        owner: &Text,
        children: &[Child],
        world: &impl World,
        memory: &Memory,
    ) -> Self {
        let mut plan = Self::default();
        let mut wanted = HashSet::new();
        for (index, child) in children.iter().enumerate() {
            wanted.insert((child.kind, child.key.clone()));
            let observed = world.observed(child.kind, &child.key);
            match decide(owner, child, observed.as_ref(), memory) {
                None => plan.unchanged += 1,
                Some((action, why)) => plan.steps.push(Step {
                    action,
                    kind: child.kind,
                    key: child.key.clone(),
                    why,
                    child: Some(index),
                    observed,
                }),
            }
        }
        for (kind, observed) in world.owned() {
            let others = observed.controller.as_ref().is_none_or(|other| *other != *controller);
            let kept = others || observed.deleting || observed.created_once;
            if !kept && !wanted.contains(&(kind, observed.key.clone())) {
                let (key, why) = (observed.key.clone(), "no longer wanted");
                let (child, observed) = (None, Some(observed));
                plan.steps.push(Step { action: Action::Delete, kind, key, why, child, observed });
            }
        }
        plan
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }
}

/// What one child needs; nothing if it is as wanted.
fn decide(
    owner: &Text,
    child: &Child,
    observed: Option<&Observed>,
    memory: &Memory,
) -> Option<(Action, &'static str)> {
    let Some(observed) = observed else {
        return match child.mode {
            Mode::Apply(_) => Some((Action::Create, "missing")),
            // It may be there and not in the cache, if it lacks the labels that are watched.
            Mode::CreateOnce(_) if memory.exists(child) => None,
            Mode::CreateOnce(_) => Some((Action::CreateOnce, "missing")),
        };
    };
    if observed.deleting {
        return Some((Action::Wait, "the old one to be gone"));
    }
    let Mode::Apply(recreate) = child.mode else { return None };
    // With force, apply would take anything over, and it would go with our owner one day.
    if observed.owner.as_ref() != Some(owner) {
        return Some((Action::Wait, "somebody else's object of this name to be renamed or deleted"));
    }
    if memory.is_current(child, observed) {
        return None;
    }
    if memory.is_immutable(child, observed) {
        return Some(match recreate {
            Recreate::Never => (Action::Wait, "an edit, or its deletion: a field cannot be changed in place"),
            Recreate::Orphan => (Action::RecreateOrphaning, "a field cannot be changed in place"),
            Recreate::Delete => (Action::Recreate, "a field cannot be changed in place"),
        });
    }
    Some((Action::Apply, "differs, or not compared yet"))
}

/// One line a step, as people read it.
impl fmt::Display for Plan {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Step { action, kind, key, why, .. } in &self.steps {
            let (sign, word) = match action {
                Action::Create => ('+', "create"),
                Action::CreateOnce => ('+', "create once"),
                Action::Apply => ('~', "apply"),
                Action::RecreateOrphaning => ('!', "recreate, keeping its pods,"),
                Action::Recreate => ('!', "recreate"),
                Action::Delete => ('-', "delete"),
                Action::Wait => ('.', "wait with"),
            };
            writeln!(out, "{sign} {word} {} {key}: {why}", kind.kind)?;
        }
        write!(out, "{} to do, {} as wanted", self.steps.len(), self.unchanged)
    }
}

/// The same for programs.
impl Serialize for Plan {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Line<'a> {
            action: Action,
            api_version: String,
            kind: &'static str,
            namespace: &'a str,
            name: &'a str,
            why: &'static str,
        }
        #[derive(Serialize)]
        struct Lines<'a> {
            steps: Vec<Line<'a>>,
            unchanged: usize,
        }
        let steps = self
            .steps
            .iter()
            .map(|step| Line {
                action: step.action,
                api_version: step.kind.api_version(),
                kind: step.kind.kind,
                namespace: &step.key.namespace,
                name: &step.key.name,
                why: step.why,
            })
            .collect();
        Lines { steps, unchanged: self.unchanged }.serialize(serializer)
    }
}

#[cfg(test)]
mod tests;
