//! Memory of other processes that stays open for a moment after its last array is gone, so that the next open of the same
//! export, or of another export of the same allocation, needs no driver. It only keeps the memory mapped: every open asks the
//! runtime as ever, which says who may open what, and that an exporter withdrew, freed or is gone.
//!
//! It is here and neither in `causeway` nor in the runtime: there, programs decide how long something is open, and a close
//! closes. In Python the end of an array is an accident of reference counts, and one process often opens the same memory
//! again at once.
//!
//! A thread, which runs only as long as there is something to give back, gives back what nobody opened again in time, and at
//! once what nobody can open again.
use crate::{gate, session::Session};
use causeway::{Buffer, Ticket, fork_count};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError},
    thread,
    time::{Duration, Instant},
};

/// How long memory stays open that nobody opens again, in seconds; 0 is not at all.
const VARIABLE: &str = "CAUSEWAY_LINGER";
const USUAL: Duration = Duration::from_millis(500);
/// How often the thread looks.
const LOOK: Duration = Duration::from_millis(25);
/// Opens that stay.
const MOST: usize = 4096;
/// Memory of the host's that is smaller is opened as fast as it is found here, and its exporter uses it again.
const LEAST_ON_HOST: usize = 1 << 20;
/// Bytes that stay open, of all allocations: on the host, and on each other device, of which it is no more than that part of its memory.
const MOST_ON_HOST: usize = 64 << 20;
const MOST_ON_DEVICE: usize = 4 << 30;
const PART_OF_DEVICE: u64 = 32;

/// An open that stays.
struct Kept {
    /// The address of its allocation.
    allocation: usize,
    ticket: Arc<Ticket<Buffer<u8>>>,
    until: Instant,
    _buffer: Buffer<u8>,
}
/// A session, by its address, and an address of its device.
type Place = (usize, usize);
#[derive(Default)]
struct State {
    /// The `fork_count` of the process whose they are.
    fork: u64,
    /// The interpreter ends: nothing stays any more.
    is_over: bool,
    has_thread: bool,
    /// By where they begin.
    kept: HashMap<Place, Kept>,
    /// How many of them are in an allocation, and its length.
    allocations: HashMap<Place, (usize, usize)>,
    /// Of each session.
    bytes: HashMap<usize, usize>,
}
static STATE: Mutex<Option<State>> = Mutex::new(None);
/// Held while memory is given back.
static GIVING_BACK: Mutex<()> = Mutex::new(());

impl State {
    fn take(&mut self, place: Place) -> Option<Kept> {
        let kept = self.kept.remove(&place)?;
        let allocation = (place.0, kept.allocation);
        if let Some((count, length)) = self.allocations.get_mut(&allocation) {
            *count -= 1;
            if *count == 0 {
                *self.bytes.entry(place.0).or_default() -= *length;
                self.allocations.remove(&allocation);
            }
        }
        Some(kept)
    }
    fn put(&mut self, place: Place, length: usize, kept: Kept) {
        let allocation = (place.0, kept.allocation);
        let (count, of) = self.allocations.entry(allocation).or_insert((0, length));
        *count += 1;
        if *count == 1 {
            *self.bytes.entry(place.0).or_default() += *of;
        }
        self.kept.insert(place, kept);
    }
    /// Whether as many bytes more may stay open.
    fn has_room(&self, session: &Arc<Session>, allocation: Place, length: usize) -> bool {
        let more = if self.allocations.contains_key(&allocation) { 0 } else { length };
        let bytes = self.bytes.get(&allocation.0).copied().unwrap_or(0);
        self.kept.len() < MOST && bytes.saturating_add(more) <= most_of(session)
    }
}

/// How long.
fn patience() -> Duration {
    static PATIENCE: OnceLock<Duration> = OnceLock::new();
    *PATIENCE.get_or_init(|| {
        let said = std::env::var(VARIABLE).ok().and_then(|said| said.parse().ok());
        said.and_then(|said| Duration::try_from_secs_f64(said).ok()).unwrap_or(USUAL)
    })
}
/// Bytes of a device's memory that may stay open.
fn most_of(session: &Session) -> usize {
    if session.is_cpu() {
        return MOST_ON_HOST;
    }
    let part = session.memory / PART_OF_DEVICE;
    MOST_ON_DEVICE.min(usize::try_from(part).unwrap_or(usize::MAX))
}

