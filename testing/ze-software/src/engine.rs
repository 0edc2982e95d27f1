//! Shared copy engines (`ZE_SOFTWARE_SHARED_ENGINES=1`): Intel's driver before Xe3p has one line of commands
//! for all lists of a copy engine, and also sends the copies of lists with the offload hint there. A command
//! that waits in that line delays all later ones.
use crate::{
    command::Call,
    knob,
    line::{Line, Ready, Work, runs_at_once},
    property_lists::groups,
};
use std::{
    sync::{Arc, LazyLock, Mutex, mpsc::channel},
    time::{Duration, Instant},
};
use ur_lock::locked;
use ze_sys::ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE;

/// The numbers of the device, of the engine group, and of the engine in it.
type Place = (u32, u32, u32);
/// The engine group that offloaded copies use.
const MAIN: u32 = 1;

fn are_shared() -> bool {
    static SHARED: LazyLock<bool> = LazyLock::new(|| knob::is("SHARED_ENGINES", "1"));
    *SHARED || all_are_shared()
}
/// Whether lists on one compute engine share a line too (`ZE_SOFTWARE_SHARED_ENGINES=all`).
fn all_are_shared() -> bool {
    static ALL: LazyLock<bool> = LazyLock::new(|| knob::is("SHARED_ENGINES", "all"));
    *ALL
}
/// The cost of making the end of a command without an event visible to the host, which takes another
/// submission (`ZE_SOFTWARE_FLUSH`, in microseconds; `never` ends the process).
pub fn flush() {
    static COST: LazyLock<Option<Duration>> =
        LazyLock::new(|| match knob::text("FLUSH").as_deref() {
            Some("never") => None,
            Some(cost) => Some(Duration::from_micros(cost.trim().parse().unwrap_or(0))),
            None => Some(Duration::ZERO),
        });
    let Some(cost) = *COST else {
        eprintln!("ze-software: a list was asked for the end of a command that signals nothing");
        std::process::abort()
    };
    if !cost.is_zero() {
        let start = Instant::now();
        while start.elapsed() < cost {
            std::hint::spin_loop();
        }
    }
}
fn line(place: Place) -> Arc<Line> {
    static LINES: Mutex<Vec<(Place, Arc<Line>)>> = Mutex::new(Vec::new());
    let mut lines = locked(&LINES);
    if let Some((_, line)) = lines.iter().find(|(known, _)| *known == place) {
        return Arc::clone(line);
    }
    let line = Arc::<Line>::default();
    lines.push((place, Arc::clone(&line)));
    line
}
/// The line for an immediate list on this engine, if its lists share one.
pub fn shared(place: Place) -> Option<Arc<Line>> {
    let is_copier =
        groups()[place.1 as usize].flags & ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE == 0;
    (all_are_shared() || are_shared() && is_copier).then(|| line(place))
}
/// A copy that is appended now to an immediate list of `device` with the offload hint: the copy engine's line
/// gets it at once, and waits in it for everything that precedes the copy in its list. So what one list waits
/// for delays the offloaded copies of all others.
pub fn offloaded(device: u32, copy: Call) -> Call {
    // If commands run on the appending thread, no other thread could reach it.
    if !are_shared() || runs_at_once() {
        return copy;
    }
    let (come, its_turn) = channel::<()>();
    let (told, outcome) = channel();
    let work = Some(Work::Once(Box::new(move || {
        // A copy that failed before its turn, or was never submitted, drops the other end.
        if its_turn.recv().is_ok() {
            let _nobody_waits = told.send(copy());
        }
        Ok(())
    })));
    line((device, MAIN, 0)).submit([Ready { waits: vec![], work, promise: None, free: false }]);
    let ends = Mutex::new(Some((come, outcome)));
    Arc::new(move || {
        let Some((come, outcome)) = locked(&ends).take() else { return Ok(()) };
        let _gone = come.send(());
        outcome.recv().unwrap_or(Ok(()))
    })
}
