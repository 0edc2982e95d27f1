//! What must hold, whatever is done in whatever order: what is open reads what was last written, through whichever
//! handle; a handle that was put, or whose object or maker is gone, opens nothing; the state of an event is that of its
//! latest signal, for all who have it; and in the end nobody holds more than in the beginning.
use super::world::{Went, World};
use crate::common::ur::Kind::{self, *};
use std::{
    thread,
    time::{Duration, Instant},
};

/// One step. What it is about is said by numbers that are taken modulo how many there are; a step about nothing is none.
#[derive(Clone, Debug)]
pub enum Step {
    /// Makes something to share.
    Create {
        by: u8,
        kind: Kind,
        size: u8,
    },
    /// Writes all that one sees of a memory.
    Write {
        holder: u8,
        byte: u8,
    },
    /// Makes a ticket; of memory, from one of eight parts on.
    Get {
        holder: u8,
        part: u8,
    },
    Put {
        ticket: u8,
    },
    /// Opens a ticket that is good.
    Open {
        ticket: u8,
        by: u8,
    },
    /// Opens one that was put, or whose object or maker is gone.
    Replay {
        ticket: u8,
        by: u8,
    },
    Close {
        opened: u8,
    },
    /// Frees what was created, as C calls it for its kind.
    Free {
        made: u8,
    },
    /// Frees it, and makes one like it: where it was, perhaps.
    Again {
        made: u8,
    },
    Signal {
        event: u8,
    },
    /// Holds back all later signals of a process.
    Gate {
        by: u8,
    },
    Ungate {
        by: u8,
    },
    /// Uses what one has as one may not.
    Misuse {
        holder: u8,
    },
    /// A child opens a ticket, and uses what it inherited.
    Fork {
        ticket: u8,
        by: u8,
    },
    Kill {
        by: u8,
    },
}

/// Which part of an object's bytes has what byte, or how its latest signal is.
struct Object {
    kind: Kind,
    bytes: usize,
    parts: [u8; PARTS],
    latest: Latest,
    /// Who made it, and whether that process lives.
    maker: (usize, bool),
}
const PARTS: usize = 8;
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Latest {
    Complete,
    /// Behind the gate of a process.
    Owed(usize),
    Error,
}
/// What tickets name: something that a process has, under how many handles.
struct Home {
    object: usize,
    seat: usize,
    handles: usize,
}
/// A handle or an address that a process has.
#[derive(Clone)]
struct Hold {
    name: String,
    home: usize,
    object: usize,
    seat: usize,
    from: usize,
    is_made: bool,
}
struct Ticket {
    bytes: String,
    home: usize,
    from: usize,
    is_put: bool,
}
#[derive(Default, Clone)]
struct Seat {
    gate: Option<String>,
    /// Its descriptors and mappings of memfds after the warm-up.
    before: Option<[usize; 2]>,
}

pub struct Model {
    pub world: World,
    objects: Vec<Object>,
    homes: Vec<Home>,
    holds: Vec<Hold>,
    tickets: Vec<Ticket>,
    seats: Vec<Seat>,
    named: usize,
    patience: Duration,
}

/// Few enough to look at them all after every step.
const MOST: usize = 14;

fn pick<T>(all: &[T], n: u8, is: impl Fn(&T) -> bool) -> Option<usize> {
    let some: Vec<_> = (0..all.len()).filter(|&at| is(&all[at])).collect();
    (!some.is_empty()).then(|| some[usize::from(n) % some.len()])
}
fn same(what: &str, got: &str, expected: &str) -> Went<()> {
    if got == expected { Ok(()) } else { Err(format!("{what} is {got}, not {expected}")) }
}

impl Model {
    /// Waits for what others have to do, for so long.
    pub fn new(world: World, patience: Duration) -> Self {
        let seats = vec![Seat::default(); world.count()];
        let (objects, homes, holds, tickets) = Default::default();
        Self { world, objects, homes, holds, tickets, seats, patience, named: 0 }
    }
    /// Does a step, and looks at everything.
    pub fn take(&mut self, step: &Step) -> Went<()> {
        if self.seats[0].before.is_none() {
            self.warm_up()?;
        }
        match *step {
            Step::Create { by, kind, size } => self.create(by.into(), kind, size.into())?,
            Step::Write { holder, byte } => self.write(holder, byte)?,
            Step::Get { holder, part } => self.get(holder, part.into())?,
            Step::Put { ticket } => self.put(ticket)?,
            Step::Open { ticket, by } => self.open(ticket, by.into())?,
            Step::Replay { ticket, by } => self.replay(ticket, by.into())?,
            Step::Close { opened } => self.let_go(pick(&self.holds, opened, |h| !h.is_made))?,
            Step::Free { made } => self.let_go(pick(&self.holds, made, |h| h.is_made))?,
            Step::Again { made } => self.again(made)?,
            Step::Signal { event } => self.signal(event)?,
            Step::Gate { by } => self.gate(by.into())?,
            Step::Ungate { by } => self.ungate(by.into())?,
            Step::Misuse { holder } => self.misuse(holder)?,
            Step::Fork { ticket, by } => self.fork(ticket, by.into())?,
            Step::Kill { by } => self.kill(by.into())?,
        }
        self.look()
    }
    /// Everybody gives everything back, and then has what everybody had before.
    pub fn end(&mut self) -> Went<()> {
        for seat in 0..self.seats.len() {
            self.ungate(seat)?;
        }
        self.look()?;
        while !self.holds.is_empty() {
            self.let_go(Some(self.holds.len() - 1))?;
        }
        for ticket in 0..self.tickets.len() {
            if !self.tickets[ticket].is_put && self.homes[self.tickets[ticket].home].seat != GONE {
                self.put_back(ticket)?;
            }
        }
        for seat in 0..self.seats.len() {
            self.counts_are_back(seat)?;
        }
        Ok(())
    }

    fn must(&mut self, seat: usize, line: &str) -> Went<String> {
        let answer = self.world.ask(seat, line)?;
        match answer.starts_with('!') {
            true => Err(format!("{answer}, in answer to `{line}`")),
            false => Ok(answer),
        }
    }
    fn refused(&mut self, seat: usize, line: &str, code: &str) -> Went<()> {
        let answer = self.world.ask(seat, line)?;
        match answer.strip_prefix("!UR_RESULT_ERROR_").and_then(|why| why.strip_prefix(code)) {
            Some(why) if why.len() > 10 => Ok(()),
            _ => Err(format!("{answer} instead of {code} with a reason, in answer to `{line}`")),
        }
    }
    /// What must become true though somebody else's thread makes it so.
    fn becomes(&mut self, seat: usize, line: &str, is: impl Fn(&str) -> bool) -> Went<()> {
        let (end, said) = (Instant::now() + self.patience, self.world.said());
        loop {
            self.world.forget_from(said);
            let answer = self.must(seat, line)?;
            if is(&answer) {
                return Ok(());
            }
            if Instant::now() > end {
                return Err(format!("`{line}` stays {answer}"));
            }
            thread::yield_now();
        }
    }
    fn name(&mut self) -> String {
        self.named += 1;
        format!("n{}", self.named)
    }
}
/// The seat of what a dead process had.
const GONE: usize = usize::MAX;
#[path = "looks.rs"]
mod looks;
#[path = "steps.rs"]
mod steps;
