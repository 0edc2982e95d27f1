//! Copies and fills of USM, and hints about managed memory. Ranges are judged by what this adapter
//! allocated; of other memory C must know.
use super::{
    Event, Queue,
    driver::Dialect,
    memory::Allocation,
    submission::{Made, Report, submit},
};
pub(super) use crate::memory::ranges::pattern_of;
use crate::memory::{allocation::Usm, ranges};
use ur_adapter::{
    error::Result,
    log,
    memory::{HostBytes, UsmPtr},
    object::Borrowed,
};
use ur_sys::{ur_command_t, ur_logger_level_t, ur_usm_advice_flags_t, ur_usm_migration_flags_t};

/// The host, where a driver wants a device.
const HOST: i32 = -1;

/// # Errors
/// As for [`ranges::check_range`].
pub(super) fn check_range<D: Dialect>(at: UsmPtr, bytes: usize) -> Result<()> {
    ranges::check_range::<Allocation<D>>(at, bytes)
}
/// Rows: where the first is, and from one to the next, in bytes.
type Rows = (UsmPtr, usize);

/// # Errors
/// As for [`ranges::check_rows`].
fn check_rows<D: Dialect>(rows: Rows, width: usize, height: usize) -> Result<()> {
    ranges::check_rows::<Allocation<D>>(rows, (width, height))
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
    let managed = Allocation::<D>::find(at).is_some_and(|found| found.usm() == Usm::Shared);
    if !managed {
        let what = format!("{hint} is without effect: {at:?} is not shared USM of this adapter");
        log::say(D::BACKEND, ur_logger_level_t::WARN, &what);
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
