//! Requests and answers: whatever is read says the same when it is written and read again.
#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    ur_ipc::fuzzing::messages(bytes);
});
