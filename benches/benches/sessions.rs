//! Measures a session after very many others: a process joins an exporter's arena, opens an event, takes a
//! counter, signals, and leaves or dies. Neither the time nor the memory may grow with the number of
//! sessions, which is far more than the number of counters in an arena.
//!
//! All sessions are in this one process, over a link that calls the exporter's side directly instead of
//! through a broker, so that ten million of them take minutes; `open` measures connections. The sessions end
//! in turn in three ways: with the signal complete, with a pending signal by leaving, and with a pending
//! signal by dying.
use causeway_benches::Result;
use rustix::process::{Pid, PidfdFlags, getpid, pidfd_open};
use std::{
    fs,
    os::fd::OwnedFd,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};
use ur_ipc::{
    Access,
    arena::{self, Arena, Captured, Link, Progress, Slot},
};

/// More than an arena has counters, so that the short form reuses counters, too.
const SHORT: u32 = 200_000;
const LONG: u32 = 10_000_000;

/// Calls the exporter's arena directly.
struct Direct {
    exporter: Arena,
    participant: u32,
    /// A dead participant sends no messages.
    is_dead: AtomicBool,
}
impl Link for Direct {
    fn take_counter(&self) -> ur_ipc::Result<(u16, u32)> {
        self.exporter.grant_counter(self.participant)
    }
    fn release_counter(&self, counter: u16) {
        if !self.is_dead.load(Relaxed) {
            let released = self.exporter.release_counter(self.participant, counter);
            released.expect("the counter was granted to this participant");
        }
    }
    fn slot_closed(&self, slot: u16, generation: u32) {
        if !self.is_dead.load(Relaxed) {
            let closed = self.exporter.slot_closed(self.participant, slot, generation);
            closed.expect("the event was opened by this participant");
        }
    }
    fn watch(&self, _counter: u16, _participant: u32) -> ur_ipc::Result<bool> {
        Ok(true)
    }
}

/// A process that has ended and is not reaped, so that its id is not reused.
struct Ended {
    child: Child,
    pidfd: Arc<OwnedFd>,
}
impl Ended {
    fn new() -> Result<Self> {
        let mut child = Command::new("sleep").arg("1000").stdin(Stdio::null()).spawn()?;
        let pidfd = Arc::new(pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?);
        child.kill()?;
        // The pidfd becomes readable once the process has ended.
        let mut ended = [rustix::event::PollFd::new(&*pidfd, rustix::event::PollFlags::IN)];
        while rustix::event::poll(&mut ended, None) == Err(rustix::io::Errno::INTR) {}
        Ok(Self { child, pidfd })
    }
}
impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.child.wait(); // it was killed when it was created
    }
}

/// How a session ends.
#[derive(Clone, Copy)]
enum End {
    Done,
    Owing,
    Dead,
}

struct Exporter {
    event: Slot,
    us: Arc<OwnedFd>,
    ended: Ended,
}
impl Exporter {
    fn session(&self, end: End) -> Result<()> {
        let exporter = self.event.arena();
        let pidfd = if let End::Dead = end { &self.ended.pidfd } else { &self.us };
        let participant = exporter.join(pidfd.clone())?;
        let (memory, ledger) = exporter.descriptors()?;
        let link =
            Arc::new(Direct { exporter: exporter.clone(), participant, is_dead: false.into() });
        let (instance, number) = (exporter.instance(), exporter.number());
        let importer =
            Arena::joined(&memory, &ledger, instance, number, participant, link.clone())?;
        exporter.slot_opened(participant, self.event.index(), self.event.generation())?;
        let opened = importer.open_slot(self.event.index(), self.event.generation())?;
        let counter = importer.take_counter()?;
        let value = counter.reserve();
        if !opened.publish(&counter, value) {
            return Err("the event is another's".into());
        }
        match end {
            End::Done => counter.complete(value),
            End::Owing => {}
            End::Dead => {
                link.is_dead.store(true, Relaxed);
                counter.fail(); // as the death does to it, so that nothing here writes it later
                exporter.participant_died(participant);
            }
        }
        drop(counter);
        drop(opened);
        if !matches!(end, End::Dead) {
            exporter.participant_left(participant);
        }
        match (end, self.event.capture()?) {
            (End::Done, Captured::Complete) => Ok(()),
            (End::Owing | End::Dead, Captured::PendingSignal(debt))
                if debt.progress() == Progress::Failed =>
            {
                Ok(())
            }
            _ => Err("the event does not stand as the session left it".into()),
        }
    }
}

/// Returns the resident memory of this process, in KiB.
fn resident() -> Result<u64> {
    let pages = fs::read_to_string("/proc/self/statm")?;
    let pages: u64 = pages.split(' ').nth(1).ok_or("/proc/self/statm is short")?.parse()?;
    Ok(pages * rustix::param::page_size() as u64 / 1024)
}

fn main() -> Result<()> {
    let sessions = if std::env::args().any(|word| word == "--long") { LONG } else { SHORT };
    let exporter = Exporter {
        event: arena::slot(Access::SameUser)?,
        us: Arc::new(pidfd_open(getpid(), PidfdFlags::empty())?),
        ended: Ended::new()?,
    };
    println!("{sessions} sessions, one after the other; a third each done, owing and dead");
    let mut tenths = Vec::new();
    for tenth in 0..10 {
        let begun = Instant::now();
        for number in 0..sessions / 10 {
            exporter.session([End::Done, End::Owing, End::Dead][number as usize % 3])?;
        }
        let each = begun.elapsed() / (sessions / 10);
        tenths.push((each, resident()?));
        println!("tenth {:>2}: {each:>9.3?} a session, {} KiB resident", tenth + 1, resident()?);
    }
    report(&tenths)
}
fn report(tenths: &[(Duration, u64)]) -> Result<()> {
    let [(first, at_first), .., (last, at_last)] = tenths else { return Err("no tenths".into()) };
    println!(
        "first tenth {first:.3?}, last {last:.3?}: ratio {:.2}; memory after the first {at_first} KiB, after the last {at_last} KiB: {} KiB more",
        last.as_secs_f64() / first.as_secs_f64(),
        at_last.saturating_sub(*at_first),
    );
    Ok(())
}
