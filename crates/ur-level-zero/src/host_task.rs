//! Host tasks: functions of the application that are called in a queue's order. If the driver cannot call
//! them, a thread of the adapter does, ordered by an event before and one after. Such threads also wait for
//! what command lists cannot wait for.
use super::{
    LevelZero,
    fate::{Dependencies, Fate},
    native::{
        event::{EventKind, PooledEvent},
        list::List,
    },
    signal::{EVER, Signal},
    submission::{How, Made, PooledEvents, Waits},
    work::QueueState,
};
use crate::log::notice;
use std::sync::Arc;
use ur_hal::{Error, ErrorKind, HostCall, Result, Severity, Submission, repeated};

/// Enqueues a call of `task`.
///
/// # Errors
/// As for every submission; `OUT_OF_RESOURCES` if a thread is needed and cannot be started.
pub(super) fn run(
    work: &Arc<QueueState>,
    task: HostCall,
    submission: &Submission<'_, LevelZero>,
) -> Made {
    // The application may wait for an effect of the task without using the queue, so the batch is submitted
    // at once.
    let how = How { at_once: true, stalls: true, ..How::default() };
    work.put(submission, how, |list, kept| {
        if List::has_host_fn() {
            let called = list.host_fn({
                let task = task.clone();
                move || task.call()
            });
            match called {
                Err(error) if error.kind() == ErrorKind::Unsupported => {}
                called => return called,
            }
        }
        // If the driver does not tell that the list came there, the task is not called: that was logged.
        by_thread(work, list, kept, move |reached| reached.iter().for_each(|()| task.call()))
    })
}
fn log_error(error: &Error) {
    notice(Severity::Error, error);
}
/// Signals an event from the host that lists may wait for.
pub(super) fn signal_surely(event: &PooledEvent) {
    let _logged = repeated(|| event.signal()).inspect_err(log_error);
}
/// Starts a thread that does `task` when the list has reached this point; later commands of the list wait for
/// its end. `task` is told if the driver does not say when that is.
///
/// # Errors
/// `OUT_OF_RESOURCES` if the thread cannot be started; else the driver's error.
pub(super) fn by_thread(
    work: &QueueState,
    list: &List<'_>,
    kept: &mut PooledEvents,
    task: impl FnOnce(Result<()>) + Send + 'static,
) -> Result<()> {
    let event = || list.surely(|| work.cache.maker().pooled(false)).map(Arc::new);
    let (reached, done) = (event()?, event()?);
    kept.extend([&reached, &done].map(Arc::clone));
    let (waits, is_reached) = ([done.raw()], EventKind::Pooled(Arc::clone(&reached)));
    let released = Arc::clone(&done);
    let body = move || {
        // A driver that refuses it again and again has lost the device.
        task(repeated(|| is_reached.wait(EVER)).map(drop).inspect_err(log_error));
        signal_surely(&done);
    };
    list.surely(|| list.signal(reached.raw()))?;
    list.surely(|| list.wait_for(&waits))?; // before the thread: what the driver refuses is not done
    let name = "causeway-host-task";
    let started = ur_mapping::start_thread(name, body);
    started.map(drop).map_err(|error| {
        signal_surely(&released);
        Error::no_thread(name, &error)
    })
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
    let fate = Fate::by_thread();
    let met = Arc::clone(&fate);
    let here =
        signalled_after(work, "causeway-across", move || met.meet(|| theirs.wait_for(&there)))?;
    waits.events.push(here.raw());
    keep(&EventKind::Pooled(here));
    waits.dependencies.push(Dependencies::of(&fate));
    Ok(())
}
/// Makes a list wait for an event of another queue, which never comes if a process that the queue waits for has died: a
/// thread waits for it, and lets the list continue in either case.
///
/// # Errors
/// As for [`wait_across`].
#[cold]
pub(super) fn wait_for_end(
    (theirs, end): (&Arc<QueueState>, &EventKind),
    work: &QueueState,
    list: &List<'_>,
    kept: &mut PooledEvents,
) -> Result<()> {
    let (Some(there), theirs) = (end.shared(), Arc::clone(theirs)) else {
        return list.wait_for(&[end.raw()]);
    };
    let here = signalled_after(work, "causeway-end", move || drop(theirs.wait_for(&there)))?;
    kept.push(Arc::clone(&here));
    list.wait_for(&[here.raw()])
}
/// An event of the queue's device that a thread signals after `wait`.
fn signalled_after(
    work: &QueueState,
    name: &str,
    wait: impl FnOnce() + Send + 'static,
) -> Result<Arc<PooledEvent>> {
    let here = Arc::new(work.cache.maker().pooled(false)?);
    let there = Arc::clone(&here);
    let body = move || {
        wait();
        signal_surely(&there);
    };
    match ur_mapping::start_thread(name, body) {
        Ok(_) => Ok(here),
        Err(error) => Err(Error::no_thread(name, &error)),
    }
}
