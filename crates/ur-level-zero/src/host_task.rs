//! Host tasks: functions of the application's in a queue's order. The driver calls them where it can; where it
//! cannot, a thread of ours does, between two events. Threads wait, too, for what no list can.
use super::{
    LevelZero,
    fate::Fate,
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

/// Calls `task` when the queue has come there.
///
/// # Errors
/// As every submission; `OUT_OF_RESOURCES` if a thread is needed and cannot be started.
pub(super) fn run(
    work: &Arc<QueueState>,
    task: HostCall,
    submission: &Submission<'_, LevelZero>,
) -> Result<Option<Signal>> {
    // The application waits for what the task does, perhaps without asking the queue: it is sent at once.
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
/// Has a thread do `task` when the list has come there; what comes behind it waits for the end of that.
///
/// # Errors
/// The driver's own; `OUT_OF_RESOURCES` if the thread cannot be started.
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
        // A queue that failed never comes there; then nothing is done, and nothing waits.
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
/// A list cannot wait for what lies in memory that its device does not reach. So a thread waits, and signals an event of its
/// side; the caller does not, who may have to enqueue yet what is waited for.
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
    waits.depend_on(&fate);
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
