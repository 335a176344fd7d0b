//! Names of the testbed's own images, which every node has. Tags are fixed: there is no registry to pull from.

pub const PAUSE: &str = "testbed.slipway.hpc/pause:1";
pub const BUSYBOX: &str = "testbed.slipway.hpc/busybox:1";
/// Images that are only layers, so that the nodes have them when an image of ours is loaded.
pub const LAYERS: &str = "testbed.slipway.hpc/layers";
