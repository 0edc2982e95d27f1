//! What the user should know although no call of his failed: sentences for the log of whoever uses this crate.
use std::{fmt::Display, sync::OnceLock};

/// Without a lock, which a forked child could find locked for ever.
static HEARER: OnceLock<fn(&dyn Display)> = OnceLock::new();

/// Has `hearer` called with each sentence, on the thread where its cause was noticed and with no lock of this crate
/// held. The first one that is named stays.
pub fn on_notice(hearer: fn(&dyn Display)) {
    let _ = HEARER.set(hearer); // the first one stays
}

/// To be called with no lock held.
pub(crate) fn notice(sentence: &dyn Display) {
    if let Some(hearer) = HEARER.get() {
        // A panic of the program's must not end the thread on which all peers depend; it has been printed.
        let _ = ur_lock::caught(|| hearer(sentence));
    }
}
