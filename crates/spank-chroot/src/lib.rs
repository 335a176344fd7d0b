//! `chroot.so`: a SPANK plugin by which every job step runs in the jail. In plugstack.conf:
//! `required chroot.so /mnt/jail`.
//!
//! One file serves every release of Slurm: it needs no header of Slurm's, and takes the version that the loader
//! asks for from a plugin that lies beside it.

mod enter;
// Slurm's functions exist only in the program that loads this.
#[cfg(not(test))]
mod plugin;
