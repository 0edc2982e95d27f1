//! A plan: recorded work whose parts know what they follow, done again and again. The thread that
//! runs it does parts itself and offers the others to the pool; it waits for parts that other
//! threads are doing, never for a thread to come. Recording is `recording.rs`'s.
use super::{
    Queue,
    command::{Dependencies, Submission, Work},
    completion::{Completion, Failure},
    gate::Stored,
    spin,
    sync::{Condvar, Mutex, MutexGuard, PoisonError, locked},
};
use std::{collections::VecDeque, sync::Arc};
use ur_adapter::error::Result;

/// One part of a plan.
#[derive(Debug)]
struct Step {
    /// Locked to copy it only: work that is done once could not be looked at by two threads.
    work: Mutex<Work>,
    /// How many others it follows.
    needs: usize,
    /// Those that follow it.
    next: Vec<usize>,
}

/// What to do and in which order. Each execution is a `Run`.
#[derive(Debug)]
pub(crate) struct Plan {
    steps: Box<[Step]>,
}
impl Plan {
    /// Of work that can be repeated, each with the earlier ones that it follows (places among
    /// `parts`; none twice).
    pub(crate) fn new<'w>(parts: impl Iterator<Item = (&'w Work, &'w [usize])>) -> Self {
        let mut steps: Vec<Step> = vec![];
        for (work, after) in parts {
            let place = steps.len();
            for &one in after {
                steps[one].next.push(place); // earlier: the parts cannot wait for each other
            }
            let work = work.again().expect("only what can be repeated is recorded");
            steps.push(Step { work: Mutex::new(work), needs: after.len(), next: vec![] });
        }
        Self { steps: steps.into() }
    }
}

/// One execution of a plan. Dropping it before it was done fails what it was to signal.
#[derive(Debug)]
pub(crate) struct Run(Arc<Course>);
impl Run {
    /// `told`: the places of steps, and what is told how far they have come. `hands`: an
    /// out-of-order queue that others of the pool are called through.
    pub(crate) fn new(
        plan: Arc<Plan>,
        told: Vec<(usize, Arc<Completion>)>,
        hands: Arc<Queue>,
    ) -> Self {
        let awaited: Vec<_> = plan.steps.iter().map(|step| step.needs).collect();
        let ready = (0..awaited.len()).filter(|&step| awaited[step] == 0).collect();
        let mut completions = vec![vec![]; awaited.len()];
        told.into_iter().for_each(|(step, completion)| completions[step].push(completion));
        let left = awaited.len();
        let front = Front { ready, awaited, left, ..Front::default() };
        let (front, moved) = (Mutex::new(front), Condvar::default());
        Self(Arc::new(Course { plan, completions, hands, front, moved }))
    }
    /// Does it, and returns when all of it has ended.
    ///
    /// # Errors
    /// Why the first step that failed did. Those behind it were not done; others were.
    pub(crate) fn execute(self) -> Result<(), Failure> {
        self.0.take_part(true);
        self.0.lock().failure.take().map_or(Ok(()), Err)
    }
}
impl Drop for Run {
    fn drop(&mut self) {
        if self.0.lock().left == 0 {
            return;
        }
        let why = Failure::new("what the recorded commands were to follow failed, so none was run");
        self.0.completions.iter().flatten().for_each(|one| end(one, Err(why.clone())));
    }
}

#[derive(Debug, Default)]
struct Front {
    /// Steps whose turn it is.
    ready: VecDeque<usize>,
    /// What each step still waits for.
    awaited: Vec<usize>,
    /// Steps that have not ended.
    left: usize,
    /// Threads of the pool that were called and have not come yet.
    called: usize,
    /// Those that came and have not left.
    came: usize,
    failure: Option<Failure>,
    /// Why a step will not be done.
    spoilt: Vec<(usize, Failure)>,
}

/// What the threads that do one run share.
#[derive(Debug)]
struct Course {
    plan: Arc<Plan>,
    completions: Vec<Vec<Arc<Completion>>>,
    hands: Arc<Queue>,
    front: Mutex<Front>,
    moved: Condvar,
}
impl Course {
    fn lock(&self) -> MutexGuard<'_, Front> {
        locked(&self.front)
    }
    /// Does steps while there are any; the thread whose run it is stays until all have ended.
    fn take_part(self: &Arc<Self>, stays: bool) {
        let mut front = self.lock();
        loop {
            if let Some(step) = front.ready.pop_front() {
                let spoilt = front.spoilt.iter().position(|(which, _)| *which == step);
                let spoilt = spoilt.map(|at| front.spoilt.swap_remove(at).1);
                let others = front.called + front.came;
                let help = front.ready.len() > front.called && others + 1 < most();
                front.called += usize::from(help);
                drop(front);
                if help {
                    self.call();
                }
                let outcome = self.carry_out(step, spoilt);
                front = self.lock();
                self.advance(&mut front, step, outcome);
                continue;
            }
            if front.left == 0 || !stays {
                return;
            }
            front = self.moved.wait(front).unwrap_or_else(PoisonError::into_inner);
        }
    }
    /// Calls one more thread. Without one there are fewer hands for the same steps.
    fn call(self: &Arc<Self>) {
        let course = Arc::clone(self);
        let help = Work::Call(Box::new(move || {
            course.arrive();
            course.take_part(false);
            course.lock().came -= 1;
            Ok(())
        }));
        if self.hands.submit(Dependencies::default(), Submission::new(help)).is_err() {
            self.lock().called -= 1;
        }
    }
    fn arrive(&self) {
        let mut front = self.lock();
        front.called -= 1;
        front.came += 1;
    }
    fn carry_out(&self, step: usize, spoilt: Option<Failure>) -> Result<(), Failure> {
        let completions = &self.completions[step];
        let outcome = match spoilt {
            Some(why) => Err(why),
            None => {
                let work = locked(&self.plan.steps[step].work).again();
                let work = work.expect("`new` takes only what can be repeated");
                completions.iter().for_each(|one| one.begin(&work));
                work.run()
            }
        };
        completions.iter().for_each(|one| end(one, outcome.clone()));
        outcome
    }
    /// `step` has ended: others may begin.
    fn advance(&self, front: &mut Front, step: usize, outcome: Result<(), Failure>) {
        let before = front.ready.len();
        for &next in &self.plan.steps[step].next {
            if let Err(why) = &outcome
                && front.spoilt.iter().all(|(which, _)| *which != next)
            {
                front.spoilt.push((next, why.clone()));
            }
            front.awaited[next] -= 1;
            if front.awaited[next] == 0 {
                front.ready.push_back(next);
            }
        }
        if let Err(why) = outcome {
            front.failure.get_or_insert(why);
        }
        front.left -= 1;
        // One is this thread's next; more are worth waking the run's own thread for.
        if front.left == 0 || front.ready.len() > before + 1 {
            self.moved.notify_one();
        }
    }
}
/// How many threads do one run. More than cores, since what a step calls may sleep.
fn most() -> usize {
    (2 * spin::cores()).max(8)
}
fn end(completion: &Completion, outcome: Result<(), Failure>) {
    completion.settle(outcome);
    completion.announce(Stored::now());
}
