//! The importer's side of a broker: one connection per exporter, over which requests are made. The connection is also
//! the lease: when this process hangs up, everything that was granted over it ends. Caching what was opened is left to
//! `registry`.
mod asking;
pub(crate) mod due;
pub(crate) mod later;
pub(crate) mod lease;
pub(crate) mod lost;
pub(crate) mod many;
mod pending;
mod tickets;
mod way;

use crate::{
    Error, ErrorKind, InstanceId, Result,
    access::{Peer, Who, is_dead},
    arena::{Arena, EXPORTER, WeakArena},
    directory::{Address, Reached, Tried, reach},
    envelope::Envelope,
    exports::refusal,
    fork::{Guarded, inherited},
    identity, killpoint, ledger,
    liveness::{self, Source},
    locked,
    protocol::Verdict,
    request_lock::RequestLock,
    shared_memory::SharedMemory,
    waiting::look_at,
};
use pending::{GrantClaim, Pending};
use rustix::{
    event::{PollFlags, epoll::EventFlags},
    net::{Shutdown, shutdown},
};
use std::{
    collections::HashMap,
    ops::Deref,
    os::fd::OwnedFd,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, Weak,
        atomic::{
            AtomicU8, AtomicU64,
            Ordering::{Acquire, Release},
        },
    },
    time::Instant,
};
use way::Return;

/// The socket events of a connection without pending input or output: hang-up only.
const END: EventFlags = EventFlags::RDHUP;

/// The state of the connection to an exporter. Only `Suspect` can change back to an earlier state.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub(crate) enum State {
    Connected,
    /// The connection ended, but the process lives. What was opened is assumed to stand until `lost` has found out.
    Suspect,
    /// The exporter no longer keeps anything for this connection. It may be alive, and may still complete its signals.
    Cut,
    /// The process ended, or runs another program.
    Gone,
}
impl State {
    fn of(number: u8) -> Self {
        let all = [Self::Connected, Self::Suspect, Self::Cut];
        all.into_iter().find(|state| *state as u8 == number).unwrap_or(Self::Gone)
    }
}

/// Where connections are found by number and by exporter.
pub(crate) trait Table: Sync {
    /// Registers the host under its number, which is unique.
    fn enter(&self, host: &Arc<Host>) -> Result<()>;
    /// The host can no longer be used for opens.
    fn forget(&self, instance: InstanceId, id: u64);
    /// The host has been dropped.
    fn leave(&self, id: u64);
}

/// A connection to an exporter's broker.
pub(crate) struct Host {
    id: u64,
    table: &'static dyn Table,
    instance: InstanceId,
    address: Address,
    /// A secret between this connection and the exporter, by which another connection can take its place.
    session: u64,
    /// The fork count of the process that made the connection.
    fork: u64,
    /// Replaced when a lost connection is resumed. The lock is held only briefly.
    socket: Mutex<Arc<Guarded>>,
    pidfd: Option<Arc<OwnedFd>>,
    who: Who,
    /// A [`State`], changed only under the lock of `holds`.
    state: AtomicU8,
    /// How many leases and joined arenas depend on the connection.
    holds: Mutex<usize>,
    changed: Condvar,
    returning: Mutex<Return>,
    turn: RequestLock,
    next: AtomicU64,
    /// Requests that were given up. Their answers may still come, and may bring descriptors.
    overdue: Mutex<HashMap<u64, Option<GrantClaim>>>,
    /// The nonce of an answer that was received and not yet acknowledged. 0 is none.
    read: AtomicU64,
    pending: Mutex<Pending>,
    /// The memories in which something is open, by the exporter's numbers for them.
    memory: Mutex<HashMap<u32, Weak<SharedMemory>>>,
    ledgers: Mutex<HashMap<u32, Arc<ledger::Reader>>>,
    arenas: Mutex<HashMap<u32, WeakArena>>,
}

/// A host on which something depends: if its connection ends, the exporter is asked before the host is given up.
pub(crate) struct Held(Arc<Host>);
impl Held {
    fn new(host: &Arc<Host>) -> Self {
        *locked(&host.holds) += 1;
        Self(host.clone())
    }
}
impl Deref for Held {
    type Target = Host;
    fn deref(&self) -> &Host {
        &self.0
    }
}
impl Drop for Held {
    fn drop(&mut self) {
        // In a forked child, a thread of the parent may have held the lock at the fork.
        if self.0.is_ours().is_ok() {
            *locked(&self.0.holds) -= 1;
        }
    }
}

