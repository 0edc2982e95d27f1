//! The ledger: what an exporter says of its counters, slots and exports. Importers read it and cannot write it, so
//! that one load tells whether an export still stands. Who may have which line is left to `arena`.
use crate::{
    Error, ErrorKind, Result,
    arena::layout::{BYTES, COUNTERS, Header, Part, SLOTS, WATCHER_WORD, counter_word, slot_word},
};
use rustix::fs::{SealFlags, fcntl_get_seals};
use std::{
    os::fd::BorrowedFd,
    sync::{
        Arc,
        atomic::Ordering::{Acquire, Relaxed, Release},
    },
};
use ur_mapping::{HeldWord, ReadOnlyWords, SharedWords, is_held};

/// Whether an export stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum State {
    /// It may be opened, cold or warm.
    Live = 1,
    /// The exporter put it back.
    Withdrawn = 2,
    /// The exporter freed the object.
    Freed = 3,
    /// Neither any more, and the line is another export's: which of the two it was, the exporter may know.
    Forgotten = 4,
}

/// A line that stands: its second word when it is `Live` in this generation.
pub(crate) const fn live(generation: u32) -> u64 {
    status(generation, State::Live)
}
const fn status(generation: u32, state: State) -> u64 {
    (state as u64) << 32 | generation as u64
}
/// Line 0 of the counters is nobody's; its first word tells how many counters were ever granted.
const HIGH_WATER: usize = counter_word(0);
const STATUS: usize = 1;
const DESCRIPTOR: usize = 2;

/// Who owns a counter, as its ledger line says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Holder {
    /// `None` is nobody.
    pub participant: Option<u32>,
    /// How often the counter changed hands.
    pub epoch: u32,
}
impl Holder {
    fn from_word(word: u64) -> Self {
        Self { participant: (word as u32).checked_sub(1), epoch: (word >> 32) as u32 }
    }
    fn to_word(self) -> u64 {
        u64::from(self.epoch) << 32 | self.participant.map_or(0, |p| u64::from(p) + 1)
    }
}

/// The exporter's side. Its callers hold the lock of the arena's books while they change a line.
pub(crate) struct Owner(
    SharedWords,
    #[expect(dead_code, reason = "the watcher thread holds it as long as this does")]
    Option<Arc<HeldWord>>,
);

impl Owner {
    /// Over a memfd that is about to be sealed against all further writable mappings.
    pub fn new(words: SharedWords, header: Header) -> Self {
        for (word, value) in words.words().iter().zip(header.to_words()) {
            word.store(value, Release);
        }
        Self(words, None)
    }
    /// Has the watcher thread hold the word by which importers see that this process lives.
    pub fn tells_of_the_watcher(self, word: HeldWord) -> Self {
        let word = Arc::new(word);
        watched::add(&word);
        Self(self.0, Some(word))
    }
    pub fn holder(&self, counter: u16) -> Holder {
        Holder::from_word(self.0.word(counter_word(counter)).load(Relaxed)) // nobody else writes it
    }
    /// Gives a counter to a participant, or with `None` takes it back; the new epoch.
    pub fn hand_over(&self, counter: u16, participant: Option<u32>) -> u32 {
        let word = self.0.word(counter_word(counter));
        let high = self.0.word(HIGH_WATER);
        high.store(high.load(Relaxed).max(u64::from(counter) + 1), Release);
        let epoch = self.holder(counter).epoch.wrapping_add(1);
        word.store(Holder { participant, epoch }.to_word(), Release); // pairs with `Reader::holder`
        epoch
    }
    /// Starts a line over, in a new generation, which is returned.
    pub fn begin(&self, slot: u16, tag: u64, descriptor: i32) -> u32 {
        let at = slot_word(slot);
        let generation = (self.0.word(at + STATUS).load(Relaxed) as u32).wrapping_add(1);
        self.0.word(at).store(tag, Relaxed);
        self.0.word(at + DESCRIPTOR).store(u64::from(descriptor.cast_unsigned()), Relaxed);
        // Last, and Release: who sees this generation live sees its tag and descriptor.
        self.0.word(at + STATUS).store(live(generation), Release);
        generation
    }
    /// Says that what the line stood for stands no more.
    pub fn end(&self, slot: u16, generation: u32, state: State) {
        self.0.word(slot_word(slot) + STATUS).store(status(generation, state), Release);
    }
    /// As [`Reader::check`].
    pub fn check(&self, slot: u16, tag: u64, generation: u32) -> State {
        if slot >= SLOTS {
            return State::Withdrawn;
        }
        judge(self.status(slot), generation, || self.0.word(slot_word(slot)).load(Relaxed) == tag)
    }
    /// As [`Reader::status`].
    pub fn status(&self, slot: u16) -> u64 {
        self.0.word(slot_word(slot) + STATUS).load(Acquire)
    }
}

