//! The execution engine: queues that take commands, threads that do them, completions that tell.
//! Knows addresses, events' insides and time; handles and entries are left to the core,
//! its verbs to `streams.rs`, bytes to `native.rs`, words shared with other processes to
//! `ur_ipc::arena`.
mod command;
mod completion;
mod gate;
mod in_order;
mod out_of_order;
mod passage;
mod plan;
mod remote;
mod spin;
mod sync;
mod team;
mod thread;
pub(crate) mod workers;

#[cfg(test)]
mod tests;

pub(crate) use command::{Dependencies, Dependency, OwedSignal, Submission, Work, failed};
pub(crate) use completion::{Completion, Failure};
pub(crate) use passage::{Moment, Watch, all_queues_sync_point, ticket};
pub(crate) use plan::{Plan, Run};
pub(crate) use team::Task;

use in_order::InOrder;
use out_of_order::OutOfOrder;
use std::sync::Arc;
use ur_adapter::error::{Error, ErrorCode, Result};

/// Whether commands keep the order in which they were submitted.
#[derive(Debug)]
enum Discipline {
    InOrder(InOrder),
    OutOfOrder(OutOfOrder),
}

/// Takes commands and has them done, in the background where that is worth it. Dropping it waits
/// for nothing: commands already submitted are done all the same.
#[derive(Debug)]
pub(crate) struct Queue {
    discipline: Discipline,
    /// The process it was made in: its threads are not in a forked child.
    fork: u64,
}

impl Queue {
    /// A queue whose freed memory waits with all queues of `context` (the context object's
    /// address).
    pub(crate) fn new(context: usize, out_of_order: bool) -> Self {
        let discipline = match out_of_order {
            false => Discipline::InOrder(InOrder::new(context)),
            true => Discipline::OutOfOrder(OutOfOrder::new(context)),
        };
        Self { discipline, fork: ur_mapping::fork_count() }
    }
    /// The same queue, whose own thread is as nice to others as `nice` says (the kernel's scale: 19
    /// is nicest), as far as the system allows. Of out-of-order queues, which share their threads,
    /// it makes nothing different.
    pub(crate) fn nice(mut self, nice: i32) -> Self {
        if let Discipline::InOrder(queue) = &mut self.discipline {
            queue.set_nice(nice);
        }
        self
    }
    /// A look at it from outside.
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
                ErrorCode::Uninitialized,
                "this queue was made before a fork and its threads stayed with the parent: make a \
                 queue in the child",
            )),
        }
    }
    /// Hands over one command; what depends on it takes the completion, if one was wanted.
    /// Dependencies are those captured now; signals given later do not concern this command.
    /// On an error nothing was submitted.
    ///
    /// # Errors
    /// `OUT_OF_RESOURCES`: no thread. `UNINITIALIZED` after a fork.
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
    /// Sleeps until all commands submitted so far have ended.
    ///
    /// # Errors
    /// `IN_EVENT_LIST_EXEC_STATUS` if one failed since the last call, with the first one's
    /// reason. `UNINITIALIZED` after a fork.
    pub(crate) fn finish(&self) -> Result<()> {
        self.check_fork()?;
        let finished = match &self.discipline {
            Discipline::InOrder(queue) => queue.finish(),
            Discipline::OutOfOrder(queue) => queue.finish(),
        };
        finished.map_err(|why| failed(&why))
    }
    /// Has every command on its way; they all are from their submission on.
    ///
    /// # Errors
    /// `UNINITIALIZED` after a fork.
    pub(crate) fn flush(&self) -> Result<()> {
        self.check_fork()
    }
    /// Whether all that was submitted has ended.
    pub(crate) fn is_idle(&self) -> bool {
        match &self.discipline {
            Discipline::InOrder(queue) => queue.is_idle(),
            Discipline::OutOfOrder(queue) => queue.is_idle(),
        }
    }
}