/// Why there is no connection.
pub(crate) enum Unreached {
    /// No socket of that name accepts connections; what was tried.
    NoBroker(Tried),
    /// Another error.
    Failed(Error),
}
impl From<Error> for Unreached {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl Host {
    /// Connects to the ticket's exporter. `id` is the connection's number in the table.
    pub fn connect(
        envelope: &Envelope,
        (id, table): (u64, &'static dyn Table),
        deadline: Instant,
    ) -> Result<Arc<Self>, Unreached> {
        let address = Address::of(envelope.instance, envelope.uid, envelope.scope);
        let Reached { socket, owner } = reach(&address, deadline)?.map_err(Unreached::NoBroker)?;
        let socket = Guarded::new(socket);
        killpoint::reach("fetch.after_connect");
        let peer = Peer::of(&socket).map_err(|e| Error::system("ask who the exporter is", e))?;
        if peer.uid != owner {
            let why = format!(
                "the socket that should be the exporter's is answered by user {} and lies in a directory of user {owner}: it is not used",
                peer.uid
            );
            return Err(Error::new(ErrorKind::Denied, why).into());
        }
        let host = Arc::new(Self {
            id,
            table,
            instance: envelope.instance,
            address,
            session: u64::from_le_bytes(identity::random()?).max(1),
            fork: ur_mapping::fork_count(),
            socket: Mutex::new(Arc::new(socket)),
            who: peer.who(),
            pidfd: peer.into_pidfd(),
            state: AtomicU8::new(State::Connected as u8),
            holds: Mutex::new(0),
            changed: Condvar::new(),
            returning: Mutex::default(),
            turn: RequestLock::default(),
            next: AtomicU64::new(1),
            overdue: Mutex::default(),
            read: AtomicU64::new(0),
            pending: Mutex::default(),
            memory: Mutex::default(),
            ledgers: Mutex::default(),
            arenas: Mutex::default(),
        });
        table.enter(&host)?;
        liveness::watch(Source::Host(host.id), &*host.socket(), END)?;
        if let Some(pidfd) = &host.pidfd {
            liveness::watch(Source::HostProcess(host.id), pidfd, EventFlags::IN)?;
        }
        Ok(host)
    }
    /// The number by which the watcher thread finds it.
    pub fn id(&self) -> u64 {
        self.id
    }
    fn socket(&self) -> Arc<Guarded> {
        locked(&self.socket).clone()
    }
    fn state(&self) -> State {
        State::of(self.state.load(Acquire)) // pairs with the Release in `turn_to`
    }
    /// Changes the state if it is one of `from`. The caller passes the guard of `holds` as proof that it holds that
    /// lock.
    fn turn_to(&self, state: State, from: &[State], _holds: &MutexGuard<'_, usize>) -> bool {
        let is_from = from.contains(&self.state());
        if is_from {
            self.state.store(state as u8, Release);
            self.changed.notify_all();
        }
        is_from
    }
    /// Whether the connection can no longer be used for opens, so that the next open needs another.
    pub fn is_over(&self) -> bool {
        self.state() >= State::Cut
    }
    /// Like [`Host::is_over`], and also checks the exporter's pidfd, because the watcher thread may not have noticed
    /// its end yet.
    pub fn is_gone(&self) -> bool {
        self.is_over() || self.is_dead()
    }
    fn is_dead(&self) -> bool {
        self.pidfd.as_ref().is_some_and(is_dead)
    }
    fn is_ours(&self) -> Result<()> {
        if self.fork == ur_mapping::fork_count() {
            return Ok(());
        }
        Err(inherited("what was opened from a ticket"))
    }
    /// Whether what was opened over the connection stands, as far as this process has noticed.
    pub fn check_state(&self) -> Result<()> {
        match self.state() {
            State::Connected | State::Suspect => Ok(()),
            State::Cut => Err(cut_error()),
            State::Gone => Err(gone_error()),
        }
    }
    /// Whether something can be opened over the connection. If not, nothing that is open is affected: another
    /// connection may do.
    fn check_way(&self) -> Result<()> {
        if self.is_over() { Err(gone_error()) } else { Ok(()) }
    }
    /// Like [`Host::check_state`], and also checks the exporter's pidfd.
    pub fn check(&self) -> Result<()> {
        if self.is_dead() { Err(gone_error()) } else { self.check_state() }
    }
    /// Whether the ledger states that the object behind an export was freed; it does not if the export was withdrawn
    /// before.
    pub fn has_freed(&self, envelope: &Envelope) -> bool {
        let ledger = locked(&self.ledgers).get(&envelope.ledger).cloned();
        let (line, tag, generation) = (envelope.index, envelope.tag(), envelope.generation);
        ledger.is_some_and(|ledger| ledger.check(line, tag, generation) == ledger::State::Freed)
    }
    /// Waits until it is known whether the exporter is there; returns `false` if it is not known by the deadline.
    fn is_settled_by(&self, deadline: Instant) -> bool {
        if self.state() != State::Suspect {
            return true;
        }
        let patience = deadline.saturating_duration_since(Instant::now());
        let is_open = |_: &mut usize| self.state() == State::Suspect;
        let waited = self.changed.wait_timeout_while(locked(&self.holds), patience, is_open);
        drop(ur_lock::unpoisoned(waited));
        self.state() != State::Suspect
    }
    fn live_arenas(&self) -> Vec<Arena> {
        locked(&self.arenas).values().filter_map(WeakArena::upgrade).collect()
    }

    /// The process ended or runs another program: wakes everything that waits for this exporter.
    pub fn mark_owner_dead(&self) {
        let living = [State::Connected, State::Suspect, State::Cut];
        if !self.turn_to(State::Gone, &living, &locked(&self.holds)) {
            return;
        }
        // A child of the exporter may keep the other end open; this process's threads then see the end all the same.
        let _ = shutdown(&*self.socket(), Shutdown::Both);
        self.unwatch();
        for arena in self.live_arenas() {
            arena.process_died(EXPORTER);
        }
        self.table.forget(self.instance, self.id);
    }
    /// The connection can no longer be used, although the process may live. The exporter's pending signals stay
    /// pending, because their state is shared with other processes. The end of the process is still watched.
    fn cut_off(&self) {
        if self.pidfd.is_none() {
            return self.mark_owner_dead(); // without a pidfd its end would not be noticed
        }
        let living = [State::Connected, State::Suspect];
        if !self.turn_to(State::Cut, &living, &locked(&self.holds)) {
            return;
        }
        let _ = shutdown(&*self.socket(), Shutdown::Both); // fails only if the other end is closed already
        self.unwatch_connections();
        *locked(&self.pending) = Pending::default();
        let arenas = self.live_arenas();
        arenas.iter().for_each(Arena::orphan);
        self.table.forget(self.instance, self.id);
        if !arenas.is_empty() {
            due::look_at_once(self.id); // it may run another program by now
        }
    }
    /// Handles the end of the connection, whose cause is not known.
    pub fn ended(&self) {
        if self.pidfd.is_none() || self.is_dead() {
            return self.mark_owner_dead();
        }
        let holds = locked(&self.holds);
        if *holds == 0 {
            drop(holds);
            return self.cut_off();
        }
        let is_news = self.turn_to(State::Suspect, &[State::Connected], &holds);
        drop(holds);
        if is_news {
            liveness::unwatch(&*self.socket());
            due::look_at_once(self.id);
        }
    }
    fn unwatch(&self) {
        self.unwatch_connections();
        if let Some(pidfd) = &self.pidfd {
            liveness::unwatch(pidfd);
        }
    }
    fn unwatch_connections(&self) {
        liveness::unwatch(&*self.socket());
        self.drop_return();
    }
    /// Abandons the attempt to resume that is under way, if any.
    fn drop_return(&self) {
        let mut way = locked(&self.returning);
        way.idle = None;
        if let Some((socket, _)) = way.asked.take() {
            liveness::unwatch(&*socket);
        }
    }
    /// Handles the end of the connection; returns the error.
    fn lost(&self) -> Error {
        self.ended();
        gone_error()
    }
    /// Closes the connection to a peer that violates the protocol.
    fn hang_up(&self) {
        self.cut_off();
    }
    /// Handles an event on the connection; called on the watcher thread.
    pub fn hear(&self, flags: EventFlags) {
        let socket = self.socket();
        if flags.intersects(EventFlags::HUP | EventFlags::ERR | EventFlags::RDHUP) {
            // The event may belong to the previous connection: check that this one has ended.
            let end = PollFlags::HUP | PollFlags::ERR | PollFlags::RDHUP;
            if look_at(&*socket, PollFlags::RDHUP).is_ok_and(|seen| !seen.intersects(end)) {
                return;
            }
            return self.ended();
        }
        liveness::rewatch(Source::Host(self.id), &*socket, END);
        if flags.contains(EventFlags::OUT) {
            self.flush_pending();
        }
        // If a thread is making a request now, it receives what arrived itself.
        if flags.contains(EventFlags::IN)
            && let Some(_turn) = self.turn.try_take()
        {
            while let Ok((number, answer, _)) = self.hear_answer(None) {
                if !self.forget(number, &answer) {
                    return self.hang_up();
                }
            }
            self.acknowledge();
            if self.state() == State::Connected && !locked(&self.overdue).is_empty() {
                liveness::rewatch(Source::Host(self.id), &*socket, END | EventFlags::IN);
            }
        }
    }
}
impl Drop for Host {
    fn drop(&mut self) {
        if self.is_ours().is_err() {
            return;
        }
        if self.state() != State::Gone {
            self.unwatch();
        }
        self.table.leave(self.id);
    }
}

pub(crate) fn gone_error() -> Error {
    let why = "the process that made this ticket is gone, and what it shared with it: start it again and ask for a new ticket";
    Error::new(ErrorKind::ExporterGone, why)
}
fn cut_error() -> Error {
    let why = "the connection over which this was opened is lost, and its exporter does not keep it for this process any more: close it, and open its ticket anew";
    Error::new(ErrorKind::Freed, why)
}
fn silent() -> Error {
    let why =
        "the exporter did not answer within two seconds: it is stopped or overloaded; try again";
    Error::new(ErrorKind::TimedOut, why)
}
fn nonsense() -> Error {
    refusal(Verdict::Nonsense)
}

#[cfg(test)]
mod tests;
