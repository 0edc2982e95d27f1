//! Copies and fills of memory on a device whose memory the stream's own device cannot access: there is no
//! peer link, or access was not enabled. The driver can copy such memory, through the host if necessary, if
//! it is given the contexts of both ends. A command with no end on the stream's own device is executed by a
//! stream of the device that has the memory, ordered by an event before and one after it. Nothing here
//! blocks, and no peer access is enabled.
use super::DriverDevice;
use super::{
    device::{self, numbered},
    driver::{
        Dialect,
        layout::{Copy3d, CopyEnd},
    },
    lane::captured,
    native::{memory, stream::Stream},
};
use std::sync::Arc;
use ur_hal::Result;

/// Whether there can be memory that a device cannot access. Drivers without peer copies decide by the
/// addresses alone.
pub(super) fn is_possible<D: Dialect>() -> bool {
    device::all::<D>().len() > 1 && D::driver().has_peer_copies()
}
/// The device whose memory is at `at`, if it is another than `device` and `device` has no access to it.
///
/// # Errors
/// Returns the driver's error.
pub(super) fn beyond<D: Dialect>(
    device: &DriverDevice<D>,
    at: u64,
) -> Result<Option<&'static Arc<DriverDevice<D>>>> {
    if !is_possible::<D>() {
        return Ok(None);
    }
    let on = device.enter()?;
    match memory::home_of(&on, at)?.filter(|&home| home != device.number()) {
        Some(home) if !memory::is_within_reach(&on, device.number(), at)? => Ok(numbered(home)),
        _ => Ok(None),
    }
}
/// Copies a box, one end of which is in memory of `away` that the stream's device cannot access.
///
/// # Errors
/// `INVALID_OPERATION` while the stream is captured, if the copy must be done by another device's stream;
/// else the driver's error.
pub(super) fn copy_3d<D: Dialect>(
    device: &Arc<DriverDevice<D>>,
    stream: &Stream<D>,
    what: &Copy3d,
    away: &Arc<DriverDevice<D>>,
) -> Result<()> {
    let (to, from) = (home_of(device, &what.to)?, home_of(device, &what.from)?);
    match (to, from) {
        (Some(to), Some(from)) if to == device || from == device => {
            by_contexts(stream, what, to, from)
        }
        _ => elsewhere(device, stream, away, |aside| match is_line(what) {
            true => aside.copy(what.to.start(), what.from.start(), what.width),
            false => aside.copy_3d(what),
        }),
    }
}
/// The device that has the memory of an end; `None` for memory that every device can access. Arrays belong to
/// the stream's own device.
fn home_of<'d, D: Dialect>(
    device: &'d Arc<DriverDevice<D>>,
    end: &CopyEnd,
) -> Result<Option<&'d Arc<DriverDevice<D>>>> {
    match end.kind {
        CopyEnd::BY_ADDRESS => {
            Ok(memory::home_of(&device.enter()?, end.device)?.and_then(numbered))
        }
        _ => Ok(Some(device)),
    }
}
/// Whether it is a single row in linear memory. Such a copy may have any length, while pitches are limited.
fn is_line(what: &Copy3d) -> bool {
    let is_memory = |end: &CopyEnd| end.kind == CopyEnd::BY_ADDRESS;
    (what.height, what.depth) == (1, 1) && is_memory(&what.from) && is_memory(&what.to)
}
fn by_contexts<D: Dialect>(
    stream: &Stream<D>,
    what: &Copy3d,
    to: &DriverDevice<D>,
    from: &DriverDevice<D>,
) -> Result<()> {
    let (to, from) = (to.context()?, from.context()?);
    if is_line(what) {
        return stream.copy_peer((what.to.start(), to), (what.from.start(), from), what.width);
    }
    let named = |end: CopyEnd| match end.kind {
        CopyEnd::BY_ADDRESS => CopyEnd { kind: CopyEnd::BY_CONTEXT, ..end },
        _ => end,
    };
    let what = Copy3d { to: named(what.to), from: named(what.from), ..*what };
    stream.copy_3d_peer(&what, to, from)
}
/// Enqueues `work` on a stream of `home`, ordered as a command of `stream`, which belongs to `device`.
///
/// # Errors
/// `INVALID_OPERATION` while `stream` is captured; the errors of `work`; else the driver's error.
pub(super) fn elsewhere<D: Dialect>(
    device: &DriverDevice<D>,
    stream: &Stream<D>,
    home: &Arc<DriverDevice<D>>,
    work: impl FnOnce(&Stream<D>) -> Result<()>,
) -> Result<()> {
    let own = device.enter()?;
    if stream.is_capturing()? {
        return Err(captured("a command on memory that only another device reaches"));
    }
    let before = device.events().take(&own, false)?;
    before.record(stream)?;
    let on = home.enter()?;
    let never_waiting = |stream: Stream<D>| Arc::new(stream.never_waiting(home.clone()));
    let create = || Stream::create(&on).map(never_waiting);
    let aside = stream.peer_streams.get(home.number(), create)?;
    aside.wait_for(&before)?;
    let done = work(&aside);
    // Also when `work` failed: it may have enqueued a part of the command.
    let after = home.events().take(&on, false);
    let after = after.and_then(|after| after.record(&aside).map(|()| after));
    drop(on);
    let ordered = after.and_then(|after| stream.wait_for(&after));
    if ordered.is_err() {
        // `stream` does not wait for it, so the memory could be freed too early: wait here. The first error
        // is returned.
        let _ = home.enter().and_then(|_on| aside.synchronize());
    }
    ordered.and(done)
}
