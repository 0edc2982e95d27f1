//! Words that processes share, as streams write them and wait for them: events that processes share are pairs (counter,
//! value) in memory of `ur_ipc`'s, as on the CPU, except that a stream writes the counter's word, and that streams wait for
//! words. So a signal costs no host thread, and an event can order a stream of this process behind a stream, or a thread, of
//! another one. Which word an event stands for is the core's.
//!
//! A stream that waits cannot be told of a death. Whoever learns of one sets a bit above all values,
//! and the stream goes on; what it ran then ran too early. So a stream remembers what its lanes wait
//! for, and points behind it are in error, as finishing the stream is.
use super::{
    Attribute, DriverDevice,
    driver::{Dialect, RawContext},
    native::{context::Entered, stream::Stream, words::Words},
    work::QueueState,
};
use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, Weak},
};
use ur_hal::{Error, ErrorKind, Result};
use ur_ipc::arena::{Arena, Counter, DeviceWait, PendingSignal, Progress, protocol::word_of};
use ur_lock::locked;

/// A part of an arena that is registered with the driver at once.
const PIECE: usize = 64 << 10;
/// What a stream that is captured refuses.
pub(super) const WAITS_FOR_WORDS: &str = "a wait for an event that processes share, each replay of which would wait for \
                                          the same old signal,";

/// By arena and number.
type Pieces<D> = BTreeMap<(u64, usize), Weak<Piece<D>>>;
/// The pieces that are registered in this process.
pub struct RegisteredPieces<D: Dialect>(Mutex<Pieces<D>>);
impl<D: Dialect> RegisteredPieces<D> {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }
}
impl<D: Dialect> fmt::Debug for RegisteredPieces<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegisteredPieces").finish_non_exhaustive()
    }
}

/// A registered part of an arena, which it keeps.
#[derive(Debug)]
struct Piece<D: Dialect> {
    /// First, so that it goes before the memory does.
    words: Words<D>,
    _arena: Arena,
}
impl<D: Dialect> Piece<D> {
    /// The piece that has the word at `address`.
    fn with(
        on: &Entered<D>,
        context: RawContext,
        arena: &Arena,
        address: usize,
    ) -> Result<Arc<Self>> {
        let (base, bytes) = arena.memory();
        let number = (address - base) / PIECE;
        let key = (arena.id(), number);
        let pieces = || locked(&D::statics().shared_words.0);
        if let Some(piece) = pieces().get(&key).and_then(Weak::upgrade) {
            return Ok(piece);
        }
        let start = base + number * PIECE;
        let words = match Words::register(on, context, start, PIECE.min(base + bytes - start)) {
            Ok(words) => words,
            // Another thread was as quick.
            Err(error) => {
                return pieces().get(&key).and_then(Weak::upgrade).ok_or_else(|| error.into());
            }
        };
        let piece = Arc::new(Self { words, _arena: arena.clone() });
        let mut pieces = pieces();
        pieces.retain(|_, piece| piece.strong_count() > 0);
        pieces.insert(key, Arc::downgrade(&piece));
        Ok(piece)
    }
}

/// What a word needs as long as lanes write it or wait for it.
#[derive(Debug)]
#[expect(dead_code, reason = "kept until the lanes are idle, no more")]
enum WordResource<D: Dialect> {
    /// Pages.
    Piece(Arc<Piece<D>>),
    /// When it goes, values that are not written fail.
    Counter(Arc<Counter>),
}
/// By address.
type Held<D> = BTreeMap<usize, WordResource<D>>;
/// The pieces that a stream's lanes have been told to write or wait in, and the counters that they complete. A word may be
/// reached, and known to be, before the lane that waits for it has looked at it: so they stay registered until
/// the stream is idle, and mostly as long as it lives.
#[derive(Debug)]
pub struct Registered<D: Dialect>(Mutex<Held<D>>);
impl<D: Dialect> Registered<D> {
    /// With more than so many, an idle stream lets go of all.
    const MANY: usize = 32;

