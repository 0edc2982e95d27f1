//! Launches: what was checked is made into work, which queues run, and command buffers record. Groups are handed to all
//! cores of the device in pieces.
use super::{
    Device, Kernel, Queue,
    code::PIECES_A_CORE,
    engine::{Task, Work},
    native_code::{self, Arguments, Items},
    program::OnDevice,
};
use std::sync::Arc;
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    object::Borrowed,
};
use ur_core::{
    kernels::geometry,
    program::launch::{self, Asked},
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

/// A launch for a queue, once it was judged.
///
/// # Errors
/// As `urEnqueueKernelLaunchWithArgsExp` documents them.
pub(super) fn enqueued(
    queue: Borrowed<'_, Queue>,
    kernel: &Kernel,
    (offset, global, local): (Option<&[usize]>, &[usize], Option<&[usize]>),
    arguments: &[ur_exp_kernel_arg_properties_t],
    properties: Option<&ur_kernel_launch_ext_properties_t>,
) -> Result<Work> {
    let on = launch::on_queue(queue, kernel)?;
    Asked::of(on, properties)?;
    let range = range(on, offset, global, local)?;
    Ok(work(queue.device(), on, Arguments::new(arguments)?, range))
}
