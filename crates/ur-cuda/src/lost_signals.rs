//! Signals of a device that was lost. A device tells nobody that it will not write a word, and the program may be waiting
//! for that word itself, or not call the driver any more. So a thread asks, as long as streams owe signals.
use super::{DriverDevice, driver::Dialect, work::QueueState};
use std::{
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    thread::sleep,
    time::Duration,
};

/// How long a signal is owed before the driver is asked, and between two questions.
const PAUSE: Duration = Duration::from_millis(250);
/// With how many pauses in which nothing was owed the thread ends.
const IDLE_PAUSES: u32 = 8;

/// Whether the thread runs.
#[derive(Debug)]
pub(super) struct Watch(AtomicBool);
impl Watch {
    pub(super) const fn new() -> Self {
        Self(AtomicBool::new(false))
    }
}
/// Has the thread look after the signals that streams owe. If it cannot be started, the next signal tries again; until then,
/// only a call that uses the queue tells who waits that the device is lost.
pub(super) fn watch<D: Dialect>() {
    let Watch(runs) = &D::statics().lost_signals;
    // `SeqCst`: either this sees that the thread has ended, or the thread sees what is owed.
    if !runs.swap(true, SeqCst) && ur_mapping::start_thread("causeway-lost", look::<D>).is_err() {
        runs.store(false, SeqCst);
    }
}
fn look<D: Dialect>() {
    let Watch(runs) = &D::statics().lost_signals;
    let mut idle = 0;
    while idle < IDLE_PAUSES || {
        runs.store(false, SeqCst);
        owe::<D>() && !runs.swap(true, SeqCst)
    } {
        sleep(PAUSE);
        idle = if owe::<D>() { 0 } else { idle + 1 };
    }
}
/// Whether any queue owes a signal. Fails those of devices that are lost.
fn owe<D: Dialect>() -> bool {
    let owing = D::statics().queues_now.of(|work: &QueueState<D>| work.registered.owe());
    for work in &owing {
        if is_lost(&work.device) {
            work.registered.fail();
        }
    }
    !owing.is_empty()
}
/// Asks for an event of nobody's: the application may capture its streams, or may have destroyed them.
fn is_lost<D: Dialect>(device: &DriverDevice<D>) -> bool {
    let asked = device.enter().and_then(|on| device.events().take(&on, false)?.is_complete());
    asked.is_err_and(|error| error.kind().is_gone())
}
