//! Notices to the user about events that fail no call: the application of this crate registers a function that logs
//! them.
use std::{fmt::Display, sync::OnceLock};

/// Not behind a lock, because a forked child could find the lock held for ever.
static HEARER: OnceLock<fn(&dyn Display)> = OnceLock::new();

/// Registers `hearer`, which is called with each notice on the thread that noticed its cause, with no lock of this
/// crate held. The first registered function stays.
pub fn on_notice(hearer: fn(&dyn Display)) {
    let _ = HEARER.set(hearer); // the first one stays
}

/// Passes on a notice. The caller must hold no lock.
pub(crate) fn notice(sentence: &dyn Display) {
    if let Some(hearer) = HEARER.get() {
        // A panic of the registered function must not end the watcher thread, on which all peers depend. The panic hook
        // has printed it.
        let _ = ur_lock::caught(|| hearer(sentence));
    }
}
