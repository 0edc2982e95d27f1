//! The counter protocol under every relevant interleaving: loom's atomics replace shared memory, and loom's mutex and
//! condition variable replace the futex. A lost wake-up shows up as a deadlock.
//! Run: `RUSTFLAGS="--cfg loom" cargo test -p ur-ipc --release --test loom`
#![cfg(loom)]
use loom::{
    model::Builder,
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering::*},
    },
    thread,
};
use std::time::Instant;
use ur_ipc::arena::protocol::{self, DEAD, ENDED, Progress, WAITERS, Word};

/// A word as the kernel's futex treats it: a sleeping thread compares the word under the lock that wakers take.
struct Model {
    word: AtomicU64,
    mark: AtomicU64,
    reached: AtomicU64,
    bucket: Mutex<()>,
    woken: Condvar,
}
impl Model {
    fn new(word: u64) -> Self {
        Self {
            word: AtomicU64::new(word),
            mark: AtomicU64::new(0),
            reached: AtomicU64::new(0),
            bucket: Mutex::new(()),
            woken: Condvar::new(),
        }
    }
}
impl Word for Model {
    fn load(&self) -> u64 {
        self.word.load(Acquire)
    }
    fn swap(&self, new: u64) -> u64 {
        self.word.swap(new, AcqRel)
    }
    fn fetch_or(&self, flags: u64) -> u64 {
        self.word.fetch_or(flags, AcqRel)
    }
    fn replace(&self, old: u64, new: u64) -> bool {
        self.word.compare_exchange(old, new, AcqRel, Relaxed).is_ok()
    }
    fn mark(&self) -> u64 {
        self.mark.load(Acquire)
    }
    fn replace_mark(&self, old: u64, new: u64) -> bool {
        self.mark.compare_exchange(old, new, AcqRel, Relaxed).is_ok()
    }
    fn reached_in(&self, _deaths: u32) -> u64 {
        self.reached.load(Acquire)
    }
    fn note_reached(&self, _deaths: u32, value: u64) {
        self.reached.store(value, Release);
    }
    fn sleep(&self, seen: u64, _deadline: Option<Instant>) {
        let bucket = self.bucket.lock().unwrap();
        // Only the low half, like the kernel.
        if self.word.load(Relaxed) as u32 == seen as u32 {
            drop(self.woken.wait(bucket).unwrap());
        }
    }
    fn wake_all(&self) {
        let _bucket = self.bucket.lock().unwrap();
        self.woken.notify_all();
    }
}

fn check(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}
fn waiter(word: &Arc<Model>, value: u64) -> thread::JoinHandle<Progress> {
    let word = word.clone();
    thread::spawn(move || protocol::wait(&*word, (value, 0), None, |_| false))
}

