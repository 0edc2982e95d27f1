//! What keeps threads from an interpreter that ends. CPython before 3.14 ends a thread that asks for its lock after that by
//! `pthread_exit`, which unwinds the stack, and no frame of Rust may be on that: the process would crash. A thread that comes
//! back from the runtime by then stays where it is, as threads do from 3.14 on.
use pyo3::prelude::*;
use std::{
    cell::Cell,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    thread,
    time::{Duration, Instant},
};

/// Whether the interpreter ends.
static IS_OVER: AtomicBool = AtomicBool::new(false);
/// How many threads have seen that it does not, and ask for its lock.
static RETURNING: AtomicUsize = AtomicUsize::new(0);
thread_local! {
    /// Whether this thread ends it, which has the lock at the end.
    static ENDS_IT: Cell<bool> = const { Cell::new(false) };
}
/// How long such threads are waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// Does something without the interpreter's lock.
pub fn detached<T: Send>(py: Python<'_>, act: impl FnOnce() -> T + Send) -> T {
    let done = py.detach(|| {
        let done = act();
        ask_for_the_lock();
        done
    });
    RETURNING.fetch_sub(1, SeqCst);
    done
}
fn ask_for_the_lock() {
    // Sequentially consistent, as in `end`: either this sees that it is over, or `end` sees this.
    RETURNING.fetch_add(1, SeqCst);
    if IS_OVER.load(SeqCst) && !ENDS_IT.get() {
        RETURNING.fetch_sub(1, SeqCst);
        loop {
            thread::park();
        }
    }
}
/// The interpreter ends on this thread: no other one comes back to it from here on.
pub fn end(py: Python<'_>) {
    ENDS_IT.set(true);
    IS_OVER.store(true, SeqCst);
    py.detach(|| {
        let begun = Instant::now();
        while RETURNING.load(SeqCst) > 0 && begun.elapsed() < PATIENCE {
            thread::sleep(Duration::from_micros(100));
        }
    });
}
/// A forked child has none of its parent's other threads.
pub fn forget_others() {
    RETURNING.store(0, SeqCst);
}
