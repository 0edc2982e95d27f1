//! `causeway demo`: two processes share memory. This is the first process; `peer` is the second, which runs
//! the same program.

mod chain;
mod data;
mod peer;
mod report;
mod talk;

pub use peer::run as run_peer;

use crate::{args, devices, failure::Result, stop::Stop, units};
use causeway::{Buffer, Context, DeviceKind, PhysicalMemory, Queue, Rights};
use chain::{Clock, Gate, Side};
use report::Report;
use std::process;
use talk::{Answer, Ask, Second, Shared};

/// The size of the memory that is opened to measure an open alone.
const PAGE: usize = 4096;

/// Shares memory, physical memory and events with a second process, and verifies every byte.
pub fn run(args: &args::Demo) -> Result<()> {
    let stop = Stop::new()?;
    let number = devices::number(args.on)?;
    let context = devices::context(number)?;
    let (queue, mut report, second) =
        (Queue::new(&context)?, Report::default(), Second::start(args.idle_peer)?);
    let mut demo = Demo { queue, stop, second, context };
    let name = demo.context.device().name()?;
    let (here, there) = (process::id(), demo.second.id());
    report.heading(
        "causeway demo",
        format_args!("on {}, processes {here} and {there}", name.trim()),
    )?;
    match demo.second.ask(&Ask::Device(number))? {
        Answer::Ready => {}
        _ => return Err(Second::nonsense()),
    }
    let bytes = args.mib as usize * (1 << 20);
    demo.memory(&mut report, bytes)?;
    demo.physical(&mut report, (bytes / 4).max(1 << 20))?;
    // All hops are submitted before the gate opens, and submitting to a full stream blocks.
    let hops = match demo.context.device().kind()? {
        DeviceKind::Gpu => 100,
        _ => 1000,
    };
    demo.events(&mut report, args.hops.map_or(hops, |hops| hops as usize))?;
    report.end()
}

struct Demo {
    queue: Queue,
    stop: Stop,
    second: Second,
    context: Context,
}

