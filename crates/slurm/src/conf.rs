//! Slurm's configuration files: written, read, checked and merged.
//!
//! [`ConfFile`] writes a file line after line: [`keys`] has every key of every file, and [`NodeLine`] and its like are
//! the lines with structure. [`Document`] reads a user's text as Slurm does. [`Document::check`] says what a daemon would
//! die of, [`owned()`] what is not the user's to set; [`ConfFile::drop_overridden`] lets a user's lines win, and
//! [`ConfFile::unions`] joins lists of options. plugstack.conf and the two files in YAML have grammars of their own.
//! `merge.rs` has a test that shows all of it.

mod check;
mod document;
mod file;
mod hosts;
mod invariants;
mod kept;
pub mod keys;
mod line;
mod lines;
mod merge;
mod named;
mod owned;
mod per_node;
mod plugstack;
mod problem;
mod quote;
mod release;
mod scan;
mod slurmd;
mod twice;
mod value;
mod yaml;

#[cfg(test)]
mod golden;
#[cfg(test)]
mod properties;

pub use check::{Finding, Severity};
pub use document::{Content, Document, Fault, Line, Pair, Setting};
pub use file::ConfFile;
pub use hosts::{HostExpr, HostExprError};
#[doc(hidden)]
pub use invariants::check_invariants;
pub use keys::{FileKind, Key, Kind};
pub use line::{ConfLine, Extra, ExtraError};
pub use lines::{
    Below, BlockLine, DownNodesLine, GresLine, InitialState, JobContainerLine, Location, NodeLine,
    NodeSetLine, OverSubscribe, PartitionLine, PartitionNodes, PartitionState, PowerActionLine, PreemptMode,
    SlurmctldHost, SwitchLine,
};
pub use merge::Union;
pub use owned::{Guard, Owned, owned, unions};
pub use per_node::Uneven;
pub use plugstack::{PlugStack, Plugin, PluginFinding, check_plugstack};
pub use problem::{Problem, Problems, Reason};
pub use quote::Unwritable;
pub use release::{Release, Support, UnknownRelease};
pub use value::{Feature, Options, Unfit, Value, Word};
pub use yaml::{
    Block, DirConf, Namespace, NamespaceNodes, NamespaceYaml, Shape, Switch, Topology, TopologyYaml,
};
