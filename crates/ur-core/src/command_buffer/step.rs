//! A recorded command: a copy that can be executed repeatedly.
use crate::{
    command::{Ready, Usage, Used},
    over_driver::mem::Mem,
    queue::{HasStreams, Queue, submit_with_newest},
};
use smallvec::SmallVec;
use std::{ops::Range, sync::Arc};
use ur_adapter::{
    error::{Error, Result},
    object::Owned,
};
use ur_hal::{Command, HostCall, ImageCopy, KeptLaunch, Recorded, Submission, Types};
use ur_sys::ur_command_t;

/// Lists up to this length need no heap allocation.
pub(super) const FEW: usize = 8;

/// One recorded command, with copies of everything that it refers to, and the objects that it uses.
pub struct Step<D: HasStreams> {
    what: What<D>,
    uses: Box<[Use<D>]>,
}
enum What<D: HasStreams> {
    Command(Recorded),
    Launch(KeptLaunch<D>),
    Pixels(ImageCopy<Arc<<D as Types>::Image>>),
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
    /// Copies a command.
    ///
    /// # Errors
    /// `UNSUPPORTED_FEATURE` for a command that cannot be repeated.
    pub fn of(ready: &Ready<'_, D>) -> Result<Self> {
        let what = match ready.command {
            Command::Launch(launch) => What::Launch(KeptLaunch::of(launch)),
            Command::ImageCopy(copy) => What::Pixels(copy.map(|image| Arc::clone(image))),
            ref command => What::Command(Recorded::of(command)?),
        };
        Ok(Self { what, uses: ready.used().map(Use::of).collect::<Result<_>>()? })
    }
    /// The launch, if it is one.
    pub fn launch(&self) -> Option<&KeptLaunch<D>> {
        match &self.what {
            What::Launch(launch) => Some(launch),
            _ => None,
        }
    }
    /// The function that it calls on the host, if it does.
    pub fn host_call(&self) -> Option<HostCall> {
        match self.what {
            What::Command(Recorded::HostCall(call)) => Some(call),
            _ => None,
        }
    }
    /// Passes the command to `to`.
    pub fn lend<R>(&self, to: impl FnOnce(&Command<'_, D>) -> R) -> R {
        match &self.what {
            What::Command(recorded) => to(&recorded.command()),
            What::Launch(launch) => launch.lend(|launch| to(&Command::Launch(launch))),
            What::Pixels(copy) => to(&Command::ImageCopy(&copy.map(|image| image))),
        }
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
        self.lend(|command| {
            let ready = Ready { more: &used, ..Ready::new(name, *command) };
            submit_with_newest(queue, &Submission { command, ..how }, &ready)
        })
    }
}
