//! What the broker asks of an arena that this process made, in its peers' names.
use super::{own::Debtor, shared::Arena};
use crate::Result;
use rustix::fd::OwnedFd;
use std::sync::Arc;

impl Arena {
    /// The arena's and the ledger's descriptor, to be sent to those whom the policy admits.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for a joined arena, as of all methods of this block.
    pub fn descriptors(&self) -> Result<(Arc<OwnedFd>, Arc<OwnedFd>)> {
        let own = self.own()?;
        Ok((own.arena_fd.clone(), own.ledger_fd.clone()))
    }
    /// Takes in a process: its number here, which no other has meanwhile.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported), as of all methods of this block.
    pub fn join(&self, pidfd: impl Into<Arc<OwnedFd>>) -> Result<u32> {
        Ok(self.own()?.join(&self.0.words, pidfd.into()))
    }
    /// Gives a participant a counter: index and epoch.
    ///
    /// # Errors
    /// [`ErrorKind::Full`](crate::ErrorKind::Full); [`ErrorKind::PeerNonsense`](crate::ErrorKind::PeerNonsense) if there is no such participant.
    pub fn grant_counter(&self, participant: u32) -> Result<(u16, u32)> {
        let (counter, epoch, _) = self.own()?.grant(&self.0.words, participant)?;
        Ok((counter, epoch))
    }
    /// Takes a counter back, all of whose values were reached.
    ///
    /// # Errors
    /// [`ErrorKind::PeerNonsense`](crate::ErrorKind::PeerNonsense) if it is not that participant's.
    pub fn release_counter(&self, participant: u32, counter: u16) -> Result<()> {
        self.own()?.release_counter(&self.0.words, participant, counter)
    }
    /// Notes that a participant has this event open once more: it is not reused before that is closed.
    ///
    /// # Errors
    /// [`ErrorKind::PeerNonsense`](crate::ErrorKind::PeerNonsense) if there is no such participant or event.
    pub fn slot_opened(&self, participant: u32, slot: u16, generation: u32) -> Result<()> {
        self.own()?.opens(&self.0.words, participant, slot, generation, true)
    }
    /// Notes that a participant has it open once less.
    ///
    /// # Errors
    /// [`ErrorKind::PeerNonsense`](crate::ErrorKind::PeerNonsense) if it had not.
    pub fn slot_closed(&self, participant: u32, slot: u16, generation: u32) -> Result<()> {
        self.own()?.opens(&self.0.words, participant, slot, generation, false)
    }
    /// Who owes this counter's next value, for one who is about to wait for it.
    ///
    /// # Errors
    /// [`ErrorKind::PeerNonsense`](crate::ErrorKind::PeerNonsense) for a number that no counter has.
    pub fn debtor(&self, counter: u16) -> Result<Debtor> {
        self.own()?.debtor(counter)
    }
    /// A participant is gone: what it owes fails, what it had open is closed. Its counters come back when its process has
    /// ended and nothing names them.
    pub fn participant_died(&self, participant: u32) {
        let Ok(own) = self.own() else { return };
        self.process_died(participant); // while it is known: only what it holds is looked at
        own.participant_died(&self.0.words, participant);
    }
    /// A participant says that it uses nothing here any more: what it had open is closed, and counters that did not fail
    /// are free at once, since it had reached all that it promised.
    pub fn participant_left(&self, participant: u32) {
        if let Ok(own) = self.own() {
            own.participant_left(&self.0.words, participant);
        }
    }
    /// Looks whether processes have ended whose connections ended before, so that what they held comes back. Whether
    /// some have not.
    pub(crate) fn tend(&self) -> bool {
        self.own().is_ok_and(|own| own.ask_after_departed(&self.0.words))
    }
}