/// This process's, if no other thread has them. A forked child leaves alone what was its parent's.
fn state() -> Option<MutexGuard<'static, Option<State>>> {
    let mut state = match STATE.try_lock() {
        Ok(state) => state,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        // Also in a child that was forked meanwhile, for ever.
        Err(TryLockError::WouldBlock) => return None,
    };
    let fork = fork_count();
    if state.as_ref().is_none_or(|state| state.fork != fork) {
        std::mem::forget(state.replace(State { fork, ..State::default() }));
    }
    Some(state)
}

/// Keeps memory of another process open that was just closed. It waits for nobody: where it cannot be, the memory is
/// closed now.
pub fn keep(session: &Arc<Session>, buffer: &Buffer<u8>, ticket: &Arc<Ticket<Buffer<u8>>>) {
    let patience = patience();
    if patience.is_zero() || session.usable().is_err() {
        return;
    }
    let Ok(allocation) = buffer.allocation() else { return };
    let length = allocation.len();
    let is_small = session.is_cpu() && length < LEAST_ON_HOST;
    if is_small || !ticket.object_stands() {
        return;
    }
    let of = Arc::as_ptr(session).addr();
    let (place, whole) = ((of, buffer.address()), (of, allocation.start));
    let Some(mut guard) = state() else { return };
    let Some(state) = guard.as_mut().filter(|state| !state.is_over) else { return };
    // Two opens at one address are of one object: the later ticket is the one that is opened again.
    let before = state.take(place);
    let mut is_left_alone = false;
    if state.has_room(session, whole, length) {
        let (ticket, _buffer) = (ticket.clone(), buffer.clone());
        let until = Instant::now() + patience;
        state.put(place, length, Kept { allocation: whole.1, ticket, until, _buffer });
        if !state.has_thread {
            let thread = thread::Builder::new().name("causeway_ipc linger".into());
            state.has_thread = thread.spawn(give_back).is_ok();
            is_left_alone = !state.has_thread;
        }
    }
    let rest = is_left_alone.then(|| take_all(state));
    drop(guard); // before anything is closed
    drop((before, rest));
}
fn take_all(state: &mut State) -> Vec<Kept> {
    (state.allocations, state.bytes) = Default::default();
    state.kept.drain().map(|(_, kept)| kept).collect()
}

/// The thread.
fn give_back() {
    loop {
        thread::sleep(LOOK);
        // Not beside a fork, whose child would find locks that are held here.
        if gate::entered(give_back_due) {
            return;
        }
    }
}
/// Gives back what is due; whether nothing is left.
fn give_back_due() -> bool {
    let _giving_back = GIVING_BACK.lock().unwrap_or_else(PoisonError::into_inner);
    let now = Instant::now();
    // One that is busy with it has only just put something there.
    let Some(mut guard) = state() else { return false };
    let Some(state) = guard.as_mut() else { return true };
    let is_due = |kept: &Kept| kept.until <= now || !kept.ticket.object_stands();
    let due = state.kept.iter().filter(|(_, kept)| is_due(kept)).map(|(place, _)| *place);
    let due: Vec<Place> = due.collect();
    let gone: Vec<Kept> = due.into_iter().filter_map(|place| state.take(place)).collect();
    state.has_thread = !state.kept.is_empty();
    let is_over = !state.has_thread;
    drop(guard); // before anything is closed
    drop(gone);
    is_over
}

/// Gives everything back, and keeps nothing from now on: the interpreter ends.
pub fn end() {
    // Others have it for an instant only, but for one in a child that was forked in that instant.
    for _ in 0..1000 {
        let Some(mut guard) = state() else {
            thread::sleep(Duration::from_millis(1));
            continue;
        };
        let all = guard.as_mut().map(|state| {
            state.is_over = true;
            take_all(state)
        });
        drop(guard);
        drop(all);
        break;
    }
    // The driver may go next: what the thread gives back is given back by then.
    drop(GIVING_BACK.lock().unwrap_or_else(PoisonError::into_inner));
}
