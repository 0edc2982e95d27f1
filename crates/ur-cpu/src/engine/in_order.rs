//! An in-order queue: a list of commands, and a thread that executes them one after the other. The thread
//! itself waits for a command's dependencies, so that a hop from another process to the next command takes a
//! single wake-up. If nothing is pending, very short commands are executed by the submitting thread.
use super::{
    command::{Dependencies, OwedSignal, Submission, Work, failed},
    completion::{Completion, Failure},
    gate::Stored,
    passage::{Passage, passage},
    spin,
    sync::{Condvar, Mutex, MutexGuard, PoisonError, locked},
    thread,
};
use std::{hint::black_box, sync::Arc};
use ur_hal::Result;

#[derive(Debug)]
struct Command {
    number: u64,
    dependencies: Dependencies,
    work: Work,
    owed: Option<OwedSignal>,
    completion: Option<Arc<Completion>>,
}

impl Command {
    /// Loads it into this processor's caches, because another thread wrote it long ago. Between the end of a
    /// wait and the signal behind it the cache misses would cost more than everything else.
    #[inline]
    fn touch(&self) {
        let owes = self.owed.as_ref().map(|owed| owed.value);
        let waits = !self.dependencies.is_empty();
        black_box((self.number, waits, owes, self.work.is_quick()));
        self.completion.as_ref().inspect(|completion| completion.touch());
    }
}

#[derive(Debug, Default)]
struct Lane {
    pending: Vec<Command>,
    /// The thread was started.
    started: bool,
    /// The thread sleeps, and must be woken.
    asleep: bool,
    /// The queue was dropped: the thread ends when nothing is pending.
    closed: bool,
    /// A failure that neither `finish` nor a submission has returned yet.
    untold: Option<Failure>,
}

/// The state shared by the queue and its thread.
#[derive(Debug)]
struct Shared {
    passage: Arc<Passage>,
    lane: Mutex<Lane>,
    arrival: Condvar,
}

/// The queue; after it is dropped, pending commands are still executed.
#[derive(Debug)]
pub(super) struct InOrder {
    shared: Arc<Shared>,
    /// The relative nice value of the thread.
    nice: i32,
}

impl InOrder {
    pub(super) fn new(context: usize) -> Self {
        let (lane, arrival) = Default::default();
        let shared = Arc::new(Shared { passage: passage(context), lane, arrival });
        Self { shared, nice: 0 }
    }
    pub(super) fn set_nice(&mut self, nice: i32) {
        self.nice = nice;
    }
    pub(super) fn passage(&self) -> &Arc<Passage> {
        &self.shared.passage
    }
    pub(super) fn is_idle(&self) -> bool {
        self.shared.passage.is_idle()
    }
    /// Waits for all commands submitted so far.
    ///
    /// # Errors
    /// Returns why a command failed, once for each failure.
    pub(super) fn finish(&self) -> Result<(), Failure> {
        let passage = &self.shared.passage;
        passage.wait_for(passage.submitted());
        self.shared.lock().untold.take().map_or(Ok(()), Err)
    }
    /// Submits a command.
    ///
    /// # Errors
    /// Returns why an earlier command failed, once, if nobody was told; `OUT_OF_RESOURCES` if no thread can be started.
    pub(super) fn submit(
        &self,
        dependencies: Dependencies,
        submission: Submission,
    ) -> Result<Option<Arc<Completion>>> {
        let completion = completion_for(&submission);
        let mut lane = self.shared.lock();
        if let Some(why) = lane.untold.take() {
            return Err(failed(&why));
        }
        let quick =
            dependencies.is_empty() && submission.work.is_quick() && self.shared.passage.is_idle();
        if !quick && !lane.started {
            self.start()?;
            lane.started = true;
        }
        if quick {
            self.shared.do_now(lane, submission, completion.as_ref());
        } else {
            self.shared.leave(lane, dependencies, submission, completion.clone());
        }
        Ok(completion)
    }
    fn start(&self) -> Result<()> {
        let shared = Arc::clone(&self.shared);
        let nice = self.nice;
        thread::start("ur-cpu-queue", move || {
            thread::be_nice(nice);
            shared.work();
        })
    }
    /// Ends the thread once all submitted commands are executed.
    pub(super) fn close(&self) {
        let mut lane = self.shared.lock();
        lane.closed = true;
        self.shared.wake(lane);
    }
}

