//! An out-of-order queue: commands run concurrently on the worker pool as soon as their dependencies are
//! complete. Dependencies in this process are continuations, those in other processes are watched by one
//! thread; no thread blocks. Barriers order earlier commands before later ones.
use super::{
    command::{Dependencies, Dependency, Order, OwedSignal, Submission, Work, failed},
    completion::{Completion, Failure},
    gate::Stored,
    in_order::completion_for,
    passage::{Passage, passage},
    remote::{self, Promise},
    sync::{Mutex, MutexGuard, locked},
    workers,
};
use std::{
    collections::VecDeque,
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering::*},
    },
};
use ur_hal::{Profile, Result, Status};

/// The commands that are not complete, or that completed before an earlier one.
#[derive(Debug, Default)]
struct Field {
    /// Starts with the first command that is not complete; `None` is a complete one.
    window: VecDeque<Option<Arc<Completion>>>,
    /// The number of the first command in `window`.
    first: u64,
    barrier: Option<Arc<Completion>>,
    /// A failure that neither `finish` nor a submission has returned yet.
    untold: Option<Failure>,
}

#[derive(Debug)]
struct Shared {
    passage: Arc<Passage>,
    field: Mutex<Field>,
}

/// The queue; after it is dropped, pending commands are still executed.
#[derive(Debug)]
pub(super) struct OutOfOrder {
    shared: Arc<Shared>,
    /// Whether failures are told by completions alone.
    pub(super) is_told_by_points: bool,
}

/// A command that waits for its dependencies, or runs.
pub(crate) struct Job {
    queue: Arc<Shared>,
    number: u64,
    /// The number of dependencies that are not complete, plus one during submission.
    awaited: AtomicUsize,
    /// The failure of a dependency, because of which it will not run.
    failure: OnceLock<Failure>,
    work: Mutex<Option<Work>>,
    owed: Option<OwedSignal>,
    completion: Arc<Completion>,
}

impl OutOfOrder {
    pub(super) fn new(context: usize) -> Self {
        let field = Mutex::new(Field { first: 1, ..Field::default() });
        let shared = Arc::new(Shared { passage: passage(context), field });
        Self { shared, is_told_by_points: false }
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
    /// Returns why a command failed, once for each batch of failures.
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
        let remote = dependencies.iter().any(|one| matches!(one, Dependency::Shared(_)));
        let watcher = remote.then(remote::ready).transpose()?;
        let looked_at = completion_for(&submission);
        let mut field = self.shared.lock();
        if !self.is_told_by_points
            && let Some(why) = field.untold.take()
        {
            return Err(failed(&why));
        }
        if dependencies.is_empty() && submission.work.is_quick() && field.is_open(submission.order)
        {
            self.shared.do_now(field, submission, looked_at.as_ref());
            return Ok(looked_at);
        }
        let completion = looked_at.clone().unwrap_or_else(|| Completion::submitted(Profile::Off));
        let Submission { work, owed, order, .. } = submission;
        let job = Arc::new(Job {
            queue: Arc::clone(&self.shared),
            number: self.shared.passage.submit(),
            awaited: AtomicUsize::new(1),
            failure: OnceLock::new(),
            work: Mutex::new(Some(work)),
            owed,
            completion,
        });
        field.enter(&job, order);
        drop(field);
        job.depend_on(&dependencies, watcher.as_ref());
        job.released(None);
        Ok(looked_at)
    }
}

impl Field {
    /// Whether a command with this order could run now.
    fn is_open(&self, order: Order) -> bool {
        match order {
            Order::Free => self.barrier.as_ref().is_none_or(|b| b.status().is_final()),
            Order::AfterAll | Order::Both => self.window.is_empty(),
        }
    }
    /// Adds `job`, and its dependencies that follow from `order`. Earlier failures do not affect later
    /// commands.
    fn enter(&mut self, job: &Arc<Job>, order: Order) {
        let follow = |one: &Completion| {
            job.awaited.fetch_add(1, Relaxed);
            if !one.follow(job) {
                job.awaited.fetch_sub(1, Relaxed);
            }
        };
        if order != Order::Free {
            self.window.iter().flatten().for_each(|one| follow(one));
        } else if let Some(barrier) = &self.barrier {
            follow(barrier);
        }
        if order == Order::Both {
            self.barrier = Some(Arc::clone(&job.completion));
        }
        self.window.push_back(Some(Arc::clone(&job.completion)));
    }
    /// Records that the command with this number is complete; returns the number up to which all are.
    fn leave(&mut self, number: u64) -> u64 {
        self.window[(number - self.first) as usize] = None;
        while let Some(None) = self.window.front() {
            self.window.pop_front();
            self.first += 1;
        }
        self.first - 1
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Field> {
        locked(&self.field)
    }
    /// Executes a very short command on this thread, under the lock, as in an in-order queue.
    fn do_now(
        &self,
        mut field: MutexGuard<'_, Field>,
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
        field.window.push_back(None);
        self.passage.end(field.leave(number));
        drop(field);
        self.passage.ring(Stored::now());
    }
}

impl Job {
    /// Makes each of `dependencies` call `released` when it is complete; at once if it already is.
    fn depend_on(self: &Arc<Self>, dependencies: &Dependencies, watcher: Option<&Promise>) {
        for one in dependencies.iter() {
            self.awaited.fetch_add(1, Relaxed);
            match one {
                Dependency::Local(completion) => {
                    if !completion.follow(self) {
                        let ended =
                            completion.outcome().expect("it refuses followers when it ended");
                        self.released(ended.err().as_ref());
                    }
                }
                Dependency::End(completion) => {
                    let job = Arc::clone(self);
                    completion.call_at(Status::Complete, move |_| job.released(None));
                }
                Dependency::Shared(debt) => {
                    let watcher = watcher.expect("`submit` asks for one if a debt is among them");
                    watcher.watch(debt.clone(), Arc::clone(self));
                }
            }
        }
    }
    /// Records that a dependency is complete. After the last one the job is passed to the worker pool.
    pub(super) fn released(self: &Arc<Self>, failure: Option<&Failure>) {
        if let Some(why) = failure {
            let _first_counts = self.failure.set(why.clone());
        }
        if self.awaited.fetch_sub(1, AcqRel) == 1 {
            workers::give(Arc::clone(self));
        }
    }
    /// Whether it calls a function that may block.
    pub(super) fn may_sleep(&self) -> bool {
        locked(&self.work).as_ref().is_some_and(Work::may_sleep)
    }
    /// Executes it, or fails it, and notifies waiters. Called by the pool.
    pub(super) fn execute(&self) {
        let work = locked(&self.work).take().expect("a job is given to the pool once");
        let outcome = match self.failure.get() {
            Some(why) => Err(why.clone()),
            None => {
                self.completion.begin(&work);
                work.run()
            }
        };
        let failure = outcome.as_ref().err().cloned();
        if let Some(owed) = &self.owed {
            match failure {
                None => owed.counter.complete(owed.value),
                // Later signals promised on this counter belong to barriers behind this command, which fail
                // too.
                Some(_) => owed.counter.fail(),
            }
        }
        if let Some(failure) = failure {
            // Before it is settled: what is submitted behind it from then on must not run as if nothing had failed.
            self.queue.lock().untold.get_or_insert(failure);
        }
        self.completion.settle(outcome);
        let mut field = self.queue.lock();
        self.queue.passage.end(field.leave(self.number));
        drop(field);
        let stored = Stored::now();
        self.queue.passage.ring(stored);
        self.completion.announce(stored);
    }
}
impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Job({}, {:?})", self.number, self.completion.status())
    }
}
