//! Reports completed signals of shared events to other processes. A thread polls the signals of this process,
//! and writes the number of each completed one beside its event. So no process has to query the driver about
//! another process's event: after that process has ended the driver would answer such a query by terminating
//! the program. Signals that completed before the end stay completed.
use super::{signal::Signal, signaller::SignalRecord};
use crate::log::notice;
use std::{
    collections::VecDeque,
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::*},
    },
    time::Duration,
};
use ur_hal::{Error, Severity, Status};
use ur_lock::locked;
use ur_mapping::PerProcess;

/// The sleep between polls without progress: doubles from the first value to the second.
pub(super) const NAPS: [Duration; 2] = [Duration::from_micros(20), Duration::from_millis(1)];
/// How long the thread stays without work before it ends.
const IDLE: Duration = Duration::from_secs(2);

/// A pending signal.
#[derive(Clone, Debug)]
struct Entry {
    board: SignalRecord,
    count: u64,
    signal: Arc<Signal>,
}
impl Entry {
    /// Reports the signal if it is complete; returns whether it is.
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
/// The pending signals of one queue, which complete in order.
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
    /// Reports all signals that are complete; returns whether there were any. The driver is queried outside
    /// the lock.
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
            // Another thread may have reported it too.
            let told = line.pop_front_if(|one| Arc::ptr_eq(&one.signal, &front.signal));
            fronts.extend(line.front().cloned());
            if line.is_empty() {
                state.lines.swap_remove(at);
            }
            self.is_busy.store(!state.lines.is_empty(), Release);
            drop(state);
            drop(told); // outside the lock
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

/// Reports `signal` to the processes that share `board` when it is complete; `count` is its number there.
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
        notice(Severity::Error, &error);
        locked(&desk.state).has_thread = false; // the next call tries again
    }
}
/// Reports what is complete now. Called before an entry returns that waited for a signal, because the process
/// may end next.
pub(super) fn look() {
    let desk = ANNOUNCEMENTS.get();
    if desk.is_busy.load(Acquire) {
        desk.look();
    }
}
