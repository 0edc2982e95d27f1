//! Waiting for many debts in one thread, which another thread of this process can call away: what an executor of
//! commands with foreign dependencies stands on.
use super::{
    futex::{LOOK, until},
    protocol::{self, Progress, Word},
    spin,
    wait::Debt,
};
use crate::waiting::{sleep_on, sleep_on_any};
use rustix::{
    io::Errno,
    thread::futex::{Flags, Wait, WaitFlags, WaitPtr, wake},
};
use std::{
    borrow::Borrow,
    sync::atomic::{AtomicBool, AtomicU32, Ordering::*},
    thread,
    time::{Duration, Instant},
};

/// The kernel's limit for one call; one place is for the local word.
const AT_ONCE: usize = 128;
/// How long nobody looks at what a device is to pay.
const LOOK_AT_DEVICES: Duration = Duration::from_micros(50);
/// Beyond this many, looking at all of them takes longer than spinning could save.
const SPIN_UP_TO: usize = 8;

const IDLE: u32 = 0;
const ASLEEP: u32 = 1;
const CALLED: u32 = 2;

/// By which other threads of this process call one thread away from [`wait_any`]. A call made while nobody waits ends
/// the next wait at once.
#[derive(Debug, Default)]
pub struct LocalWake(AtomicU32);

impl LocalWake {
    /// With no call pending.
    pub const fn new() -> Self {
        Self(AtomicU32::new(IDLE))
    }
    /// Calls: what was done before it is seen by the thread after [`wait_any`] returned [`Any::Woken`].
    pub fn signal(&self) {
        // Release pairs with the Acquire in `take`.
        if self.0.swap(CALLED, AcqRel) == ASLEEP {
            // Fails for words that are no memory only.
            let _ = wake(&self.0, Flags::PRIVATE, 1);
        }
    }
    fn take(&self) -> bool {
        self.0.load(Relaxed) != IDLE && self.0.swap(IDLE, AcqRel) == CALLED
    }
    /// Says that the thread will sleep on the word; `false` if it was called meanwhile.
    fn announce(&self) -> bool {
        self.0.compare_exchange(IDLE, ASLEEP, AcqRel, Relaxed).is_ok()
    }
}

/// Why [`wait_any`] returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Any {
    /// The debt at this index is complete or failed; others may be too.
    Ready(usize),
    /// Somebody called.
    Woken,
    /// The deadline passed.
    TimedOut,
}

/// Sleeps until one of the debts is no longer pending, or somebody calls, or the deadline has passed. One thread at a
/// time for each `wake`.
///
/// Beyond 127 debts, and on kernels without `futex_waitv` (before 5.16, or under a filter), some or all of them are
/// looked at once a millisecond.
pub fn wait_any<D: Borrow<Debt>>(debts: &[D], wake: &LocalWake, deadline: Option<Instant>) -> Any {
    let look = || {
        if wake.take() {
            return Some(Any::Woken);
        }
        debts.iter().position(|d| d.borrow().progress() != Progress::Pending).map(Any::Ready)
    };
    let worth_it = || debts.iter().any(|debt| !debt.borrow().is_ours());
    if debts.len() <= SPIN_UP_TO
        && worth_it()
        && let Some(any) = spin::look_for(deadline, look)
    {
        return any;
    }
    loop {
        if let Some(any) = look() {
            return any;
        }
        if deadline.is_some_and(|at| Instant::now() >= at) {
            return Any::TimedOut;
        }
        if wake.announce() {
            sleep(debts, wake, until(deadline));
        }
    }
}

/// Sleeps on all words, or as many as the kernel takes at once; may return at any time without reason.
fn sleep<D: Borrow<Debt>>(debts: &[D], wake: &LocalWake, longest: Duration) {
    static LACKS_WAITV: AtomicBool = AtomicBool::new(false);
    let mut waits = [Wait::new(); AT_ONCE];
    waits[0].val = u64::from(ASLEEP);
    waits[0].uaddr = WaitPtr::new(wake.0.as_ptr().cast());
    waits[0].flags = WaitFlags::SIZE_U32 | WaitFlags::PRIVATE;
    // What devices pay they pay without waking anybody.
    let woken = || debts.iter().map(Borrow::borrow).filter(|debt: &&Debt| !debt.is_polled());
    let mut watched = 0;
    for (wait, debt) in waits[1..].iter_mut().zip(woken()) {
        watched += 1;
        let word = debt.word();
        let seen = word.load();
        let announced = match debt.judge(seen) {
            Progress::Pending => protocol::announce(&word, seen),
            _ => None,
        };
        let Some(seen) = announced else {
            return; // it moved: look again before sleeping
        };
        wait.val = u64::from(seen as u32);
        wait.uaddr = WaitPtr::new(word.low().as_ptr().cast());
        wait.flags = WaitFlags::SIZE_U32;
    }
    let lacks = LACKS_WAITV.load(Relaxed);
    let longest = match () {
        () if debts.iter().any(|debt| debt.borrow().is_polled()) => longest.min(LOOK_AT_DEVICES),
        () if watched < debts.len() || lacks => longest.min(LOOK),
        () => longest,
    };
    let slept = if lacks {
        sleep_on(&wake.0, Flags::PRIVATE, ASLEEP, longest)
    } else {
        sleep_on_any(&waits[..=watched], longest)
    };
    match slept {
        Ok(()) => {}
        Err(Errno::NOSYS | Errno::PERM) if !lacks => LACKS_WAITV.store(true, Relaxed),
        Err(_) => thread::sleep(LOOK), // out of memory, say: slow, and not a busy loop
    }
}
