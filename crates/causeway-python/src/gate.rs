//! What keeps a fork apart from calls of the runtime on other threads: a child would inherit the locks that they hold, and wait
//! for ever. Threads that have the interpreter's lock are no matter, since the one that forks has it.
use crate::leaving::{detached, forget_others};
use pyo3::prelude::*;
use std::{
    cell::{Cell, RefCell},
    sync::{PoisonError, RwLock, RwLockWriteGuard},
};

static GATE: RwLock<()> = RwLock::new(());
thread_local! {
    /// Whether this thread is in `released` already.
    static IS_INSIDE: Cell<bool> = const { Cell::new(false) };
    /// The forks that this thread is about: a handler of a signal may fork while another fork is prepared.
    static FORKING: RefCell<Vec<Option<RwLockWriteGuard<'static, ()>>>> = const { RefCell::new(vec![]) };
}
fn is_forking() -> bool {
    FORKING.with_borrow(|forks| !forks.is_empty())
}

/// Calls the runtime without the interpreter's lock.
pub fn released<T: Send>(py: Python<'_>, act: impl FnOnce() -> T + Send) -> T {
    detached(py, || entered(act))
}
/// Calls the runtime on a thread that does not have the interpreter's lock.
pub fn entered<T>(act: impl FnOnce() -> T) -> T {
    // Not twice: between the two a thread may have come to fork, which lets nobody in. A thread that forks keeps the others out
    // itself; it comes here by a handler of a signal, or by what else is called at a fork.
    if IS_INSIDE.get() || is_forking() {
        return act();
    }
    let _gate = GATE.read().unwrap_or_else(PoisonError::into_inner);
    let _inside = Inside::new();
    act()
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

/// Waits until no thread calls the runtime, and keeps them from it until `after_fork`.
#[pyfunction]
pub fn before_fork(py: Python<'_>) {
    if IS_INSIDE.get() || is_forking() {
        begin_fork(None);
        return;
    }
    detached(py, || begin_fork(Some(GATE.write().unwrap_or_else(PoisonError::into_inner))));
}
fn begin_fork(gate: Option<RwLockWriteGuard<'static, ()>>) {
    FORKING.with_borrow_mut(|forks| forks.push(gate));
}
/// In the parent.
#[pyfunction]
pub fn after_fork() {
    FORKING.with_borrow_mut(Vec::pop);
}
/// In the child.
#[pyfunction]
pub fn after_fork_in_child() {
    forget_others();
    after_fork();
}
