//! `engine-bench`: the programs that `cargo xtask bench engine` measures, and those that make the load.
//!
//! Every mode is started in the same way, with the same allocator and the same runtime, so that what differs between two
//! of them is what they keep and how they react. Those named `stock` do with kube's own means what the others do with the engine.

mod caches;
mod load;
mod node;
mod pod;
mod react;

use std::process::ExitCode;

use engine::process::{ProcessArgs, ProcessError};
use telemetry::LogDefaults;
use telemetry::cli::{Component, Program, service, service_args};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[derive(Debug, thiserror::Error)]
enum BenchError {
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error("find out how to reach the API server")]
    Config(#[from] kube::config::InferConfigError),
    #[error("ask the API server")]
    Api(#[from] kube::Error),
    #[error("write what was measured")]
    Report(#[from] std::io::Error),
    #[error("a task of the load ended early")]
    Task(#[from] tokio::task::JoinError),
}

macro_rules! mode {
    ($name:literal, $about:literal, $args:ty, $run:path) => {
        Component {
            name: $name,
            about: $about,
            args: |command| service_args::<$args>(command, &LogDefaults::OPERATOR),
            run: |call| service(call, &LogDefaults::OPERATOR, $run),
        }
    };
}

static PROGRAM: Program = Program {
    name: "engine-bench",
    about: "What the engine is measured with",
    components: &[
        mode!("empty", "A process that keeps nothing", ProcessArgs, caches::empty),
        mode!("pods", "A cache of all pods", ProcessArgs, caches::pods),
        mode!("nodes", "A cache of all nodes", ProcessArgs, caches::nodes),
        mode!("stock-pods", "kube's store of all pods", ProcessArgs, caches::stock_pods),
        mode!("react", "A controller that does nothing but note when it starts", react::Args, react::engine),
        mode!("stock-react", "The same with kube's Controller", react::Args, react::stock),
        mode!("load-nodes", "Create nodes", load::Args, load::nodes),
        mode!("load-pods", "Create pods on them", load::Args, load::pods),
        mode!("load-samples", "Create Samples", load::SampleArgs, load::samples),
        mode!("change-samples", "Change Samples at a steady rate", load::ChangeArgs, load::change_samples),
    ],
    called_by: &[],
};

fn main() -> ExitCode {
    PROGRAM.main()
}
