//! Whether this program runs with more privileges than its caller has.
#![expect(unsafe_code, reason = "asks the C library")]

/// Whether the kernel set `AT_SECURE`: the program is set-user-ID or similar, and must not trust its environment. It is
/// read from memory, so it also works in a process that cannot read its own /proc.
pub fn is_privileged() -> bool {
    // SAFETY: `getauxval` only reads the auxiliary vector, which never changes.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}
