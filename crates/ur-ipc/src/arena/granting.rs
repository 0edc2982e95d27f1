//! What the broker does on behalf of peers in an arena that this process made.
use super::{own::Debtor, shared::Arena};
use crate::Result;
use rustix::fd::OwnedFd;
use std::sync::Arc;

impl Arena {
    /// The descriptors of the arena and its ledger, to be sent to peers whom the policy admits.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for a joined arena, as for all methods of this block.
    pub fn descriptors(&self) -> Result<(Arc<OwnedFd>, Arc<OwnedFd>)> {
        let own = self.own()?;
        Ok((own.arena_fd.clone(), own.ledger_fd.clone()))
    }
    /// Adds a process as a participant; returns its number, which no other participant has at the same time.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported), as for all methods of this block.
    pub fn join(&self, pidfd: impl Into<Arc<OwnedFd>>) -> Result<u32> {
        Ok(self.own()?.join(&self.0.words, pidfd.into()))
    }
    /// Grants a participant a counter; returns its index and epoch.
    ///
    /// # Errors
    /// [`ErrorKind::Full`](crate::ErrorKind::Full); [`ErrorKind::PeerNonsense`](crate::ErrorKind::PeerNonsense) if
    /// there is no such participant.
    pub fn grant_counter(&self, participant: u32) -> Result<(u16, u32)> {
        let (counter, epoch, _) = self.own()?.grant(&self.0.words, participant)?;
        Ok((counter, epoch))
    }
    /// Takes back a counter all of whose values were completed.
    ///
    /// # Errors
    /// [`ErrorKind::PeerNonsense`](crate::ErrorKind::PeerNonsense) if the participant does not own it.
    pub fn release_counter(&self, participant: u32, counter: u16) -> Result<()> {
        self.own()?.release_counter(&self.0.words, participant, counter)
    }
    /// Counts one more open of this event by a participant: its slot is not reused before that open is closed.
    ///
    /// # Errors
    /// [`ErrorKind::PeerNonsense`](crate::ErrorKind::PeerNonsense) if there is no such participant or event.
    pub fn slot_opened(&self, participant: u32, slot: u16, generation: u32) -> Result<()> {
        self.own()?.opens(&self.0.words, participant, slot, generation, true)
    }
    /// Counts one open of this event less.
    ///
    /// # Errors
    /// [`ErrorKind::PeerNonsense`](crate::ErrorKind::PeerNonsense) if the participant had not opened it.
    pub fn slot_closed(&self, participant: u32, slot: u16, generation: u32) -> Result<()> {
        self.own()?.opens(&self.0.words, participant, slot, generation, false)
    }
    /// The process that is to complete this counter's next value, for a process that is about to wait for it.
    ///
    /// # Errors
    /// [`ErrorKind::PeerNonsense`](crate::ErrorKind::PeerNonsense) for an index out of range.
    pub fn debtor(&self, counter: u16) -> Result<Debtor> {
        self.own()?.debtor(counter)
    }
    /// Handles the end of a participant's connection: its pending signals fail and its opens are closed. Its counters
    /// are reused once its process has ended and no event names them.
    pub fn participant_died(&self, participant: u32) {
        let Ok(own) = self.own() else { return };
        self.process_died(participant); // first, while its counters are known: only those are examined
        own.participant_died(&self.0.words, participant);
    }
    /// Handles a participant's message that it no longer uses the arena: its opens are closed, and counters that did
    /// not fail are free at once, because it has completed all that it reserved on them.
    pub fn participant_left(&self, participant: u32) {
        if let Ok(own) = self.own() {
            own.participant_left(&self.0.words, participant);
        }
    }
    /// Checks whether processes have ended whose connections ended before, so that their counters can be reused.
    /// Returns whether some have not ended yet.
    pub(crate) fn tend(&self) -> bool {
        self.own().is_ok_and(|own| own.ask_after_departed(&self.0.words))
    }
}
