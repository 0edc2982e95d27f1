//! The one watcher thread of a process: it hears of deaths, of hang-ups and of the broker's visitors, and passes each on to
//! whom it concerns. What is watched, `liveness` keeps.
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

/// Events taken in at once: all there can be, so that nobody's time is declared over who has spoken.
const EVENTS: usize = 1024;

/// Has whatever is watched from now on attended to.
pub(crate) fn be_ready() {
    attend_by(attend);
}

/// The thread.
fn attend(post: &Arc<Post>) {
    let mut broker = Broker::new();
    let mut watching = watched::Watching::here();
    let mut events = Vec::with_capacity(EVENTS);
    // Whether a device of ours may wait for somebody dead, whose own may write late.
    let mut is_awaited = false;
    loop {
        watching.look();
        // Rounded up: woken a little late, not twice.
        let until = broker.deadline().map(|at| at + Duration::from_micros(100));
        let again = is_awaited.then(|| Instant::now() + AGAIN);
        let until = until.into_iter().chain(again).chain(due::next()).chain(later::next()).min();
        if events_by(&post.epoll, &mut events, until).is_err() {
            thread::sleep(Duration::from_millis(10)); // out of memory, for now: do not spin
        }
        for event in &events {
            let source = Source::unpack(event.data.u64());
            let told = survives(|| pass_on(source, event.flags, post, &mut broker));
            if !told {
                survives(|| give_up(source, &mut broker));
            }
        }
        let kept = survives(|| {
            // If there may be more to hear, that comes before anybody's time is over.
            if events.len() < EVENTS {
                broker.expire(Instant::now());
            }
            broker.close_if_idle();
        });
        survives(|| broker.give_up_served());
        survives(tell_gone);
        if !kept {
            thread::sleep(Duration::from_millis(10)); // whatever it is may be there again: do not spin
        }
        survives(lost::look);
        survives(hosts::say_closed);
        survives(|| is_awaited = release_again());
        if !is_awaited && is_over(post) {
            return;
        }
    }
}

/// Does it, and returns whether it did not panic. A fault at one peer must not end the watching of all the others. No
/// lock stays poisoned (see `locked`), and what was being done for the peer is given up as a whole.
fn survives(act: impl FnOnce()) -> bool {
    let survived = ur_lock::caught(act).is_some();
    if !survived {
        notice(
            &"a fault in the thread that serves and watches other processes, which is printed above: it goes on, and the connection that was concerned is given up; please report it",
        );
    }
    survived
}

/// Hearing of it failed: nothing more is expected from there.
fn give_up(source: Source, broker: &mut Broker) {
    match source {
        Source::Visitor(id) => broker.give_up(id),
        Source::VisitorProcess(id) => broker.part(id),
        Source::Host(id) => {
            if let Some(host) = hosts::by_id(id) {
                host.ended(); // and so asks whether it is there still
            }
        }
        Source::HostProcess(id) => {
            if let Some(host) = hosts::by_id(id) {
                host.bury();
            }
        }
        Source::Returning(id) => {
            if let Some(host) = hosts::by_id(id) {
                host.try_later();
            }
        }
        Source::Debtor(id) => joining::gone(id),
        Source::Entrance(_) | Source::Nudge => {} // the next one comes
    }
}

/// Tells whom it concerns.
fn pass_on(source: Source, flags: epoll::EventFlags, post: &Post, broker: &mut Broker) {
    match source {
        Source::Nudge => {
            let _ = rustix::io::read(&post.nudge, &mut [0; 8]); // nudged twice is nudged once
        }
        Source::Entrance(door) => broker.admit(door),
        Source::Visitor(id) => {
            killpoint::panic_at("watcher.hear");
            broker.hear(id, flags);
        }
        Source::VisitorProcess(id) => broker.part(id),
        Source::Host(id) => {
            if let Some(host) = hosts::by_id(id) {
                host.hear(flags);
            }
        }
        Source::HostProcess(id) => {
            if let Some(host) = hosts::by_id(id) {
                host.bury();
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
