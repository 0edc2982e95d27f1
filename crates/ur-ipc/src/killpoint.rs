//! Named places at which a test has this process die, as SIGKILL would have it: to prove that peers survive it there.
//! Release builds without the feature `killpoints` contain nothing of it.

/// Dies here if `CAUSEWAY_KILL_AT` is `name`, or at the n-th time if it is `name:n`.
#[inline]
pub fn reach(name: &str) {
    #[cfg(any(debug_assertions, feature = "killpoints"))]
    armed::reach(name);
    #[cfg(not(any(debug_assertions, feature = "killpoints")))]
    let _ = name;
}

#[cfg(any(debug_assertions, feature = "killpoints"))]
mod armed {
    use std::sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering::Relaxed},
    };

    struct Armed {
        name: String,
        left: AtomicU32,
    }

    pub fn reach(name: &str) {
        static ARMED: OnceLock<Option<Armed>> = OnceLock::new();
        let armed = ARMED.get_or_init(|| parse(&std::env::var("CAUSEWAY_KILL_AT").ok()?));
        if let Some(armed) = armed.as_ref().filter(|armed| armed.name == name)
            && armed.left.fetch_sub(1, Relaxed) == 1
        {
            use rustix::process::{Signal, getpid, kill_process};
            let killed = kill_process(getpid(), Signal::KILL);
            unreachable!("SIGKILL to oneself does not return: {killed:?}");
        }
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
