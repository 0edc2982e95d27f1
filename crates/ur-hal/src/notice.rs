//! What a driver tells the user where no call can return it as an error: in destructors, on threads of its own, and
//! while it looks for devices. Whoever uses the driver writes it to a log.
use std::{fmt::Display, sync::RwLock};
use ur_lock::{read_locked, write_locked};

/// How serious a notice is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Severity {
    /// What is as it should be, for those who look for a cause.
    Info,
    /// Something that did not work, which the program may survive.
    Warning,
    /// Something that has to work.
    Error,
    /// A mistake in the environment of the process: a warning, which is also for those who listen later.
    Environment,
}
/// A function that gets a driver's notices.
pub type Listener = fn(Severity, &dyn Display);

static LISTENERS: RwLock<Vec<(&str, Listener)>> = RwLock::new(Vec::new());

/// Sends the notices of the driver with this name to `listener`, too. A second call with the same arguments has no effect.
pub fn on_notice(driver: &'static str, listener: Listener) {
    let mut listeners = write_locked(&LISTENERS);
    if !listeners.iter().any(|(name, one)| *name == driver && std::ptr::fn_addr_eq(*one, listener))
    {
        listeners.push((driver, listener));
    }
}
/// Tells the listeners of `driver` what happened.
pub fn notice(driver: &str, severity: Severity, what: &dyn Display) {
    // Copied, so that no lock is held while a listener runs, which may call the driver.
    let listeners: Vec<_> = read_locked(&LISTENERS).clone();
    listeners.iter().filter(|(name, _)| *name == driver).for_each(|(_, one)| one(severity, what));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use ur_lock::locked;

    static HEARD: Mutex<Vec<(Severity, String)>> = Mutex::new(Vec::new());

    #[test]
    fn a_listener_hears_its_driver_once() {
        let listener: Listener = |severity, what| locked(&HEARD).push((severity, what.to_string()));
        on_notice("one driver", listener);
        on_notice("one driver", listener);
        notice("one driver", Severity::Warning, &"an event could not be destroyed");
        notice("another", Severity::Error, &"not for this listener");
        let heard = locked(&HEARD).clone();
        assert_eq!(heard, [(Severity::Warning, "an event could not be destroyed".to_string())]);
    }
}
