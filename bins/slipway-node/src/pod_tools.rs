//! The subcommands that Slurm pods run at start.

use clap::Args;
use pod_tools::{
    complement_jail, docker_proxy, populate_jail, run, slurmd, wait_jail, with_limits, worker_handoff,
    worker_init,
};
use telemetry::LogDefaults;
use telemetry::cli::{Component, service, service_args, tool};

pub(crate) const COMPLEMENT_JAIL: Component = Component {
    name: "complement-jail",
    about: "Bind what belongs to this pod into the jail",
    args: complement_jail::Args::augment_args,
    run: |call| tool(call, complement_jail::run),
};

pub(crate) const POPULATE_JAIL: Component = Component {
    name: "populate-jail",
    about: "Fill the jail from an image, once",
    args: populate_jail::Args::augment_args,
    run: |call| tool(call, populate_jail::run),
};

pub(crate) const WAIT_JAIL: Component = Component {
    name: "wait-jail",
    about: "Wait until the jail is whole",
    args: wait_jail::Args::augment_args,
    run: |call| tool(call, wait_jail::run),
};

pub(crate) const WITH_LIMITS: Component = Component {
    name: "with-limits",
    about: "Become another program, under the limits of limits.conf",
    args: with_limits::Args::augment_args,
    run: |call| tool(call, with_limits::run),
};

pub(crate) const RUN: Component = Component {
    name: "run",
    about: "Run a Slurm daemon in a container, through bad reconfigures",
    args: run::Args::augment_args,
    run: |call| tool(call, run::run),
};

pub(crate) const SLURMD: Component = Component {
    name: "slurmd",
    about: "Become the slurmd of a worker, as its environment describes it",
    args: slurmd::Args::augment_args,
    run: |call| tool(call, slurmd::run),
};

pub(crate) const WORKER_INIT: Component = Component {
    name: "worker-init",
    about: "Wait for what a worker needs before its slurmd starts",
    args: worker_init::Args::augment_args,
    run: |call| tool(call, worker_init::run),
};

pub(crate) const WORKER_HANDOFF: Component = Component {
    name: "worker-handoff",
    about: "Tell the operator that this worker is idle and may be replaced",
    args: worker_handoff::Args::augment_args,
    run: |call| tool(call, worker_handoff::run),
};

pub(crate) const DOCKER_PROXY: Component = Component {
    name: "docker-proxy",
    about: "Keep containers of a job in the job's cgroup",
    args: |command| service_args::<docker_proxy::Args>(command, &LogDefaults::OPERATOR),
    run: |call| service(call, &LogDefaults::OPERATOR, docker_proxy::run),
};