impl Demo {
    fn memory(&mut self, report: &mut Report, bytes: usize) -> Result<()> {
        report
            .heading("memory", format_args!("{} of device memory", units::bytes(bytes as u64)))?;
        let buffer = Buffer::<u8>::new(&self.context, bytes)?;
        let written = data::write(&self.queue, &buffer, data::seed())?;
        let page = Buffer::<u8>::new(&self.context, PAGE)?;
        let (page, whole) = (page.share()?, buffer.share()?);
        let ask = Ask::Memory { page: page.ticket().clone(), whole: whole.ticket().clone() };
        let shared = self.shared(&ask)?;
        self.compare(report, &buffer, &written, &shared)
    }
    fn physical(&mut self, report: &mut Report, bytes: usize) -> Result<()> {
        let memory = PhysicalMemory::shareable(&self.context, bytes)?;
        let size = units::bytes(memory.size() as u64);
        report.heading("physical memory", format_args!("{size}, mapped in both processes"))?;
        let mapping = memory.map(Rights::ReadWrite)?;
        let buffer = mapping.buffer()?;
        let written = data::write(&self.queue, &buffer, data::seed())?;
        let page = PhysicalMemory::shareable(&self.context, PAGE)?;
        let (page, whole) = (page.share()?, memory.share()?);
        let ask = Ask::Physical { page: page.ticket().clone(), whole: whole.ticket().clone() };
        let shared = self.shared(&ask)?;
        self.compare(report, &buffer, &written, &shared)
    }
    fn shared(&mut self, ask: &Ask) -> Result<Shared> {
        self.stop.check()?;
        match self.second.ask(ask)? {
            Answer::Shared(shared) => Ok(shared),
            _ => Err(Second::nonsense()),
        }
    }
    /// Checks that each process read what the other wrote.
    fn compare(
        &self,
        report: &mut Report,
        buffer: &Buffer<u8>,
        written: &str,
        shared: &Shared,
    ) -> Result<()> {
        let (read, time) = data::read(&self.queue, buffer, &self.stop)?;
        let bytes = buffer.len() as u64;
        let opens = &shared.opens;
        report.fact("first open", format_args!("{}, of one page", units::duration(opens.first)))?;
        let mapped = units::duration(opens.mapped);
        report.fact("open of it all", format_args!("{mapped}, with the mapping of its pages"))?;
        report.fact("later opens", units::duration(opens.later))?;
        let copied = |time| format!("{}, to the host, without hashing", units::rate(bytes, time));
        report.fact("copied there", copied(shared.read))?;
        report.fact("copied here", copied(time))?;
        let found = |hash: &str| format!("sha256 {}…", &hash[..16.min(hash.len())]);
        report.check("here to there", shared.read_hash == written, found(&shared.read_hash))?;
        // It must also have changed: memory that was not written would have kept its contents.
        let is_new = shared.written_hash == read && read != written;
        report.check("there to here", is_new, found(&read))
    }
    fn events(&mut self, report: &mut Report, hops: usize) -> Result<()> {
        let count = units::count(hops as u64);
        report.heading(
            "events",
            format_args!("{count} hops of a token, all submitted behind one gate"),
        )?;
        let token = [(); 4].map(|()| data::seed());
        let mut slots = vec![0; (hops + 1) * chain::SLOT];
        slots[..token.len()].copy_from_slice(&token);
        let trail = Buffer::from_slice(&self.queue, &slots)?;
        let ping = self.context.create_shared_event()?;
        let (trail_export, ping_export) = (trail.share()?, ping.share()?);
        let ask = Ask::Chain {
            ping: ping_export.ticket().clone(),
            trail: trail_export.ticket().clone(),
            hops,
        };
        let pong = match self.second.ask(&ask)? {
            Answer::Chain { pong } => self.context.open(&pong)?,
            _ => return Err(Second::nonsense()),
        };
        let side = Side { queue: self.queue.clone(), trail, theirs: pong, ours: ping };
        let gate = Gate::new(&self.queue)?;
        self.submit(&side, &gate, hops)?;

        // The last hop is this process's if the number of hops is odd.
        let end = if hops.is_multiple_of(2) { &side.theirs } else { &side.ours };
        let clock = Clock::at(&self.queue, end)?;
        let opened = gate.open(end)?;
        let ended = clock.read()?;
        let took = ended.saturating_duration_since(opened.read()?);
        report.fact("chain", format_args!("{}, from the open gate on", units::duration(took)))?;
        report.fact("one hop", units::duration(took / u32::try_from(hops).unwrap_or(u32::MAX)))?;
        self.check(report, &side, hops, token)
    }
    /// Checks that both processes find the result of every hop.
    fn check(
        &mut self,
        report: &mut Report,
        side: &Side,
        hops: usize,
        token: [u64; 4],
    ) -> Result<()> {
        let count = units::count(hops as u64);
        let here = side.check(hops, token)?;
        let there = match self.second.ask(&Ask::Check { token })? {
            Answer::Checked(count) => count,
            _ => return Err(Second::nonsense()),
        };
        let of = |good: usize| {
            format!("{} of {count} hops left token and mark", units::count(good as u64))
        };
        report.check("seen from here", here == hops, of(here))?;
        report.check("and from there", there == hops, of(there))
    }
    /// Submits odd hops here and even ones in the second process; each is acknowledged before the next.
    fn submit(&mut self, side: &Side, gate: &Gate, hops: usize) -> Result<()> {
        side.hop_after(1, &gate.event)?;
        for number in 2..=hops {
            self.stop.check()?;
            match number % 2 {
                1 => side.hop(number)?,
                _ => match self.second.ask(&Ask::Hop(number))? {
                    Answer::Submitted => {}
                    _ => return Err(Second::nonsense()),
                },
            }
        }
        Ok(())
    }
}
