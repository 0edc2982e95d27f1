//! Launches: what C says of a range is checked and made into work, which queues run, and command
//! buffers record. Groups are handed to all cores of the device in pieces.
use super::{
    Device, Event, Kernel, Program, Queue,
    device::MAX_WORK_GROUP,
    engine::{Submission, Task, Work},
    enqueue::{Made, Report, check_range, enqueue},
    native_code::{self, Arguments, Range},
};
use crate::kernels::{
    geometry::{self, Limits},
    metadata::Wanted,
};
use std::{ffi::CStr, sync::Arc};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
    object::{Borrowed, Owned},
};
use ur_sys::*;

/// Pieces of a launch for each core, so that a core that others need does fewer.
const PIECES_A_CORE: usize = 16;
/// Items of a group that we choose the size of.
const GROUP: usize = 1024;

fn refused<T>(code: ErrorCode, why: String) -> Result<T> {
    Err(Error::new(code, why))
}

/// The items that C describes, for a kernel that wants its groups so; sizes of groups that C leaves to us
/// divide the range.
///
/// # Errors
/// `INVALID_WORK_DIMENSION`, `INVALID_WORK_GROUP_SIZE`, `INVALID_GLOBAL_OFFSET`-like faults as
/// `INVALID_VALUE`.
pub(super) fn range(
    device: &Device,
    wanted: Wanted,
    offset: Option<&[usize]>,
    global: &[usize],
    local: Option<&[usize]>,
) -> Result<Range> {
    let three = |given: &[usize], rest: usize| {
        let mut all = [rest; 3];
        all.iter_mut().zip(given).for_each(|(to, from)| *to = *from);
        all
    };
    let (offset, global) = (three(offset.unwrap_or_default(), 0), three(global, 1));
    if global.contains(&0) {
        return refused(
            ErrorCode::InvalidWorkDimension,
            format!("a range of {global:?} items has none: leave the launch out"),
        );
    }
    let items = global.iter().try_fold(1_usize, |product, &n| product.checked_mul(n));
    let ends = (0..3).all(|d| offset[d].checked_add(global[d]).is_some());
    let (Some(items), true) = (items, ends) else {
        let why = format!("{global:?} items from {offset:?} on are more than can be counted");
        return refused(ErrorCode::InvalidValue, why);
    };
    let limits = Limits {
        items: MAX_WORK_GROUP,
        group: [MAX_WORK_GROUP; 3],
        grid: [usize::MAX; 3],
        warp: 1,
        wanted,
    };
    let all = geometry::Range { offset, global };
    let local = match local {
        Some(local) => limits.local(&all, local)?,
        // Not so large that there would be fewer than a core can take several of.
        None => {
            let best = (items / (device.compute_units() * PIECES_A_CORE)).clamp(1, GROUP);
            limits.suggest(&all, best)?
        }
    };
    Ok(Range { offset, global, local })
}

/// A launch as work that can be done again and again: kernel, arguments and memory stay with it.
pub(super) fn work(device: &Device, kernel: &Kernel, arguments: Arguments, range: Range) -> Work {
    let (function, code) = kernel.function();
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
            false => refused(ErrorCode::Unknown, "a kernel panicked".into()),
        }
    }))
}

/// # Errors
/// `INVALID_CONTEXT` and `INVALID_DEVICE` for a kernel that was made for others than the queue's.
pub(super) fn check(queue: &Queue, kernel: &Kernel) -> Result<()> {
    check_program(queue, kernel.program())
}
fn check_program(queue: &Queue, program: &Program) -> Result<()> {
    if !program.context().same(queue.context()) {
        return refused(
            ErrorCode::InvalidContext,
            "the program and the queue are of different contexts".into(),
        );
    }
    program.check(queue.device().borrow())
}

/// # Errors
/// `INVALID_OPERATION` for properties that this device has not.
fn check_properties(properties: Option<&ur_kernel_launch_ext_properties_t>) -> Result<()> {
    let asked = properties.map_or(ur_kernel_launch_flags_t::default(), |p| p.flags);
    let extended = properties.is_some_and(|p| !p.pNext.is_null());
    if asked.contains(ur_kernel_launch_flags_t::COOPERATIVE) || extended {
        return refused(
            ErrorCode::InvalidOperation,
            "groups that wait for each other, and clusters of them, cannot run on a CPU: ask \
             KERNEL_LAUNCH_CAPABILITIES first"
                .into(),
        );
    }
    Ok(()) // OPPORTUNISTIC_QUEUE_SERIALIZE is a hint
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
    check(&queue, &kernel)?;
    check_properties(properties)?;
    let range = range(queue.device(), kernel.wanted(), offset, global, local)?;
    let arguments = Arguments::new(arguments.unwrap_or_default())?;
    let work = work(queue.device(), &kernel, arguments, range);
    let report = Report::event(want_event);
    enqueue(queue, ur_command_t::KERNEL_LAUNCH, events, Submission::new(work), report)
}

/// Where a part of a program's variable is, and what keeps it there.
///
/// # Errors
/// `INVALID_VALUE` for a name that is none, and for more than the variable has.
pub(super) fn variable(
    program: Borrowed<'_, Program>,
    name: &CStr,
    count: usize,
    offset: usize,
) -> Result<(UsmPtr, Owned<Program>)> {
    let (at, size) = program.variable(name)?;
    if count == 0 || offset.checked_add(count).is_none_or(|end| end > size) {
        return refused(
            ErrorCode::InvalidValue,
            format!("{count} bytes from {offset} on are not in {name:?}, which has {size}"),
        );
    }
    Ok((at.offset(offset)?, program.own()?))
}
/// Enqueues a copy to or from a program's variable.
#[expect(clippy::too_many_arguments, reason = "as many as C's")]
pub(super) fn enqueue_variable(
    queue: Borrowed<'_, Queue>,
    program: Borrowed<'_, Program>,
    name: &CStr,
    blocking: bool,
    count: usize,
    offset: usize,
    host: UsmPtr,
    write: bool,
    events: &[Borrowed<'_, Event>],
    want_event: bool,
) -> Made {
    check_program(&queue, &program)?;
    let (variable, program) = variable(program, name, count, offset)?;
    check_range(host, count)?;
    let (to, from, command) = match write {
        true => (variable, host, ur_command_t::DEVICE_GLOBAL_VARIABLE_WRITE),
        false => (host, variable, ur_command_t::DEVICE_GLOBAL_VARIABLE_READ),
    };
    let copy = Work::Copy { to, from, bytes: count };
    let work = Work::Keeping(Box::new(copy), Arc::new(program));
    let report = Report::of(blocking, want_event);
    enqueue(queue, command, events, Submission::new(work), report)
}
