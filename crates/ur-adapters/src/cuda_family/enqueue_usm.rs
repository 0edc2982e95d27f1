//! Copies and fills of USM, and hints about managed memory. Ranges are judged by what this adapter
//! allocated; of other memory C must know.
use super::{
    Event, Queue,
    allocation::{self, Usm},
    driver::Dialect,
    submission::{Made, Report, submit},
};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    log,
    memory::{HostBytes, UsmPtr},
    object::Borrowed,
};
use ur_sys::{ur_command_t, ur_logger_level_t, ur_usm_advice_flags_t, ur_usm_migration_flags_t};

/// The host, where a driver wants a device.
const HOST: i32 = -1;

/// # Errors
/// `INVALID_SIZE` for 0 bytes, for more than there are from `at` to the end of its allocation, and
/// for such as begin outside of one and reach into it.
pub(super) fn check_range<D: Dialect>(at: UsmPtr, bytes: usize) -> Result<()> {
    if bytes == 0 {
        return Err(Error::new(ErrorCode::InvalidSize, "0 bytes are no range of memory"));
    }
    allocation::room::<D>(at, bytes).map_err(|left| {
        Error::new(
            ErrorCode::InvalidSize,
            format!(
                "{bytes} bytes from {at:?} on are not within one allocation: it ends, or the next \
                 one begins, {left} bytes from there"
            ),
        )
    })
}
/// Rows: where the first is, and from one to the next, in bytes.
type Rows = (UsmPtr, usize);

/// # Errors
/// `INVALID_SIZE` for rows longer than their pitch, and for more than the allocation has.
fn check_rows<D: Dialect>((base, pitch): Rows, width: usize, height: usize) -> Result<()> {
    let refused = |why: String| Err(Error::new(ErrorCode::InvalidSize, why));
    if pitch < width {
        return refused(format!("rows of {width} bytes do not fit a pitch of {pitch}"));
    }
    let Some(whole) = pitch.checked_mul(height).filter(|&whole| whole > 0) else {
        return refused(format!("{height} rows, {pitch} bytes apart, are no memory there can be"));
    };
    if let Some(found) = allocation::find::<D>(base)
        && whole > found.bytes()
    {
        let has = found.bytes();
        return refused(format!(
            "{height} rows, {pitch} bytes apart, exceed the allocation's {has} bytes"
        ));
    }
    // Behind the last row nothing is touched: a part of a larger rectangle may end there.
    match (whole - pitch).checked_add(width) {
        Some(0) => Ok(()),
        Some(span) => check_range::<D>(base, span),
        None => refused("the rows wrap around the end of memory".into()),
    }
}
/// # Errors
/// `INVALID_SIZE` unless the pattern has 1 to `most` bytes and `most` is a multiple of that.
pub(super) fn pattern_of(bytes: HostBytes<'_>, most: usize) -> Result<&[u8]> {
    match bytes.at_most(most) {
        Some(bytes) if !bytes.is_empty() && most.is_multiple_of(bytes.len()) => Ok(bytes),
        _ => Err(Error::new(
            ErrorCode::InvalidSize,
            format!("{most} bytes are not a multiple of a pattern of {}", bytes.len()),
        )),
    }
}
fn address(at: UsmPtr) -> u64 {
    at.addr() as u64
}

