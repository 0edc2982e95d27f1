//! Host tasks: functions of C's in a queue's order. The driver calls them where it can; where it
//! cannot, a thread of ours does, between two events.
use super::{
    Event, Queue,
    native::{
        event::{EventKind, PooledEvent},
        list::List,
    },
    signal::EVER,
    submission::{Made, Report, Submission},
};
use std::sync::Arc;
use ur_adapter::{
    callback::HostFunction,
    error::{Error, ErrorCode, Result},
    log,
    object::{Backend, Borrowed},
};
use ur_sys::{ur_command_t, ur_logger_level_t};

/// Calls `task` when the queue has come there.
///
/// # Errors
/// As every submission; `OUT_OF_RESOURCES` if a thread is needed and cannot be started.
pub(super) fn run(
    queue: Borrowed<'_, Queue>,
    task: HostFunction,
    events: &[Borrowed<'_, Event>],
    report: Report,
) -> Made {
    let submission = Submission::new(queue, ur_command_t::HOST_TASK_EXP, report);
    // C waits for what the task does, perhaps without asking the queue: it is sent at once.
    let submission = Submission { at_once: true, ..submission };
    let maker = queue.work().cache().maker();
    submission.put(queue, events, |list, kept| {
        if List::has_host_fn() {
            let called = list.host_fn(move || task.call());
            match called {
                Err(error) if error.code() == ErrorCode::UnsupportedFeature => {}
                called => return called,
            }
        }
        let (reached, done) = (Arc::new(maker.pooled(false)?), Arc::new(maker.pooled(false)?));
        kept.extend([&reached, &done].map(Arc::clone));
        by_thread(list, task, reached, done)
    })
}
fn by_thread(
    list: &List<'_>,
    task: HostFunction,
    reached: Arc<PooledEvent>,
    done: Arc<PooledEvent>,
) -> Result<()> {
    let waits = [done.raw()];
    let is_reached = EventKind::Pooled(Arc::clone(&reached));
    let work = move || {
        // A queue that failed never comes there; then nothing is called, and nothing waits.
        let outcome = is_reached.wait(EVER).map(|_| task.call());
        if let Err(error) = outcome.and_then(|()| done.signal()) {
            log::say(Backend::LevelZero, ur_logger_level_t::ERROR, &error);
        }
    };
    list.signal(reached.raw())?;
    let name = "causeway-host-task";
    let started = ur_mapping::start_thread(name, work);
    started.map_err(|error| Error::no_thread(name, &error))?;
    list.wait_for(&waits)
}
