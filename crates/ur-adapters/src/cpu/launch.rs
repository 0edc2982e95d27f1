//! Launches: what was checked is made into work, which queues run, and command buffers record. Groups are handed to all
//! cores of the device in pieces.
use super::{
    Device, Event, Kernel, Program, Queue,
    code::PIECES_A_CORE,
    engine::{Submission, Task, Work},
    enqueue::{Made, check_range, enqueue},
    native_code::{self, Arguments, Items},
    program::OnDevice,
};
use crate::{
    kernels::geometry,
    program::launch::{self, Asked, VariablePart},
};
use std::sync::Arc;
use ur_adapter::{
    command::Report,
    error::{Error, ErrorCode, Result},
    object::Borrowed,
};
use ur_sys::*;

/// The items that a caller describes; sizes of groups that are left open divide the range.
///
/// # Errors
/// `INVALID_WORK_DIMENSION` for a range without items, as the specification has it; `INVALID_WORK_GROUP_SIZE`;
/// `INVALID_VALUE` for more items than can be counted.
pub(super) fn range(
    on: &OnDevice,
    offset: Option<&[usize]>,
    global: &[usize],
    local: Option<&[usize]>,
) -> Result<Items> {
    let range = geometry::Range::new(offset, global)?;
    let Some(geometry) = launch::geometry(on, &range, local, 0, None)? else {
        return Err(Error::new(
            ErrorCode::InvalidWorkDimension,
            format!("a range of {global:?} items has none: leave the launch out"),
        ));
    };
    // How many groups that comes to is counted from the range: here there may be more than 32 bits count.
    let (geometry::Range { offset, global }, local) = (range, geometry.local.map(|n| n as usize));
    Ok(Items { offset, global, local })
}

/// A launch as work that can be done again and again: kernel, arguments and memory stay with it.
pub(super) fn work(device: &Device, on: &OnDevice, arguments: Arguments, range: Items) -> Work {
    let (function, code) = (*on.function(), Arc::clone(on.module()));
    let groups: usize = range.groups().iter().product();
    let piece = groups.div_ceil(device.compute_units() * PIECES_A_CORE);
    let pieces = groups.div_ceil(piece);
    let cpus: Option<Arc<[usize]>> = device.cpus().map(Into::into);
    let kept = Arc::new((code, arguments));
    Work::Run(Arc::new(move || {
        let kept = Arc::clone(&kept);
        let task = Task::new(pieces, cpus.as_deref(), move |n| {
            let (first, arguments) = (n * piece, &kept.1);
            native_code::run(function, arguments, &range, first, piece.min(groups - first));
        });
        match task.run() {
            true => Ok(()),
            false => Err(Error::new(ErrorCode::Unknown, "a kernel panicked")),
        }
    }))
}

/// Enqueues a kernel with its arguments.
#[expect(clippy::too_many_arguments, reason = "as many as C's")]
pub(super) fn enqueue_with_arguments(
    queue: Borrowed<'_, Queue>,
    kernel: Borrowed<'_, Kernel>,
    offset: Option<&[usize]>,
    global: &[usize],
    local: Option<&[usize]>,
    arguments: Option<&[ur_exp_kernel_arg_properties_t]>,
    properties: Option<&ur_kernel_launch_ext_properties_t>,
    events: &[Borrowed<'_, Event>],
    want_event: bool,
) -> Made {
    let on = launch::on_queue(queue, &kernel)?;
    Asked::of(on, properties)?;
    let range = range(on, offset, global, local)?;
    let arguments = Arguments::new(arguments.unwrap_or_default())?;
    let work = work(queue.device(), on, arguments, range);
    let report = Report::event(want_event);
    enqueue(queue, ur_command_t::KERNEL_LAUNCH, events, Submission::new(work), report)
}
/// Enqueues a copy to or from a program's variable, whose code stays loaded until that is done.
pub(super) fn enqueue_variable(
    queue: Borrowed<'_, Queue>,
    program: Borrowed<'_, Program>,
    part: &VariablePart<'_>,
    write: bool,
    events: &[Borrowed<'_, Event>],
    want_event: bool,
) -> Made {
    let at = part.find(queue, &program)?;
    check_range(part.host, part.count)?;
    let (to, from, command) = part.ends(at, write);
    let copy = Work::Copy { to: to.into(), from: from.into(), bytes: part.count };
    let work = Work::Keeping(Box::new(copy), Arc::new(program.own()?));
    let report = Report::of(part.blocking, want_event);
    enqueue(queue, command, events, Submission::new(work), report)
}
