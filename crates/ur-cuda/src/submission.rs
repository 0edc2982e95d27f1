//! How any command gets into a stream: what C wants to know of it, where it stands among the others
//! of its queue, what it waits for, and the point that its event stands for.
use super::{
    Event, Queue,
    driver::Dialect,
    event::{Point, Times},
    lane::captured,
    native::stream::Stream,
};
use ur_adapter::{
    command::Report,
    error::{Error, ErrorCode, Result},
    object::{Borrowed, Owned},
};
use ur_core::profiling::Profile;
use ur_hal::Order;
use ur_sys::ur_command_t;

/// The event of a command, if C wanted one.
pub(super) type Made<D> = Result<Option<Owned<Event<D>>>>;

/// Submits a command: `body` puts what it consists of into the stream that it is given, whose
/// device's context is current.
///
/// # Errors
/// `IN_EVENT_LIST_EXEC_STATUS` if what it waits for has failed; `body`'s, and the driver's own.
pub(super) fn submit<D: Dialect>(
    queue: Borrowed<'_, Queue<D>>,
    command: ur_command_t,
    waits: &[Borrowed<'_, Event<D>>],
    report: Report,
    body: impl FnOnce(&Stream<D>) -> Result<()>,
) -> Made<D> {
    let profile = queue.profile();
    let submission = Submission { command, order: Order::Free, report, profile };
    submission.put(queue, waits, body, |_| Ok(()))
}

/// What is known of a command beside what it does.
pub(super) struct Submission {
    pub(super) command: ur_command_t,
    pub(super) order: Order,
    pub(super) report: Report,
    /// Which times its event tells.
    pub(super) profile: Profile,
}
impl Submission {
    /// Submits it; `after` comes last in the stream, behind the point that events stand for.
    pub(super) fn put<D: Dialect>(
        self,
        queue: Borrowed<'_, Queue<D>>,
        waits: &[Borrowed<'_, Event<D>>],
        body: impl FnOnce(&Stream<D>) -> Result<()>,
        after: impl FnOnce(&Stream<D>) -> Result<()>,
    ) -> Made<D> {
        let device = queue.device();
        let on = device.enter()?;
        let work = queue.work();
        work.check()?;
        let lane = work.next(&on)?;
        let waits_anyway = matches!(self.report, Report::Done { .. });
        let is_captured = lane.is_capturing()?;
        if is_captured && waits_anyway {
            return Err(captured("a call that waits for its command"));
        }
        if is_captured && waits.iter().any(|event| event.as_shared().is_some()) {
            return Err(captured(
                "a wait for an event that processes share, each replay of which would wait for the same \
                 old signal,",
            ));
        }
        // What waits, and what is replayed, goes to the driver as it is and not by way of pinned memory.
        // While the stream has something to do, the host does not wait inside of the driver for its turn.
        let is_busy = waits_anyway && !(waits.is_empty() && lane.is_known_idle());
        let plain = match (is_captured, waits_anyway) {
            (false, false) => None,
            (false, true) if is_busy => Some(lane.stream().waiting().waiting_before()),
            _ => Some(lane.stream().waiting()),
        };
        let stream = plain.as_ref().unwrap_or(lane.stream());
        // What comes next may wait for ever: memory that was freed before is not to wait with it.
        if (!waits.is_empty() || self.order != Order::Free) && lane.wants_mark() {
            lane.put_mark(device, &on)?;
        }
        let putting = lane.begin();
        for event in waits {
            event.order(&queue, stream).map_err(in_wait_list)?;
        }
        work.keep_behind_barrier(lane)?;
        if self.order != Order::Free {
            work.gather(&on, lane)?;
        }
        let wants_event = self.report.wants_event();
        let times = match self.profile.is_on() && wants_event {
            false => None,
            true => Some(Times::begin(device, &on, stream, self.profile)?),
        };
        body(stream)?;
        let before = putting.before();
        let point = match self.report {
            Report::None => None,
            _ => {
                let end = device.events().take(&on, times.is_some())?;
                end.record(stream)?;
                Some(match is_captured {
                    true => Point::captured(end),
                    false => Point::new(end, times, work.open_debts()),
                })
            }
        };
        after(stream)?;
        if !is_captured {
            lane.note_last(device, &on)?;
        }
        if self.order == Order::Both {
            work.set_fence(&on, lane)?;
        }
        let Some(point) = point else { return Ok(None) };
        if let Report::Done { .. } = self.report {
            let done = point.wait();
            match is_captured || done.is_err() {
                true => drop(putting),
                false => putting.end(before),
            }
            work.check()?; // a lost signal is said here, and once
            work.tell_failure(&done);
            done?;
        }
        wants_event.then(|| Ok(Event::of(queue.own()?, self.command, point))).transpose()
    }
}
fn in_wait_list(error: Error) -> Error {
    match error.code() {
        ErrorCode::InvalidEvent => error.with_code(ErrorCode::InvalidEventWaitList),
        _ => error,
    }
}
