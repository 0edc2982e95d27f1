//! The ledger: the state of an exporter's counters, slots and exports, in memory that importers read and cannot write.
//! One load tells an importer whether an export still stands. `arena` decides which export or event uses which line.
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
    /// The exporter withdrew the export.
    Withdrawn = 2,
    /// The exporter freed the object.
    Freed = 3,
    /// The line has since been given to another export; only the exporter may still know whether this one was withdrawn
    /// or freed.
    Forgotten = 4,
}

/// The status word of a line that is `Live` in this generation.
pub(crate) const fn live(generation: u32) -> u64 {
    status(generation, State::Live)
}
const fn status(generation: u32, state: State) -> u64 {
    (state as u64) << 32 | generation as u64
}
/// Line 0 of the counters belongs to no counter; its first word is one more than the highest counter ever granted.
const HIGH_WATER: usize = counter_word(0);
const STATUS: usize = 1;
const DESCRIPTOR: usize = 2;

/// The owner of a counter, as its ledger line states.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Holder {
    /// `None` if the counter has no owner.
    pub participant: Option<u32>,
    /// How often the counter has changed owners.
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

/// The exporter's side. Callers hold the lock of the arena's books while they change a line.
pub(crate) struct Owner(
    SharedWords,
    #[expect(dead_code, reason = "the watcher thread holds it as long as this does")]
    Option<Arc<HeldWord>>,
);

impl Owner {
    /// Writes the header. The caller then seals the memfd against further writable mappings.
    pub fn new(words: SharedWords, header: Header) -> Self {
        for (word, value) in words.words().iter().zip(header.to_words()) {
            word.store(value, Release);
        }
        Self(words, None)
    }
    /// Has the watcher thread hold the word by which importers see that this process is alive.
    pub fn tells_of_the_watcher(self, word: HeldWord) -> Self {
        let word = Arc::new(word);
        watched::add(&word);
        Self(self.0, Some(word))
    }
    pub fn holder(&self, counter: u16) -> Holder {
        Holder::from_word(self.0.word(counter_word(counter)).load(Relaxed)) // no other thread writes it
    }
    /// Gives a counter to a participant, or takes it back if `None`; returns the new epoch.
    pub fn hand_over(&self, counter: u16, participant: Option<u32>) -> u32 {
        let word = self.0.word(counter_word(counter));
        let high = self.0.word(HIGH_WATER);
        high.store(high.load(Relaxed).max(u64::from(counter) + 1), Release);
        let epoch = self.holder(counter).epoch.wrapping_add(1);
        word.store(Holder { participant, epoch }.to_word(), Release); // pairs with `Reader::holder`
        epoch
    }
    /// Reuses a line for a new export; returns the line's new generation.
    pub fn begin(&self, slot: u16, tag: u64, descriptor: i32) -> u32 {
        let at = slot_word(slot);
        let generation = (self.0.word(at + STATUS).load(Relaxed) as u32).wrapping_add(1);
        self.0.word(at).store(tag, Relaxed);
        self.0.word(at + DESCRIPTOR).store(u64::from(descriptor.cast_unsigned()), Relaxed);
        // Stored last, with Release: a reader that sees this generation live also sees its tag and descriptor.
        self.0.word(at + STATUS).store(live(generation), Release);
        generation
    }
    /// Records why the export of this line and generation no longer stands.
    pub fn end(&self, slot: u16, generation: u32, state: State) {
        self.0.word(slot_word(slot) + STATUS).store(status(generation, state), Release);
    }
    /// See [`Reader::check`].
    pub fn check(&self, slot: u16, tag: u64, generation: u32) -> State {
        if slot >= SLOTS {
            return State::Withdrawn;
        }
        judge(self.status(slot), generation, || self.0.word(slot_word(slot)).load(Relaxed) == tag)
    }
    /// See [`Reader::status`].
    pub fn status(&self, slot: u16) -> u64 {
        self.0.word(slot_word(slot) + STATUS).load(Acquire)
    }
}

/// What a line's status says of the export that was given the line in this generation.
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

/// The importer's side. What the exporter wrote is checked, never trusted.
pub(crate) struct Reader(ReadOnlyWords);

impl Reader {
    /// Maps a ledger that another process sent.
    ///
    /// # Errors
    /// If the descriptor is not sealed so that only its exporter can write it, or its contents do not match `header`.
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
    /// Maps the ledger with this number of this process instance, and verifies both in its header.
    pub fn of(fd: BorrowedFd<'_>, instance: [u8; 16], number: u32) -> Result<Self> {
        Self::map(fd, Header { part: Part::Ledger, instance, number })
    }
    /// The number, in the exporter's process, of the descriptor that an importer may take with `pidfd_getfd`.
    pub fn descriptor(&self, slot: u16) -> Option<i32> {
        let word = (slot < SLOTS).then(|| self.0.load_relaxed(slot_word(slot) + DESCRIPTOR))?;
        Some((word as u32).cast_signed()).filter(|descriptor| *descriptor >= 0)
    }
    /// Whether the export of this line, tag and generation stands. An unknown line counts as withdrawn. Costs one
    /// acquire load, and one relaxed load if the line is live.
    #[inline]
    pub fn check(&self, slot: u16, tag: u64, generation: u32) -> State {
        if slot >= SLOTS {
            return State::Withdrawn;
        }
        let seen = self.0.load_acquire(slot_word(slot) + STATUS);
        judge(seen, generation, || self.0.load_relaxed(slot_word(slot)) == tag)
    }
    /// Whether the ledger states that the exporter's process is alive. If it does not, the process may be alive all the
    /// same. A malicious exporter can make the ledger state so after its death.
    #[inline]
    pub fn tells_of_life(&self) -> bool {
        is_held(self.0.load_acquire(WATCHER_WORD))
    }
    /// The line's generation and state, to be compared with [`live`].
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

/// The life words of this process's ledgers, which its watcher thread holds.
pub(crate) mod watched {
    use crate::{fork::PerFork, locked};
    use std::sync::{Arc, Mutex, Weak};
    use ur_mapping::{HeldWord, Holder};

    /// How many words were ever added, and those that still exist.
    type Words = (usize, Vec<Weak<HeldWord>>);
    static WORDS: PerFork<Mutex<Words>> = PerFork::new();

    /// Adds a word.
    pub(super) fn add(word: &Arc<HeldWord>) {
        let Ok(words) = WORDS.get() else { return };
        let mut words = locked(words);
        words.0 += 1;
        words.1.retain(|word| word.strong_count() > 0);
        words.1.push(Arc::downgrade(word));
    }
    /// The watcher thread's hold on all words, from the thread's start to its end.
    pub(crate) struct Watching {
        holder: Option<Holder>,
        seen: usize,
    }
    impl Watching {
        /// To be called on the watcher thread. Where the kernel does not support this, importers query the kernel
        /// instead.
        pub fn here() -> Self {
            Self { holder: Holder::here().ok(), seen: 0 }
        }
        /// Holds the words that were added since the last call.
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
