//! The gated chain: the two processes submit hops in turn, all behind one gate, and only then is the gate opened.
//!
//! A hop waits for the other side's latest signal, copies the token from the slot before into its own slot of the
//! shared trail, leaves its mark beside it, and signals. A fresh event is complete and a wait is for what was
//! submitted, so without a gate each hop would be over before the next is submitted, and nothing would be handed
//! over. Each submission is told to the other side, over the pipe, before that one submits.
use super::data::stir;
use crate::failure::{Failure, Result};
use causeway::{Buffer, Event, Queue, Status};
use std::{sync::mpsc, time::Instant};

/// Words of a slot: four of token, four of mark.
pub const SLOT: usize = 8;
const TOKEN: usize = 4;

/// One side of the chain.
pub struct Side {
    pub queue: Queue,
    /// Slot 0 holds the token at first, slot k what hop k left.
    pub trail: Buffer<u64>,
    /// Signalled by the other side.
    pub theirs: Event,
    /// Signalled by this side.
    pub ours: Event,
}
impl Side {
    /// Submits hop `number`, which runs when the other side's latest hop is done.
    pub fn hop(&self, number: usize) -> Result<()> {
        self.hop_after(number, &self.theirs)
    }
    /// The same, after another event: the gate.
    pub fn hop_after(&self, number: usize, before: &Event) -> Result<()> {
        let (from, to) = (self.slot(number - 1)?, self.slot(number)?);
        self.queue.wait_for(&[before])?;
        self.queue.copy(&from, &to)?;
        self.queue.fill(&to.slice(TOKEN..)?, mark(number))?;
        Ok(self.queue.signal(&self.ours)?)
    }
    fn slot(&self, number: usize) -> Result<Buffer<u64>> {
        Ok(self.trail.slice(number * SLOT..(number + 1) * SLOT)?)
    }
    /// How many of `hops` hops left the token and their mark.
    pub fn check(&self, hops: usize, token: [u64; TOKEN]) -> Result<usize> {
        let trail = self.trail.to_vec(&self.queue)?;
        let slots = trail.chunks_exact(SLOT).enumerate().skip(1).take(hops);
        Ok(slots
            .filter(|(number, slot)| {
                slot[..TOKEN] == token && slot[TOKEN..] == [mark(*number); TOKEN]
            })
            .count())
    }
}

/// What hop `number` leaves beside the token.
fn mark(number: usize) -> u64 {
    stir(number as u64)
}

/// Holds everything that waits for [`event`](Self::event) until it is opened.
pub struct Gate {
    pub event: Event,
    open: mpsc::Sender<()>,
    _queue: Queue,
}
impl Gate {
    /// A closed gate.
    pub fn new(queue: &Queue) -> Result<Self> {
        let context = queue.context();
        if !context.device().runs_host_tasks()? {
            let sentence = "this device runs no host tasks, which the gate of the chain is made of: choose another with --device";
            return Err(Failure::said(sentence));
        }
        let (queue, event) = (Queue::new(context)?, context.create_event()?);
        let (open, opened) = mpsc::channel();
        // Ends when the gate is opened, or dropped on the way out of a failure.
        queue.host_task(move || {
            let _ = opened.recv();
        })?;
        queue.signal(&event)?;
        queue.flush()?;
        Ok(Self { event, open, _queue: queue })
    }
    /// Opens the gate; when that was.
    ///
    /// It fails if the chain has ended: then the gate held nothing, and nothing was measured.
    pub fn open(self, end: &Event) -> Result<Instant> {
        if self.event.status()? == Status::Complete || end.status()? == Status::Complete {
            return Err(Failure::said(
                "the chain ended before its gate was opened: nothing was handed over",
            ));
        }
        let now = Instant::now();
        // The task holds the other end until it has heard.
        self.open.send(()).map_err(|_| Failure::said("the gate of the chain broke"))?;
        Ok(now)
    }
}