    pub(super) fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }
    fn all(&self) -> MutexGuard<'_, Held<D>> {
        locked(&self.0)
    }
    /// Keeps a piece that something in one of the lanes is about, and a counter that it completes.
    fn keep(&self, work: &QueueState<D>, piece: Arc<Piece<D>>, counter: Option<&Arc<Counter>>) {
        let mut all = self.all();
        all.insert(Arc::as_ptr(&piece).addr(), WordResource::Piece(piece));
        if let Some(counter) = counter {
            all.insert(Arc::as_ptr(counter).addr(), WordResource::Counter(Arc::clone(counter)));
        }
        if all.len() <= Self::MANY {
            return;
        }
        // What is put into a lane from here on is kept behind this; what was before is seen.
        let before = std::mem::take(&mut *all);
        drop(all);
        match work.is_idle() {
            Ok(true) => drop(before), // the driver's calls, and no lock
            _ => self.all().extend(before),
        }
    }
}

/// A word, as a device's streams know it.
pub(super) struct Word<D: Dialect> {
    piece: Arc<Piece<D>>,
    at: u64,
}
impl<D: Dialect> Word<D> {
    fn new(work: &QueueState<D>, on: &Entered<D>, arena: &Arena, address: usize) -> Result<Self> {
        let piece = Piece::with(on, work.device().context()?, arena, address)?;
        let at = piece.words.on_device(address);
        Ok(Self { piece, at })
    }
    /// That of a counter, which streams complete from now on.
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
    /// Keeps what it needs for what a lane of `work` has been told to do with it, and the counter that it completes.
    pub(super) fn keep(self, work: &QueueState<D>, counter: Option<&Arc<Counter>>) {
        work.registered().keep(work, self.piece, counter);
    }
}
/// What is put into `stream`, a lane of `work` whose context is current, from now on waits for a word.
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
/// What is said of a command that ran behind a signal that never came.
pub(super) fn lost() -> Error {
    Error::new(
        ErrorKind::DependencyFailed,
        "the process that was to signal an event has died, or its command failed: the signal will \
         never come",
    )
    .because(ur_ipc::ErrorKind::ExporterGone)
}

/// Whether the device has such events: a shared event is a word of host memory that streams write and
/// wait for.
///
/// # Errors
/// Returns the driver's error.
pub(super) fn is_supported<D: Dialect>(device: &DriverDevice<D>) -> Result<bool> {
    Ok(device.has(Attribute::HostRegister)? && device.has(Attribute::StreamWords)?)
}

/// What a queue's streams wait for, as far as it is not known to have come.
#[derive(Debug, Default)]
pub(super) struct PendingSignals {
    owed: Vec<(PendingSignal, Option<DeviceWait>)>,
    /// What will never come, until the streams have gone on: a write of the dead one's device may come late, and they
    /// have to be released again.
    lost: Vec<DeviceWait>,
}
impl PendingSignals {
    pub(super) fn add(&mut self, owed: PendingSignal) {
        self.owed.retain(|(one, _)| one.progress() != Progress::Complete);
        // Of one counter's values the greatest says it all: if a lesser one never comes, it does not.
        let same = |(one, _): &&mut (PendingSignal, _)| {
            one.word_address() == owed.word_address() && one.progress() == Progress::Pending
        };
        // None in a forked child alone, where the driver does not work.
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
    /// Those that are still owed.
    pub(super) fn open(&self) -> Vec<PendingSignal> {
        let open = self.owed.iter().map(|(one, _)| one);
        open.filter(|one| one.progress() != Progress::Complete).cloned().collect()
    }
    /// What will never come, and a stream may wait for it still.
    pub(super) fn take_lost(&mut self) -> Vec<DeviceWait> {
        std::mem::take(&mut self.lost)
    }
    /// It may: back with it.
    pub(super) fn put_lost_back(&mut self, lost: Vec<DeviceWait>) {
        self.lost.extend(lost);
    }
    /// Forgets what has come, and what never will, but for what streams may wait for. Whether something is left.
    ///
    /// # Errors
    /// [`ErrorKind::DependencyFailed`] once for what never will come.
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
/// Sleeps until each has come, or never will.
pub(super) fn await_all(debts: &[PendingSignal]) {
    for debt in debts {
        let _how = debt.wait(None); // asked for again by whom it concerns
    }
}
/// Whether one of them will never come.
pub(super) fn have_failed(debts: &[PendingSignal]) -> bool {
    debts.iter().any(|debt| debt.progress() == Progress::Failed)
}
