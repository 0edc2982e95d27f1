//! Whether this program runs with more rights than whoever started it.
#![expect(unsafe_code, reason = "asks the C library")]

/// The kernel's `AT_SECURE`: the program is set-user-ID or the like, and must not trust its
/// environment. Told from memory, so that a process whose /proc is closed to itself knows it too.
pub fn is_privileged() -> bool {
    // SAFETY: looks at the auxiliary vector, which never changes.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}
