//! Hand-overs: two processes that work alternately, with a pair of events and a turn number that tells what was
//! submitted.
use crate::{
    Buffer, Context, Error, ErrorKind, Event, Export, Queue, Result, Ticket,
    ticket::{Sealed, Share},
};
use std::{
    fmt,
    hash::{DefaultHasher, Hash, Hasher},
    ops::Range,
    sync::atomic::{Ordering, fence},
    thread,
    time::{Duration, Instant},
};

/// The words of the memory that both sides share: the turn; the name of the process that last tried to claim the second
/// side, and whether it is claimed; the second side's ticket, once it has the claim; and the tickets of the candidates
/// for the claim, from which the first side learns that one of them died before it could leave its own ticket.
const TURN: usize = 0;
const COMER: usize = 1;
const CLAIMED: usize = 3;
const SECOND: usize = 4;
const CANDIDATES: Range<usize> = 1..9;
/// A place for a ticket: the ticket's length in bytes (0 if there is none), then space for the ticket.
const PLACE: usize = 1 + ROOM;
const ROOM: usize = 126;
const WORDS: usize = place(CANDIDATES.end);
const fn place(number: usize) -> usize {
    SECOND + number * PLACE
}

/// How long the turn is polled without pauses, and the longest pause after that.
const SPIN: Duration = Duration::from_micros(50);
const PAUSE: Duration = Duration::from_millis(1);

/// One side of a hand-over: two processes work on shared memory alternately, as often as they like. They need no other
/// means of communication than the ticket that one of them gives to the other.
///
/// The side that creates the hand-over has the first turn. [`give`](Self::give) passes the turn on, with everything
/// submitted so far. [`take`](Self::take) waits until the other side has *submitted* its part, and makes the queue wait
/// for that part on the device. Neither process waits for the work itself.
///
/// ```
/// # fn check() -> causeway::Result<()> {
/// use causeway::{Buffer, Context, Device, HandOver, Queue};
///
/// let context = Context::new(&Device::first()?)?;
/// let queue = Queue::new(&context)?;
/// let buffer = Buffer::from_slice(&queue, &[1_u32; 100])?;
/// let mut ours = HandOver::new(&queue)?;
/// let export = ours.share()?;
///
/// // usually in another process, with a buffer that it has opened:
/// # let (mine, queue_of_other) = (buffer.clone(), Queue::new(&context)?);
/// let mut theirs = context.open(export.ticket())?;
///
/// queue.fill(&buffer, 2)?;
/// ours.give(&queue)?;
///
/// theirs.take(&queue_of_other)?;                   // after the fill
/// queue_of_other.fill(&mine.slice(..50)?, 3)?;
/// theirs.give(&queue_of_other)?;
///
/// ours.take(&queue)?;                              // after the second fill
/// assert_eq!(buffer.to_vec(&queue)?[49..51], [3, 2]);
/// # Ok(()) }
/// # check().unwrap();
/// ```
///
/// If the other process dies, or drops its side, the next `take` fails at once with [`ErrorKind::PeerGone`] or
/// [`ErrorKind::Withdrawn`]; if it does nothing, `take` fails after the context's [`patience`](Context::patience).
pub struct HandOver {
    words: Buffer<u32>,
    /// For reading and writing the words; it has no other work.
    side: Queue,
    /// Both events were made by the side that created the hand-over, so what the other side signalled and completed
    /// before it ended remains valid.
    ours: Event,
    theirs: Event,
    /// What this side shares while it exists. The other side opens the first of them to see whether this side is alive.
    standing: Vec<Export<Event>>,
    /// The other side's ticket, once it is known.
    peer: Option<Ticket<Event>>,
    /// The number of the next turn; even turns belong to the side that created the hand-over.
    turn: u32,
    is_first: bool,
}

