//! What `share --once` and `open` need beside the contents: a few words of shared memory in which the consumer says
//! that it has all of it, and one text for both tickets.
//!
//! An event could not say it: a fresh event counts as complete, like one whose work is done. And a consumer that
//! dies half-way must leave the offer standing, which silence does.
use crate::failure::{Failure, Result};
use causeway::{Buffer, Context, Export, Queue, Ticket};

/// What the first word is, so that memory of another kind is not taken for a card.
const MAGIC: u64 = u64::from_le_bytes(*b"cw-card1");
const LENGTH: usize = 1;
const TAKEN: usize = 2;
const WORDS: usize = 3;

/// Between the tickets: a mark that no ticket contains and no shell minds.
const MARK: char = '.';

/// A text of `causeway share`: a ticket, or two.
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

/// The words, on either side.
pub struct Card(Buffer<u64>);
impl Card {
    /// A new one for contents of `length` bytes.
    pub fn new(queue: &Queue, length: u64) -> Result<Self> {
        let mut words = [0; WORDS];
        words[0] = MAGIC;
        words[LENGTH] = length;
        Ok(Self(Buffer::from_slice(queue, &words)?))
    }
    pub fn share(&self) -> Result<Export<Buffer<u64>>> {
        Ok(self.0.share()?)
    }
    /// Opens one that must be for contents of `length` bytes.
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
    /// Says that all was taken.
    pub fn take(&self, queue: &Queue) -> Result<()> {
        Ok(self.0.slice(TAKEN..=TAKEN)?.copy_from_slice(queue, &[1])?)
    }
    /// Whether a consumer has said so.
    pub fn is_taken(&self, queue: &Queue) -> Result<bool> {
        let mut word = [0];
        self.0.slice(TAKEN..=TAKEN)?.copy_to_slice(queue, &mut word)?;
        Ok(word != [0])
    }
}