/// A completion, if one is wanted.
pub(super) fn completion_for(submission: &Submission) -> Option<Arc<Completion>> {
    submission.want.then(|| Completion::submitted(submission.profile))
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Lane> {
        locked(&self.lane)
    }
    fn wake(&self, mut lane: MutexGuard<'_, Lane>) {
        let asleep = std::mem::take(&mut lane.asleep);
        drop(lane);
        if asleep {
            self.arrival.notify_one();
        }
    }
    /// Executes a very short command on this thread. The lock is held throughout, which keeps the order; this
    /// takes no longer than waking a thread, and makes no callbacks.
    fn do_now(
        &self,
        lane: MutexGuard<'_, Lane>,
        submission: Submission,
        completion: Option<&Arc<Completion>>,
    ) {
        let number = self.passage.submit();
        if let Some(completion) = completion {
            completion.begin(&submission.work);
        }
        let outcome = submission.work.run();
        debug_assert!(outcome.is_ok(), "what is quick has nothing that fails");
        if let Some(owed) = &submission.owed {
            owed.counter.complete(owed.value);
        }
        if let Some(completion) = completion {
            completion.settle(outcome);
        }
        self.passage.end(number);
        drop(lane);
        self.passage.ring(Stored::now());
    }
    /// Leaves a command to the queue's thread.
    fn leave(
        &self,
        mut lane: MutexGuard<'_, Lane>,
        dependencies: Dependencies,
        submission: Submission,
        completion: Option<Arc<Completion>>,
    ) {
        let number = self.passage.submit();
        let Submission { work, owed, .. } = submission;
        lane.pending.push(Command { number, dependencies, work, owed, completion });
        self.wake(lane);
    }

    /// The thread: executes commands until the queue is dropped and nothing is pending.
    fn work(&self) {
        let mut batch = Vec::new();
        let mut run = Run::default();
        while self.take(&mut batch) {
            (0..batch.len()).for_each(|at| self.execute(&mut batch, at, &mut run));
            self.tell(&mut batch, &mut run);
            batch.clear(); // not earlier, so that no signal that another process waits for is delayed
            run.told = 0;
        }
    }
    /// Swaps all pending commands into `batch`, waiting for some; `false` if there will be none.
    fn take(&self, batch: &mut Vec<Command>) -> bool {
        spin::for_arrival(|| !self.passage.is_idle());
        let mut lane = self.lock();
        while lane.pending.is_empty() {
            if lane.closed {
                return false;
            }
            lane.asleep = true;
            lane = self.arrival.wait(lane).unwrap_or_else(PoisonError::into_inner);
        }
        lane.asleep = false;
        std::mem::swap(&mut lane.pending, batch);
        true
    }
    /// Executes the command at index `at`, or fails it.
    #[inline]
    fn execute(&self, batch: &mut [Command], at: usize, run: &mut Run) {
        let (earlier, rest) = batch.split_at_mut(at);
        let Some((command, later)) = rest.split_first_mut() else { return };
        let work = std::mem::replace(&mut command.work, Work::Barrier);
        let outcome = match &run.fails {
            Some((last, why)) if command.number <= *last => Err(why.clone()),
            _ => self.attempt(earlier, command, later, work, run),
        };
        if let Some(owed) = &command.owed {
            match outcome {
                Ok(()) => owed.counter.complete(owed.value),
                Err(_) => owed.counter.fail(),
            }
        }
        if let Some(completion) = &command.completion {
            completion.settle(outcome);
        }
    }
    /// Waits for the dependencies, then does `work`.
    #[inline]
    fn attempt(
        &self,
        earlier: &mut [Command],
        command: &Command,
        later: &[Command],
        work: Work,
        run: &mut Run,
    ) -> Result<(), Failure> {
        let ran = command.dependencies.wait(|| {
            self.tell(earlier, run);
            command.touch();
            later.first().inspect(|next| next.touch());
        });
        let ran = ran.and_then(|()| {
            if !matches!(work, Work::Barrier) {
                self.tell(earlier, run);
            }
            if let Some(completion) = &command.completion {
                completion.begin(&work);
            }
            work.run()
        });
        if let Err(why) = &ran {
            run.fails = Some((self.failed(why, command, later), why.clone()));
        }
        ran
    }
    /// Wakes the threads that wait for one of `ended`, and makes the callbacks. Polling threads see the
    /// completion before that. This is postponed until the thread waits, works or finishes the batch, so that
    /// nothing delays the signal between the end of a wait and the signal behind it.
    fn tell(&self, ended: &mut [Command], run: &mut Run) {
        let untold = &mut ended[run.told..];
        let Some(last) = untold.last() else { return };
        run.told += untold.len();
        self.passage.end(last.number);
        let stored = Stored::now();
        self.passage.ring(stored);
        let completions = untold.iter_mut().filter_map(|command| command.completion.take());
        completions.for_each(|completion| completion.announce(stored));
    }
    /// Records a failure. Returns the number of the last command that fails with it: all submitted so far do,
    /// that is this one, the `later` ones and those pending. Their counters fail at once: later signals use
    /// other counters, and do not count as failed.
    fn failed(&self, why: &Failure, command: &Command, later: &[Command]) -> u64 {
        let mut lane = self.lock();
        lane.untold.get_or_insert_with(|| why.clone());
        let all = std::iter::once(command).chain(later).chain(&lane.pending);
        let owed = all.filter_map(|command| command.owed.as_ref());
        owed.for_each(|owed| owed.counter.fail());
        self.passage.submitted()
    }
}

/// The state of the thread while it executes a batch.
#[derive(Debug, Default)]
struct Run {
    /// The number of commands of the batch whose waiters have been woken.
    told: usize,
    /// A failure, and the number of the last command that fails with it.
    fails: Option<(u64, Failure)>,
}
