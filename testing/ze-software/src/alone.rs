//! One thread at a time (`ZE_SOFTWARE_CHECK_THREADS`): Intel's driver keeps no lock over what an immediate list knows,
//! which a synchronisation clears and an append adds to.
use crate::knob;
use std::sync::{
    LazyLock,
    atomic::{AtomicBool, Ordering::SeqCst},
};

fn is_checked() -> bool {
    static CHECKED: LazyLock<bool> = LazyLock::new(|| knob::is("CHECK_THREADS", "1"));
    *CHECKED
}

/// What one thread at a time may use.
#[derive(Default)]
pub struct Alone(AtomicBool);
/// A thread's use of it, until this is dropped.
pub struct Use<'of>(&'of Alone);
impl Alone {
    /// Begins a use; a second one meanwhile ends the process.
    pub fn begin(&self, doing: &str) -> Option<Use<'_>> {
        if !is_checked() {
            return None;
        }
        if self.0.swap(true, SeqCst) {
            eprintln!("ze-software: a thread {doing} a command list while another one uses it");
            std::process::abort();
        }
        std::thread::yield_now(); // so that others come meanwhile, if nothing keeps them
        Some(Use(self))
    }
}
impl Drop for Use<'_> {
    fn drop(&mut self) {
        self.0.0.store(false, SeqCst);
    }
}