impl HandOver {
    /// Creates a hand-over; this side has the first turn.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if the device cannot share memory or events; otherwise the adapter's error.
    pub fn new(queue: &Queue) -> Result<Self> {
        let context = queue.context();
        let side = Queue::new(context)?;
        let words = Buffer::from_slice(&side, &[0; WORDS])?;
        let (ours, theirs) = (context.create_shared_event()?, context.create_shared_event()?);
        let standing = vec![ours.share()?, theirs.share()?];
        Ok(Self { words, side, ours, theirs, standing, peer: None, turn: 0, is_first: true })
    }
    /// Shares the other side with one other process: the first one that opens it gets it. If several open it at the
    /// same moment, one or none of them gets it; in the latter case create another hand-over.
    ///
    /// # Errors
    /// [`ErrorKind::Unsuitable`] on the side that was opened; otherwise the adapter's error.
    pub fn share(&self) -> Result<Export<Self>> {
        if !self.is_first {
            let sentence = "this side of the hand-over was opened from a ticket: create another for a third process";
            return Err(Error::new(ErrorKind::Unsuitable, sentence));
        }
        let words = self.words.share()?;
        let [first, second] = [0, 1].map(|event: usize| self.standing[event].ticket().as_bytes());
        let ticket = join(words.ticket().as_bytes(), &join(first, second));
        Ok(words.with_ticket(ticket))
    }
    /// Whether this side has the turn, as far as it knows: `give` comes next, not `take`.
    pub fn has_turn(&self) -> bool {
        self.turn.is_multiple_of(2) == self.is_first
    }
    /// Passes the turn to the other side, with everything that was submitted to `queue` so far.
    ///
    /// # Errors
    /// [`ErrorKind::Unsuitable`] if this side does not have the turn; otherwise the adapter's error.
    pub fn give(&mut self, queue: &Queue) -> Result<()> {
        if !self.has_turn() {
            return Err(Error::new(
                ErrorKind::Unsuitable,
                "the turn is the other side's: take it first",
            ));
        }
        queue.signal(&self.ours)?;
        queue.flush()?;
        fence(Ordering::SeqCst); // the signal is submitted before the turn is visible; pairs with the fence in `take`
        self.write(TURN, &[self.turn.wrapping_add(1)])?;
        self.turn = self.turn.wrapping_add(1);
        Ok(())
    }
    /// Takes the turn once the other side has passed it on, and makes `queue` wait for what that side submitted before.
    ///
    /// # Errors
    /// As [`take_timeout`](Self::take_timeout).
    pub fn take(&mut self, queue: &Queue) -> Result<()> {
        self.take_timeout(queue, self.side.context().patience())
    }
    /// Like [`take`](Self::take), with another deadline.
    ///
    /// # Errors
    /// [`ErrorKind::PeerGone`] if the other process is gone and had not passed the turn on, [`ErrorKind::Withdrawn`] if
    /// it dropped its side; [`ErrorKind::TimedOut`] after `timeout`, or up to two seconds later if the other process
    /// does not answer because it is stopped; [`ErrorKind::Unsuitable`] if this side has the turn; otherwise the
    /// adapter's error.
    pub fn take_timeout(&mut self, queue: &Queue, timeout: Duration) -> Result<()> {
        if self.has_turn() {
            return Err(Error::new(ErrorKind::Unsuitable, "this side has the turn: give it first"));
        }
        let next = self.turn.wrapping_add(1);
        let begun = Instant::now();
        let mut pause = Duration::from_micros(20);
        while self.read(TURN)? != next {
            if begun.elapsed() >= timeout {
                let sentence = format!(
                    "the other side has not given the turn for {timeout:?}: take it again, or wait longer (Context::set_patience)"
                );
                return Err(Error::new(ErrorKind::TimedOut, sentence));
            }
            if begun.elapsed() < SPIN {
                continue;
            }
            // A side that does not answer in time may only be stopped. A side that is gone may have passed the turn on
            // before.
            if let Err(error) = self.other_side_stands()
                && !error.kind().is_transient()
                && self.read(TURN)? != next
            {
                return Err(error);
            }
            thread::sleep(pause);
            pause = (pause * 2).min(PAUSE);
        }
        fence(Ordering::SeqCst); // pairs with the fence in `give`
        queue.wait_for(&[&self.theirs])?;
        self.turn = next;
        Ok(())
    }
    /// Fails if the other side has opened the hand-over and is gone.
    fn other_side_stands(&mut self) -> Result<()> {
        if self.peer.is_none() {
            self.peer = self.ticket_at(SECOND)?;
        }
        match &self.peer {
            Some(ticket) => self.side.context().open(ticket).map(drop),
            None if self.read(CLAIMED)? != 0 => self.claimant_stands(),
            None => Ok(()),
        }
    }
    /// Fails if the second side is claimed and all candidates for it are gone, so that it will never leave a ticket.
    fn claimant_stands(&self) -> Result<()> {
        let mut gone = Ok(());
        for number in CANDIDATES {
            let Some(ticket) = self.ticket_at(place(number))? else { continue };
            match self.side.context().open(&ticket) {
                Err(error)
                    if matches!(error.kind(), ErrorKind::PeerGone | ErrorKind::Withdrawn) =>
                {
                    gone = Err(error);
                }
                _ => return Ok(()), // it may have the claim and leave its ticket later
            }
        }
        gone
    }
    /// The ticket in that place, if there is one.
    fn ticket_at(&self, place: usize) -> Result<Option<Ticket<Event>>> {
        let length = self.read(place)? as usize;
        if length == 0 {
            return Ok(None);
        }
        if length > ROOM * 4 {
            return Err(Error::new(
                ErrorKind::Protocol,
                "the other side left a ticket that is too long",
            ));
        }
        let bytes = self.words.slice(place + 1..)?.cast::<u8>()?;
        Ok(Some(Ticket::from_bytes(bytes.slice(..length)?.to_vec(&self.side)?)))
    }
    /// Writes this side's ticket into a place.
    fn leave_ticket_at(&self, place: usize) -> Result<()> {
        let mut bytes = self.standing[0].ticket().as_bytes().to_vec();
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        bytes.resize(ROOM * 4, 0);
        let room = self.words.slice(place + 1..place + PLACE)?.cast::<u8>()?;
        room.copy_from_slice(&self.side, &bytes)?;
        fence(Ordering::SeqCst); // the ticket is complete before its length is visible
        self.write(place, &[length])
    }
    /// Becomes a candidate for the second side in a free place, and then claims the second side. If all places are
    /// taken by candidates that died before they claimed it, this side is not listed as a candidate; then the first
    /// side would notice a death during the claim only at its deadline.
    fn come(&self) -> Result<()> {
        let mut place = None;
        for number in CANDIDATES {
            if self.read(self::place(number))? == 0 {
                place = Some(self::place(number));
                break;
            }
        }
        if let Some(place) = place {
            self.leave_ticket_at(place)?;
        }
        let claimed = self.claim();
        if let (Err(_), Some(place)) = (&claimed, place) {
            self.write(place, &[0])?;
        }
        claimed
    }
    /// Claims the second side, or fails because another process has it or may have it. As commands can only read and
    /// write, this is a splitter (Moir and Anderson): a process has the claim if it saw that the side was not claimed,
    /// and saw after its own claim that no other process had written its name since. Both can be true for one process
    /// only: a later process finds the claim, and a process in between has overwritten the name.
    fn claim(&self) -> Result<()> {
        let mut hasher = DefaultHasher::new();
        self.standing[0].ticket().as_bytes().hash(&mut hasher); // no two processes have the same ticket
        let name = hasher.finish();
        let name = [name as u32, (name >> 32) as u32];
        self.write(COMER, &name)?;
        fence(Ordering::SeqCst); // the name is visible to all that claim after the next read; pairs with itself
        let is_free = self.read(CLAIMED)? == 0;
        if is_free {
            self.write(CLAIMED, &[1])?;
            fence(Ordering::SeqCst); // pairs with the fence above: of two processes, one sees the other's claim or name
            if self.words(COMER)? == name {
                return Ok(());
            }
        }
        let sentence =
            "another process has opened this hand-over already: it is for two, so create another";
        Err(Error::new(ErrorKind::Denied, sentence))
    }
    fn read(&self, at: usize) -> Result<u32> {
        Ok(self.words::<1>(at)?[0])
    }
    fn words<const N: usize>(&self, at: usize) -> Result<[u32; N]> {
        let mut words = [0; N];
        self.words.slice(at..at + N)?.copy_to_slice(&self.side, &mut words)?;
        Ok(words)
    }
    fn write(&self, at: usize, words: &[u32]) -> Result<()> {
        self.words.slice(at..at + words.len())?.copy_from_slice(&self.side, words)
    }
}

