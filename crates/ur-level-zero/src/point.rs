//! Points: the end of a command, an event that the application made, or one that is signalled again and again. What marks the
//! end of a command is `signal.rs`'s; whose turn it is to signal an event is `reusable.rs`'s.
use super::{
    announcer,
    driver::RawEvent,
    host_task::wait_across,
    native::event::EventKind,
    p2p,
    reusable::{Core, Pending, PendingRemote, lost},
    signal::{EVER, Signal},
    submission::Waits,
    work::QueueState,
};
use std::{ptr, sync::Arc};
use ur_hal::{Result, Status, Times};

/// What the core knows as a point.
#[derive(Debug)]
pub enum Point {
    /// The end of one command.
    Command(Signal),
    /// An event of the driver's that the application made.
    Native(EventKind),
    /// One that is signalled again and again, perhaps in any process that has it.
    Reusable(Arc<Core>),
    /// One signal of such an event.
    Latest(Pending),
}
/// What there is to wait for.
pub(super) enum Seen<'a> {
    Nothing,
    Command(&'a Signal),
    Native(&'a EventKind),
    PendingRemote(&'a PendingRemote),
}
impl Pending {
    fn seen(&self) -> Seen<'_> {
        match self {
            Self::Own(signal) => Seen::Command(signal),
            Self::Other(owed) => Seen::PendingRemote(owed),
        }
    }
}
impl Point {
    /// Looks at what there is to wait for now.
    #[inline]
    pub(super) fn look<R>(&self, look: impl FnOnce(Seen<'_>) -> R) -> R {
        match self {
            Self::Command(signal) => look(Seen::Command(signal)),
            Self::Native(event) => look(Seen::Native(event)),
            Self::Latest(pending) => look(pending.seen()),
            Self::Reusable(core) => match core.owed() {
                Some(pending) => look(pending.seen()),
                None => look(Seen::Nothing),
            },
        }
    }
    /// Whether commands signal it again and again: then it may be another process that does.
    fn is_reusable(&self) -> bool {
        matches!(self, Self::Reusable(_) | Self::Latest(_))
    }
    pub(super) fn status(&self) -> Status {
        self.look(|seen| match seen {
            Seen::Nothing => Status::Complete,
            Seen::Command(signal) => signal.status(),
            Seen::Native(event) => match event.is_complete() {
                Ok(true) => Status::Complete,
                Ok(false) => Status::Submitted,
                Err(error) if !error.kind().is_gone() => Status::Submitted,
                Err(_) => Status::Failed,
            },
            Seen::PendingRemote(owed) if owed.is_lost() => Status::Failed,
            Seen::PendingRemote(_) => Status::Submitted,
        })
    }
    /// # Errors
    /// `IN_EVENT_LIST_EXEC_STATUS` for what never comes; the driver's own.
    #[inline]
    pub(super) fn wait(&self) -> Result<()> {
        let waited = self.look(|seen| match seen {
            Seen::Nothing => Ok(()),
            Seen::Command(signal) => Ok(signal.wait()?),
            Seen::Native(event) => Ok(event.wait(EVER).map(drop)?),
            Seen::PendingRemote(owed) => Ok(owed.wait()?),
        });
        if self.is_reusable() {
            announcer::look(); // whoever waited may end now
        }
        waited
    }
    /// # Errors
    /// The driver's own.
    pub(super) fn times(&self) -> Result<Option<Times>> {
        match self {
            Self::Command(signal) => Ok(signal.times()?),
            Self::Reusable(core) => Ok(core.times()?),
            Self::Native(_) | Self::Latest(_) => Ok(None),
        }
    }
    /// The driver's event.
    ///
    /// # Errors
    /// The driver's own.
    pub(super) fn raw(&self) -> Result<RawEvent> {
        match self {
            // Under way: the application's own list may wait for it.
            Self::Command(signal) => Ok(signal.raw()?),
            Self::Latest(Pending::Own(signal)) => Ok(signal.raw()?),
            Self::Native(event) => Ok(event.raw()),
            Self::Reusable(core) => Ok(core.event().raw()),
            Self::Latest(Pending::Other(owed)) => Ok(owed.event().raw()),
        }
    }
    /// Sees to it that a command of `work` may wait for it: it must be under way, or done where no list can wait for it.
    ///
    /// # Errors
    /// The driver's own.
    pub(super) fn send_for(&self, work: &QueueState) -> Result<()> {
        self.look(|seen| {
            let Seen::Command(signal) = seen else { return Ok(()) };
            match ptr::eq(signal.work().as_ref(), work) {
                true if work.is_in_order => Ok(()), // it is behind it by being there
                _ => Ok(signal.mark()?),
            }
        })
    }
    /// Adds what it stands for now to what a command of `work` waits for; `keep`: what must live until then.
    ///
    /// # Errors
    /// `IN_EVENT_LIST_EXEC_STATUS` if that has failed or never comes; the driver's own.
    pub(super) fn order(
        &self,
        work: &QueueState,
        waits: &mut Waits,
        keep: impl FnOnce(&EventKind),
    ) -> Result<()> {
        self.look(|seen| {
            match seen {
                Seen::Nothing => {}
                Seen::Native(event) => waits.events.push(event.raw()),
                Seen::Command(signal) => return order_behind(signal, work, waits, keep),
                // Of an event whose exporter has ended the driver must not be asked any more.
                Seen::PendingRemote(owed) if owed.is_lost() || !owed.is_within_reach() => {
                    return Err(lost());
                }
                Seen::PendingRemote(owed) => waits.owed.push(owed.clone()),
            }
            Ok(())
        })
    }
}
fn order_behind(
    signal: &Signal,
    work: &QueueState,
    waits: &mut Waits,
    keep: impl FnOnce(&EventKind),
) -> Result<()> {
    if let Some(known) = signal.known() {
        return known;
    }
    let is_own = ptr::eq(signal.work().as_ref(), work);
    if is_own && work.is_in_order {
        return Ok(());
    }
    if let Some(dependencies) = signal.dependencies() {
        waits.dependencies.push(dependencies.clone());
    }
    let Some(end) = signal.kind() else { return Ok(()) }; // done, by what `send_for` saw
    if !is_own && !p2p::can_access(&work.device, &signal.work().device)? {
        return wait_across(signal, end, work, waits, keep);
    }
    waits.events.push(end.raw());
    keep(end);
    if !is_own {
        signal.work().debts().into_iter().for_each(|debt| work.owe(debt));
    }
    Ok(())
}
