//! What every controller has to keep, as tests: a program, a CRD and an object with one child are all that they need.
//!
//! A controller's crate calls [`tests!`](crate::tests) once, with a [`Subject`]. Everything is seen from outside: the
//! real program as a process, a real API server, its audit log.

mod operator;
mod promises;
mod subject;
mod world;

pub use operator::Operator;
pub use promises::*;
pub use subject::{ChildOf, Field, Subject};
pub use world::{Dynamic, PATIENCE, World, condition, merge, plain_kubeconfig};

/// All promises as tests of the crate that calls this, for a function that gives the [`Subject`].
#[macro_export]
macro_rules! tests {
    ($subject:path) => {
        $crate::tests!($subject:
            second_reconcile_makes_no_call, drift_is_corrected, deleted_child_comes_back,
            owner_deletion_leaves_nothing, foreign_fields_survive, unwanted_field_is_removed,
            one_bad_object_does_not_block, crd_installed_later_is_used, relist_delivers_deletes,
            api_server_restart_is_survived, two_replicas_one_writer, panic_is_contained,
            declared_access_is_what_is_used, forbidden_namespace_leaves_the_others_alone);
    };
    ($subject:path: $($promise:ident),*) => {
        $(
            #[test]
            fn $promise() -> $crate::Outcome {
                $crate::kept($crate::$promise(&$subject()))
            }
        )*
    };
}

/// What a test returns.
pub type Outcome = anyhow::Result<()>;

/// Runs a promise; the longest waits for a lease to expire.
pub fn kept(promise: impl Future<Output = Outcome>) -> Outcome {
    testkit::run_within(std::time::Duration::from_secs(180), promise)
}
