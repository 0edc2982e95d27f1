//! The entries of events.
use super::{Event, Pending, SharedPart};
use crate::{
    memory::objects::next_object,
    over_driver::{
        OverDriver, own_handle,
        watch::{CompletionCallbacks, Watch, call_when_over},
    },
    profiling::{self, Profile},
    queue::{
        Context, Device, HasStreams, LatestSignal, Origin, Run, Shareable, SharedEvents, State,
    },
};
use std::sync::Arc;
use ur_adapter::{
    api::{EventApi, EventExpApi},
    callback::EventCallback,
    error::{Error, ErrorCode, Result},
    info::Answer,
    object::{Borrowed, Owned},
};
use ur_hal::{
    Command, Completion, EventSharing, NativeHandle, Status, StreamRequest, Submission, Wait,
};
use ur_ipc::{
    Access,
    arena::{self, PendingSignal},
};
use ur_sys::*;

impl<D: HasStreams> Event<D> {
    /// Which times it was made to report or, for a reusable event, which its latest signal reports.
    fn profile(&self) -> Result<Profile> {
        Ok(match &self.state {
            _ if self.profile.is_on() => self.profile,
            State::Latest { signal, .. } => {
                signal.get()?.map_or(Profile::Off, |latest| latest.profile)
            }
            State::Shared(SharedPart { what: Shareable::Point(point), .. }) => {
                D::times(point)?.map_or(Profile::Off, |_| Profile::Instant)
            }
            _ => Profile::Off,
        })
    }
    fn times(&self, name: ur_profiling_info_t) -> Result<u64> {
        let latest;
        let (point, profile) = match &self.state {
            State::Point(point) => (point, self.profile),
            State::Run(run) => return run.time(name, self.profile),
            State::Latest { signal, .. } => {
                latest = signal.get()?.ok_or_else(profiling::not_yet)?;
                (&latest.point, latest.profile)
            }
            State::Shared(SharedPart { what: Shareable::Point(point), .. }) => {
                (&**point, Profile::Instant)
            }
            _ => return Err(profiling::not_yet()),
        };
        if !profile.is_on() {
            return Err(profiling::not_yet());
        }
        let times = D::times(point)?.ok_or_else(profiling::not_yet)?;
        profile.time(name, times.submitted, || Ok(times.span))
    }
    /// Waits for `pending`, which was captured from this event; a failure is noted at its queue.
    #[inline]
    fn wait_for(&self, pending: &Pending<'_, D>) -> Result<()> {
        match &self.queue {
            Some(queue) => queue.note(pending.wait()),
            None => Ok(pending.wait()?),
        }
    }
}
impl<D: HasStreams> Run<D> {
    /// A profiling time of the whole run: it begins before the first command and ends after the last one.
    fn time(&self, name: ur_profiling_info_t, profile: Profile) -> Result<u64> {
        let began = self.began.as_ref().filter(|_| profile.is_on());
        let began = began.map(D::times).transpose()?.flatten().ok_or_else(profiling::not_yet)?;
        let ended = D::times(&self.ended)?.and_then(|ended| ended.span);
        let span = began.span.zip(ended).map(|((began, _), (_, ended))| (began, ended));
        profile.time(name, began.submitted, || Ok(span))
    }
}
impl<D: HasStreams> CompletionCallbacks for Event<D> {
    fn watch() -> &'static Watch<Self> {
        SharedEvents::<D>::get().watch.get()
    }
    fn is_over(&self) -> bool {
        match self.status() {
            Ok(status) => status.is_final(),
            // Any other error says nothing of the command: it is asked again.
            Err(error) => matches!(
                error.code(),
                ErrorCode::DeviceLost | ErrorCode::Uninitialized | ErrorCode::InvalidContext
            ),
        }
    }
}
/// Submits a barrier that waits for a word shared between processes, to a new stream, and returns the barrier's point:
/// drivers can call back for a point but not for a word.
fn follow<D: HasStreams>(event: &Event<D>, debt: &PendingSignal) -> Result<D::Point> {
    let context = event.context();
    let request = StreamRequest {
        is_out_of_order: true,
        context: context.as_handle().addr(),
        ..StreamRequest::default()
    };
    let device = &context.driver_devices()[0];
    let stream = D::stream(context.driver(), device, request)?;
    let waits = &[Wait::Word(debt)];
    let plain = Submission::new(&Command::Barrier);
    let follower = Submission { waits, completion: Completion::Point, ..plain };
    Ok(D::submit(&stream, &follower)?.ok_or(ErrorCode::Unknown)?)
}

