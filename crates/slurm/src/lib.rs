//! What Slurm is, as types: its configuration files, host lists, amounts and times, node and job states, and [`facts`],
//! a snapshot of a cluster. Pure: nothing here reads a file, a clock or the network.

pub mod conf;
pub mod facts;
pub mod hostlist;
pub mod state;
pub mod units;
