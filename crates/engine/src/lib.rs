//! The controller runtime: it keeps what is watched, says who has to look again, calls them one at a time per object,
//! carries out what they plan, and tells what came of it. It knows Kubernetes, and nothing of Slurm.
//!
//!     watch ─> route ─> queue ─> gather ─> resolve ─> render ─> plan ─> apply ─> status
//!
//! [`views`] are what is kept of an object, [`cache`] keeps them, [`controller`] is what a controller is made of,
//! [`queue`] decides who is next, [`plan`] what is to be done, [`apply`] does it, [`conditions`] tell of it, and
//! [`manager`] puts a process together.

pub mod access;
pub mod apply;
pub mod cache;
pub mod calls;
pub mod child;
pub mod conditions;
pub mod controller;
pub mod events;
pub mod failure;
pub mod fence;
pub mod leader;
mod lean;
pub mod manager;
pub mod memory;
pub mod meta;
mod metrics;
pub mod metrics_guard;
pub mod namespaces;
pub mod plan;
pub mod process;
pub mod queue;
mod random;
pub mod reader;
mod runner;
pub mod second;
pub mod shared;
pub mod text;
pub mod views;

pub use access::Access;
pub use cache::{Cache, Caches, Change, Watch};
pub use child::{Child, Recreate};
pub use conditions::{Truth, Wait};
pub use controller::{Controller, Options, Primary, Report, Seen, Wiring};
pub use failure::{Disposition, Failure};
pub use manager::{Manager, Settings};
pub use meta::{Key, Meta, Owner, Pairs, Version};
pub use metrics_guard::MetricsGuard;
pub use namespaces::Namespaces;
pub use queue::When;
pub use reader::Reader;
pub use second::Second;
pub use shared::Shared;
pub use text::Text;
pub use views::{Facet, Kind, View};
