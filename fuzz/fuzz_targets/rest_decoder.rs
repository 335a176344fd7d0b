//! Any bytes that slurmrestd might answer are decoded or refused, whole or in pieces, and nothing panics.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| slurm_rest::decode::check_invariants(data));
