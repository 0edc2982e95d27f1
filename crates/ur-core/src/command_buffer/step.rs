//! A recorded command: a copy that can be executed repeatedly.
use crate::{
    command::{Place, Ready, Usage, Used},
    over_driver::mem::Mem,
    queue::{HasStreams, Queue, submit_with_newest},
};
use smallvec::SmallVec;
use std::{ops::Range, sync::Arc};
use ur_adapter::{
    error::{Error, Result},
    object::Owned,
};
use ur_hal::{Recorded, Submission};
use ur_sys::ur_command_t;

/// Lists up to this length need no heap allocation.
pub(super) const FEW: usize = 8;

/// One recorded command, with copies of everything that it refers to, and the objects that it uses.
pub struct Step<D: HasStreams> {
    what: Arc<Recorded<D>>,
    uses: Box<[Use<D>]>,
}
/// An object that is kept alive as long as its command can be executed. During an execution the queue keeps it alive,
/// too.
enum Use<D: HasStreams> {
    Buffer { buffer: Owned<Mem<D>>, bytes: Range<usize>, usage: Usage },
    Program(Owned<D::Program>),
}
impl<D: HasStreams> Use<D> {
    /// Retains an object that a command uses.
    ///
    /// # Errors
    /// `UNSUPPORTED_FEATURE` for memory that the command frees, which is possible only once.
    fn of(used: &Used<'_, D>) -> Result<Self> {
        match used {
            Used::Buffer { buffer, bytes, usage } => {
                Ok(Self::Buffer { buffer: buffer.own()?, bytes: bytes.clone(), usage: *usage })
            }
            Used::Program(program) => Ok(Self::Program(program.own()?)),
            Used::Freed(_) => Error::unsupported("recording of what frees memory"),
        }
    }
    fn lend(&self) -> Used<'_, D> {
        match self {
            Self::Buffer { buffer, bytes, usage } => {
                Used::Buffer { buffer: buffer.borrow(), bytes: bytes.clone(), usage: *usage }
            }
            Self::Program(program) => Used::Program(program.borrow()),
        }
    }
}
impl<D: HasStreams> Step<D> {
    /// Copies a command, to be executed at `place`.
    ///
    /// # Errors
    /// `UNSUPPORTED_FEATURE` for a command that cannot be repeated.
    pub(crate) fn of(place: Place<'_, D>, ready: &Ready<'_, D>) -> Result<Arc<Self>> {
        if D::HAS_GRAPHS {
            D::check_recordable(place.0.driver(), place.1.driver(), &ready.command)?;
        }
        let what = Arc::new(Recorded::of(&ready.command)?);
        let uses = ready.used().map(Use::of).collect::<Result<_>>()?;
        Ok(Arc::new(Self { what, uses }))
    }
    /// The command, for graphs of the driver.
    pub(super) fn what(&self) -> &Arc<Recorded<D>> {
        &self.what
    }
    /// Submits it; of `how`, everything but the command applies.
    ///
    /// # Errors
    /// As for [`Streams::submit`](ur_hal::Streams::submit).
    pub(super) fn submit(
        &self,
        name: ur_command_t,
        queue: &Queue<D>,
        how: Submission<'_, D>,
    ) -> ur_hal::Result<Option<D::Point>> {
        let used: SmallVec<[_; FEW]> = self.uses.iter().map(|one| Some(one.lend())).collect();
        self.what.lend(|command| {
            let ready = Ready { more: &used, ..Ready::new(name, *command) };
            submit_with_newest(queue, &Submission { command, ..how }, &ready)
        })
    }
}
