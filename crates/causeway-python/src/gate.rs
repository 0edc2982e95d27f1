//! What keeps a fork apart from calls of the runtime on other threads: a child would inherit the locks that they hold, and wait
//! for ever. Threads that have the interpreter's lock are no matter, since the one that forks has it.
use crate::leaving::{detached, forget_others};
use pyo3::prelude::*;
use std::{
    any::Any,
    cell::{Cell, RefCell},
    mem::ManuallyDrop,
    sync::{Once, PoisonError, RwLock, RwLockWriteGuard},
};

type Shut = RwLockWriteGuard<'static, ()>;
static GATE: RwLock<()> = RwLock::new(());
thread_local! {
    /// Whether this thread is in `released` already.
    static IS_INSIDE: Cell<bool> = const { Cell::new(false) };
    /// The gate, shut by this thread, which forks. Dropped by hand: a handler of a fork registers nothing for a thread's end.
    static FORKING: Cell<Option<ManuallyDrop<Shut>>> = const { Cell::new(None) };
    /// What waits until this thread is outside.
    static LEFT: RefCell<Vec<Box<dyn Any>>> = const { RefCell::new(vec![]) };
}

/// Calls the runtime without the interpreter's lock.
pub fn released<T: Send>(py: Python<'_>, act: impl FnOnce() -> T + Send) -> T {
    detached(py, || entered(act))
}
/// Calls the runtime on a thread that does not have the interpreter's lock.
pub fn entered<T>(act: impl FnOnce() -> T) -> T {
    // Not twice: between the two a thread may have come to fork, which lets nobody in.
    if IS_INSIDE.get() {
        return act();
    }
    let gate = GATE.read().unwrap_or_else(PoisonError::into_inner);
    let inside = Inside::new();
    let done = act();
    drop((inside, gate));
    drop(LEFT.take());
    done
}
/// Drops what may ask for the interpreter's lock. A thread that forks has that while it waits for those inside.
pub fn drop_outside(what: impl Any) {
    if IS_INSIDE.get() {
        LEFT.with_borrow_mut(|left| left.push(Box::new(what)));
    }
}
struct Inside;
impl Inside {
    fn new() -> Self {
        IS_INSIDE.set(true);
        Self
    }
}
impl Drop for Inside {
    fn drop(&mut self) {
        IS_INSIDE.set(false);
    }
}

/// Waits, without the interpreter's lock, until no thread calls the runtime, so that `shut` waits for few: it has that lock.
#[pyfunction]
pub fn before_fork(py: Python<'_>) {
    if !IS_INSIDE.get() {
        detached(py, || drop(shut()));
    }
}
/// Shuts the gate during each fork, and not before: what Python, or a library, does before a fork may wait for a lock that a thread
/// holds which calls the runtime.
pub fn shut_at_forks() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| ur_mapping::around_forks(before, after, after_in_child));
}
fn shut() -> Shut {
    GATE.write().unwrap_or_else(PoisonError::into_inner)
}
extern "C" fn before() {
    if !IS_INSIDE.get() {
        FORKING.set(Some(ManuallyDrop::new(shut())));
    }
}
extern "C" fn after() {
    drop(FORKING.take().map(ManuallyDrop::into_inner));
}
extern "C" fn after_in_child() {
    forget_others();
    after();
}