pub(super) fn fill<D: Dialect>(
    queue: Borrowed<'_, Queue<D>>,
    mem: UsmPtr,
    pattern: HostBytes<'_>,
    bytes: usize,
    events: &[Borrowed<'_, Event<D>>],
    want_event: bool,
) -> Made<D> {
    check_range::<D>(mem, bytes)?;
    let pattern = pattern_of(pattern, bytes)?;
    submit(queue, ur_command_t::USM_FILL, events, Report::event(want_event), |stream| {
        stream.fill(address(mem), pattern, bytes)
    })
}
pub(super) fn memcpy<D: Dialect>(
    queue: Borrowed<'_, Queue<D>>,
    blocking: bool,
    to: UsmPtr,
    from: UsmPtr,
    bytes: usize,
    events: &[Borrowed<'_, Event<D>>],
    want_event: bool,
) -> Made<D> {
    check_range::<D>(to, bytes)?;
    check_range::<D>(from, bytes)?;
    let report = Report::of(blocking, want_event);
    submit(queue, ur_command_t::USM_MEMCPY, events, report, |stream| {
        stream.copy(address(to), address(from), bytes)
    })
}
pub(super) fn fill_2d<D: Dialect>(
    queue: Borrowed<'_, Queue<D>>,
    to: Rows,
    pattern: HostBytes<'_>,
    (width, height): (usize, usize),
    events: &[Borrowed<'_, Event<D>>],
    want_event: bool,
) -> Made<D> {
    check_rows::<D>(to, width, height)?;
    let pattern = pattern_of(pattern, width * height)?; // no more than pitch * height
    submit(queue, ur_command_t::USM_FILL_2D, events, Report::event(want_event), |stream| {
        stream.fill_2d((address(to.0), to.1), pattern, (width, height))
    })
}
pub(super) fn memcpy_2d<D: Dialect>(
    queue: Borrowed<'_, Queue<D>>,
    to: Rows,
    from: Rows,
    (width, height): (usize, usize),
    events: &[Borrowed<'_, Event<D>>],
    report: Report,
) -> Made<D> {
    check_rows::<D>(to, width, height)?;
    check_rows::<D>(from, width, height)?;
    submit(queue, ur_command_t::USM_MEMCPY_2D, events, report, |stream| {
        stream.copy_2d((address(to.0), to.1), (address(from.0), from.1), (width, height))
    })
}
/// Whether the driver moves the memory; if not, hints about it are of no use.
fn is_managed<D: Dialect>(at: UsmPtr, hint: &str) -> bool {
    let managed = allocation::find::<D>(at).is_some_and(|found| found.usm() == Usm::Shared);
    if !managed {
        let what = format!("{hint} is without effect: {at:?} is not shared USM of this adapter");
        log::say(ur_logger_level_t::WARN, &what);
    }
    managed
}
pub(super) fn prefetch<D: Dialect>(
    queue: Borrowed<'_, Queue<D>>,
    mem: UsmPtr,
    bytes: usize,
    flags: ur_usm_migration_flags_t,
    events: &[Borrowed<'_, Event<D>>],
    want_event: bool,
) -> Made<D> {
    check_range::<D>(mem, bytes)?;
    let managed = is_managed::<D>(mem, "a prefetch");
    let to_host = flags.contains(ur_usm_migration_flags_t::DEVICE_TO_HOST);
    let device = if to_host { HOST } else { queue.device().number() };
    let report = Report::event(want_event);
    submit(queue, ur_command_t::USM_PREFETCH, events, report, |stream| match managed {
        true => stream.prefetch(address(mem), bytes, device),
        false => Ok(()),
    })
}
/// What a flag is to the driver: its number, and whether it is about the host.
const ADVICE: &[(ur_usm_advice_flags_t, i32, bool)] = {
    use ur_usm_advice_flags_t as F;
    &[
        (F::SET_READ_MOSTLY, 1, false),
        (F::CLEAR_READ_MOSTLY, 2, false),
        (F::SET_PREFERRED_LOCATION, 3, false),
        (F::CLEAR_PREFERRED_LOCATION, 4, false),
        (F::SET_ACCESSED_BY_DEVICE, 5, false),
        (F::CLEAR_ACCESSED_BY_DEVICE, 6, false),
        (F::SET_ACCESSED_BY_HOST, 5, true),
        (F::CLEAR_ACCESSED_BY_HOST, 6, true),
        (F::SET_PREFERRED_LOCATION_HOST, 3, true),
        (F::CLEAR_PREFERRED_LOCATION_HOST, 4, true),
    ]
};
pub(super) fn advise<D: Dialect>(
    queue: Borrowed<'_, Queue<D>>,
    mem: UsmPtr,
    bytes: usize,
    advice: ur_usm_advice_flags_t,
    want_event: bool,
) -> Made<D> {
    check_range::<D>(mem, bytes)?;
    let managed = is_managed::<D>(mem, "advice");
    let number = queue.device().number();
    let report = Report::event(want_event);
    submit(queue, ur_command_t::USM_ADVISE, &[], report, |stream| {
        let wanted = ADVICE.iter().filter(|(flag, ..)| managed && advice.contains(*flag));
        for (_, hint, host) in wanted {
            stream.advise(address(mem), bytes, *hint, if *host { HOST } else { number })?;
        }
        Ok(())
    })
}
