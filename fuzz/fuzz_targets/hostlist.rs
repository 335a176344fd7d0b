//! What is written is read again, counts agree with names, and nothing panics, for any bytes read as a host list.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| slurm::hostlist::check_invariants(data));
