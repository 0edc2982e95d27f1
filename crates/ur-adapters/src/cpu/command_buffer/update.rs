//! What changes in a finalized command buffer: kernels, arguments and ranges of launches, events.
//! Executions enqueued before a change take no notice of it.
use super::{Changeable, Command, CommandBuffer, Shared, refused, sort};
use crate::cpu::{
    Cpu, Event, Kernel,
    engine::Work,
    launch,
    native_code::{Arguments, Items},
};
use crate::from_c::{self, Update};
use std::sync::Arc;
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    object::{Borrowed, Owned},
};
use ur_sys::ur_exp_command_buffer_update_kernel_launch_desc_t;

/// A launch, as it was asked for.
#[derive(Clone, Debug)]
pub(super) struct Launch {
    pub(super) kernel: Owned<Kernel>,
    pub(super) arguments: Arguments,
    /// What it may be replaced by, each with the arguments that it had last; at first it has none.
    pub(super) choices: Vec<(Owned<Kernel>, Arguments)>,
    pub(super) dimensions: usize,
    pub(super) range: Items,
}
impl Launch {
    pub(super) fn work(&self, shared: &Shared) -> Work {
        launch::work(&shared.device, self.kernel.any(), self.arguments.clone(), self.range)
    }
    /// # Errors
    /// `INVALID_WORK_DIMENSION`, `INVALID_VALUE` for a kernel that was not named and for dimensions
    /// without sizes, `INVALID_KERNEL_ARGUMENT_INDEX`, and what a launch is refused for.
    fn changed(&self, update: &Update<'_, Cpu>) -> Result<Self> {
        let mut new = self.clone();
        if update.dimensions != self.dimensions
            && (update.global.is_none() || update.offset.is_none())
        {
            return refused(
                ErrorCode::InvalidValue,
                "other dimensions need a new global size and a new offset",
            );
        }
        if let Some(kernel) = update.kernel.filter(|wanted| !self.kernel.same(wanted)) {
            let named = new.choices.iter_mut().find(|(choice, _)| choice.same(&kernel));
            let Some((chosen, arguments)) = named else {
                return refused(
                    ErrorCode::InvalidValue,
                    "the new kernel is not among those named when the launch was appended",
                );
            };
            // The old kernel keeps its arguments for itself, should it come back.
            std::mem::swap(chosen, &mut new.kernel);
            std::mem::swap(arguments, &mut new.arguments);
        }
        new.arguments =
            new.arguments.with(&update.arguments).map_err(|error| match error.code() {
                ErrorCode::InvalidKernelArgs => {
                    error.with_code(ErrorCode::InvalidKernelArgumentIndex)
                }
                _ => error,
            })?;
        new.dimensions = update.dimensions;
        let old = self.range;
        let offset = update.offset.unwrap_or(&old.offset);
        let global = update.global.unwrap_or(&old.global);
        // Groups of a new range are ours to choose if C does not.
        let local = update.local.or(update.global.is_none().then_some(&old.local[..]));
        new.range = launch::range(new.kernel.any(), Some(offset), global, local)?;
        Ok(new)
    }
}

impl Shared {
    /// # Errors
    /// `INVALID_OPERATION` unless it is updatable and finalized.
    fn check_update(&self) -> Result<()> {
        if !self.is_updatable {
            return refused(ErrorCode::InvalidOperation, "the command buffer is not updatable");
        }
        match self.lock().is_final {
            true => Ok(()),
            false => refused(ErrorCode::InvalidOperation, "finalize the command buffer first"),
        }
    }
}
fn stranger<T>(why: &'static str) -> Result<T> {
    refused(ErrorCode::InvalidCommandBufferCommandHandleExp, why)
}

/// Makes all changes or none.
pub(super) fn launches(
    buffer: Borrowed<'_, CommandBuffer>,
    descriptions: &[ur_exp_command_buffer_update_kernel_launch_desc_t],
) -> Result<()> {
    let shared = &buffer.0;
    shared.check_update()?;
    let mut new: Vec<(usize, Launch)> = vec![];
    let mut state = shared.lock();
    for description in descriptions {
        let update = from_c::update::<Cpu>(description)?;
        if update.command.of.as_ptr() != Arc::as_ptr(shared) {
            return stranger("the command belongs to another command buffer");
        }
        let place = update.command.place;
        let earlier = new.iter().rposition(|(one, _)| *one == place).map(|at| &new[at].1);
        let recorded = state.changeable.get(&place).and_then(|one| one.launch.as_ref());
        let Some(launch) = earlier.or(recorded) else {
            return stranger("the command launches no kernel");
        };
        let launch = launch.changed(&update)?;
        new.push((place, launch));
    }
    for (place, launch) in new {
        let work = launch.work(shared);
        shared.replay.edit(|recording| recording.nodes[place].work = work);
        if let Some(Changeable { launch: old, .. }) = state.changeable.get_mut(&place) {
            *old = Some(launch);
        }
    }
    Ok(())
}

fn buffer_of(command: &Command) -> Result<Arc<Shared>> {
    let shared = command.of.upgrade().ok_or_else(|| {
        Error::new(
            ErrorCode::InvalidCommandBufferCommandHandleExp,
            "the command buffer has been released, and its commands with it",
        )
    })?;
    shared.check_update()?;
    Ok(shared)
}
/// A fresh event in the place of the command's.
pub(super) fn signal(command: Borrowed<'_, Command>) -> Result<Owned<Event>> {
    let shared = buffer_of(&command)?;
    shared.replay.edit(|recording| {
        let node = &mut recording.nodes[command.place];
        if node.signal.is_none() {
            return refused(
                ErrorCode::InvalidOperation,
                "the command was appended without an event to replace",
            );
        }
        let fresh = Event::of_recorded(shared.context.clone(), node.command, shared.is_profiled);
        node.signal = Some(fresh.clone());
        Ok(fresh)
    })
}
/// Other events to wait for, as many as before.
pub(super) fn waits(command: Borrowed<'_, Command>, events: &[Borrowed<'_, Event>]) -> Result<()> {
    let shared = buffer_of(&command)?;
    let state = shared.lock();
    let known = state.changeable.get(&command.place);
    let Some(Changeable { fixed, .. }) = known.filter(|one| one.waits == events.len()) else {
        return refused(
            ErrorCode::InvalidEventWaitList,
            "a command waits for as many events as when it was appended",
        );
    };
    shared.replay.edit(|recording| {
        let (mut after, waits) = sort(recording, events, fixed, command.place)?;
        after.sort_unstable();
        after.dedup();
        let node = &mut recording.nodes[command.place];
        (node.after, node.waits) = (after, waits);
        Ok(())
    })
}