#[test]
fn the_waiter_bit_loses_no_wake_up() {
    check(5, || {
        let word = Arc::new(Model::new(0));
        let waiting = waiter(&word, 1);
        assert!(!protocol::complete(&*word, 1));
        assert_eq!(waiting.join().unwrap(), Progress::Complete);
    });
}
#[test]
fn two_waiters_for_two_values_both_wake() {
    check(3, || {
        let word = Arc::new(Model::new(0));
        let waiting = [waiter(&word, 1), waiter(&word, 2)];
        protocol::complete(&*word, 1);
        protocol::complete(&*word, 2);
        for waiting in waiting {
            assert_eq!(waiting.join().unwrap(), Progress::Complete);
        }
    });
}
#[test]
fn two_signallers_leave_the_event_to_one_of_them() {
    check(3, || {
        let words = Arc::new([Model::new(0), Model::new(0)]);
        let pair = Arc::new(AtomicU64::new(0));
        let signallers = [0u64, 1].map(|i| {
            let (words, pair) = (words.clone(), pair.clone());
            thread::spawn(move || {
                pair.store((i + 1) << 48 | 1, Release);
                protocol::complete(&words[i as usize], 1);
            })
        });
        // The signal that was published when it was captured is waited for, and completes.
        let (captured, ()) = protocol::capture(0, || 0, || pair.load(Acquire), |_| ()).unwrap();
        if let Some(counter) = (captured >> 48).checked_sub(1) {
            let owed = (captured & 0xffff, 0);
            let waited = protocol::wait(&words[counter as usize], owed, None, |_| false);
            assert_eq!(waited, Progress::Complete);
        }
        for signaller in signallers {
            signaller.join().unwrap();
        }
        let last = pair.load(Acquire) >> 48;
        assert!(last == 1 || last == 2);
    });
}
#[test]
fn what_was_done_before_a_signal_is_seen_after_the_wait() {
    check(4, || {
        let word = Arc::new(Model::new(0));
        let data = Arc::new(AtomicU64::new(0));
        let reader = {
            let (word, data) = (word.clone(), data.clone());
            thread::spawn(move || {
                assert_eq!(protocol::wait(&*word, (1, 0), None, |_| false), Progress::Complete);
                assert_eq!(data.load(Relaxed), 7);
            })
        };
        data.store(7, Relaxed);
        protocol::complete(&*word, 1);
        reader.join().unwrap();
    });
}
#[test]
fn a_death_ends_every_wait() {
    check(3, || {
        let word = Arc::new(Model::new(1 << 2));
        let waiting = [waiter(&word, 2), waiter(&word, 1)];
        protocol::mark_owner_dead(&*word, || true);
        let [owed, paid] = waiting.map(|waiting| waiting.join().unwrap());
        assert_eq!((owed, paid), (Progress::Failed, Progress::Complete));
    });
}
#[test]
fn an_owner_that_dies_between_its_swap_and_its_wake_leaves_nobody_asleep() {
    check(4, || {
        let word = Arc::new(Model::new(0));
        let waiting = waiter(&word, 1);
        let owner = {
            let word = word.clone();
            thread::spawn(move || {
                word.swap(1 << 2); // it is killed here, having cleared the flag
            })
        };
        owner.join().unwrap(); // a death is only noticed afterwards
        protocol::mark_owner_dead(&*word, || true);
        assert_eq!(waiting.join().unwrap(), Progress::Complete);
    });
}
#[test]
fn a_waiter_that_dies_holding_the_bit_costs_a_wake_and_nothing_else() {
    check(4, || {
        let word = Arc::new(Model::new(0));
        let dying = {
            let word = word.clone();
            thread::spawn(move || {
                protocol::announce(&*word, word.load()); // it is killed here
            })
        };
        let waiting = waiter(&word, 1);
        protocol::complete(&*word, 1);
        dying.join().unwrap();
        assert_eq!(waiting.join().unwrap(), Progress::Complete);
    });
}
#[test]
fn a_death_racing_publication_is_seen_by_whoever_captures_the_debt() {
    check(3, || {
        let word = Arc::new(Model::new(0));
        let pair = Arc::new(AtomicU64::new(0));
        let dead = Arc::new(AtomicBool::new(false));
        let owner = {
            let (pair, dead) = (pair.clone(), dead.clone());
            thread::spawn(move || {
                pair.store(1 << 48 | 1, Release); // publishes a signal that it will never complete
                dead.store(true, Release);
            })
        };
        let watcher = {
            let (word, dead) = (word.clone(), dead.clone());
            thread::spawn(move || {
                while !dead.load(Acquire) {
                    thread::yield_now();
                }
                protocol::mark_owner_dead(&*word, || true);
            })
        };
        let (captured, ()) = protocol::capture(0, || 0, || pair.load(Acquire), |_| ()).unwrap();
        if captured != 0 {
            assert_eq!(protocol::wait(&*word, (1, 0), None, |_| false), Progress::Failed);
        }
        owner.join().unwrap();
        watcher.join().unwrap();
    });
}
#[test]
fn an_owner_taken_for_dead_learns_of_it_and_pays_regardless() {
    check(3, || {
        let word = Arc::new(Model::new(0));
        let waiting = waiter(&word, 1);
        let watcher = {
            let word = word.clone();
            thread::spawn(move || protocol::mark_owner_dead(&*word, || true))
        };
        let accused = protocol::complete(&*word, 1);
        watcher.join().unwrap();
        // In one order the owner is told; in the other the flag stays for its next value. Both end the wait.
        assert!(accused || word.load() & ENDED != 0 && word.mark() & DEAD != 0);
        assert!(matches!(waiting.join().unwrap(), Progress::Complete | Progress::Failed));
    });
}
#[test]
fn a_command_that_fails_wakes_those_who_wait_for_it() {
    check(4, || {
        let word = Arc::new(Model::new(0));
        let waiting = waiter(&word, 1);
        protocol::fail(&*word);
        assert_eq!(waiting.join().unwrap(), Progress::Failed);
    });
}
#[test]
fn a_counter_granted_anew_is_not_buried_with_its_former_owner() {
    check(4, || {
        const THEIRS: u64 = 1;
        const OURS: u64 = 2;
        let word = Arc::new(Model::new(5 << 2 | WAITERS));
        let holder = Arc::new(AtomicU64::new(THEIRS));
        let watcher = {
            let (word, holder) = (word.clone(), holder.clone());
            thread::spawn(move || {
                protocol::mark_owner_dead(&*word, || holder.load(Acquire) == THEIRS)
            })
        };
        // The exporter, which took the counter back before it noticed the death.
        holder.store(0, Release);
        let adopted = protocol::adopt(&*word, 100);
        if adopted.is_some() {
            holder.store(OURS, Release);
        }
        watcher.join().unwrap();
        // If it was marked dead first, it is not granted; if it was granted first, it is not marked dead.
        assert_eq!(adopted.is_none(), word.mark() & DEAD != 0);
    });
}
#[test]
fn a_place_given_to_another_event_is_never_mistaken_for_the_old_one() {
    check(5, || {
        let line = Arc::new(AtomicU64::new(1));
        let pair = Arc::new(AtomicU64::new(11));
        let owner = {
            let (line, pair) = (line.clone(), pair.clone());
            thread::spawn(move || {
                line.store(2, Release);
                pair.store(0, Release);
                pair.store(22, Release);
            })
        };
        let pair = || pair.load(Acquire);
        let captured = protocol::capture(1, || line.load(Acquire), pair, |_| ());
        assert!(captured.is_none_or(|(pair, ())| pair == 11), "{captured:?}");
        owner.join().unwrap();
    });
}
#[test]
fn a_late_write_of_a_dead_ones_device_does_not_take_its_death_away() {
    check(3, || {
        let word = Arc::new(Model::new(0));
        let device = {
            let word = word.clone();
            // A store in production; loom would order a store before an exchange that has not seen it.
            thread::spawn(move || drop(word.word.swap(1 << 2, AcqRel)))
        };
        protocol::mark_owner_dead(&*word, || true);
        device.join().unwrap();
        assert_eq!(protocol::judge(&*word, word.load(), 1, 0), Progress::Complete);
        assert_eq!(protocol::judge(&*word, word.load(), 2, 0), Progress::Failed);
        protocol::release(&*word, 0);
        assert!(word.load() >= protocol::RELEASED, "other devices go on");
    });
}
#[test]
fn whoever_waits_for_a_former_life_of_a_counter_is_told_how_that_ended() {
    check(3, || {
        let word = Arc::new(Model::new(1 << 2));
        let waiting = [waiter(&word, 2), waiter(&word, 1)];
        protocol::mark_owner_dead(&*word, || true);
        assert!(protocol::revive(&*word, u64::MAX >> 16));
        let next = protocol::adopt(&*word, u64::MAX >> 16).unwrap();
        assert!(next > protocol::STRIDE);
        protocol::complete(&*word, next);
        let [owed, paid] = waiting.map(|waiting| waiting.join().unwrap());
        assert_eq!((owed, paid), (Progress::Failed, Progress::Complete));
    });
}
#[test]
fn a_counter_that_lives_again_is_not_released_with_its_former_life() {
    check(3, || {
        let word = Arc::new(Model::new(1 << 2));
        protocol::mark_owner_dead(&*word, || true);
        let slow = {
            let word = word.clone();
            thread::spawn(move || protocol::release(&*word, 0))
        };
        assert!(protocol::revive(&*word, u64::MAX >> 16));
        slow.join().unwrap();
        assert_eq!(word.load() & (ENDED | protocol::RELEASED), 0);
    });
}
#[test]
fn a_stale_holders_signal_never_lands_in_the_next_event() {
    check(5, || {
        let (line, pair) = (Arc::new(AtomicU64::new(1)), Arc::new(AtomicU64::new(1)));
        let stale = {
            let (line, pair) = (line.clone(), pair.clone());
            thread::spawn(move || {
                let replace = |seen| pair.compare_exchange(seen, 99, AcqRel, Acquire).is_ok();
                protocol::publish(1, || line.load(Acquire), || pair.load(Acquire), replace)
            })
        };
        // The exporter gives the slot to another event, whose pair begins with another word.
        line.store(2, Release);
        pair.swap(2, AcqRel); // a store in production, as above
        let published = stale.join().unwrap();
        assert_eq!(pair.load(Acquire), 2, "published: {published}");
    });
}