impl<D: HasStreams> EventApi for OverDriver<D> {
    fn event_get_info(
        event: Borrowed<'_, Event<D>>,
        name: ur_event_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        use ur_event_info_t as I;
        match name {
            I::COMMAND_QUEUE => match &event.queue {
                Some(queue) => answer.handle(queue),
                None => answer.value(&0usize), // it has no queue: a null handle
            },
            I::CONTEXT => answer.handle(event.context()),
            I::COMMAND_TYPE => answer.value(&event.command.0),
            I::COMMAND_EXECUTION_STATUS => answer.value(&match event.status()? {
                Status::Submitted => ur_event_status_t::SUBMITTED.0,
                Status::Running => ur_event_status_t::RUNNING.0,
                Status::Complete => ur_event_status_t::COMPLETE.0,
                Status::Failed => ur_event_status_t::ERROR.0,
            }),
            I::REFERENCE_COUNT => answer.value(&event.api_refs()),
            _ => Error::no_answer("an event", name),
        }
    }
    /// For the event of a command: the native object that marks the command's end.
    fn event_get_native_handle(event: Borrowed<'_, Event<D>>) -> Result<ur_native_handle_t> {
        if !D::HAS_NATIVE_HANDLES {
            return own_handle::of(&event);
        }
        let point = match &event.state {
            State::Complete => return Ok(0), // the handle from which it was made
            State::Point(point) => point,
            State::Run(run) => &run.ended,
            State::Shared(SharedPart { what: Shareable::Point(point), .. }) => point,
            _ => return Error::unsupported("urEventGetNativeHandle of such a reusable event"),
        };
        Ok(D::native_point(point)?.0 as ur_native_handle_t)
    }
    fn event_create_with_native_handle(
        native: ur_native_handle_t,
        context: Borrowed<'_, Context<D>>,
        properties: Option<&ur_event_native_properties_t>,
    ) -> Result<Owned<Event<D>>> {
        if native == 0 {
            return Ok(Event::without_queue(context.own()?, Profile::Off, State::Complete));
        }
        if !D::HAS_NATIVE_HANDLES {
            let event: Owned<Event<D>> = own_handle::find(native)?;
            own_handle::check_context(event.context(), &context)?;
            return Ok(event);
        }
        let context = context.own()?;
        let is_owned = properties.is_some_and(|p| p.isNativeHandleOwned);
        let (driver, devices) = (context.driver(), context.driver_devices());
        let point = D::adopt_point(driver, devices, NativeHandle(native as u64), is_owned)?;
        Ok(Event::without_queue(context, Profile::Off, State::Point(point)))
    }
    fn check_event_get_profiling_info(event: Borrowed<'_, Event<D>>) -> Result<()> {
        event.profile()?.check()
    }
    fn event_get_profiling_info(
        event: Borrowed<'_, Event<D>>,
        name: ur_profiling_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        answer.value(&event.times(name)?)
    }
    fn event_wait(events: &[Owned<Event<D>>]) -> Result<()> {
        D::check_process()?;
        if let [event] = events {
            return event.pending()?.map_or(Ok(()), |pending| event.wait_for(&pending));
        }
        // Capture all before the first wait: the entry waits for what was signalled when it began.
        let mut all = Vec::with_capacity(events.len());
        for event in events {
            all.extend(event.captured_now()?.map(|pending| (event, pending)));
        }
        // Wait for each, so that all have ended on return even if some failed. Later events first: in a queue, an event
        // that has ended tells that those before it have too.
        let waits = all.iter().rev().map(|(event, pending)| event.wait_for(pending));
        waits.fold(Ok(()), Result::and)
    }
    fn event_set_callback(
        event: Borrowed<'_, Event<D>>,
        status: ur_execution_info_t,
        callback: EventCallback,
    ) -> Result<()> {
        let wanted = match status {
            ur_execution_info_t::SUBMITTED => Status::Submitted,
            ur_execution_info_t::RUNNING => Status::Running,
            ur_execution_info_t::COMPLETE => Status::Complete,
            _ => return Err(ErrorCode::UnsupportedEnumeration.into()),
        };
        let event = event.own()?; // the caller may release it before or during the callback, which may run now
        let kept = event.clone();
        let Some(pending) = event.pending()?.filter(|_| wanted != Status::Submitted) else {
            callback.call(&kept, status);
            return Ok(());
        };
        match &pending {
            Pending::Point(point) => D::check_runs(point)?,
            Pending::Latest(latest) => D::check_runs(&latest.point)?,
            Pending::Captured(_) | Pending::Word(_) => {}
        }
        if !D::NOTIFIES {
            return call_when_over(kept, status, callback);
        }
        let call = Box::new(move || callback.call(&kept, status));
        match pending {
            Pending::Point(point) => D::notify(point, wanted, call)?,
            Pending::Latest(latest) => D::notify(&latest.point, wanted, call)?,
            Pending::Word(debt) => D::notify(&follow(&event, &debt)?, Status::Complete, call)?,
            Pending::Captured(point) => D::notify(&point, wanted, call)?,
        }
        Ok(())
    }
}
impl<D: HasStreams> EventExpApi for OverDriver<D> {
    fn event_create_exp(
        context: Borrowed<'_, Context<D>>,
        device: Borrowed<'_, Device<D>>,
        desc: &ur_exp_event_desc_t,
    ) -> Result<Owned<Event<D>>> {
        use ur_exp_event_flags_t as F;
        context.check(device)?;
        if desc.flags.contains(F::IPC_EXP | F::ENABLE_PROFILING) {
            return Error::refuse(
                ErrorCode::InvalidValue,
                "an event that processes share records no times: pass IPC_EXP or ENABLE_PROFILING, not both",
            );
        }
        let (context, device) = (context.own()?, device.own()?);
        let driver = context.driver();
        let profile = match desc.flags.contains(F::ENABLE_PROFILING) {
            true => Profile::Instant,
            false => Profile::Off,
        };
        let (what, origin) = if desc.flags.contains(F::IPC_EXP) {
            let what = match D::event_sharing(device.driver()) {
                EventSharing::Words => Some(Shareable::Word(arena::slot(Access::SameUser)?)),
                EventSharing::Points => D::reusable(driver, device.driver(), true)?
                    .map(|one| Shareable::Point(Arc::new(one))),
                EventSharing::None => None,
            };
            let object = next_object(D::BACKEND);
            (Some(what.ok_or_else(no_sharing)?), Origin::Made { object, device })
        } else {
            let own =
                if profile.is_on() { None } else { D::reusable(driver, device.driver(), false)? };
            (own.map(|one| Shareable::Point(Arc::new(one))), Origin::Private)
        };
        let state = match what {
            Some(what) => State::Shared(SharedPart::new(what, origin)),
            None => State::Latest { signal: LatestSignal::default(), is_recorded: false },
        };
        Ok(Event::without_queue(context, profile, state))
    }
}
fn no_sharing() -> Error {
    Error::new(
        ErrorCode::UnsupportedFeature,
        "this device cannot share events between processes: create the event without IPC_EXP",
    )
}
