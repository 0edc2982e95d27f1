//! Events of the driver's that are signalled again and again, apart from who has them: who owes the latest signal, whether
//! it has come, and how threads and lists wait for it.
//!
//! The driver cannot end a wait that is in a command list already, nor does it tell of a death; and of an
//! event whose exporter has ended it must not be asked at all. So words beside each shared event say who
//! signalled it last and which signals have come: host calls look there, and whether the signaller lives.
//! Behind each signal of this process its queue signals an event of its own, by which its threads and
//! queues wait. What a list waits for in vain stays there: the queue is lost, and its lists are never
//! given back.
use super::{
    announcer::{self, NAPS},
    native::event::{EventKind, IpcBytes},
    signal::Signal,
    signaller::{Board, Process},
};
use std::sync::{Arc, Mutex, OnceLock};
use ur_adapter::error::{Error, ErrorCode, Reason, Result};
use ur_ipc::Remote;
use ur_lock::locked;
use ur_sys::ur_event_status_t;

/// What travels: the driver's bytes, and the word beside them.
#[derive(Debug)]
pub(super) struct Parcel {
    pub(super) bytes: IpcBytes,
    pub(super) board: Board,
}

/// An event of the driver's that is signalled again and again, by whatever handles C knows it.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) event: EventKind,
    /// There once others may have it.
    board: OnceLock<Board>,
    /// The driver's handle for others: it stays the same.
    pub(super) ipc: OnceLock<Arc<[u8]>>,
    /// The latest signal of this process, until it is known to have come.
    own: Mutex<Option<Own>>,
    /// Where it was opened from: such an event the driver is not asked about.
    exporter: Option<Remote<Parcel>>,
}
/// A signal of this process.
#[derive(Clone, Debug)]
struct Own {
    /// Its number beside the event; 0 if there is none.
    count: u64,
    /// What its queue signals behind it.
    signal: Arc<Signal>,
}
impl Core {
    pub(super) fn new(
        event: EventKind,
        board: OnceLock<Board>,
        exporter: Option<Remote<Parcel>>,
    ) -> Arc<Self> {
        Arc::new(Self { event, board, ipc: OnceLock::new(), own: Mutex::default(), exporter })
    }
    /// The driver's event.
    pub(super) fn event(&self) -> &EventKind {
        &self.event
    }
    pub(super) fn board(&self) -> Result<&Board> {
        let mut own = locked(&self.own); // whoever signalled it so far is this process
        if let Some(board) = self.board.get() {
            return Ok(board);
        }
        let fresh = Board::make()?;
        let count = fresh.sign();
        match own.as_mut() {
            Some(own) => {
                own.count = count;
                announcer::announce(&fresh, count, &own.signal);
            }
            None => fresh.note(count, true),
        }
        Ok(self.board.get_or_init(|| fresh))
    }
    /// A queue is about to signal it: the number of the signal beside the event, 0 if it has none.
    pub(super) fn sign(&self) -> u64 {
        self.board.get().map_or(0, Board::sign)
    }
    /// The signal with that number was submitted, with `signal` behind it; `None` if that failed.
    pub(super) fn signed(&self, count: u64, signal: Option<Signal>) {
        let Some(signal) = signal.map(Arc::new) else {
            if let Some(board) = self.board.get().filter(|_| count != 0) {
                board.note(count, true); // nobody is to wait for it
            }
            return;
        };
        let mut own = locked(&self.own);
        // Somebody may have been offered the event meanwhile.
        let count = if count == 0 { self.sign() } else { count };
        if let Some(board) = self.board.get() {
            announcer::announce(board, count, &signal);
        }
        let old = own.replace(Own { count, signal });
        drop(own);
        drop(old); // not under the lock
    }
    /// Whether the driver may be asked about it no more.
    fn is_orphan(&self) -> bool {
        self.exporter.as_ref().is_some_and(|exporter| !exporter.exporter_alive())
    }
    /// What is owed, if the latest signal has not come yet.
    pub(super) fn owed(self: &Arc<Self>) -> Option<Pending> {
        let last = self.board.get().and_then(Board::last);
        if let Some((by, count)) = last.filter(|(by, _)| *by != Process::this()) {
            let owed = Owed { core: Arc::clone(self), by, count };
            return (owed.came(0) != Some(true)).then_some(Pending::Other(owed));
        }
        let own = locked(&self.own).clone()?;
        // Another process may have seen it come before what is behind it did.
        let told = || self.board.get().and_then(|board| board.came(own.count)) == Some(true);
        if !told() && own.signal.status() != ur_event_status_t::COMPLETE {
            return Some(Pending::Own(own.signal));
        }
        if let Some(board) = self.board.get().filter(|_| own.count != 0) {
            board.note(own.count, true);
        }
        let mut known = locked(&self.own);
        let over = known.take_if(|known| Arc::ptr_eq(&known.signal, &own.signal));
        drop(known);
        drop(over); // not under the lock
        None
    }
}

