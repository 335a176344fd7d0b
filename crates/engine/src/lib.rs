//! The controller runtime: it keeps what is watched, says who has to look again, calls them one at a time per object,
//! carries out what they plan, and tells what came of it. It knows Kubernetes, and nothing of Slurm.

pub mod meta;
pub mod metrics_guard;
pub mod text;
pub mod views;

pub use meta::{Key, Meta, Owner, Pairs, Version};
pub use metrics_guard::MetricsGuard;
pub use text::Text;
pub use views::{Facet, Kind, View};
