//! Memory on its way back, of a backend: what `waiting.rs` keeps until commands and other processes are done with it.
use super::allocation::{DeferredItem, Memory, unleased};
use ur_ipc::Kind;

pub use super::waiting::{DeferredFree, Moment, is_for_room};

/// What is not an allocation, on its way to become [`DeferredItem::Other`]: it gets a box of its own only where it waits.
struct Other<T>(T);
impl<M: Memory, T: Send + 'static> From<Other<T>> for DeferredItem<M> {
    fn from(Other(what): Other<T>) -> Self {
        Self::Other(Box::new(what))
    }
}
/// Drops `what` as soon as all of `moments` have passed.
pub fn after<M: Memory>(moments: Vec<M::Moment>, what: impl Send + 'static) {
    M::deferred().after(moments, Other(what));
}
/// The same for what is about to be dropped, and should not yet: nothing else is dropped here.
pub fn later<M: Memory>(moments: Vec<M::Moment>, what: impl Send + 'static) {
    M::deferred().enter(moments, Other(what));
}
/// Drops `what` when the commands in queues of the context with this handle are done, or in all queues if it is 0:
/// now, if they are.
pub fn leave<M: Memory>(context: usize, what: impl Send + 'static) {
    after::<M>(M::submitted(context), what);
}
/// Drops what no command uses any more, as far as a few questions tell.
pub fn sweep<M: Memory>() {
    M::deferred().sweep();
}
/// Drops all that no command uses any more: where memory has run out.
pub fn sweep_all<M: Memory>() {
    M::deferred().sweep_all();
}
/// Takes the memory of an object that was exported and is no more. It goes back for others to have
/// when no other process has the object open.
pub fn when_unleased<M: Memory>(object: u64, kind: Kind, kept: impl Send + 'static) {
    M::deferred().when_unleased((object, kind), kept, unleased::<M>);
}
/// Whether memory waits for other processes to close it.
pub fn is_leased_out<M: Memory>(object: u64, kind: Kind) -> bool {
    M::deferred().is_leased_out(object, kind)
}
