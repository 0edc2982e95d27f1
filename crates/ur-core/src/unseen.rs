//! Signals of shared events that nobody will see, on every backend: their callers are told so.
use ur_adapter::error::{Error, ErrorCode, Result};

/// What becomes of a call whose signal was `published`, or was not.
///
/// # Errors
/// `INVALID_EVENT` if the process that made the event took this one for gone and let go of it.
#[inline]
pub fn judge(published: bool) -> Result<()> {
    if published { Ok(()) } else { Err(unseen()) }
}
#[cold]
fn unseen() -> Error {
    let why = "the process that made this event has let go of it, and nobody will see the signal: close the event and open \
               a new ticket";
    Error::new(ErrorCode::InvalidEvent, why)
}
