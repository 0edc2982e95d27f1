//! Copies and fills of USM, and hints about managed memory. Ranges are judged by what this adapter
//! allocated; of other memory C must know.
use super::{
    Event, Queue,
    command_buffer::Step,
    crossing::{self, Ends, line},
    enqueue::{Made, Report, submit, submit_one},
    memory::Allocation,
    native::list::{List, Spot},
};
pub(super) use crate::memory::ranges::pattern_of;
use crate::memory::{allocation::Usm, ranges};
use std::sync::Arc;
use ur_adapter::{
    error::Result,
    log,
    memory::{HostBytes, UsmPtr},
    object::{Backend, Borrowed},
};
use ur_sys::{ur_command_t, ur_logger_level_t, ur_usm_advice_flags_t, ur_usm_migration_flags_t};
use ze_sys::*;

/// # Errors
/// As for [`ranges::check_range`].
pub(super) fn check_range(at: UsmPtr, bytes: usize) -> Result<()> {
    ranges::check_range::<Allocation>(at, bytes)
}
/// Rows: where the first is, and from one to the next, in bytes.
type Rows = (UsmPtr, usize);

/// # Errors
/// As for [`ranges::check_rows`].
fn check_rows(rows: Rows, width: usize, height: usize) -> Result<()> {
    ranges::check_rows::<Allocation>(rows, (width, height))
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
    if let Some(way) = crossing::beyond(queue.context().borrow(), queue.device(), address(mem))? {
        let (report, pattern) = (Report::event(want_event), pattern.to_vec());
        return crossing::submit(queue, ur_command_t::USM_FILL, events, report, move || {
            way.with(|list| list.fill(address(mem), &pattern, bytes))
        });
    }
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
    let ends = (address(to), address(from));
    if let Some(ends) = Ends::beyond(queue.context().borrow(), queue.device(), ends)? {
        return crossing::submit(queue, ur_command_t::USM_MEMCPY, events, report, move || {
            ends.copy((line(address(to)), line(address(from))), (bytes, 1, 1))
        });
    }
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
    if let Some(way) = crossing::beyond(queue.context().borrow(), queue.device(), address(to.0))? {
        let (report, pattern) = (Report::event(want_event), pattern.to_vec());
        return crossing::submit(queue, ur_command_t::USM_FILL_2D, events, report, move || {
            way.with(|list| list.fill_2d((address(to.0), to.1), &pattern, (width, height)))
        });
    }
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
    let spot = |(at, row_pitch): Rows| Spot { at: address(at), row_pitch, slice_pitch: 0 };
    let (command, boxes) = (ur_command_t::USM_MEMCPY_2D, (spot(to), spot(from)));
    transfer(queue, (command, report), events, boxes, (width, height, 1), |list| {
        list.copy_region(boxes.0, boxes.1, (width, height, 1))
    })
}
/// Copies a box: by `direct`, where the queue's device reaches both ends.
pub(super) fn transfer(
    queue: Borrowed<'_, Queue>,
    (command, report): (ur_command_t, Report),
    waits: &[Borrowed<'_, Event>],
    (to, from): (Spot, Spot),
    size: (usize, usize, usize),
    direct: impl FnOnce(&List<'_>) -> Result<()>,
) -> Made {
    match Ends::beyond(queue.context().borrow(), queue.device(), (to.at, from.at))? {
        None => submit(queue, command, waits, report, direct),
        Some(ends) => {
            crossing::submit(queue, command, waits, report, move || ends.copy((to, from), size))
        }
    }
}
/// Whether the driver moves the memory; if not, hints about it are of no use.
fn is_managed(at: UsmPtr, hint: &str) -> bool {
    let managed = Allocation::find(at).is_some_and(|found| found.usm() == Usm::Shared);
    if !managed {
        let what = format!("{hint} is without effect: {at:?} is not shared USM of this adapter");
        log::say(Backend::LevelZero, ur_logger_level_t::WARN, &what);
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
