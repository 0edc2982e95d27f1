//! Looking again and again before falling asleep, where that helps and harms nobody.
use std::{
    cell::Cell,
    hint,
    sync::OnceLock,
    time::{Duration, Instant},
};

/// No longer than it takes to fall asleep and be woken.
const SPIN: Duration = Duration::from_micros(20);
/// After so many spins in vain the debtor may well be waiting for this very processor,
const VAIN: u8 = 4;
/// and only one wait of so many spins, until one succeeds.
const ONE_OF: u8 = 4;

/// What a thread knows of its own spinning.
#[derive(Clone, Copy)]
struct Habit {
    /// Unknown at first and after each sleep, since a thread's policy can change.
    allowed: Option<bool>,
    vain: u8,
}
thread_local! {
    static HABIT: Cell<Habit> = const { Cell::new(Habit { allowed: None, vain: 0 }) };
}

/// Not with one processor, and not in real time: there, who spins keeps the debtor from running.
fn allowed() -> bool {
    static ALONE: OnceLock<bool> = OnceLock::new();
    !*ALONE.get_or_init(|| ur_mapping::online_cpus() == 1) && !ur_mapping::scheduled_real_time()
}

impl Habit {
    /// Whether to spin now.
    fn turn(&mut self) -> bool {
        if !*self.allowed.get_or_insert_with(allowed) {
            return false;
        }
        if self.vain >= VAIN {
            self.vain += 1;
            if self.vain < VAIN + ONE_OF {
                return false;
            }
            self.vain = VAIN - 1;
        }
        true
    }
    fn note(&mut self, success: bool) {
        self.vain = if success { 0 } else { self.vain.saturating_add(1) };
    }
}

/// This thread has slept.
pub(super) fn slept() {
    HABIT.set(Habit { allowed: None, ..HABIT.get() });
}

/// Looks for something for 20 µs at most; not at all where that would be in vain, or keep the other side from running.
pub(super) fn look_for<T>(deadline: Option<Instant>, look: impl FnMut() -> Option<T>) -> Option<T> {
    let mut habit = HABIT.get();
    let found = habit.turn().then(|| {
        let found = spin(deadline, look);
        habit.note(found.is_some());
        found
    });
    HABIT.set(habit);
    found.flatten()
}

fn spin<T>(deadline: Option<Instant>, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let mut end = None;
    loop {
        // The clock costs more than a look, so it is read once in a while.
        for _ in 0..32 {
            if let Some(seen) = look() {
                return Some(seen);
            }
            hint::spin_loop();
        }
        let now = Instant::now();
        let end = *end.get_or_insert_with(|| deadline.map_or(now + SPIN, |at| at.min(now + SPIN)));
        if now >= end {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_spins_in_vain_spins_less_until_it_helps() {
        let mut habit = Habit { allowed: Some(true), vain: 0 };
        let spins = |habit: &mut Habit, success| {
            let turn = habit.turn();
            if turn {
                habit.note(success);
            }
            turn
        };
        let turns: Vec<_> = (0..12).map(|_| spins(&mut habit, false)).collect();
        let (yes, no) = (true, false);
        assert_eq!(turns, [yes, yes, yes, yes, no, no, no, yes, no, no, no, yes]);
        while !spins(&mut habit, true) {}
        assert!((0..4).all(|_| spins(&mut habit, false)));
        assert!(!spins(&mut habit, false));
    }
    #[test]
    fn a_thread_that_must_not_spin_does_not_look_once() {
        assert!(!Habit { allowed: Some(false), vain: 0 }.turn());
    }
    #[test]
    fn spinning_ends_soon_and_at_the_deadline() {
        let mut looks = 0_u64;
        let start = Instant::now();
        let none = spin(Some(start), || {
            looks += 1;
            None::<()>
        });
        assert_eq!((none, looks), (None, 32));
        assert_eq!(spin(None, || (start.elapsed() > SPIN / 2).then_some(7)), Some(7));
        assert_eq!(spin(None, || None::<()>), None);
    }
}
