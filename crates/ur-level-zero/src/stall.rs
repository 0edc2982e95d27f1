//! Streams that may stall: in their lists something waits for the host (a function of the application's, a thread of ours) or
//! for another process. Before Xe3p all lists share the line of a copy engine, and a copy of a list with the hint to leave
//! copies to that engine waits there for what is before it. So what stalls would hold up the copies of all others, among them
//! those that it waits for. A stream that may stall therefore keeps its copies on the engines of its kernels from then on, and
//! so does one that waits for it. Out of order, only copies that are behind something stay away.
use super::{
    native::list::Engine,
    p2p,
    point::{Point, Seen},
    work::{COPIES, LockedState, QueueState},
};
use std::{ptr, sync::atomic::Ordering::*};
use ur_hal::{Order, Result};

impl QueueState {
    /// Whether something in its lists may stall, or did.
    #[inline]
    pub(super) fn may_stall(&self) -> bool {
        self.may_stall.load(Acquire) // pairs with `keep_off_copiers`
    }
    /// Whether a copy out of order, which waits for nothing that stalls, may have the engine that all copies share.
    #[inline]
    pub(super) fn may_copy_apart(&self, turn: &LockedState, order: Order) -> bool {
        !self.may_stall() || order == Order::Free && turn.is_behind_barrier_there(COPIES)
    }
    /// From now on something in its lists may stall: what is appended next goes to a list without the hint.
    ///
    /// # Errors
    /// The driver's own.
    #[cold]
    pub(super) fn keep_off_copiers(&self, turn: &mut LockedState) -> Result<()> {
        if self.may_stall() {
            return Ok(());
        }
        let engine = self.engines.first;
        // The list of the application's is as the application made it.
        if engine.offloads && self.is_in_order && !turn.is_lent(0) {
            self.go_on_in_another(turn, Engine { offloads: false, ..engine })?;
        }
        self.may_stall.store(true, Release); // read by who waits for a command of it
        Ok(())
    }
}
impl Point {
    /// Whether what waits for it in a list of `work` may stall.
    pub(super) fn may_stall(&self, work: &QueueState) -> Result<bool> {
        self.look(|seen| match seen {
            Seen::Nothing => Ok(false),
            Seen::Command(signal) if signal.known().is_some() => Ok(false),
            Seen::Command(signal) => {
                let of = signal.work();
                // An in-order stream has it behind that by its being there.
                let is_behind = ptr::eq(of.as_ref(), work) && work.is_in_order;
                // Of a device out of reach a thread of ours waits.
                Ok(!is_behind && (of.may_stall() || !p2p::can_access(&work.device, &of.device)?))
            }
            // The application may signal it from the host; the other process may do so when it likes.
            Seen::Native(event) => Ok(!matches!(event.is_complete(), Ok(true))),
            Seen::PendingRemote(_) => Ok(true),
        })
    }
}
