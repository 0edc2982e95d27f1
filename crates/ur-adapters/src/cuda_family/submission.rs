//! How any command gets into a stream: what C wants to know of it, where it stands among the others
//! of its queue, what it waits for, and the point that its event stands for.
use super::{
    Event, Queue,
    driver::Dialect,
    event::{Point, Times},
    native::stream::Stream,
};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    object::{Borrowed, Owned},
};
use ur_sys::ur_command_t;

/// The event of a command, if C wanted one.
pub(super) type Made<D> = Result<Option<Owned<Event<D>>>>;

/// What C wants to know of a command.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Report {
    /// Nothing.
    None,
    /// An event.
    Event,
    /// That it is done, before the call returns; and an event if so.
    Done { event: bool },
}
impl Report {
    pub(super) fn event(want: bool) -> Self {
        if want { Self::Event } else { Self::None }
    }
    pub(super) fn of(blocking: bool, want: bool) -> Self {
        if blocking { Self::Done { event: want } } else { Self::event(want) }
    }
}
/// Where a command stands among the others of an out-of-order queue.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// Behind what it names, and behind barriers.
    Free,
    /// Behind everything before it.
    AfterAll,
    /// The same, and before everything after it.
    Both,
}

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
    let profiled = queue.is_profiling();
    let submission = Submission { command, order: Order::Free, report, profiled };
    submission.put(queue, waits, body, |_| Ok(()))
}

/// What is known of a command beside what it does.
pub(super) struct Submission {
    pub(super) command: ur_command_t,
    pub(super) order: Order,
    pub(super) report: Report,
    /// Whether its times are wanted.
    pub(super) profiled: bool,
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
        let plain = waits_anyway.then(|| lane.stream().waiting());
        let stream = plain.as_ref().unwrap_or(lane.stream());
        let putting = lane.begin();
        for event in waits {
            event.order(&queue, stream).map_err(in_wait_list)?;
        }
        work.keep_behind_barrier(lane)?;
        if self.order != Order::Free {
            work.gather(&on, lane)?;
        }
        let wants_event = matches!(self.report, Report::Event | Report::Done { event: true });
        let times = match self.profiled && wants_event {
            false => None,
            true => {
                let (base, submitted) = (device.base()?, super::clock::now());
                let start = device.events().take(&on, true)?;
                start.record(stream)?;
                Some(Times { base, submitted, start: Some(start) })
            }
        };
        body(stream)?;
        let point = match self.report {
            Report::None => None,
            _ => {
                let end = device.events().take(&on, times.is_some())?;
                end.record(stream)?;
                Some(Point::new(end, times, work.open_debts()))
            }
        };
        after(stream)?;
        if self.order == Order::Both {
            work.set_fence(&on, lane)?;
        }
        drop(putting);
        let Some(point) = point else { return Ok(None) };
        if let Report::Done { .. } = self.report {
            let done = point.wait();
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
/// Where a wait stands: behind everything, unless it names what it is for.
pub(super) fn wait_order<T>(events: &[T]) -> Order {
    if events.is_empty() { Order::AfterAll } else { Order::Free }
}
