//! Checks that only one thread at a time uses an immediate list (`ZE_SOFTWARE_CHECK_THREADS`): Intel's driver
//! does not lock the state of such a list, which a synchronization clears and an append adds to.
use crate::knob;
use std::sync::{
    LazyLock,
    atomic::{AtomicBool, Ordering::SeqCst},
};

fn is_checked() -> bool {
    static CHECKED: LazyLock<bool> = LazyLock::new(|| knob::is("CHECK_THREADS", "1"));
    *CHECKED
}

/// Something that only one thread at a time may use.
#[derive(Default)]
pub struct Alone(AtomicBool);
/// A thread's use of it; ends on drop.
pub struct Use<'of>(&'of Alone);
impl Alone {
    /// Begins a use; ends the process if there is another one.
    pub fn begin(&self, doing: &str) -> Option<Use<'_>> {
        if !is_checked() {
            return None;
        }
        if self.0.swap(true, SeqCst) {
            eprintln!("ze-software: a thread {doing} a command list while another one uses it");
            std::process::abort();
        }
        std::thread::yield_now(); // gives concurrent uses a chance, if nothing prevents them
        Some(Use(self))
    }
}
impl Drop for Use<'_> {
    fn drop(&mut self) {
        self.0.0.store(false, SeqCst);
    }
}
