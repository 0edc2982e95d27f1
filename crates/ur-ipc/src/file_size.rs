//! The limit on the size of files (`ulimit -f`), which the kernel applies to shared memory too: it ends a process that
//! exceeds it with SIGXFSZ unless the process handles that signal. A library installs no signal handlers, so this crate
//! checks the limit before it makes shared memory.
use crate::{Error, ErrorKind, Result};
use rustix::{io::Errno, process::Resource};
use ur_mapping::soft_limit;

/// Checks that shared memory of `bytes` bytes is within the limit.
///
/// # Errors
/// [`ErrorKind::NoMemory`] if the limit is lower.
pub fn may_have(bytes: u64) -> Result<()> {
    match soft_limit(Resource::Fsize) {
        Some(limit) if limit < bytes => {
            let why = format!(
                "shared memory of {bytes} bytes is more than the limit on the size of files, {limit} bytes, which holds for it too: raise it with `ulimit -f`"
            );
            let errno = Errno::FBIG.raw_os_error();
            Err(Error::new(ErrorKind::NoMemory, why).with_errno(errno))
        }
        _ => Ok(()),
    }
}
