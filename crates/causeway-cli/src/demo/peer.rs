//! The second process of the demo: opens what the first one shares, and executes its requests.
use super::{
    chain::Side,
    data,
    talk::{Answer, Ask, Opens, Shared, receive, send},
};
use crate::{
    devices,
    failure::{Failure, Result},
    stop::Stop,
};
use causeway::{Buffer, Context, Event, Export, PhysicalMemory, Queue, Rights, Share, Ticket};
use std::{
    io,
    time::{Duration, Instant},
};

/// Answers requests until the first process closes the pipe; an `idle` process does not write to memory but
/// reports that it did.
pub fn run(idle: bool) -> Result<()> {
    let (mut asks, mut answers) = (io::stdin().lock(), io::stdout().lock());
    let failed = |error| Failure::system("talk to the first process", &error);
    let mut peer = None;
    while let Some(ask) = receive(&mut asks).map_err(failed)? {
        let answer = match answer(&mut peer, ask, idle) {
            Ok(answer) => answer,
            Err(Failure::Said(sentence)) => Answer::Failed(sentence),
            Err(end) => return Err(end),
        };
        send(&mut answers, &answer).map_err(failed)?;
    }
    Ok(())
}

struct Peer {
    context: Context,
    queue: Queue,
    stop: Stop,
    chain: Option<Chain>,
    idle: bool,
}
struct Chain {
    side: Side,
    hops: usize,
    /// Keeps the export until the process ends.
    _pong: Export<Event>,
}

fn answer(peer: &mut Option<Peer>, ask: Ask, idle: bool) -> Result<Answer> {
    if let Ask::Device(number) = ask {
        let context = devices::context(number)?;
        let (queue, stop) = (Queue::new(&context)?, Stop::new()?);
        *peer = Some(Peer { context, queue, stop, chain: None, idle });
        return Ok(Answer::Ready);
    }
    peer.as_mut().ok_or_else(out_of_turn)?.answer(ask)
}

impl Peer {
    fn answer(&mut self, ask: Ask) -> Result<Answer> {
        match ask {
            Ask::Device(_) => Err(out_of_turn()),
            Ask::Memory { page, whole } => self.memory(&page, &whole),
            Ask::Physical { page, whole } => self.physical(&page, &whole),
            Ask::Chain { ping, trail, hops } => self.chain(&ping, &trail, hops),
            Ask::Hop(number) => {
                self.chain.as_ref().ok_or_else(out_of_turn)?.side.hop(number)?;
                Ok(Answer::Submitted)
            }
            Ask::Check { token } => {
                let chain = self.chain.as_ref().ok_or_else(out_of_turn)?;
                chain.side.queue.finish()?;
                Ok(Answer::Checked(chain.side.check(chain.hops, token)?))
            }
        }
    }
    fn memory(&self, page: &Ticket<Buffer<u8>>, whole: &Ticket<Buffer<u8>>) -> Result<Answer> {
        let (opened, opens) = self.timed(page, whole)?;
        Ok(Answer::Shared(self.use_shared(&opened, opens)?))
    }
    fn physical(
        &self,
        page: &Ticket<PhysicalMemory>,
        whole: &Ticket<PhysicalMemory>,
    ) -> Result<Answer> {
        let (opened, opens) = self.timed(page, whole)?;
        let mapping = opened.map(Rights::ReadWrite)?;
        Ok(Answer::Shared(self.use_shared(&mapping.buffer()?, opens)?))
    }
    /// Opens the page, to measure an open alone; then the whole, which includes mapping its pages; then the
    /// whole many times more.
    fn timed<T: Share>(&self, page: &Ticket<T>, whole: &Ticket<T>) -> Result<(T, Opens)> {
        let (page, first) = self.timed_open(page)?;
        let (opened, mapped) = self.timed_open(whole)?;
        drop(page);
        Ok((opened, Opens { first, mapped, later: self.timed_opens(whole)? }))
    }
    fn timed_open<T: Share>(&self, ticket: &Ticket<T>) -> Result<(T, Duration)> {
        let begun = Instant::now();
        let opened = self.context.open(ticket)?;
        Ok((opened, begun.elapsed()))
    }
    /// Returns the median of many further opens, while the first one is open.
    fn timed_opens<T: Share>(&self, ticket: &Ticket<T>) -> Result<Duration> {
        let mut times = [Duration::ZERO; 101];
        for time in &mut times {
            *time = self.timed_open(ticket)?.1;
        }
        times.sort_unstable();
        Ok(times[times.len() / 2])
    }
    fn use_shared(&self, memory: &Buffer<u8>, opens: Opens) -> Result<Shared> {
        let (read_hash, read) = data::read(&self.queue, memory, &self.stop)?;
        let seed = data::seed();
        let written_hash = match self.idle {
            true => data::hash(memory.len(), seed)?,
            false => data::write(&self.queue, memory, seed)?,
        };
        Ok(Shared { opens, read, read_hash, written_hash })
    }
    fn chain(
        &mut self,
        ping: &Ticket<Event>,
        trail: &Ticket<Buffer<u64>>,
        hops: usize,
    ) -> Result<Answer> {
        let (trail, theirs) = (self.context.open(trail)?, self.context.open(ping)?);
        let ours = self.context.create_shared_event()?;
        let export = ours.share()?;
        let pong = export.ticket().clone();
        let side = Side { queue: self.queue.clone(), trail, theirs, ours };
        self.chain = Some(Chain { side, hops, _pong: export });
        Ok(Answer::Chain { pong })
    }
}

fn out_of_turn() -> Failure {
    Failure::said("it was asked for a step before the one that leads to it")
}
