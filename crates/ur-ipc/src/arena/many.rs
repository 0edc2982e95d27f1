//! Waiting for many pending signals in one thread, which other threads of this process can interrupt. An executor of
//! commands with foreign dependencies is built on this.
use super::{
    futex::{LOOK, until},
    protocol::{self, Progress, Word},
    spin,
    wait::PendingSignal,
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

/// The kernel's limit for one call; one place is used by the local word.
const AT_ONCE: usize = 128;
/// The polling interval for signals that a device completes.
const LOOK_AT_DEVICES: Duration = Duration::from_micros(50);
/// With more signals than this, polling all of them takes longer than spinning could save.
const SPIN_UP_TO: usize = 8;

const IDLE: u32 = 0;
const ASLEEP: u32 = 1;
const CALLED: u32 = 2;

/// Lets other threads of this process interrupt a thread in [`wait_any`]. An interrupt that comes while no thread waits
/// ends the next wait at once.
#[derive(Debug, Default)]
pub struct LocalWake(AtomicU32);

impl LocalWake {
    /// Makes one without a pending interrupt.
    pub const fn new() -> Self {
        Self(AtomicU32::new(IDLE))
    }
    /// Interrupts the wait. What was done before is visible to the waiting thread once [`wait_any`] returns
    /// [`Any::Woken`].
    pub fn signal(&self) {
        // Release pairs with the Acquire in `take`.
        if self.0.swap(CALLED, AcqRel) == ASLEEP {
            // Fails only for an address that is not mapped.
            let _ = wake(&self.0, Flags::PRIVATE, 1);
        }
    }
    fn take(&self) -> bool {
        self.0.load(Relaxed) != IDLE && self.0.swap(IDLE, AcqRel) == CALLED
    }
    /// Announces that the thread will sleep on the word; `false` if it was interrupted meanwhile.
    fn announce(&self) -> bool {
        self.0.compare_exchange(IDLE, ASLEEP, AcqRel, Relaxed).is_ok()
    }
}

/// Why [`wait_any`] returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Any {
    /// The signal at this index is complete or failed; others may be too.
    Ready(usize),
    /// Another thread called [`LocalWake::signal`].
    Woken,
    /// The deadline passed.
    TimedOut,
}

/// Sleeps until one of the signals is no longer pending, `wake` is signalled, or the deadline has passed. Only one
/// thread may use one `wake` at a time.
///
/// Beyond 127 signals, and where `futex_waitv` is missing (before Linux 5.16) or forbidden by a filter, some or all of
/// them are polled once a millisecond.
pub fn wait_any<D: Borrow<PendingSignal>>(
    debts: &[D],
    wake: &LocalWake,
    deadline: Option<Instant>,
) -> Any {
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

/// Sleeps on all words, or on as many as one call takes; may return spuriously.
fn sleep<D: Borrow<PendingSignal>>(debts: &[D], wake: &LocalWake, longest: Duration) {
    static LACKS_WAITV: AtomicBool = AtomicBool::new(false);
    let mut waits = [Wait::new(); AT_ONCE];
    waits[0].val = u64::from(ASLEEP);
    waits[0].uaddr = WaitPtr::new(wake.0.as_ptr().cast());
    waits[0].flags = WaitFlags::SIZE_U32 | WaitFlags::PRIVATE;
    // Devices complete signals without waking any thread.
    let woken =
        || debts.iter().map(Borrow::borrow).filter(|debt: &&PendingSignal| !debt.is_polled());
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
            return; // it changed: check again before sleeping
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
        Err(_) => thread::sleep(LOOK), // out of memory, for example: slow, but not a busy loop
    }
}
