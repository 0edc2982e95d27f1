//! The execution engine: queues that take commands, threads that execute them, completions that record the
//! result. It knows addresses, the contents of events, and time. Handles and entries are in the core, the
//! `Streams` trait is implemented in `streams.rs`, memory accesses are in `ur_system::bytes`, words shared with
//! other processes in `ur_ipc::arena`.
mod command;
mod completion;
mod gate;
mod in_order;
mod out_of_order;
mod passage;
mod remote;
mod spin;
mod sync;
mod team;
mod thread;
pub(crate) mod workers;

#[cfg(test)]
mod tests;

pub(crate) use command::{Dependencies, Dependency, OwedSignal, Submission, Work, failed};
pub(crate) use completion::Completion;
pub(crate) use passage::{Moment, Watch, all_queues_sync_point, ticket};
pub(crate) use team::Task;

use in_order::InOrder;
use out_of_order::OutOfOrder;
use std::sync::Arc;
use ur_hal::{Error, ErrorKind, Result};

/// Whether commands are executed in the order of their submission.
#[derive(Debug)]
enum Discipline {
    InOrder(InOrder),
    OutOfOrder(OutOfOrder),
}

/// Takes commands and executes them, on other threads unless they are very short. Dropping it does not wait:
/// commands already submitted are still executed.
#[derive(Debug)]
pub(crate) struct Queue {
    discipline: Discipline,
    /// The process's fork count when it was created: its threads do not exist in a forked child.
    fork: u64,
}

impl Queue {
    /// A queue of `context` (the address of the context object). Deferred frees of that context wait for it.
    pub(crate) fn new(context: usize, out_of_order: bool) -> Self {
        let discipline = match out_of_order {
            false => Discipline::InOrder(InOrder::new(context)),
            true => Discipline::OutOfOrder(OutOfOrder::new(context)),
        };
        Self { discipline, fork: ur_mapping::fork_count() }
    }
    /// Sets the nice value of the queue's thread relative to the process (19 is the lowest priority), as far
    /// as the system permits. No effect on out-of-order queues, which share their threads.
    pub(crate) fn nice(mut self, nice: i32) -> Self {
        if let Discipline::InOrder(queue) = &mut self.discipline {
            queue.set_nice(nice);
        }
        self
    }
    /// Whether an out-of-order queue refuses nothing for an earlier command's failure: somebody waits for its completion.
    pub(crate) fn told_by_points(mut self, is_so: bool) -> Self {
        if let Discipline::OutOfOrder(queue) = &mut self.discipline {
            queue.is_told_by_points = is_so;
        }
        self
    }
    /// An observer of the queue.
    pub(crate) fn watch(&self) -> Watch {
        Watch::new(match &self.discipline {
            Discipline::InOrder(queue) => queue.passage(),
            Discipline::OutOfOrder(queue) => queue.passage(),
        })
    }
    fn check_fork(&self) -> Result<()> {
        match self.fork == ur_mapping::fork_count() {
            true => Ok(()),
            false => Err(Error::new(
                ErrorKind::Uninitialized,
                "this queue was made before a fork and its threads stayed with the parent: make a \
                 queue in the child",
            )),
        }
    }
    /// Submits a command; returns its completion if one was requested. The dependencies are those captured
    /// now: later signals of the same events do not affect this command. On an error nothing was submitted.
    ///
    /// # Errors
    /// `IN_EVENT_LIST_EXEC_STATUS`, once, if an earlier command has failed and nobody was told;
    /// `OUT_OF_RESOURCES` if no thread can be started; `UNINITIALIZED` after a fork.
    pub(crate) fn submit(
        &self,
        dependencies: Dependencies,
        submission: Submission,
    ) -> Result<Option<Arc<Completion>>> {
        self.check_fork()?;
        match &self.discipline {
            Discipline::InOrder(queue) => queue.submit(dependencies, submission),
            Discipline::OutOfOrder(queue) => queue.submit(dependencies, submission),
        }
    }
    /// Waits until all commands submitted so far are complete.
    ///
    /// # Errors
    /// `IN_EVENT_LIST_EXEC_STATUS` with the first reason if a command failed and neither this nor a submission has said so;
    /// `UNINITIALIZED` after a fork.
    pub(crate) fn finish(&self) -> Result<()> {
        self.check_fork()?;
        let finished = match &self.discipline {
            Discipline::InOrder(queue) => queue.finish(),
            Discipline::OutOfOrder(queue) => queue.finish(),
        };
        finished.map_err(|why| failed(&why))
    }
    /// Does nothing but check the process: commands are under way from their submission on.
    ///
    /// # Errors
    /// `UNINITIALIZED` after a fork.
    pub(crate) fn flush(&self) -> Result<()> {
        self.check_fork()
    }
    /// Whether all submitted commands are complete.
    pub(crate) fn is_idle(&self) -> bool {
        match &self.discipline {
            Discipline::InOrder(queue) => queue.is_idle(),
            Discipline::OutOfOrder(queue) => queue.is_idle(),
        }
    }
}
impl Drop for Queue {
    fn drop(&mut self) {
        // In a forked child there is no thread to end, and one of the parent's may have held the lock at the fork.
        if let (Discipline::InOrder(queue), Ok(())) = (&self.discipline, self.check_fork()) {
            queue.close();
        }
    }
}
