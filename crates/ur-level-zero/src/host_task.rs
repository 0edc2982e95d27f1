//! Host tasks: functions of the application that are called in a queue's order. If the driver cannot call
//! them, a thread of the adapter does, ordered by an event before and one after. Such threads also wait for
//! what command lists cannot wait for.
use super::{
    LevelZero,
    fate::{Dependencies, Fate},
    native::{event::EventKind, list::List},
    signal::{EVER, Signal},
    submission::{How, PooledEvents, Waits},
    work::QueueState,
};
use std::sync::Arc;
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    log,
    object::Backend,
};
use ur_hal::{HostCall, Submission};
use ur_sys::ur_logger_level_t;

/// Enqueues a call of `task`.
///
/// # Errors
/// As for every submission; `OUT_OF_RESOURCES` if a thread is needed and cannot be started.
pub(super) fn run(
    work: &Arc<QueueState>,
    task: HostCall,
    submission: &Submission<'_, LevelZero>,
) -> Result<Option<Signal>> {
    // The application may wait for an effect of the task without using the queue, so the batch is submitted
    // at once.
    let how = How { at_once: true, stalls: true, ..How::default() };
    work.put(submission, how, |list, kept| {
        if List::has_host_fn() {
            let called = list.host_fn(move || task.call());
            match called {
                Err(error) if error.code() == ErrorCode::UnsupportedFeature => {}
                called => return called,
            }
        }
        by_thread(work, list, kept, move || task.call())
    })
}
/// Starts a thread that does `task` when the list has reached this point; later commands of the list wait for
/// its end.
///
/// # Errors
/// `OUT_OF_RESOURCES` if the thread cannot be started; else the driver's error.
pub(super) fn by_thread(
    work: &QueueState,
    list: &List<'_>,
    kept: &mut PooledEvents,
    task: impl FnOnce() + Send + 'static,
) -> Result<()> {
    let maker = work.cache().maker();
    let (reached, done) = (Arc::new(maker.pooled(false)?), Arc::new(maker.pooled(false)?));
    kept.extend([&reached, &done].map(Arc::clone));
    let (waits, is_reached) = ([done.raw()], EventKind::Pooled(Arc::clone(&reached)));
    let body = move || {
        // If the queue fails this wait fails: the task is not called, and nothing waits for it.
        let outcome = is_reached.wait(EVER).and_then(|_| {
            task();
            done.signal()
        });
        if let Err(error) = outcome {
            log::say(Backend::LevelZero, ur_logger_level_t::ERROR, &error);
        }
    };
    list.signal(reached.raw())?;
    let name = "causeway-host-task";
    let started = ur_mapping::start_thread(name, body);
    started.map_err(|error| Error::no_thread(name, &error))?;
    list.wait_for(&waits)
}
/// Makes commands wait for `signal`, whose event is in memory that the device cannot access: a thread waits
/// for it and signals a local event. The caller does not block, because it may still have to enqueue what is
/// waited for.
///
/// # Errors
/// `OUT_OF_RESOURCES` if the thread cannot be started; else the driver's error.
#[cold]
pub(super) fn wait_across(
    signal: &Signal,
    end: &EventKind,
    work: &QueueState,
    waits: &mut Waits,
    keep: impl FnOnce(&EventKind),
) -> Result<()> {
    let (Some(there), theirs) = (end.shared(), Arc::clone(signal.work())) else {
        return signal.wait();
    };
    let (fate, here) = (Fate::by_thread(), Arc::new(work.cache().maker().pooled(false)?));
    waits.extend([here.raw()]);
    keep(&EventKind::Pooled(Arc::clone(&here)));
    waits.depend_on(Dependencies::of(&fate));
    let name = "causeway-across";
    let body = move || {
        fate.meet(|| theirs.wait_for(&there));
        if let Err(error) = here.signal() {
            log::say(Backend::LevelZero, ur_logger_level_t::ERROR, &error);
        }
    };
    let started = ur_mapping::start_thread(name, body);
    started.map(drop).map_err(|error| Error::no_thread(name, &error))
}
