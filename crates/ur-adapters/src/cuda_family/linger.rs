//! What C released while commands in streams may still use it, of one dialect.
use super::{
    driver::Dialect,
    queue::{self, Ticket},
};
pub(super) type Lingering<D> = crate::linger::Lingering<Ticket<D>>;

impl<D: Dialect> crate::linger::Ticket for Ticket<D> {
    fn is_over(&self) -> bool {
        Ticket::is_over(self)
    }
}
/// Drops `what` when the commands in queues of the context with this handle are done: now, if they are.
pub(super) fn leave<D: Dialect>(context: usize, what: impl Send + 'static) {
    sweep::<D>();
    D::statics().lingering.leave(queue::ticket::<D>(context), what);
}
/// Drops what nothing uses any more.
pub(super) fn sweep<D: Dialect>() {
    D::statics().lingering.sweep();
}
