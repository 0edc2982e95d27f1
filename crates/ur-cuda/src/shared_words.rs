//! Events that processes share, as streams signal them and wait for them. As on the CPU, such an event is a
//! pair (counter, value) in shared memory of `ur_ipc`. Here a stream writes the counter's word, and streams
//! wait for words. So a signal needs no host thread, and an event can order a stream of this process after a
//! stream or a thread of another one. The core knows which word an event stands for.
//!
//! A waiting stream cannot be told that the signalling process has died. The process that finds out sets a
//! bit above all values in the word, which releases the stream; its commands then run although their
//! dependency failed. So a queue records what its lanes wait for, and reports an error for its points and
//! when it is finished.
use super::{
    Attribute, DriverDevice,
    driver::{Dialect, RawContext},
    native::{context::Entered, event::NativeEvent, memory::Registered, stream::Stream},
    work::QueueState,
};
use std::{
    collections::BTreeMap,
    fmt,
    marker::PhantomData,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, Weak,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    thread::sleep,
    time::Duration,
};
use ur_hal::{Error, ErrorKind, Result, repeated};
use ur_ipc::arena::{Arena, Counter, DeviceWait, PendingSignal, Progress, protocol::word_of};
use ur_lock::{locked, unpoisoned};

/// `CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP`: usable in all contexts.
const EVERYWHERE: u32 = 3;
/// Bytes of an arena that are registered with the driver at once.
const PIECE: usize = 64 << 10;
/// What a captured queue refuses to signal.
pub(super) const SIGNALS_WORDS: &str = "the signal of an event that processes share, each replay of which would write the same \
                                        old value,";
/// The start of the message for a wait that a captured stream refuses.
pub(super) const WAITS_FOR_WORDS: &str = "a wait for an event that processes share, each replay of which would wait for \
                                          the same old signal,";

/// The id of the arena and the index of the piece.
type Key = (u64, usize);
/// The pieces that are registered in this process. One that cannot be upgraded is just being registered, or
/// unregistered: the driver refuses to register it a second time.
pub struct RegisteredPieces<D: Dialect> {
    pieces: Mutex<BTreeMap<Key, Weak<Piece<D>>>>,
    changed: Condvar,
}
impl<D: Dialect> RegisteredPieces<D> {
    pub(super) const fn new() -> Self {
        Self { pieces: Mutex::new(BTreeMap::new()), changed: Condvar::new() }
    }
}
impl<D: Dialect> fmt::Debug for RegisteredPieces<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegisteredPieces").finish_non_exhaustive()
    }
}

/// A registered part of an arena; it keeps the arena alive.
#[derive(Debug)]
struct Piece<D: Dialect> {
    /// Declared first, so that it is unregistered before others may register it and before it is unmapped.
    memory: Registered<D>,
    /// Its address for devices.
    on_device: u64,
    _place: Place<D>,
    _arena: Arena,
}
/// A piece's place among the registered ones, which is free again when this is dropped.
#[derive(Debug)]
struct Place<D: Dialect>(Key, PhantomData<fn() -> D>);
impl<D: Dialect> Drop for Place<D> {
    fn drop(&mut self) {
        let table = &D::statics().shared_words;
        locked(&table.pieces).remove(&self.0);
        table.changed.notify_all();
    }
}
impl<D: Dialect> Piece<D> {
    /// The piece that contains the word at `address`; registers it if necessary.
    fn with(
        on: &Entered<D>,
        context: RawContext,
        arena: &Arena,
        address: usize,
    ) -> Result<Arc<Self>> {
        let (base, bytes) = arena.memory();
        let number = (address - base) / PIECE;
        let key = (arena.id(), number);
        let table = &D::statics().shared_words;
        let mut pieces = locked(&table.pieces);
        while let Some(there) = pieces.get(&key) {
            if let Some(piece) = there.upgrade() {
                return Ok(piece);
            }
            pieces = unpoisoned(table.changed.wait(pieces));
        }
        pieces.insert(key, Weak::new());
        drop(pieces);
        let place = Place(key, PhantomData);
        let start = base + number * PIECE;
        let bytes = PIECE.min(base + bytes - start);
        let memory = Registered::register(on, context, start as u64, bytes, EVERYWHERE)?;
        // Not given up for one refusal: if the driver refuses the end of it as well, it is not registered again.
        let on_device = repeated(|| memory.device_address())?;
        let piece = Arc::new(Self { memory, on_device, _place: place, _arena: arena.clone() });
        locked(&table.pieces).insert(key, Arc::downgrade(&piece));
        table.changed.notify_all();
        Ok(piece)
    }
}

