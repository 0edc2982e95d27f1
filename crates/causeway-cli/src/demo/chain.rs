//! The chain of hops: the two processes submit hops in turn, all behind one gate, and the gate is opened only
//! when all are submitted.
//!
//! A hop waits for the other side's latest signal, copies the token from the previous slot into its own slot
//! of the shared trail, writes its mark beside it, and signals. A new event is complete, and a wait refers to
//! the latest signal that was submitted. Without a gate, each hop would therefore complete before the next
//! one is submitted, and no work would wait across processes. Each side reports a submission over the pipe
//! before the other side submits its next hop.
use super::data::stir;
use crate::failure::{Failure, Result};
use causeway::{Buffer, Event, Queue, Status};
use std::{sync::mpsc, time::Instant};

/// The words of a slot: four of the token, four of the mark.
pub const SLOT: usize = 8;
const TOKEN: usize = 4;

/// One side of the chain.
pub struct Side {
    pub queue: Queue,
    /// Slot 0 holds the token at the start, and slot k what hop k wrote.
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
    /// Submits hop `number` after another event: the gate.
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
    /// Returns how many of `hops` hops wrote the token and their mark.
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

/// The mark that hop `number` writes beside the token.
fn mark(number: usize) -> u64 {
    stir(number as u64)
}

/// Holds back all commands that wait for [`event`](Self::event) until it is opened.
pub struct Gate {
    pub event: Event,
    open: mpsc::Sender<()>,
    clock: Clock,
}
impl Gate {
    /// Creates a closed gate.
    pub fn new(queue: &Queue) -> Result<Self> {
        let context = queue.context();
        if !context.device().runs_host_tasks()? {
            let sentence = "this device runs no host tasks, which the gate of the chain is made of: choose another with --device";
            return Err(Failure::said(sentence));
        }
        let (queue, event) = (Queue::new(context)?, context.create_event()?);
        let (open, opened) = mpsc::channel();
        let (say, at) = mpsc::channel();
        // The task ends when the gate is opened, or dropped after a failure. It reads the time last, so that
        // the time to wake it is not measured as part of the chain.
        let task = queue.host_task(move || {
            let _ = opened.recv();
            let _ = say.send(Instant::now());
        })?;
        queue.signal(&event)?;
        queue.flush()?;
        let clock = Clock { event: task, at, _queue: queue };
        Ok(Self { event, open, clock })
    }
    /// Opens the gate; the clock returns the time at which it was open.
    ///
    /// Fails if the chain has ended already, because then the gate held nothing back and no time was
    /// measured.
    pub fn open(self, end: &Event) -> Result<Clock> {
        if self.event.status()? == Status::Complete || end.status()? == Status::Complete {
            return Err(Failure::said(
                "the chain ended before its gate was opened: nothing was handed over",
            ));
        }
        // The task keeps the receiver until it has received this.
        self.open.send(()).map_err(|_| Failure::said("the gate of the chain broke"))?;
        Ok(self.clock)
    }
}

/// The time at which an event completed, taken without polling the event.
pub struct Clock {
    event: Event,
    at: mpsc::Receiver<Instant>,
    _queue: Queue,
}
impl Clock {
    /// Takes the time of the completion that `event` stands for now.
    pub fn at(queue: &Queue, event: &Event) -> Result<Self> {
        let queue = Queue::new(queue.context())?;
        let (say, at) = mpsc::channel();
        queue.wait_for(&[event])?;
        let event = queue.host_task(move || {
            let _ = say.send(Instant::now()); // fails only if the demo has failed meanwhile
        })?;
        Ok(Self { event, at, _queue: queue })
    }
    /// Waits for the completion and returns its time.
    pub fn read(self) -> Result<Instant> {
        self.event.wait()?;
        self.at.try_recv().map_err(|_| Failure::said("the clock of the chain was not read"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway::{Context, Device};

    const TOKEN_VALUE: [u64; TOKEN] = [11, 22, 33, 44];

    /// Both sides of a chain, in one process.
    fn sides(hops: usize) -> [Side; 2] {
        let context = Context::new(&Device::first().unwrap()).unwrap();
        let queue = Queue::new(&context).unwrap();
        let mut slots = vec![0; (hops + 1) * SLOT];
        slots[..TOKEN].copy_from_slice(&TOKEN_VALUE);
        let trail = Buffer::from_slice(&queue, &slots).unwrap();
        let ping = context.create_shared_event().unwrap();
        let pong = context.create_shared_event().unwrap();
        let there = Queue::new(&context).unwrap();
        let (theirs, ours) = (ping.clone(), pong.clone());
        [
            Side { queue, trail: trail.clone(), theirs: pong, ours: ping },
            Side { queue: there, trail, theirs, ours },
        ]
    }

    #[test]
    fn a_gated_chain_hands_the_token_to_its_end() {
        let [here, there] = sides(20);
        let gate = Gate::new(&here.queue).unwrap();
        here.hop_after(1, &gate.event).unwrap();
        for number in 2..=20 {
            [&there, &here][number % 2].hop(number).unwrap();
        }
        let before = gate.event.status().unwrap();
        assert_ne!(before, Status::Complete);
        gate.open(&there.ours).unwrap();
        there.ours.wait().unwrap();
        assert_eq!(here.check(20, TOKEN_VALUE).unwrap(), 20);
    }
    #[test]
    fn a_hop_that_left_something_else_is_noticed() {
        let [here, there] = sides(2);
        here.hop(1).unwrap();
        there.hop(2).unwrap();
        there.ours.wait().unwrap();
        here.trail.slice(SLOT..=SLOT).unwrap().fill(&here.queue, 12).unwrap();
        assert_eq!(here.check(2, TOKEN_VALUE).unwrap(), 1);
        assert_eq!(here.check(2, [0; TOKEN]).unwrap(), 0);
    }
    #[test]
    fn a_chain_that_ended_before_its_gate_is_refused() {
        let [here, _] = sides(1);
        let gate = Gate::new(&here.queue).unwrap();
        here.hop(1).unwrap(); // not behind the gate
        here.ours.wait().unwrap();
        assert!(
            matches!(gate.open(&here.ours), Err(Failure::Said(why)) if why.contains("before its gate"))
        );
    }
}
