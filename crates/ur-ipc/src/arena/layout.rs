//! The layout of the two memfds of an arena, and the encoding of their words. Every value read from shared memory is
//! checked here before it is used, because other processes can write it.
use crate::{Error, ErrorKind, Result};

/// The size in bytes of an arena and of its ledger.
pub(crate) const BYTES: usize = 8 << 20;
const HEADER: usize = 0x1000;
const LINE: usize = 64;
const SLOTS_AT: usize = 0x40_1000;
const WORD: usize = 8;

/// The exporter's participant number in its own arenas.
pub(crate) const EXPORTER: u32 = 0;
/// One more than the highest counter. Counter 0 is never used: in a slot it means "complete".
pub(crate) const COUNTERS: u16 = 65_534;
/// A dead counter without an owner. An event whose own counter died and is reused is changed to name it.
pub(crate) const LOST: u16 = COUNTERS;
/// One more than the highest slot.
pub(crate) const SLOTS: u16 = 65_472;

const _: () = assert!(HEADER + (LOST as usize + 1) * LINE <= SLOTS_AT);
const _: () = assert!(SLOTS_AT + SLOTS as usize * LINE == BYTES);

/// The highest value that a pair can hold: 48 bits.
pub(crate) const MAX_VALUE: u64 = (1 << 48) - 1;
/// A counter that has passed this value is replaced by a fresh one, long before its values are used up.
pub(crate) const TIRED_VALUE: u64 = MAX_VALUE / 2;

/// The word of a counter line in either memfd: its progress in the arena, its owner and epoch in the ledger.
#[inline]
pub(crate) const fn counter_word(counter: u16) -> usize {
    (HEADER + counter as usize * LINE) / WORD
}
/// The word that is not 0 if a device completes the counter.
pub(crate) const fn polled_word(counter: u16) -> usize {
    counter_word(counter) + 1
}
/// The word with the counter's mark: whether it is dead, and how often it has died. No device writes it.
#[inline]
pub(crate) const fn mark_word(counter: u16) -> usize {
    counter_word(counter) + 2
}
/// The word that records how far the counter came in one of its lives. The latest [`LIVES`] are kept.
pub(crate) const fn life_word(counter: u16, deaths: u32) -> usize {
    counter_word(counter) + 3 + deaths as usize % LIVES as usize
}
/// How many lives of a counter have such a word.
pub(crate) const LIVES: u32 = 4;
/// The first word of a slot line in either memfd: its pair in the arena, its tag in the ledger.
#[inline]
pub(crate) const fn slot_word(slot: u16) -> usize {
    (SLOTS_AT + slot as usize * LINE) / WORD
}

/// The latest signal of an event: it is complete once `counter` has reached `value`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Pair {
    pub counter: u16,
    pub value: u64,
}
impl Pair {
    #[inline]
    pub fn to_word(self) -> u64 {
        debug_assert!(self.value <= MAX_VALUE);
        u64::from(self.counter) << 48 | self.value & MAX_VALUE
    }
    /// Decodes a pair; `None` means complete.
    ///
    /// # Errors
    /// For the one number that no counter has.
    #[inline]
    pub fn from_word(word: u64) -> Result<Option<Self>> {
        let counter = (word >> 48) as u16;
        match counter {
            0 => Ok(None),
            1..=LOST => Ok(Some(Self { counter, value: word & MAX_VALUE })),
            _ => Err(nonsense("an event names a counter that cannot be")),
        }
    }
}

/// The pair of a complete event in this generation of its slot. Each generation starts with a different word, so that a
/// compare-and-exchange by a holder of an earlier generation fails.
#[inline]
pub(crate) fn complete_pair(generation: u32) -> u64 {
    u64::from(generation)
}
/// The pair of an event whose latest signal will never be completed, in this generation of its slot.
pub(crate) fn lost_pair(generation: u32) -> u64 {
    u64::from(LOST) << 48 | 1 << 47 | u64::from(generation)
}

/// The error for contents of shared memory that violate the protocol.
#[cold]
pub(crate) fn nonsense(what: &str) -> Error {
    let why = format!(
        "{what}: a process that shares this arena does not keep to the protocol; restart the processes that share, all with the same version"
    );
    Error::new(ErrorKind::PeerNonsense, why)
}

/// The header on the first page of each memfd. It is copied once when the memfd is mapped, and never read again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Header {
    pub part: Part,
    pub instance: [u8; 16],
    pub number: u32,
}
/// Which of the two memfds it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    Arena,
    Ledger,
}

const VERSION: u64 = 1;
pub(crate) const HEADER_WORDS: usize = 5;
/// The word of a ledger that is held while the exporter's watcher thread runs, in a cache line of its own after the
/// header. In ledgers of earlier versions it is 0.
pub(crate) const WATCHER_WORD: usize = 16;

impl Header {
    const fn magic(part: Part) -> u64 {
        u64::from_le_bytes(match part {
            Part::Arena => *b"cswy-arn",
            Part::Ledger => *b"cswy-ldg",
        })
    }
    pub fn to_words(self) -> [u64; HEADER_WORDS] {
        let id = u128::from_le_bytes(self.instance);
        [Self::magic(self.part), VERSION, id as u64, (id >> 64) as u64, u64::from(self.number)]
    }
    /// Checks that these words are this header.
    ///
    /// # Errors
    /// If one differs; the error says which.
    pub fn verify(self, words: [u64; HEADER_WORDS]) -> Result<()> {
        let expected = self.to_words();
        let differs = (0..HEADER_WORDS).find(|&i| words[i] != expected[i]);
        let what = match differs {
            None => return Ok(()),
            Some(0) => "a descriptor was received that is no arena or no ledger",
            Some(1) => "the arena is of another version of this protocol",
            Some(2 | 3) => "the arena is another process's than the ticket says",
            Some(_) => "the arena is another one of its process than the ticket says",
        };
        Err(nonsense(what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_lie_where_the_protocol_says() {
        assert_eq!(counter_word(0) * 8, 0x1000);
        assert_eq!(counter_word(1) * 8, 0x1040);
        assert!(counter_word(COUNTERS - 1) < slot_word(0));
        assert_eq!(slot_word(0) * 8, 0x40_1000);
        assert_eq!(slot_word(SLOTS - 1) * 8 + 64, BYTES);
    }
    #[test]
    fn a_pair_survives_its_word_and_index_zero_is_complete() {
        for pair in [
            Pair { counter: 1, value: 0 },
            Pair { counter: COUNTERS - 1, value: MAX_VALUE },
            Pair { counter: 0x1234, value: 0x5678_9abc_def0 },
        ] {
            assert_eq!(Pair::from_word(pair.to_word()).unwrap(), Some(pair));
        }
        assert_eq!(Pair::from_word(77).unwrap(), None);
    }
    #[test]
    fn the_one_number_that_is_no_counter_is_refused() {
        let error = Pair::from_word(u64::MAX).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PeerNonsense);
    }
    #[test]
    fn a_header_must_agree_in_every_word() {
        let header = Header { part: Part::Arena, instance: [7; 16], number: 3 };
        header.verify(header.to_words()).unwrap();
        for word in 0..HEADER_WORDS {
            let mut words = header.to_words();
            words[word] ^= 1 << 40;
            assert_eq!(header.verify(words).unwrap_err().kind(), ErrorKind::PeerNonsense);
        }
        let ledger = Header { part: Part::Ledger, ..header };
        assert!(header.verify(ledger.to_words()).is_err());
    }
}
