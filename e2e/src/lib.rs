//! What pod tests have in common: the shared cluster, and the machine before and after.

mod machine;
mod place;

pub use machine::{Machine, Up, Xtask};
pub use place::Place;
