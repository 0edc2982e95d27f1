//! Copy engines (`ZE_SOFTWARE_SHARED_ENGINES=1`): Intel's driver before Xe3p has one line of work for all lists of one copy
//! engine, and sends the copies of lists with the hint to leave them to other engines there, too. What waits in that line
//! holds up all that is behind it.
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

/// Device, group, and the number in it.
type Place = (u32, u32, u32);
/// The group that copies are sent to.
const MAIN: u32 = 1;

fn are_shared() -> bool {
    static SHARED: LazyLock<bool> = LazyLock::new(|| knob::is("SHARED_ENGINES", "1"));
    *SHARED || all_are_shared()
}
/// Whether the engines that run kernels have one line each, too (`ZE_SOFTWARE_SHARED_ENGINES=all`).
fn all_are_shared() -> bool {
    static ALL: LazyLock<bool> = LazyLock::new(|| knob::is("SHARED_ENGINES", "all"));
    *ALL
}
/// What the driver has to do before the host sees the end of a command without an event: another submission
/// (`ZE_SOFTWARE_FLUSH`, in microseconds; `never` ends the process instead).
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
/// The line of an immediate list on this engine, where its lists share one.
pub fn shared(place: Place) -> Option<Arc<Line>> {
    let is_copier =
        groups()[place.1 as usize].flags & ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE == 0;
    (all_are_shared() || are_shared() && is_copier).then(|| line(place))
}
/// A copy that is appended now to an immediate list of `device` with the hint to offload copies: the copy engine's line has
/// it at once, and waits there for all that is before it in its list. So what a list waits for holds up the copies of all
/// others that have the hint.
pub fn offloaded(device: u32, copy: Call) -> Call {
    // Where commands run in the thread that appends them there is no other that could come to it.
    if !are_shared() || runs_at_once() {
        return copy;
    }
    let (come, its_turn) = channel::<()>();
    let (told, outcome) = channel();
    let work = Some(Work::Once(Box::new(move || {
        // What failed before it was its turn, or was never submitted, drops the other end.
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
