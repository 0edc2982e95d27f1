//! What changes in a finalized command buffer: kernels, arguments and ranges of launches. The list is
//! made again before the next execution; those enqueued before take no notice.
use super::{Command, CommandBuffer, Shared, Step, refused};
use crate::from_c::{self, Update};
use crate::level_zero::{
    Device, Event, Kernel, LevelZero, launch,
    native::{list::List, recorded::Kept},
};
use std::sync::Arc;
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    object::{Borrowed, Owned},
};
use ur_sys::ur_exp_command_buffer_update_kernel_launch_desc_t;

/// A launch, as it was asked for.
#[derive(Debug)]
pub(super) struct Launch {
    pub(super) device: Owned<Device>,
    pub(super) kernel: Owned<Kernel>,
    pub(super) arguments: Arc<Kept>,
    /// What it may be replaced by, each with the arguments that it had last; at first it has none.
    pub(super) choices: Vec<(Owned<Kernel>, Arc<Kept>)>,
    pub(super) offset: Option<Vec<usize>>,
    pub(super) global: Vec<usize>,
    pub(super) local: Option<Vec<usize>>,
}
impl Launch {
    /// Judges it and puts it into a list.
    ///
    /// # Errors
    /// As for every launch.
    fn append(&self, list: &List<'_>) -> Result<()> {
        match self.judged()? {
            Some(launch) => launch.append(list),
            None => list.barrier(),
        }
    }
    fn judged(&self) -> Result<Option<launch::Launch<'_>>> {
        let asked = launch::Asked {
            offset: self.offset.as_deref(),
            global: &self.global,
            local: self.local.as_deref(),
            arguments: self.arguments.given(),
            properties: None,
        };
        launch::Launch::new(self.kernel.on(&self.device)?, asked)
    }
    pub(super) fn step(self: &Arc<Self>) -> Step {
        let this = Arc::clone(self);
        Arc::new(move |list| this.append(list))
    }
    /// # Errors
    /// `INVALID_VALUE` for a kernel that was not named and for dimensions without sizes,
    /// `INVALID_KERNEL_ARGUMENT_INDEX`, and what a launch is refused for.
    fn changed(&self, update: &Update<'_, LevelZero>) -> Result<Self> {
        if update.dimensions != self.global.len()
            && (update.global.is_none() || update.offset.is_none())
        {
            return refused(
                ErrorCode::InvalidValue,
                "other dimensions need a new global size and a new offset",
            );
        }
        let (mut kernel, mut arguments) = (self.kernel.clone(), Arc::clone(&self.arguments));
        let mut choices = self.choices.clone();
        if let Some(wanted) = update.kernel.filter(|wanted| !kernel.same(wanted)) {
            let named = choices.iter_mut().find(|(choice, _)| choice.same(&wanted));
            let Some(named) = named else {
                return refused(
                    ErrorCode::InvalidValue,
                    "the new kernel is not among those named when the launch was appended",
                );
            };
            // The old kernel keeps its arguments for itself, should it come back.
            std::mem::swap(&mut named.0, &mut kernel);
            std::mem::swap(&mut named.1, &mut arguments);
        }
        // Groups of a new range are ours to choose if C does not.
        let kept = self.local.clone().filter(|_| update.global.is_none());
        let new = Self {
            device: self.device.clone(),
            kernel,
            choices,
            arguments: Arc::new(arguments.with(&update.arguments)?),
            offset: update.offset.map(<[usize]>::to_vec).or_else(|| self.offset.clone()),
            global: update.global.map_or_else(|| self.global.clone(), <[usize]>::to_vec),
            local: update.local.map(<[usize]>::to_vec).or(kept),
        };
        new.judged().map_err(|error| match error.code() {
            ErrorCode::InvalidKernelArgs => error.with_code(ErrorCode::InvalidKernelArgumentIndex),
            _ => error,
        })?;
        Ok(new)
    }
}
impl Shared {
    /// # Errors
    /// `INVALID_OPERATION` unless it is updatable and finalized; `UNSUPPORTED_FEATURE` where C itself
    /// appended to the list.
    fn check_update(&self) -> Result<()> {
        if !self.is_updatable {
            return refused(ErrorCode::InvalidOperation, "the command buffer is not updatable");
        }
        let state = self.lock();
        if !state.is_final {
            return refused(ErrorCode::InvalidOperation, "finalize the command buffer first");
        }
        match state.has_natives {
            false => Ok(()),
            true => refused(
                ErrorCode::UnsupportedFeature,
                "a command buffer with native commands cannot be changed: what they are is unknown",
            ),
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
        let update = from_c::update::<LevelZero>(description)?;
        if update.command.of.as_ptr() != Arc::as_ptr(shared) {
            return stranger("the command belongs to another command buffer");
        }
        let place = update.command.place;
        let earlier = new.iter().rposition(|(one, _)| *one == place).map(|at| &new[at].1);
        let recorded = state.launches.get(&place).map(Arc::as_ref);
        let Some(launch) = earlier.or(recorded) else {
            return stranger("the command launches no kernel");
        };
        let launch = launch.changed(&update)?;
        new.push((place, launch));
    }
    for (place, launch) in new {
        let launch = Arc::new(launch);
        state.nodes[place].step = launch.step();
        state.launches.insert(place, launch);
        state.is_stale = true;
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
    let mut state = shared.lock();
    let node = &mut state.nodes[command.place];
    if node.signal.is_none() {
        return refused(
            ErrorCode::InvalidOperation,
            "the command was appended without an event to replace",
        );
    }
    let fresh = shared.event(node.command);
    let old = node.signal.replace(fresh.clone());
    drop(state);
    drop(old); // its last owner may be this
    Ok(fresh)
}
/// Other events to wait for, as many as before.
pub(super) fn waits(command: Borrowed<'_, Command>, events: &[Borrowed<'_, Event>]) -> Result<()> {
    let shared = buffer_of(&command)?;
    let mut state = shared.lock();
    if state.nodes[command.place].waited != events.len() {
        return refused(
            ErrorCode::InvalidEventWaitList,
            "a command waits for as many events as when it was appended",
        );
    }
    let fresh = state.others(events, command.place)?;
    let old = std::mem::replace(&mut state.nodes[command.place].waits, fresh);
    drop(state);
    drop(old);
    Ok(())
}
