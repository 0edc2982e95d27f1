//! Polling briefly before sleeping. This is worthwhile if the other thread runs on another processor and is nearly
//! done. With one processor or a real-time policy it never is, because the spinning thread keeps the other from
//! running. After failures it is tried ever more rarely: on a busy machine, for example, or if two threads share a
//! processor.
use crate::{online_cpus, scheduled_real_time};
use std::{
    cell::Cell,
    hint,
    sync::OnceLock,
    thread::LocalKey,
    time::{Duration, Instant},
};

/// About as long as a sleep and a wake-up take, so that waiting costs at most twice the necessary time.
pub const SPIN: Duration = Duration::from_micros(20);
/// The failure count beyond which trying less often would save hardly anything more.
const LEAST_HOPE: u32 = 9;
/// A failure longer ago than this belongs to a long wait, and says nothing about the next one.
const LONG_AGO: Duration = Duration::from_micros(500);

/// What a thread has learned about its own spinning for one kind of wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hope {
    /// How many spins have failed since the last success. It starts at one, so that a thread checks its scheduling
    /// policy before its first spin, and again after each failure.
    failures: u32,
    /// How many waits skip the spin.
    skip: u32,
    /// When the last spin failed; cleared by the next wait.
    failed: Option<Instant>,
}
impl Hope {
    /// Nothing learned yet.
    pub const FIRST: Self = Self { failures: 1, skip: 0, failed: None };

    /// Whether to spin now. `forbidden` is called only if the last spin failed.
    fn turn(&mut self, forbidden: impl Fn() -> bool) -> bool {
        if self.failed.take().is_some_and(|failed| failed.elapsed() > LONG_AGO) {
            *self = Self::FIRST;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return false;
        }
        self.failures == 0 || !forbidden()
    }
    fn note(&mut self, success: bool) {
        *self = match success {
            true => Self { failures: 0, ..Self::FIRST },
            false => {
                let failures = (self.failures + 1).min(LEAST_HOPE);
                // 0 after the first failure, 1 after the second, then twice as many each time.
                Self { failures, skip: (1 << failures) >> 2, failed: Some(Instant::now()) }
            }
        };
    }
}
fn forbidden() -> bool {
    static ALONE: OnceLock<bool> = OnceLock::new();
    *ALONE.get_or_init(|| online_cpus() == 1) || scheduled_real_time()
}

/// Polls with `look` for at most `limit`. It polls only once if `hope` has learned that spinning would be in vain or
/// would keep the other side from running.
pub fn look_for<T>(
    hope: &'static LocalKey<Cell<Hope>>,
    limit: Duration,
    mut look: impl FnMut() -> Option<T>,
) -> Option<T> {
    if let Some(seen) = look() {
        return Some(seen);
    }
    let mut learned = hope.get();
    let found = learned.turn(forbidden).then(|| {
        let found = spin(limit, look);
        learned.note(found.is_some());
        found
    });
    hope.set(learned);
    found.flatten()
}
fn spin<T>(limit: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let mut end = None;
    loop {
        // Reading the clock costs more than polling, so it is read only once in a while.
        for _ in 0..32 {
            if let Some(seen) = look() {
                return Some(seen);
            }
            hint::spin_loop();
        }
        let now = Instant::now();
        if now >= *end.get_or_insert(now + limit) {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_spins_in_vain_spins_less_until_it_helps() {
        let mut hope = Hope::FIRST;
        let mut spins = 0;
        for _ in 0..10_000 {
            if hope.turn(|| false) {
                hope.note(false);
                spins += 1;
            }
        }
        assert!((60..120).contains(&spins), "{spins}");
        while !hope.turn(|| false) {}
        hope.note(true);
        assert!((0..1_000).all(|_| {
            let turn = hope.turn(|| true);
            hope.note(true);
            turn
        }));
    }
    #[test]
    fn a_failure_alone_or_long_ago_discourages_nobody() {
        let mut hope = Hope { failures: 0, ..Hope::FIRST };
        hope.note(false);
        assert!(hope.turn(|| false));
        for _ in 0..20 {
            hope.note(false);
        }
        assert!(!{ hope }.turn(|| false));
        hope.failed = Instant::now().checked_sub(LONG_AGO * 2);
        assert!(hope.turn(|| false));
    }
    #[test]
    fn a_thread_that_must_not_spin_does_not() {
        assert!(!{ Hope::FIRST }.turn(|| true));
    }
    #[test]
    fn spinning_ends_soon_and_with_what_it_looks_for() {
        let mut looks = 0_u64;
        let none = spin(Duration::ZERO, || {
            looks += 1;
            None::<()>
        });
        assert_eq!((none, looks), (None, 32));
        let start = Instant::now();
        assert_eq!(spin(SPIN, || (start.elapsed() > SPIN / 2).then_some(7)), Some(7));
        assert_eq!(spin(SPIN, || None::<()>), None);
    }
}
