//! The limit on the size of files (`ulimit -f`), which the kernel applies to shared memory too: a process that passes
//! it is ended by SIGXFSZ unless it has a handler. A library installs none, and so asks before.
use crate::{Error, ErrorKind, Result};
use rustix::{io::Errno, process::Resource};
use ur_mapping::soft_limit;

/// Whether shared memory of so many bytes may be made.
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
