//! A controller as its tests know it.

use engine::{Access, Kind};
use serde_json::Value;

/// The controller under test.
#[derive(Debug, Clone)]
pub struct Subject {
    /// The program, and what it is called with beside addresses, kubeconfig, lease and namespaces.
    pub program: &'static str,
    pub args: &'static [&'static str],
    pub crds: Vec<Value>,
    /// The kind that the controller is for.
    pub kind: Kind,
    /// A good `spec`.
    pub spec: Value,
    /// A child that every object has.
    pub child: ChildOf,
    /// Kinds of all children.
    pub children: Vec<Kind>,
    /// Patches of `spec` that, one after the other, make the controller do everything that it ever does.
    pub life: Vec<Value>,
    /// What the controller and the runtime declare to do.
    pub access: Vec<Access>,
}

/// One child, and two of its fields.
#[derive(Debug, Clone)]
pub struct ChildOf {
    pub kind: Kind,
    /// From the name of the object to that of the child.
    pub name: fn(&str) -> String,
    /// A field that is always ours.
    pub always: Field,
    /// A field that is there for one value of `spec` only.
    pub sometimes: Field,
}

/// A field of a child that follows from the `spec`.
#[derive(Debug, Clone)]
pub struct Field {
    /// In the child.
    pub pointer: &'static str,
    /// A merge patch of the child's own, by which somebody else changes it.
    pub drift: Value,
    /// Merge patches of `spec` that set it and take it away, or change it and change it back.
    pub set: Value,
    pub unset: Value,
}
