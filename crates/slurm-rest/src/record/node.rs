//! A node, as `nodes/` and `node/NAME` show it.

use std::time::Instant;

use slurm::facts;
use slurm::state::NodeState;

use crate::wire::{Number, Text, Words};

crate::record! {
    /// What decides whether a node is free is required: without it a record is odd, and a list with it not whole.
    pub struct Node {
        name: Text = required b"name",
        state: NodeState = required b"state",
        cpus: Number = required b"cpus",
        alloc_cpus: Number = required b"alloc_cpus",
        real_memory: Number = required b"real_memory",
        alloc_memory: Number = required b"alloc_memory",
        tres_used: Text = required b"tres_used",
        reason: Text = b"reason",
        reason_set_by_user: Text = b"reason_set_by_user",
        reason_changed_at: Number = b"reason_changed_at",
        address: Text = b"address",
        partitions: Words = b"partitions",
        features: Words = b"features",
        active_features: Words = b"active_features",
        boot_time: Number = b"boot_time",
        slurmd_start_time: Number = b"slurmd_start_time",
        last_busy: Number = b"last_busy",
        comment: Text = b"comment",
        extra: Text = b"extra",
        topology: Text = b"topology",
        version: Text = b"version",
        gres: Text = b"gres",
        reservation: Text = b"reservation",
        instance_id: Text = b"instance_id",
    }
}

impl Node {
    /// As a fact, seen at `at`.
    #[must_use]
    pub fn into_fact(self, at: Instant) -> facts::Node {
        facts::Node {
            name: self.name.0,
            state: self.state,
            reason: self.reason.0,
            reason_by: self.reason_set_by_user.0,
            reason_at: self.reason_changed_at.to_time(),
            address: self.address.0,
            partitions: self.partitions.0,
            features: self.features.0,
            active_features: self.active_features.0,
            cpus: self.cpus.to_u64().and_then(|cpus| cpus.try_into().ok()).unwrap_or_default(),
            allocated_cpus: self.alloc_cpus.to_u64().map(|cpus| cpus.try_into().unwrap_or(u32::MAX)),
            memory_mib: self.real_memory.to_u64().unwrap_or_default(),
            allocated_memory_mib: self.alloc_memory.to_u64(),
            allocated_tres: self.tres_used.0,
            boot_time: self.boot_time.to_time(),
            slurmd_start_time: self.slurmd_start_time.to_time(),
            last_busy: self.last_busy.to_time(),
            comment: self.comment.0,
            extra: self.extra.0,
            topology: self.topology.0,
            version: self.version.0,
            gres: self.gres.0,
            reservation: self.reservation.0,
            instance_id: self.instance_id.0,
            seen_at: at,
        }
    }
}
