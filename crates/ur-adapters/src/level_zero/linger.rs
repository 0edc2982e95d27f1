//! What C released while commands may still use it.
use super::queue::{self, Ticket};
use crate::linger::Lingering;

static LINGERING: Lingering<Ticket> = Lingering::new();

impl crate::linger::Ticket for Ticket {
    fn is_over(&self) -> bool {
        Ticket::is_over(self)
    }
}
/// Drops `what` when the commands in queues of the context with this handle are done: now, if they are.
pub(super) fn leave(context: usize, what: impl Send + 'static) {
    sweep();
    LINGERING.leave(queue::ticket(context), what);
}
/// Drops what nothing uses any more.
pub(super) fn sweep() {
    LINGERING.sweep();
}
