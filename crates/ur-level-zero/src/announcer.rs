//! Tells those who share an event which signals of this process have come: a thread looks at what marks each, and writes
//! its number beside the event. Nobody has to ask the driver about another process's event then, which it answers with
//! the end of the program once that process is gone; and what was signalled before stays so.
use super::{signal::Signal, signaller::SignalRecord};
use std::{
    collections::VecDeque,
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::*},
    },
    time::Duration,
};
use ur_adapter::{error::Error, log, object::Backend, per_process::PerProcess};
use ur_hal::Status;
use ur_lock::locked;
use ur_sys::ur_logger_level_t;

/// How long whoever waits for signals naps while nothing comes: from the first to the second.
pub(super) const NAPS: [Duration; 2] = [Duration::from_micros(20), Duration::from_millis(1)];
/// For so long it stays with nothing to do.
const IDLE: Duration = Duration::from_secs(2);

/// One signal that is under way.
#[derive(Clone, Debug)]
struct Entry {
    board: SignalRecord,
    count: u64,
    signal: Arc<Signal>,
}
impl Entry {
    /// Whether it is over, and has been told.
    fn tell(&self) -> bool {
        let came = match self.signal.status() {
            Status::Complete => true,
            Status::Failed => false,
            _ => return false,
        };
        self.board.note(self.count, came);
        true
    }
}
/// Those of one queue, which come in their order.
type Line = (usize, VecDeque<Entry>);
#[derive(Debug, Default)]
struct Announcements {
    state: Mutex<State>,
    arrived: Condvar,
    is_busy: AtomicBool,
}
#[derive(Debug, Default)]
struct State {
    lines: Vec<Line>,
    has_thread: bool,
}
static ANNOUNCEMENTS: PerProcess<Announcements> = PerProcess::new();

impl Announcements {
    /// Tells of all that are over; whether there were any. The driver is not asked under the lock.
    fn look(&self) -> bool {
        let mut fronts: Vec<_> = locked(&self.state)
            .lines
            .iter()
            .filter_map(|(_, line)| line.front().cloned())
            .collect();
        let mut were_any = false;
        while let Some(front) = fronts.pop() {
            if !front.tell() {
                continue;
            }
            were_any = true;
            let key = key(&front.signal);
            let mut state = locked(&self.state);
            let Some(at) = state.lines.iter().position(|line| line.0 == key) else { continue };
            let line = &mut state.lines[at].1;
            // Another thread may have told of it, too.
            let told = line.pop_front_if(|one| Arc::ptr_eq(&one.signal, &front.signal));
            fronts.extend(line.front().cloned());
            if line.is_empty() {
                state.lines.swap_remove(at);
            }
            self.is_busy.store(!state.lines.is_empty(), Release);
            drop(state);
            drop(told); // not under the lock
        }
        were_any
    }
    fn work(&self) {
        let mut nap = NAPS[0];
        loop {
            if self.look() {
                nap = NAPS[0];
                continue;
            }
            let state = locked(&self.state);
            if !state.lines.is_empty() {
                drop(state);
                std::thread::sleep(nap);
                nap = (nap * 2).min(NAPS[1]);
                continue;
            }
            nap = NAPS[0];
            let waited = self.arrived.wait_timeout(state, IDLE);
            let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
            if state.lines.is_empty() {
                state.has_thread = false;
                return;
            }
        }
    }
}
fn key(signal: &Signal) -> usize {
    Arc::as_ptr(signal.work()).addr()
}

/// Those who have the board are to know when `signal`, the one with the number `count`, is over.
pub(super) fn announce(board: &SignalRecord, count: u64, signal: &Arc<Signal>) {
    let entry = Entry { board: board.clone(), count, signal: Arc::clone(signal) };
    let (desk, key) = (ANNOUNCEMENTS.get(), key(signal));
    let mut state = locked(&desk.state);
    match state.lines.iter_mut().find(|line| line.0 == key) {
        Some((_, line)) => line.push_back(entry),
        None => state.lines.push((key, VecDeque::from([entry]))),
    }
    desk.is_busy.store(true, Release); // pairs with `look`
    let has_thread = std::mem::replace(&mut state.has_thread, true);
    drop(state);
    if has_thread {
        desk.arrived.notify_one();
        return;
    }
    let name = "causeway-signals";
    if let Err(error) = ur_mapping::start_thread(name, || ANNOUNCEMENTS.get().work()) {
        let error = Error::no_thread(name, &error);
        log::say(Backend::LevelZero, ur_logger_level_t::ERROR, &error);
        locked(&desk.state).has_thread = false; // the next one tries again
    }
}
/// Tells of what is over by now: whoever has waited for it may end right away.
pub(super) fn look() {
    let desk = ANNOUNCEMENTS.get();
    if desk.is_busy.load(Acquire) {
        desk.look();
    }
}
