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
    DriverDevice,
    announcer::{self, NAPS},
    native::{
        context::NativeContext,
        counter::Sharing,
        event::{EventKind, ImportedEvent, IpcBytes},
    },
    p2p,
    signal::Signal,
    signaller::{BYTES, Process, SignalRecord},
};
use std::sync::{
    Arc, Mutex, OnceLock,
    atomic::{AtomicBool, Ordering::*},
};
use ur_hal::{Error, ErrorKind, Result, Status, Times};
use ur_ipc::{Payload, Remote};
use ur_lock::locked;

/// What travels: the driver's bytes, and the word beside them.
#[derive(Debug)]
pub struct ImportPayload {
    pub(super) bytes: IpcBytes,
    pub(super) board: SignalRecord,
}

/// An event of the driver's that is signalled again and again, by whatever handles C knows it.
#[derive(Debug)]
pub struct Core {
    event: EventKind,
    /// The device that it was made for; `None` for another process's.
    home: Option<Arc<DriverDevice>>,
    /// How it is given to others; `None` for one that stays here, or is another's.
    sharing: Option<Sharing>,
    /// There once others may have it.
    board: OnceLock<SignalRecord>,
    /// The driver's handle for others: it stays the same.
    ipc: OnceLock<Arc<[u8]>>,
    /// The latest signal of this process, until it is known to have come.
    own: Mutex<Option<Own>>,
    /// Where it was opened from: such an event the driver is not asked about.
    exporter: Option<Remote<ImportPayload>>,
    /// Marks the time of the latest signal, if that is to be noted.
    times: Mutex<Option<Arc<Signal>>>,
    /// Whether there is one: most signals have none, and need not look.
    has_times: AtomicBool,
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
    /// One of this process's, for others too if there is a way.
    pub(super) fn new(
        event: EventKind,
        home: &Arc<DriverDevice>,
        sharing: Option<Sharing>,
    ) -> Arc<Self> {
        Self::of(event, Some(Arc::clone(home)), sharing, OnceLock::new(), None)
    }
    /// One that another process lends.
    ///
    /// # Errors
    /// `INVALID_VALUE` if the driver refuses it.
    pub(super) fn imported(
        context: &Arc<NativeContext>,
        sharing: &Sharing,
        arrived: Remote<ImportPayload>,
    ) -> Result<Arc<Self>> {
        let event = ImportedEvent::open(sharing, context, &arrived.bytes);
        let event = event.map_err(|e| e.with_kind(ErrorKind::InvalidValue))?;
        let (event, board) = (EventKind::Imported(Box::new(event)), arrived.board.clone());
        Ok(Self::of(event, None, None, OnceLock::from(board), Some(arrived)))
    }
    fn of(
        event: EventKind,
        home: Option<Arc<DriverDevice>>,
        sharing: Option<Sharing>,
        board: OnceLock<SignalRecord>,
        exporter: Option<Remote<ImportPayload>>,
    ) -> Arc<Self> {
        let (ipc, own, times, has_times) = Default::default();
        Arc::new(Self { event, home, sharing, board, ipc, own, exporter, times, has_times })
    }
    /// Checks that lists of `device` can signal it: the driver keeps its state in memory of the device that it was made for.
    ///
    /// # Errors
    /// `INVALID_VALUE` for a device that does not reach that memory. Returns the driver's error.
    pub(super) fn check_reach(&self, device: &DriverDevice) -> Result<()> {
        let reaches = self.home.as_ref().map_or(Ok(true), |home| p2p::can_access(device, home));
        match reaches? {
            true => Ok(()),
            false => Err(Error::new(
                ErrorKind::InvalidValue,
                "the event was made for a device whose memory the queue's device does not reach: signal it with a queue of \
                 that device, or make an event for this one",
            )),
        }
    }
    /// Whether nobody else can have it.
    pub(super) fn is_private(&self) -> bool {
        self.sharing.is_none() && self.exporter.is_none()
    }
    /// `times` marks the time of its latest signal.
    pub(super) fn note_times(&self, times: Option<Signal>) {
        if times.is_none() && !self.has_times.load(Acquire) {
            return;
        }
        self.has_times.store(times.is_some(), Release); // read by `times` and the next signal
        let old = std::mem::replace(&mut *locked(&self.times), times.map(Arc::new));
        drop(old); // not under the lock
    }
    /// The times of its latest signal, once that has come; `None` if they were not to be noted.
    ///
    /// # Errors
    /// The driver's own.
    pub(super) fn times(self: &Arc<Self>) -> Result<Option<Times>> {
        let known = self.has_times.load(Acquire).then(|| locked(&self.times).clone()); // `note_times`
        let Some(signal) = known.flatten() else { return Ok(None) };
        let is_over = self.owed().is_none();
        let times = signal.times()?;
        Ok(times.map(|times| Times { span: times.span.filter(|_| is_over), ..times }))
    }
    /// What others open it by.
    ///
    /// # Errors
    /// `INVALID_EVENT` for one that cannot be given to others; the driver's own.
    pub(super) fn payload(&self) -> Result<Payload> {
        let (EventKind::Counter(event), Some(sharing)) = (&self.event, &self.sharing) else {
            let why = "only an event made here with IPC_EXP can be offered to others";
            return Err(Error::new(ErrorKind::InvalidEvent, why));
        };
        let bytes = match self.ipc.get() {
            Some(bytes) => bytes,
            None => {
                let bytes = event.ipc_bytes(sharing)?;
                self.ipc.get_or_init(|| Arc::from(bytes))
            }
        };
        let (fd, bytes) = (self.board()?.fd(), Arc::clone(bytes));
        Ok(Payload::Driver { fd, base: 0, exposes: BYTES as u64, bytes })
    }
    /// The driver's event.
    pub(super) fn event(&self) -> &EventKind {
        &self.event
    }
    fn board(&self) -> Result<&SignalRecord> {
        let mut own = locked(&self.own); // whoever signalled it so far is this process
        if let Some(board) = self.board.get() {
            return Ok(board);
        }
        let fresh = SignalRecord::make()?;
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
        self.board.get().map_or(0, SignalRecord::sign)
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
    /// Whether the signal with that number has come, or never will; `None`: not yet. Of an event of this process's the
    /// driver is asked, for `nanoseconds` at most.
    fn came(&self, count: u64, nanoseconds: u64) -> Option<bool> {
        let board = self.board.get()?;
        let told = || board.came(count);
        let is_latest = || board.count() == count;
        if told().is_some() || self.exporter.is_some() || !is_latest() {
            return told();
        }
        let is_there = match nanoseconds {
            0 => self.event.is_complete(),
            _ => self.event.wait(nanoseconds),
        };
        // Another signal may have replaced it before the driver looked.
        if is_there.unwrap_or(false) && is_latest() {
            board.note(count, true);
        }
        told()
    }
    /// What is owed, if the latest signal has not come yet.
    pub(super) fn owed(self: &Arc<Self>) -> Option<Pending> {
        let last = self.board.get().and_then(SignalRecord::last);
        let own = locked(&self.own).clone();
        // This process has others of the same event if it has opened it more than once.
        let is_own = |&(by, count): &(Process, u64)| {
            by == Process::this() && own.as_ref().is_some_and(|own| own.count >= count)
        };
        if let Some((by, count)) = last.filter(|last| !is_own(last)) {
            let owed = PendingRemote { core: Arc::clone(self), by, count };
            return (owed.came(0) != Some(true)).then_some(Pending::Other(owed));
        }
        let own = own?;
        // Another process may have seen it come before what is behind it did: then it has come here, too.
        let has_come = || self.came(own.count, 0) == Some(true);
        if !has_come() && own.signal.status() != Status::Complete {
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
pub enum Pending {
    /// This process's: what its queue signals behind it.
    Own(Arc<Signal>),
    /// Another's, or of another handle.
    Other(PendingRemote),
}
/// A signal that another process has submitted, or this one through another handle, and that has not come.
#[derive(Clone, Debug)]
pub struct PendingRemote {
    core: Arc<Core>,
    by: Process,
    count: u64,
}
impl PendingRemote {
    /// As [`Core::came`].
    fn came(&self, nanoseconds: u64) -> Option<bool> {
        self.core.came(self.count, nanoseconds)
    }
    /// Whether it never comes: what was done before a death stays done.
    pub(super) fn is_lost(&self) -> bool {
        let board = self.core.board.get();
        let by = self.by;
        let is_exporter = || board.is_some_and(|board| board.owner() == by);
        let is_gone = || by.is_dead() || is_exporter() && self.core.is_orphan();
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
    ///
    /// # Errors
    /// `IN_EVENT_LIST_EXEC_STATUS` if it never does.
    pub(super) fn wait(&self) -> Result<()> {
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
pub(super) struct PendingSignal {
    owed: PendingRemote,
    passed: EventKind,
}
/// How far a debt is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Progress {
    Pending,
    Paid,
    Lost,
}
impl PendingSignal {
    /// `passed` is signalled in the list right behind the wait for `owed`.
    pub(super) fn new(owed: PendingRemote, passed: EventKind) -> Self {
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
        ErrorKind::DependencyFailed,
        "the process that was to signal an event has died, or its command failed: the signal will \
         never come, nor what waits for it in a queue",
    )
    .because(ur_ipc::ErrorKind::ExporterGone)
}