/// A signal that has not come.
#[derive(Debug)]
pub(super) enum Pending {
    /// This process's: what its queue signals behind it.
    Own(Arc<Signal>),
    /// Another's.
    Other(Owed),
}
/// A signal that another process has submitted and that has not come.
#[derive(Debug)]
pub(super) struct Owed {
    core: Arc<Core>,
    by: Process,
    count: u64,
}
impl Owed {
    /// Whether it has come, or never will; `None`: not yet. Of an event of this process's the driver is asked, for
    /// `nanoseconds` at most.
    fn came(&self, nanoseconds: u64) -> Option<bool> {
        let board = self.core.board.get()?;
        let told = || board.came(self.count);
        let is_latest = || board.count() == self.count;
        if told().is_some() || self.core.exporter.is_some() || !is_latest() {
            return told();
        }
        let event = &self.core.event;
        let is_there = match nanoseconds {
            0 => event.is_complete(),
            _ => event.wait(nanoseconds),
        };
        // Another signal may have replaced it before the driver looked.
        if is_there.unwrap_or(false) && is_latest() {
            board.note(self.count, true);
        }
        told()
    }
    /// Whether it never comes: what was done before a death stays done.
    pub(super) fn is_lost(&self) -> bool {
        let board = self.core.board.get();
        let is_exporter = || board.is_some_and(|board| board.owner() == self.by);
        let is_gone = || self.by.is_dead() || is_exporter() && self.core.is_orphan();
        match self.came(0) {
            Some(came) => !came,
            None => is_gone() && self.came(0) != Some(true), // told of before the death was seen
        }
    }
    /// Whether a list can wait for it.
    pub(super) fn is_within_reach(&self) -> bool {
        !self.core.is_orphan()
    }
    /// Waits until it comes.
    fn wait(&self) -> Result<()> {
        let mut nap = NAPS[0];
        loop {
            match self.came(NAPS[1].as_nanos() as u64) {
                Some(true) => return Ok(()),
                _ if self.is_lost() => return Err(lost()),
                _ => std::thread::sleep(nap),
            }
            nap = (nap * 2).min(NAPS[1]);
        }
    }
    /// The driver's event.
    pub(super) fn event(&self) -> &EventKind {
        &self.core.event
    }
}
/// What a list waits for, with a mark behind the wait.
#[derive(Debug)]
pub(super) struct Debt {
    owed: Owed,
    passed: EventKind,
}
/// How far a debt is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Progress {
    Pending,
    Paid,
    Lost,
}
impl Debt {
    /// `passed` is signalled in the list right behind the wait for `owed`.
    pub(super) fn new(owed: Owed, passed: EventKind) -> Self {
        Self { owed, passed }
    }
    pub(super) fn progress(&self) -> Progress {
        match self.passed.is_complete() {
            Ok(true) => Progress::Paid,
            _ if self.owed.is_lost() => Progress::Lost,
            _ => Progress::Pending,
        }
    }
}
/// What is said of a signal that never comes, and of what is behind it.
pub(super) fn lost() -> Error {
    Error::new(
        ErrorCode::InEventListExecStatus,
        "the process that was to signal an event has died, or its command failed: the signal will \
         never come, nor what waits for it in a queue",
    )
    .because(Reason::ExporterGone)
}

impl Pending {
    /// # Errors
    /// `IN_EVENT_LIST_EXEC_STATUS` for what never comes; the driver's own.
    pub(super) fn wait(&self) -> Result<()> {
        match self {
            Self::Own(signal) => {
                let waited = signal.wait();
                announcer::look(); // whoever waited may end now
                waited
            }
            Self::Other(owed) => owed.wait(),
        }
    }
}