/// Joins two tickets into one: the length of the first, then both.
fn join(first: &[u8], second: &[u8]) -> Vec<u8> {
    let length = u32::try_from(first.len()).unwrap_or(u32::MAX).to_le_bytes();
    [&length, first, second].concat()
}
fn split(both: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = both.split_first_chunk()?;
    rest.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)
}

impl HandOver {
    /// Opens and claims the second side, which has not yet left its ticket.
    fn claimed(context: &Context, ticket: &Ticket<Self>) -> Result<Self> {
        let parts = split(ticket.as_bytes()).and_then(|(words, events)| {
            split(events).map(|(first, second)| (words, first, second))
        });
        let Some((words, first, second)) = parts else {
            return Err(Error::new(ErrorKind::Ticket, "these bytes are no ticket of a hand-over"));
        };
        let words = context.open(&Ticket::<Buffer<u32>>::from_bytes(words))?;
        if words.len() != WORDS {
            return Err(Error::new(ErrorKind::Ticket, "these bytes are no ticket of a hand-over"));
        }
        let first = Ticket::from_bytes(first);
        let (theirs, ours) = (context.open(&first)?, context.open(&Ticket::from_bytes(second))?);
        let side = Queue::new(context)?;
        let (standing, peer) = (vec![context.create_shared_event()?.share()?], Some(first));
        let opened = Self { words, side, ours, theirs, standing, peer, turn: 0, is_first: false };
        opened.come()?;
        Ok(opened)
    }
}

impl Share for HandOver {}
impl Sealed for HandOver {
    const WORD: &'static str = "turns";
    fn open(context: &Context, ticket: &Ticket<Self>) -> Result<Self> {
        let opened = Self::claimed(context, ticket)?;
        opened.leave_ticket_at(SECOND)?;
        Ok(opened)
    }
}
impl fmt::Debug for HandOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "HandOver(turn {}, {})",
            self.turn,
            if self.has_turn() { "ours" } else { "theirs" }
        )
    }
}

#[cfg(test)]
mod tests;
