//! Signals of shared events that cannot be delivered: their callers get an error, on every backend.
use ur_adapter::error::{Error, ErrorCode, Result};

/// The result of a call that signals an event; `published`: whether the signal was stored.
///
/// # Errors
/// `INVALID_EVENT` if the process that made the event has released it, because it regarded this process as gone.
#[inline]
pub fn judge(published: bool) -> Result<()> {
    if published { Ok(()) } else { Err(unseen()) }
}
#[cold]
fn unseen() -> Error {
    let why = "the process that made this event has released it, so the signal would reach no process: close the event and open \
               a new ticket";
    Error::new(ErrorCode::InvalidEvent, why)
}
