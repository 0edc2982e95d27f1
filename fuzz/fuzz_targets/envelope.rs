//! Tickets: whatever is read says the same when it is written and read again.
#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    ur_ipc::fuzzing::envelope(bytes);
    ur_ipc::fuzzing::envelope(&ur_ipc::fuzzing::with_checksum(bytes));
});
