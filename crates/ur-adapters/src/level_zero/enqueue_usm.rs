//! Copies and fills of USM, and hints about managed memory. Ranges are judged by what this adapter
//! allocated; of other memory C must know.
use super::{
    Event, Queue,
    allocation::{self, Usm},
    command_buffer::Step,
    enqueue::{Made, Report, submit, submit_one},
    native::list::Spot,
};
use std::sync::Arc;
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    log,
    memory::{HostBytes, UsmPtr},
    object::Borrowed,
};
use ur_sys::{ur_command_t, ur_logger_level_t, ur_usm_advice_flags_t, ur_usm_migration_flags_t};
use ze_sys::*;

/// # Errors
/// `INVALID_SIZE` for 0 bytes, for more than there are from `at` to the end of its allocation, and
/// for such as begin outside of one and reach into it.
pub(super) fn check_range(at: UsmPtr, bytes: usize) -> Result<()> {
    if bytes == 0 {
        return Err(Error::new(ErrorCode::InvalidSize, "0 bytes are no range of memory"));
    }
    allocation::room(at, bytes).map_err(|left| {
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
fn check_rows((base, pitch): Rows, width: usize, height: usize) -> Result<()> {
    let refused = |why: String| Err(Error::new(ErrorCode::InvalidSize, why));
    if pitch < width {
        return refused(format!("rows of {width} bytes do not fit a pitch of {pitch}"));
    }
    let Some(whole) = pitch.checked_mul(height).filter(|&whole| whole > 0) else {
        return refused(format!("{height} rows, {pitch} bytes apart, are no memory there can be"));
    };
    if let Some(found) = allocation::find(base)
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
        Some(span) => check_range(base, span),
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
fn address(at: UsmPtr) -> usize {
    at.addr()
}

pub(super) fn fill(
    queue: Borrowed<'_, Queue>,
    mem: UsmPtr,
    pattern: HostBytes<'_>,
    bytes: usize,
    events: &[Borrowed<'_, Event>],
    want_event: bool,
) -> Made {
    check_range(mem, bytes)?;
    let pattern = pattern_of(pattern, bytes)?;
    submit(queue, ur_command_t::USM_FILL, events, Report::event(want_event), |list| {
        list.fill(address(mem), pattern, bytes)
    })
}
pub(super) fn memcpy(
    queue: Borrowed<'_, Queue>,
    blocking: bool,
    to: UsmPtr,
    from: UsmPtr,
    bytes: usize,
    events: &[Borrowed<'_, Event>],
    want_event: bool,
) -> Made {
    check_range(to, bytes)?;
    check_range(from, bytes)?;
    let report = Report::of(blocking, want_event);
    submit_one(queue, ur_command_t::USM_MEMCPY, events, report, |list| {
        list.copy(address(to), address(from), bytes)
    })
}
pub(super) fn fill_2d(
    queue: Borrowed<'_, Queue>,
    to: Rows,
    pattern: HostBytes<'_>,
    (width, height): (usize, usize),
    events: &[Borrowed<'_, Event>],
    want_event: bool,
) -> Made {
    check_rows(to, width, height)?;
    let pattern = pattern_of(pattern, width * height)?; // no more than pitch * height
    submit(queue, ur_command_t::USM_FILL_2D, events, Report::event(want_event), |list| {
        list.fill_2d((address(to.0), to.1), pattern, (width, height))
    })
}
pub(super) fn memcpy_2d(
    queue: Borrowed<'_, Queue>,
    to: Rows,
    from: Rows,
    (width, height): (usize, usize),
    events: &[Borrowed<'_, Event>],
    report: Report,
) -> Made {
    check_rows(to, width, height)?;
    check_rows(from, width, height)?;
    submit(queue, ur_command_t::USM_MEMCPY_2D, events, report, |list| {
        let spot = |(at, row_pitch): Rows| Spot { at: address(at), row_pitch, slice_pitch: 0 };
        list.copy_region(spot(to), spot(from), (width, height, 1))
    })
}
/// Whether the driver moves the memory; if not, hints about it are of no use.
fn is_managed(at: UsmPtr, hint: &str) -> bool {
    let managed = allocation::find(at).is_some_and(|found| found.usm() == Usm::Shared);
    if !managed {
        let what = format!("{hint} is without effect: {at:?} is not shared USM of this adapter");
        log::say(ur_logger_level_t::WARN, &what);
    }
    managed
}
/// What a command buffer's prefetch appends.
pub(super) fn prefetch_step(mem: UsmPtr, bytes: usize, flags: ur_usm_migration_flags_t) -> Step {
    let managed = is_managed(mem, "a prefetch");
    let to_host = flags.contains(ur_usm_migration_flags_t::DEVICE_TO_HOST);
    let at = address(mem);
    Arc::new(move |list| match managed {
        true => list.prefetch(at, bytes, to_host),
        false => list.barrier(),
    })
}
pub(super) fn prefetch(
    queue: Borrowed<'_, Queue>,
    mem: UsmPtr,
    bytes: usize,
    flags: ur_usm_migration_flags_t,
    events: &[Borrowed<'_, Event>],
    want_event: bool,
) -> Made {
    check_range(mem, bytes)?;
    let managed = is_managed(mem, "a prefetch");
    let to_host = flags.contains(ur_usm_migration_flags_t::DEVICE_TO_HOST);
    let report = Report::event(want_event);
    submit(queue, ur_command_t::USM_PREFETCH, events, report, |list| match managed {
        true => list.prefetch(address(mem), bytes, to_host),
        false => Ok(()),
    })
}
/// What a flag is to the driver. What is about the host it has no word for, but for where memory is
/// best.
const ADVICE: &[(ur_usm_advice_flags_t, ze_memory_advice_t)] = {
    use ur_usm_advice_flags_t as F;
    &[
        (F::SET_READ_MOSTLY, ZE_MEMORY_ADVICE_SET_READ_MOSTLY),
        (F::CLEAR_READ_MOSTLY, ZE_MEMORY_ADVICE_CLEAR_READ_MOSTLY),
        (F::SET_PREFERRED_LOCATION, ZE_MEMORY_ADVICE_SET_PREFERRED_LOCATION),
        (F::CLEAR_PREFERRED_LOCATION, ZE_MEMORY_ADVICE_CLEAR_PREFERRED_LOCATION),
        (F::SET_NON_ATOMIC_MOSTLY, ZE_MEMORY_ADVICE_SET_NON_ATOMIC_MOSTLY),
        (F::CLEAR_NON_ATOMIC_MOSTLY, ZE_MEMORY_ADVICE_CLEAR_NON_ATOMIC_MOSTLY),
        (F::BIAS_CACHED, ZE_MEMORY_ADVICE_BIAS_CACHED),
        (F::BIAS_UNCACHED, ZE_MEMORY_ADVICE_BIAS_UNCACHED),
        (F::SET_PREFERRED_LOCATION_HOST, ZE_MEMORY_ADVICE_SET_SYSTEM_MEMORY_PREFERRED_LOCATION),
        (F::CLEAR_PREFERRED_LOCATION_HOST, ZE_MEMORY_ADVICE_CLEAR_SYSTEM_MEMORY_PREFERRED_LOCATION),
    ]
};
/// What a command buffer's advice appends.
pub(super) fn advise_step(mem: UsmPtr, bytes: usize, advice: ur_usm_advice_flags_t) -> Step {
    let (managed, at) = (is_managed(mem, "advice"), address(mem));
    Arc::new(move |list| {
        let mut wanted = ADVICE.iter().filter(|(flag, _)| managed && advice.contains(*flag));
        wanted.try_for_each(|(_, hint)| list.advise(at, bytes, *hint))
    })
}
pub(super) fn advise(
    queue: Borrowed<'_, Queue>,
    mem: UsmPtr,
    bytes: usize,
    advice: ur_usm_advice_flags_t,
    want_event: bool,
) -> Made {
    check_range(mem, bytes)?;
    let managed = is_managed(mem, "advice");
    let report = Report::event(want_event);
    submit(queue, ur_command_t::USM_ADVISE, &[], report, |list| {
        let mut wanted = ADVICE.iter().filter(|(flag, _)| managed && advice.contains(*flag));
        wanted.try_for_each(|(_, hint)| list.advise(address(mem), bytes, *hint))
    })
}
