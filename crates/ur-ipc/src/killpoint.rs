//! Named places at which a test can make this process die as if by SIGKILL, stop as if by SIGSTOP, or panic. Tests use
//! them to prove that peers survive it there and that this process continues correctly. Release builds without the
//! feature `killpoints` contain none of them.

/// Dies here if `CAUSEWAY_KILL_AT` is `name`, or at the n-th time if it is `name:n`; stops here if the same holds for
/// `CAUSEWAY_STOP_AT`.
#[inline]
pub fn reach(name: &str) {
    #[cfg(any(debug_assertions, feature = "killpoints"))]
    armed::reach(name);
    #[cfg(not(any(debug_assertions, feature = "killpoints")))]
    let _ = name;
}

/// Panics here if `CAUSEWAY_PANIC_AT` is `name`, or at the n-th time if it is `name:n`.
#[inline]
pub fn panic_at(name: &str) {
    #[cfg(any(debug_assertions, feature = "killpoints"))]
    armed::panic_at(name);
    #[cfg(not(any(debug_assertions, feature = "killpoints")))]
    let _ = name;
}

#[cfg(any(debug_assertions, feature = "killpoints"))]
mod armed {
    use rustix::process::{Signal, getpid, kill_process};
    use std::sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering::Relaxed},
    };

    struct Armed {
        name: String,
        left: AtomicU32,
    }

    pub fn reach(name: &str) {
        static KILL: OnceLock<Option<Armed>> = OnceLock::new();
        static STOP: OnceLock<Option<Armed>> = OnceLock::new();
        if is_due(&KILL, "CAUSEWAY_KILL_AT", name) {
            let killed = kill_process(getpid(), Signal::KILL);
            unreachable!("SIGKILL to oneself does not return: {killed:?}");
        }
        if is_due(&STOP, "CAUSEWAY_STOP_AT", name) {
            // Stops this very thread, which does nothing more.
            ur_mapping::stop_here();
        }
    }
    fn is_due(armed: &OnceLock<Option<Armed>>, variable: &str, name: &str) -> bool {
        let armed = armed.get_or_init(|| parse(&std::env::var(variable).ok()?));
        let armed = armed.as_ref().filter(|armed| armed.name == name);
        armed.is_some_and(|armed| armed.left.fetch_sub(1, Relaxed) == 1)
    }
    pub fn panic_at(name: &str) {
        static ARMED: OnceLock<Option<Armed>> = OnceLock::new();
        assert!(!is_due(&ARMED, "CAUSEWAY_PANIC_AT", name), "asked for, at {name}");
    }
    fn parse(at: &str) -> Option<Armed> {
        let (name, times) = match at.split_once(':') {
            Some((name, times)) => (name, times.parse().ok()?),
            None => (at, 1),
        };
        (!name.is_empty()).then(|| Armed { name: name.into(), left: AtomicU32::new(times) })
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_place_may_be_named_with_a_count() {
            let armed = parse("complete.before_wake:3").unwrap();
            assert_eq!((armed.name.as_str(), armed.left.into_inner()), ("complete.before_wake", 3));
            assert_eq!(parse("publish.before").unwrap().left.into_inner(), 1);
            assert!(parse("").is_none() && parse("a:b").is_none());
        }
    }
}
