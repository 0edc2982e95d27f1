//! The watcher thread, one per process: it receives all events (deaths, hang-ups, requests to the broker) and passes
//! each to the module that handles it. `liveness` keeps the set of watched descriptors.
use crate::{
    arena::streams::{AGAIN, release_again},
    broker::Broker,
    exports::tell_gone,
    fetch::{due, later, lost},
    hosts, joining, killpoint,
    ledger::watched,
    liveness::{Post, Source, attend_by, is_over},
    notice::notice,
    waiting::events_by,
};
use rustix::event::epoll;
use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

/// How many events are taken at once: enough for all that can be pending, so that no peer's request is declared late
/// although it has arrived.
const EVENTS: usize = 1024;

/// Has `attend` run on the watcher thread for everything that is watched from now on.
pub(crate) fn be_ready() {
    attend_by(attend);
}

/// The watcher thread's main function.
fn attend(post: &Arc<Post>) {
    let mut broker = Broker::new();
    let mut watching = watched::Watching::here();
    let mut events = Vec::with_capacity(EVENTS);
    // Whether a device of this process may wait for a peer that has died and whose device may still write.
    let mut is_awaited = false;
    loop {
        watching.look();
        // Rounded up, so that the thread wakes a little late rather than twice.
        let until = broker.deadline().map(|at| at + Duration::from_micros(100));
        let again = is_awaited.then(|| Instant::now() + AGAIN);
        let until = until.into_iter().chain(again).chain(due::next()).chain(later::next()).min();
        if events_by(&post.epoll, &mut events, until).is_err() {
            thread::sleep(Duration::from_millis(10)); // out of memory for now: do not spin
        }
        for event in &events {
            let source = Source::unpack(event.data.u64());
            let told = survives(|| pass_on(source, event.flags, post, &mut broker));
            if !told {
                survives(|| give_up(source, &mut broker));
            }
        }
        let kept = survives(|| {
            // If more events may be pending, they are handled before any timeout is applied.
            if events.len() < EVENTS {
                broker.expire(Instant::now());
            }
            broker.close_if_idle();
        });
        survives(|| broker.give_up_served());
        survives(tell_gone);
        if !kept {
            thread::sleep(Duration::from_millis(10)); // the cause may persist: do not spin
        }
        survives(lost::look);
        survives(hosts::say_closed);
        survives(|| is_awaited = release_again());
        if !is_awaited && is_over(post) {
            return;
        }
    }
}

/// Runs `act` and returns whether it did not panic. A fault with one peer must not stop the watching of all others. No
/// lock stays poisoned (see `locked`), and the caller gives up the affected connection as a whole.
fn survives(act: impl FnOnce()) -> bool {
    let survived = ur_lock::caught(act).is_some();
    if !survived {
        notice(
            &"a fault in the thread that serves and watches other processes, which is printed above: it goes on, and the connection that was concerned is given up; please report it",
        );
    }
    survived
}

/// Handling an event of this source panicked: gives up whatever the source stands for.
fn give_up(source: Source, broker: &mut Broker) {
    match source {
        Source::Connection(id) => broker.give_up(id),
        Source::ConnectionProcess(id) => broker.part(id),
        Source::Host(id) => {
            if let Some(host) = hosts::by_id(id) {
                host.ended(); // this checks whether the process is still there
            }
        }
        Source::HostProcess(id) => {
            if let Some(host) = hosts::by_id(id) {
                host.mark_owner_dead();
            }
        }
        Source::Returning(id) => {
            if let Some(host) = hosts::by_id(id) {
                host.try_later();
            }
        }
        Source::Debtor(id) => joining::gone(id),
        Source::Entrance(_) | Source::Nudge => {} // only this event is lost; the next one is handled as usual
    }
}

/// Passes an event to the module that handles it.
fn pass_on(source: Source, flags: epoll::EventFlags, post: &Post, broker: &mut Broker) {
    match source {
        Source::Nudge => {
            let _ = rustix::io::read(&post.nudge, &mut [0; 8]); // several nudges count as one
        }
        Source::Entrance(scope) => broker.admit(scope),
        Source::Connection(id) => {
            killpoint::panic_at("watcher.hear");
            broker.hear(id, flags);
        }
        Source::ConnectionProcess(id) => broker.part(id),
        Source::Host(id) => {
            if let Some(host) = hosts::by_id(id) {
                host.hear(flags);
            }
        }
        Source::HostProcess(id) => {
            if let Some(host) = hosts::by_id(id) {
                host.mark_owner_dead();
            }
        }
        Source::Debtor(id) => joining::gone(id),
        Source::Returning(id) => {
            if let Some(host) = hosts::by_id(id) {
                host.hear_return();
            }
        }
    }
}
