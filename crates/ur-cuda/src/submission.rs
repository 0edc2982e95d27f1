//! Submits commands to lanes: the choice of the lane, the waits before the command, its place relative to
//! barriers, its profiling marks, and the point at its end.
use super::{
    DriverDevice, Family,
    driver::Dialect,
    lane::{Lane, captured},
    native::{
        context::Entered,
        stream::{Stream, taken},
    },
    point::{End, Marks, Point},
    shared_words::{self, SIGNALS_WORDS, WAITS_FOR_WORDS},
    work::QueueState,
};
use ur_hal::{Command, Completion, Order, Result, Submission, Wait, repeated, wait_for_taken};

/// Submits a command. `body` enqueues the command itself in the lane that it is given, whose device's context
/// is current.
///
/// # Errors
/// `IN_EVENT_LIST_EXEC_STATUS` if a dependency has failed; the errors of `body`; else the driver's error.
pub(super) fn put<D: Dialect>(
    work: &QueueState<D>,
    what: &Submission<'_, Family<D>>,
    body: impl FnOnce(&Stream<D>) -> Result<()>,
) -> Result<Option<Point<D>>> {
    let device = &work.device;
    let on = device.enter()?;
    work.check()?;
    let lane = work.next(&on)?;
    let waits_anyway = what.completion.is_awaited();
    let is_captured = lane.is_capturing()?;
    if is_captured && waits_anyway {
        return Err(captured("a call that waits for its command"));
    }
    if is_captured && matches!(what.command, Command::Signal(_)) {
        return Err(captured(SIGNALS_WORDS));
    }
    if is_captured && what.waits.iter().any(|wait| matches!(wait, Wait::Word(_))) {
        return Err(captured(WAITS_FOR_WORDS));
    }
    // Blocking and captured commands are passed to the driver directly, not through pinned staging memory. If
    // the stream is busy, a blocking command waits for the stream here, not within the driver.
    let is_busy = waits_anyway && !(what.waits.is_empty() && lane.is_known_idle());
    let plain = match (is_captured, waits_anyway) {
        (true, _) => Some(lane.stream.capturing()?),
        (false, false) => None,
        (false, true) if is_busy => Some(lane.stream.waiting().waiting_before()),
        (false, true) => Some(lane.stream.waiting()),
    };
    let stream = plain.as_ref().unwrap_or(&lane.stream);
    // What follows may wait for a long time: record the mark for earlier deferred frees before it.
    if (!what.waits.is_empty() || what.order != Order::Free) && lane.wants_mark() {
        lane.put_mark(device, &on)?;
    }
    let putting = lane.begin();
    for wait in what.waits {
        match wait {
            Wait::Point(point) => point.order(work, stream)?,
            Wait::End(point) => point.precede(work, stream)?,
            Wait::Word(debt) => shared_words::order(work, &on, stream, debt)?,
        }
    }
    let turn = if what.order == Order::Both { work.barrier_turn() } else { None };
    if is_captured {
        work.check_alone(lane, what.order)?;
    } else {
        work.keep_behind_barrier(lane)?;
        if what.order != Order::Free {
            work.gather(&on, lane)?;
        }
    }
    let marks = match what.completion.wants_point() {
        true => Marks::begin(device, &on, stream, what.profile)?,
        false => None,
    };
    // Before the command: when the driver has that, it must not lack the event.
    let event = match what.completion {
        Completion::None => None,
        _ => Some(device.events().take(&on, marks.is_some())?),
    };
    // The caller may use the command's memory again when it is told of a failure. What is captured does not run now.
    let must_be_over = what.must_be_over() && !is_captured;
    let taken_before = taken();
    let has_part = || taken() != taken_before;
    body(stream).inspect_err(|_| {
        if must_be_over && has_part() {
            wait_for_part(device, &on, lane);
        }
    })?;
    let end_it = || {
        let before = putting.before();
        let surely = |mark: &dyn Fn() -> Result<()>| match has_part() {
            true => repeated(mark),
            false => mark(),
        };
        let end = match event {
            Some(event) => {
                surely(&|| event.record(stream))?;
                // Another thread may have begun a capture meanwhile, which may have the event.
                let unknown = || lane.is_capturing().is_ok_and(|is| is).then_some(0);
                let capture = stream.captured_by().or_else(unknown);
                Some(End::new(work, event, marks, (capture, lane.is_lent())))
            }
            None => None,
        };
        if !is_captured {
            surely(&|| lane.note_last(device, &on, has_part()))?;
        }
        if what.order == Order::Both && !is_captured {
            surely(&|| work.set_fence(&on, lane))?;
        }
        drop(turn);
        let Some(end) = end else { return Ok(None) };
        if waits_anyway {
            let done = end.wait();
            match done.is_err() {
                true => drop(putting),
                false => putting.end(before),
            }
            work.check()?; // reports a failed signal, once
            done?;
        }
        Ok(what.completion.wants_point().then_some(Point::Command(end)))
    };
    end_it().inspect_err(|_| {
        if must_be_over {
            wait_for_part(device, &on, lane);
        }
    })
}
/// Waits for what a lane has taken of a command that is refused. For what others submit behind it only if the driver
/// makes no event either, or if other code begins to capture the lane: the event may be in the graph then.
#[cold]
fn wait_for_part<D: Dialect>(device: &DriverDevice<D>, on: &Entered<D>, lane: &Lane<D>) {
    let mark = || {
        let mark = device.events().take(on, false)?;
        mark.record(&lane.stream).map(|()| mark)
    };
    let mark = repeated(mark).ok();
    match mark.filter(|_| lane.is_out_of_reach().is_ok_and(|is| !is)) {
        Some(mark) if lane.is_lent() => {
            wait_for_taken(|| Ok(mark.is_complete()? || lane.is_idle()?));
        }
        Some(mark) => wait_for_taken(|| mark.is_complete()),
        None => wait_for_taken(|| lane.is_idle()),
    }
}
