//! A few words of shared memory that `share --once` and `open` use beside the contents: the consumer writes
//! there that it has taken everything. Also the text that combines both tickets.
//!
//! An event cannot carry this message: a new event counts as complete, like one that was signalled. A
//! consumer that dies half-way must leave the offer standing, and memory that is not written does so.
use crate::failure::{Failure, Result};
use causeway::{Buffer, Context, Export, Queue, Ticket};

/// The first word, which distinguishes a card from other memory.
const MAGIC: u64 = u64::from_le_bytes(*b"cw-card1");
const LENGTH: usize = 1;
const TAKEN: usize = 2;
const WORDS: usize = 3;

/// The separator between the tickets: no ticket contains it, and shells treat it as an ordinary character.
const MARK: char = '.';

/// The text that `causeway share` prints: one ticket or two.
pub struct Texts {
    pub contents: Ticket<Buffer<u8>>,
    pub card: Option<Ticket<Buffer<u64>>>,
}
impl Texts {
    pub fn parse(text: &str) -> Result<Self> {
        let text = text.trim();
        let (contents, card) = match text.split_once(MARK) {
            Some((contents, card)) => (contents, Some(card)),
            None => (text, None),
        };
        Ok(Self { contents: contents.parse()?, card: card.map(str::parse).transpose()? })
    }
}
impl std::fmt::Display for Texts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.contents)?;
        match &self.card {
            Some(card) => write!(f, "{MARK}{card}"),
            None => Ok(()),
        }
    }
}

/// The shared words, on either side.
pub struct Card(Buffer<u64>);
impl Card {
    /// Creates a card for contents of `length` bytes.
    pub fn new(queue: &Queue, length: u64) -> Result<Self> {
        let mut words = [0; WORDS];
        words[0] = MAGIC;
        words[LENGTH] = length;
        Ok(Self(Buffer::from_slice(queue, &words)?))
    }
    pub fn share(&self) -> Result<Export<Buffer<u64>>> {
        Ok(self.0.share()?)
    }
    /// Opens a card; fails unless it is for contents of `length` bytes.
    pub fn open(
        context: &Context,
        queue: &Queue,
        ticket: &Ticket<Buffer<u64>>,
        length: u64,
    ) -> Result<Self> {
        let card = Self(context.open(ticket)?);
        let words = if card.0.len() == WORDS { card.0.to_vec(queue)? } else { Vec::new() };
        match words.as_slice() {
            [MAGIC, stated, _] if *stated == length => Ok(card),
            [MAGIC, stated, _] => {
                let sentence = format!(
                    "{stated} bytes were shared, but the ticket opens {length}: copy it again, the whole of it"
                );
                Err(Failure::said(sentence))
            }
            _ => Err(Failure::said(
                "the second part of this ticket was not made by `causeway share --once`",
            )),
        }
    }
    /// Marks that everything was taken.
    pub fn take(&self, queue: &Queue) -> Result<()> {
        Ok(self.0.slice(TAKEN..=TAKEN)?.copy_from_slice(queue, &[1])?)
    }
    /// Whether a consumer has taken everything.
    pub fn is_taken(&self, queue: &Queue) -> Result<bool> {
        let mut word = [0];
        self.0.slice(TAKEN..=TAKEN)?.copy_to_slice(queue, &mut word)?;
        Ok(word != [0])
    }
}
