//! Deferred free of a backend's memory and other objects: `waiting.rs` keeps them until commands and other processes no
//! longer use them. In a forked child nothing is dropped that is the [parent's](Memory::is_of_parent): it is leaked.
use super::allocation::{DeferredItem, Memory, unleased};
use ur_ipc::Kind;

pub use super::waiting::{DeferredFree, is_for_room};

/// An object other than an allocation, to become a [`DeferredItem::Other`]. It is boxed only if it really has to wait.
struct Other<T>(T);
impl<M: Memory, T: Send + 'static> From<Other<T>> for DeferredItem<M> {
    fn from(Other(what): Other<T>) -> Self {
        Self::Other(Box::new(what))
    }
}
/// Returns `what`, or leaks it if it is another process's.
fn own<M: Memory, T>(what: T) -> Option<T> {
    match M::is_of_parent() {
        false => Some(what),
        true => {
            std::mem::forget(what);
            None
        }
    }
}
/// Drops `what` as soon as all of `moments` have passed.
pub fn after<M: Memory>(moments: Vec<M::Moment>, what: impl Send + 'static) {
    if let Some(what) = own::<M, _>(what) {
        M::of_process().deferred.after(moments, Other(what));
    }
}
/// Like [`after`], for use inside a `drop`: no other deferred object is dropped here.
pub fn later<M: Memory>(moments: Vec<M::Moment>, what: impl Send + 'static) {
    if let Some(what) = own::<M, _>(what) {
        M::of_process().deferred.enter(moments, Other(what));
    }
}
/// Drops `what` when the commands submitted so far to queues of the context with this handle are complete (0: to all
/// queues), or now if they are already.
pub fn leave<M: Memory>(context: usize, what: impl Send + 'static) {
    if let Some(what) = own::<M, _>(what) {
        after::<M>(M::submitted(context, 0), what);
    }
}
/// Drops some of the objects that no command uses any more; asks the driver about a few queues only.
pub fn sweep<M: Memory>() {
    M::of_process().deferred.sweep();
}
/// Drops everything that no command uses any more. For use when memory has run out.
pub fn sweep_all<M: Memory>() {
    M::of_process().deferred.sweep_all();
}
/// Takes the memory of an exported object that has been freed, and drops it when no other process has the object open.
pub fn when_unleased<M: Memory>(object: u64, kind: Kind, kept: impl Send + 'static) {
    M::of_process().deferred.when_unleased((object, kind), kept, unleased::<M>);
}
/// Whether the memory of an object waits for other processes to close it.
pub fn is_leased_out<M: Memory>(object: u64, kind: Kind) -> bool {
    M::of_process().deferred.is_leased_out(object, kind)
}
