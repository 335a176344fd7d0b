//! A text that is read as any of Slurm's files means the same when it is written and read again, and no text that is given
//! to a writer makes another line or key.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| slurm::conf::check_invariants(data));