/// What must be kept while lanes write a word or wait for it.
#[derive(Debug)]
#[expect(dead_code, reason = "kept until the lanes are idle, no more")]
enum WordResource<D: Dialect> {
    /// The registered memory.
    Piece(Arc<Piece<D>>),
    /// Dropping a counter fails the values that have not been written yet.
    Counter(Arc<Counter>),
}
/// By address of the object.
type Held<D> = BTreeMap<usize, WordResource<D>>;
/// The pieces that the lanes of a queue write or wait in, and the counters that they complete. A word may
/// have its value, and this may be known, before the lane that waits for it has read it. So they are kept
/// until the queue is idle, and normally as long as it lives.
#[derive(Debug)]
pub struct HeldWords<D: Dialect>(Mutex<Held<D>>);
impl<D: Dialect> HeldWords<D> {
    /// With more entries than this, all are released when the queue is idle.
    const MANY: usize = 32;

    pub(super) fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }
    fn all(&self) -> MutexGuard<'_, Held<D>> {
        locked(&self.0)
    }
    /// The counters of which lanes still have to write words.
    fn owing(&self) -> Vec<Arc<Counter>> {
        let all = self.all();
        let counters = all.values().filter_map(|one| match one {
            WordResource::Counter(counter) => Some(counter),
            WordResource::Piece(_) => None,
        });
        counters.filter(|one| !one.has_failed() && !one.is_settled()).cloned().collect()
    }
    /// Whether a lane still has to write a word.
    pub(super) fn owe(&self) -> bool {
        !self.owing().is_empty()
    }
    /// Fails every signal that is owed: the lanes will never write a word again.
    pub(super) fn fail(&self) {
        self.owing().iter().for_each(|counter| counter.fail());
    }
    /// Keeps a piece that a command in one of the lanes uses, and the counter that it completes.
    fn keep(&self, work: &QueueState<D>, piece: Arc<Piece<D>>, counter: Option<&Arc<Counter>>) {
        let mut all = self.all();
        all.insert(Arc::as_ptr(&piece).addr(), WordResource::Piece(piece));
        if let Some(counter) = counter {
            all.insert(Arc::as_ptr(counter).addr(), WordResource::Counter(Arc::clone(counter)));
        }
        if all.len() <= Self::MANY {
            return;
        }
        // Commands enqueued from here on are recorded in the new map; `is_idle` covers those before.
        let before = std::mem::take(&mut *all);
        drop(all);
        match work.is_idle() {
            Ok(true) => drop(before), // calls the driver, so outside the lock
            _ => self.all().extend(before),
        }
    }
}

/// A word, with its address for a device.
pub(super) struct Word<D: Dialect> {
    piece: Arc<Piece<D>>,
    at: u64,
}
impl<D: Dialect> Word<D> {
    fn new(work: &QueueState<D>, on: &Entered<D>, arena: &Arena, address: usize) -> Result<Self> {
        let piece = Piece::with(on, work.device.context()?, arena, address)?;
        let at = piece.on_device + (address as u64 - piece.memory.raw().0);
        Ok(Self { piece, at })
    }
    /// The word of a counter, which only streams complete from now on.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub(super) fn of_counter(
        work: &QueueState<D>,
        on: &Entered<D>,
        counter: &Counter,
    ) -> Result<Self> {
        counter.hand_to_device();
        Self::new(work, on, counter.arena(), counter.word_address())
    }
    /// Its address for streams.
    pub(super) fn at(&self) -> u64 {
        self.at
    }
    /// Keeps what the word needs while a lane of `work` uses it, and the counter that the lane completes.
    pub(super) fn keep(self, work: &QueueState<D>, counter: Option<&Arc<Counter>>) {
        work.registered.keep(work, self.piece, counter);
    }
}
/// Makes everything enqueued to `stream` from now on wait for a word. `stream` is a lane of `work`, whose
/// context is current.
///
/// # Errors
/// Returns the driver's error.
pub(super) fn order<D: Dialect>(
    work: &QueueState<D>,
    on: &Entered<D>,
    stream: &Stream<D>,
    debt: &PendingSignal,
) -> Result<()> {
    let word = Word::new(work, on, debt.arena(), debt.word_address())?;
    let waits = stream.wait_value(word.at, word_of(debt.value()));
    word.keep(work, None);
    waits?;
    work.owe(debt.clone());
    Ok(())
}
/// The error of a command that waited for a signal that never came.
pub(super) fn lost() -> Error {
    Error::new(
        ErrorKind::DependencyFailed,
        "the process that was to signal an event has died, or its command failed: the signal will \
         never come",
    )
    .because(ur_ipc::ErrorKind::ExporterGone)
}

/// Whether the device supports shared events: streams must be able to write and wait for words in registered
/// host memory.
///
/// # Errors
/// Returns the driver's error.
pub(super) fn is_supported<D: Dialect>(device: &DriverDevice<D>) -> Result<bool> {
    Ok(device.has(Attribute::HostRegister)? && device.has(Attribute::StreamWords)?)
}

