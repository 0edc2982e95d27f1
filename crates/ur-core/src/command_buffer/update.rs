//! Updates of a finalized command buffer: kernels, arguments and ranges of launches, and events. Executions enqueued
//! before a change are not affected.
use super::{Change, Command, CommandBuffer, Launch, Records, Shared, Step, address};
use crate::{
    c_arguments::{self, Update},
    over_driver::OverDriver,
};
use std::{collections::HashMap, sync::Arc};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    object::{Borrowed, Owned},
};
use ur_sys::ur_exp_command_buffer_update_kernel_launch_desc_t;

impl<D: Records> Launch<D> {
    /// The launch after an update.
    ///
    /// # Errors
    /// `INVALID_VALUE` for a kernel that is not one of the alternatives, and for a new number of dimensions without new
    /// sizes; the errors of `RecordedArguments::with`.
    fn changed(&self, update: &Update<'_, OverDriver<D>>) -> Result<Self> {
        if update.dimensions != self.global.len()
            && (update.global.is_none() || update.offset.is_none())
        {
            return Error::refuse(
                ErrorCode::InvalidValue,
                "other dimensions need a new global size and a new offset",
            );
        }
        let (mut kernel, mut arguments) = (self.kernel.clone(), self.arguments.clone());
        let mut choices = self.choices.clone();
        if let Some(wanted) = update.kernel.filter(|wanted| !kernel.same(wanted)) {
            let named = choices.iter_mut().find(|(choice, _)| choice.same(&wanted));
            let Some(named) = named else {
                return Error::refuse(
                    ErrorCode::InvalidValue,
                    "the new kernel is not among those named when the launch was appended",
                );
            };
            // The old kernel keeps its arguments, in case a later update selects it again.
            std::mem::swap(&mut named.0, &mut kernel);
            std::mem::swap(&mut named.1, &mut arguments);
        }
        // With a new range the old group size no longer applies: unless the caller passes one, the adapter chooses.
        let kept = self.local.clone().filter(|_| update.global.is_none());
        Ok(Self {
            kernel,
            choices,
            arguments: arguments.with(&update.arguments)?,
            offset: update.offset.map(<[usize]>::to_vec).or_else(|| self.offset.clone()),
            global: update.global.map_or_else(|| self.global.clone(), <[usize]>::to_vec),
            local: update.local.map(<[usize]>::to_vec).or(kept),
        })
    }
}
impl<D: Records> Shared<D> {
    /// Checks that its commands may be updated.
    ///
    /// # Errors
    /// `INVALID_OPERATION` unless it is updatable and finalized; `UNSUPPORTED_FEATURE` if it contains native commands.
    fn check_update(&self) -> Result<()> {
        if !self.is_updatable {
            return Error::refuse(
                ErrorCode::InvalidOperation,
                "the command buffer is not updatable",
            );
        }
        let state = self.lock()?;
        if !state.is_final {
            return Error::refuse(ErrorCode::InvalidOperation, "finalize the command buffer first");
        }
        match state.has_natives {
            false => Ok(()),
            true => Error::refuse(
                ErrorCode::UnsupportedFeature,
                "a command buffer with native commands cannot be changed: what they are is unknown",
            ),
        }
    }
}
/// A changed launch, and what executes it.
type Changed<D> = (Arc<Launch<D>>, Arc<Step<D>>);
fn stranger<T>(why: &'static str) -> Result<T> {
    Error::refuse(ErrorCode::InvalidCommandBufferCommandHandleExp, why)
}

/// `urCommandBufferUpdateKernelLaunchExp`: makes all changes or, on an error, none.
pub(super) fn launches<D: Records>(
    buffer: Borrowed<'_, CommandBuffer<D>>,
    descriptions: &[ur_exp_command_buffer_update_kernel_launch_desc_t],
) -> Result<()> {
    let shared = &buffer.0;
    shared.check_update()?;
    let mut new: HashMap<usize, Changed<D>> = HashMap::new();
    let mut state = shared.lock()?;
    for description in descriptions {
        let update = c_arguments::update::<OverDriver<D>>(description)?;
        if update.command.of.as_ptr() != Arc::as_ptr(shared) {
            return stranger("the command belongs to another command buffer");
        }
        let place = update.command.place;
        let earlier = new.get(&place).map(|(launch, _)| launch);
        let Some(launch) = earlier.or(state.nodes[place].launch.as_ref()) else {
            return stranger("the command launches no kernel");
        };
        let changed = launch.changed(&update);
        let judged = changed.map(Arc::new).and_then(|launch| {
            let step = launch.step(shared.place())?;
            Ok((launch, step))
        });
        let judged = judged.map_err(|error| match error.code() {
            ErrorCode::InvalidKernelArgs => error.with_code(ErrorCode::InvalidKernelArgumentIndex),
            _ => error,
        })?;
        new.insert(place, judged);
    }
    for (place, (launch, step)) in new {
        let node = &mut state.nodes[place];
        (node.step, node.launch) = (step, Some(launch));
        state.change = Some(Change::Commands);
    }
    Ok(())
}

fn buffer_of<D: Records>(command: &Command<D>) -> Result<Arc<Shared<D>>> {
    let shared = command.of.upgrade().ok_or_else(|| {
        Error::new(
            ErrorCode::InvalidCommandBufferCommandHandleExp,
            "the command buffer has been released, and its commands with it",
        )
    })?;
    shared.check_update()?;
    Ok(shared)
}
/// Replaces the command's event by a new one.
pub(super) fn signal<D: Records>(command: &Command<D>) -> Result<Owned<D::Event>> {
    let shared = buffer_of(command)?;
    let mut guard = shared.lock()?;
    let state = &mut *guard;
    let node = &mut state.nodes[command.place];
    let Some(signal) = &mut node.signal else {
        return Error::refuse(
            ErrorCode::InvalidOperation,
            "the command was appended without an event to replace",
        );
    };
    let fresh = shared.event(node.name);
    let old = std::mem::replace(signal, fresh.clone());
    state.signallers.remove(address(&old), command.place);
    state.signallers.add(address(&fresh), command.place);
    state.change = state.change.max(Some(Change::Events));
    drop(guard);
    drop(old); // after the lock is released: this may be the last reference
    Ok(fresh)
}
/// Replaces the events that the command waits for. Their number must not change.
pub(super) fn waits<D: Records>(
    command: &Command<D>,
    events: &[Borrowed<'_, D::Event>],
) -> Result<()> {
    let shared = buffer_of(command)?;
    let mut state = shared.lock()?;
    let node = &state.nodes[command.place];
    if node.waited != events.len() {
        return Error::refuse(
            ErrorCode::InvalidEventWaitList,
            "a command waits for as many events as when it was appended",
        );
    }
    let (after, waits) = state.sort(events, &node.fixed, command.place)?;
    let node = &mut state.nodes[command.place];
    node.after = after;
    let old = std::mem::replace(&mut node.waits, waits);
    state.change = state.change.max(Some(Change::Events));
    drop(state);
    drop(old);
    Ok(())
}