/// What a line's status says of the export that got it in this generation.
#[inline]
fn judge(status: u64, generation: u32, is_tagged: impl FnOnce() -> bool) -> State {
    if status == live(generation) && is_tagged() {
        State::Live
    } else if status == self::status(generation, State::Freed) {
        State::Freed
    } else if status as u32 == generation {
        State::Withdrawn
    } else {
        State::Forgotten
    }
}

/// The importer's side. What the exporter wrote is judged, never trusted.
pub(crate) struct Reader(ReadOnlyWords);

impl Reader {
    /// Maps a ledger that came from another process.
    ///
    /// # Errors
    /// If the descriptor is none that only its exporter can write, or not the one that `header` tells of.
    pub fn map(fd: BorrowedFd<'_>, header: Header) -> Result<Self> {
        let doing = "map the ledger that another process shares";
        let seals = fcntl_get_seals(fd)
            .map_err(|e| Error::system(doing, e).of_kind(ErrorKind::PeerNonsense))?;
        if !seals.intersects(SealFlags::FUTURE_WRITE | SealFlags::WRITE) {
            let why = "the ledger that another process shares is not sealed: anyone could forge it";
            return Err(Error::new(ErrorKind::PeerNonsense, why));
        }
        let words = ReadOnlyWords::map(fd, BYTES).map_err(|e| Error::system(doing, e))?;
        header.verify(std::array::from_fn(|i| words.load_acquire(i)))?;
        Ok(Self(words))
    }
    /// The ledger of that number of that process, which its header must prove.
    pub fn of(fd: BorrowedFd<'_>, instance: [u8; 16], number: u32) -> Result<Self> {
        Self::map(fd, Header { part: Part::Ledger, instance, number })
    }
    /// The descriptor in its own process by which the exporter offers an export to `pidfd_getfd`.
    pub fn descriptor(&self, slot: u16) -> Option<i32> {
        let word = (slot < SLOTS).then(|| self.0.load_relaxed(slot_word(slot) + DESCRIPTOR))?;
        Some((word as u32).cast_signed()).filter(|descriptor| *descriptor >= 0)
    }
    /// Whether the export stands that this line stood for; anything unknown does not. One acquire load.
    #[inline]
    pub fn check(&self, slot: u16, tag: u64, generation: u32) -> State {
        if slot >= SLOTS {
            return State::Withdrawn;
        }
        let seen = self.0.load_acquire(slot_word(slot) + STATUS);
        judge(seen, generation, || self.0.load_relaxed(slot_word(slot)) == tag)
    }
    /// Whether the exporter's process lives, as far as this can be seen without asking the kernel: if not, it may all the
    /// same. An exporter that means harm can have this say so after its death.
    #[inline]
    pub fn tells_of_life(&self) -> bool {
        is_held(self.0.load_acquire(WATCHER_WORD))
    }
    /// The line's generation and state, to compare with [`live`].
    #[inline]
    pub fn status(&self, slot: u16) -> u64 {
        self.0.load_acquire(slot_word(slot) + STATUS)
    }
    pub fn holder(&self, counter: u16) -> Holder {
        Holder::from_word(self.0.load_acquire(counter_word(counter)))
    }
    /// One more than the highest counter that was ever granted; never out of range.
    pub fn high_water(&self) -> u16 {
        self.0.load_acquire(HIGH_WATER).min(u64::from(COUNTERS)) as u16
    }
}

/// The words of this process's ledgers that its watcher thread is to hold.
pub(crate) mod watched {
    use crate::{fork::PerFork, locked};
    use std::sync::{Arc, Mutex, Weak};
    use ur_mapping::{HeldWord, Holder};

    /// How many there ever were, and those that there are.
    type Words = (usize, Vec<Weak<HeldWord>>);
    static WORDS: PerFork<Mutex<Words>> = PerFork::new();

    /// One more.
    pub(super) fn add(word: &Arc<HeldWord>) {
        let Ok(words) = WORDS.get() else { return };
        let mut words = locked(words);
        words.0 += 1;
        words.1.retain(|word| word.strong_count() > 0);
        words.1.push(Arc::downgrade(word));
    }
    /// The watcher thread's hold on all of them, from its start to its end.
    pub(crate) struct Watching {
        holder: Option<Holder>,
        seen: usize,
    }
    impl Watching {
        /// To be called on that thread. Where the kernel does not let it, importers ask the kernel.
        pub fn here() -> Self {
            Self { holder: Holder::here().ok(), seen: 0 }
        }
        /// Holds those that were made since.
        pub fn look(&mut self) {
            let (Some(holder), Some(words)) = (&mut self.holder, WORDS.peek()) else { return };
            let words = locked(words);
            if words.0 != self.seen {
                self.seen = words.0;
                holder.renew(words.1.iter().filter_map(Weak::upgrade).collect());
            }
        }
    }
}