/// The signals of other processes that a queue's streams wait for and that are not known to have come.
#[derive(Debug, Default)]
pub(super) struct PendingSignals {
    owed: Vec<(PendingSignal, Option<DeviceWait>)>,
    /// Signals that will never come. The streams may have to be released again until they have continued,
    /// because a late write of the dead process's device can overwrite the word.
    lost: Vec<DeviceWait>,
}
impl PendingSignals {
    pub(super) fn add(&mut self, owed: PendingSignal) {
        self.owed.retain(|(one, _)| one.progress() != Progress::Complete);
        // Of one counter only the greatest value is kept: if a smaller one never comes, neither does the
        // greater one.
        let same = |(one, _): &&mut (PendingSignal, _)| {
            one.word_address() == owed.word_address() && one.progress() == Progress::Pending
        };
        // Fails only in a forked child, where the driver does not work anyway.
        let awaited = || owed.awaited_by_device().ok();
        match self.owed.iter_mut().find(same) {
            Some((one, _)) if one.value() >= owed.value() => {}
            Some(one) => *one = (owed.clone(), awaited()),
            None => {
                let awaited = awaited();
                self.owed.push((owed, awaited));
            }
        }
    }
    /// The signals that have not come.
    pub(super) fn open(&self) -> Vec<PendingSignal> {
        let open = self.owed.iter().map(|(one, _)| one);
        open.filter(|one| one.progress() != Progress::Complete).cloned().collect()
    }
    /// Takes the failed signals that a stream may still wait for.
    pub(super) fn take_lost(&mut self) -> Vec<DeviceWait> {
        std::mem::take(&mut self.lost)
    }
    /// Puts back signals of `take_lost` for which a stream may still wait.
    pub(super) fn put_lost_back(&mut self, lost: Vec<DeviceWait>) {
        self.lost.extend(lost);
    }
    /// Removes the signals that have come or failed; returns whether there are pending ones, or failed ones
    /// that streams may still wait for.
    ///
    /// # Errors
    /// [`ErrorKind::DependencyFailed`], once for each failed signal.
    pub(super) fn check(&mut self) -> Result<bool> {
        let mut has_failed = false;
        for (one, awaited) in std::mem::take(&mut self.owed) {
            match one.progress() {
                Progress::Pending => self.owed.push((one, awaited)),
                Progress::Complete => {}
                Progress::Failed => {
                    has_failed = true;
                    self.lost.extend(awaited);
                }
            }
        }
        match has_failed {
            true => Err(lost()),
            false => Ok(!self.owed.is_empty() || !self.lost.is_empty()),
        }
    }
}
/// Blocks until each has come or failed.
pub(super) fn await_all(debts: &[PendingSignal]) {
    for debt in debts {
        let _how = debt.wait(None); // callers check the result by `have_failed` or `check`
    }
}
/// Whether one of them has failed.
pub(super) fn have_failed(debts: &[PendingSignal]) -> bool {
    debts.iter().any(|debt| debt.progress() == Progress::Failed)
}

/// How long a signal is owed before the driver is asked, and between two questions.
const PAUSE: Duration = Duration::from_millis(250);
/// With how many pauses in which nothing was owed the thread ends.
const IDLE_PAUSES: u32 = 8;

/// Whether the thread runs that looks after signals of devices that were lost. A device tells nobody that it will not write a
/// word, and the program may be waiting for that word itself, or not call the driver any more. So a thread asks, as long as
/// streams owe signals.
#[derive(Debug)]
pub(super) struct LossWatch(AtomicBool);
impl LossWatch {
    pub(super) const fn new() -> Self {
        Self(AtomicBool::new(false))
    }
}
/// Has the thread look after the signals that streams owe. If it cannot be started, the next signal tries again; until then,
/// only a call that uses the queue tells who waits that the device is lost.
pub(super) fn watch_for_loss<D: Dialect>() {
    let LossWatch(runs) = &D::statics().lost_signals;
    // `SeqCst`: either this sees that the thread has ended, or the thread sees what is owed.
    if !runs.swap(true, SeqCst)
        && ur_mapping::start_thread("causeway-lost", look_for_loss::<D>).is_err()
    {
        runs.store(false, SeqCst);
    }
}
fn look_for_loss<D: Dialect>() {
    let LossWatch(runs) = &D::statics().lost_signals;
    let mut idle = 0;
    loop {
        sleep(PAUSE);
        idle = if owe::<D>() { 0 } else { idle + 1 };
        if idle < IDLE_PAUSES {
            continue;
        }
        runs.store(false, SeqCst);
        // Who has come to owe a signal just before saw that this thread ran.
        if !owe::<D>() || runs.swap(true, SeqCst) {
            return;
        }
    }
}
/// Whether any queue owes a signal. Fails those of devices that are lost.
fn owe<D: Dialect>() -> bool {
    let owing = D::statics().queues_now.of(|work: &QueueState<D>| work.registered.owe());
    let mut asked = BTreeMap::new(); // each device once
    for work in &owing {
        if *asked.entry(work.device.number()).or_insert_with(|| is_lost(&work.device)) {
            work.registered.fail();
        }
    }
    !owing.is_empty()
}
/// Asks for an event that nothing is recorded in: the application may capture its streams, also what an event recorded last, or
/// may have destroyed them.
fn is_lost<D: Dialect>(device: &DriverDevice<D>) -> bool {
    let asked = device.enter().and_then(|on| NativeEvent::create(&on, false)?.is_complete());
    asked.is_err_and(|error| error.kind().is_gone())
}
