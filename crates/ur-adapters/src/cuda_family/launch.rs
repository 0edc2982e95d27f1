//! Launches, and copies to and from variables of programs: what C asks for is checked, made into what the
//! driver takes, and put into a queue. A range without items is a launch that runs nothing, in its place in the
//! queue: SYCL has such ranges.
use super::{
    Event, Kernel, Program, Queue,
    attribute::Attribute,
    driver::Dialect,
    enqueue_usm::check_range,
    geometry::{Range, check_cluster},
    kernel::OnDevice,
    native::launch::{Arguments, Extras, Shape},
    submission::{Made, Report, submit},
};
use std::ffi::CStr;
use ur_adapter::{
    chain,
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
    object::Borrowed,
};
use ur_sys::*;

fn refused<T>(code: ErrorCode, why: impl Into<String>) -> Result<T> {
    Err(Error::new(code, why.into()))
}

/// The kernel on the queue's device.
///
/// # Errors
/// `INVALID_CONTEXT` and `INVALID_DEVICE` for a kernel that was made for others than the queue's.
fn on_queue<'k, D: Dialect>(queue: &Queue<D>, kernel: &'k Kernel<D>) -> Result<&'k OnDevice<D>> {
    check_context(queue, kernel.program())?;
    kernel.on(queue.device())
}
fn check_context<D: Dialect>(queue: &Queue<D>, program: &Program<D>) -> Result<()> {
    match program.context().same(queue.context()) {
        true => Ok(()),
        false => refused(
            ErrorCode::InvalidContext,
            "the program and the queue are of different contexts",
        ),
    }
}

/// What C asks for beside a range and arguments.
#[derive(Clone, Copy, Debug, Default)]
struct Asked {
    extras: Extras,
    /// Bytes of dynamic local memory that no argument is for; they come first.
    scratch: usize,
}
impl Asked {
    /// # Errors
    /// `INVALID_OPERATION` for what this device has not; `INVALID_VALUE` for a chain without an end.
    fn of<D: Dialect>(
        queue: &Queue<D>,
        properties: Option<&ur_kernel_launch_ext_properties_t>,
    ) -> Result<Self> {
        let Some(properties) = properties else { return Ok(Self::default()) };
        let device = queue.device();
        let cooperative = properties.flags.contains(ur_kernel_launch_flags_t::COOPERATIVE);
        if cooperative && !device.has(Attribute::Cooperative)? {
            let why = "groups of this device cannot wait for each other";
            return refused(ErrorCode::InvalidOperation, why);
        }
        let cluster = chain::extension::<ur_kernel_launch_cluster_property_t>(properties)?;
        let cluster = cluster.map(|c| c.clusterDim).filter(|&dim| dim != [1; 3]);
        if cluster.is_some() && !device.has(Attribute::Clusters)? {
            let why =
                "groups of this device form no clusters: ask KERNEL_LAUNCH_CAPABILITIES first";
            return refused(ErrorCode::InvalidOperation, why);
        }
        let scratch = chain::extension::<ur_kernel_launch_workgroup_property_t>(properties)?;
        let scratch = scratch.map_or(0, |s| s.workgroup_mem_size);
        Ok(Self { extras: Extras { cooperative, cluster }, scratch })
    }
}

/// Enqueues a kernel with its arguments.
#[expect(clippy::too_many_arguments, reason = "as many as C's")]
pub(super) fn kernel_launch_with_args_exp<D: Dialect>(
    queue: Borrowed<'_, Queue<D>>,
    kernel: Borrowed<'_, Kernel<D>>,
    offset: Option<&[usize]>,
    global: &[usize],
    local: Option<&[usize]>,
    arguments: Option<&[ur_exp_kernel_arg_properties_t]>,
    properties: Option<&ur_kernel_launch_ext_properties_t>,
    events: &[Borrowed<'_, Event<D>>],
    want_event: bool,
) -> Made<D> {
    let on = on_queue(&queue, &kernel)?;
    let asked = Asked::of(&queue, properties)?;
    let range = Range::new(offset, global)?;
    let (given, known) = (arguments.unwrap_or_default(), on.parameters.as_deref());
    let arguments = Arguments::new::<D>(given, known, asked.scratch)?;
    let (command, report) = (ur_command_t::KERNEL_LAUNCH, Report::event(want_event));
    if range.is_empty() {
        return submit(queue, command, events, report, |_| Ok(()));
    }
    let dynamic = arguments.local();
    on.allow(dynamic)?;
    let local = match local {
        Some(local) => on.limits.local(&range, local)?,
        None => on.choose(&range, dynamic)?,
    };
    let grid = on.limits.groups(&range, local)?;
    if let Some(cluster) = asked.extras.cluster {
        check_cluster(cluster, grid)?;
    }
    let shape = Shape { grid, block: local.map(|n| n as u32), shared: dynamic as u32 };
    // A kernel without a twin does not look at ids that an offset would move.
    let twin = on.twin.zip(range.offset_words()?);
    let (function, offset) = twin.map_or((on.function, None), |(f, words)| (f, Some(words)));
    submit(queue, command, events, report, |stream| {
        stream.launch(&on.device, function, &shape, asked.extras, &arguments, offset)
    })
}

/// The size of groups that a launch would have if C left it to us.
///
/// # Errors
/// As for the launch.
pub(super) fn suggest<D: Dialect>(
    kernel: Borrowed<'_, Kernel<D>>,
    queue: Borrowed<'_, Queue<D>>,
    offset: &[usize],
    global: &[usize],
    arguments: Option<&[ur_exp_kernel_arg_properties_t]>,
) -> Result<Vec<usize>> {
    let on = on_queue(&queue, &kernel)?;
    let range = Range::new(Some(offset), global)?;
    let dynamic = match arguments {
        Some(given) => Arguments::new::<D>(given, on.parameters.as_deref(), 0)?.local(),
        None => 0,
    };
    on.allow(dynamic)?;
    let local = if range.is_empty() { [1; 3] } else { on.choose(&range, dynamic)? };
    Ok(local[..global.len()].to_vec())
}

/// A part of a program's variable, and where host memory takes it or gives it.
#[derive(Debug)]
pub(super) struct Part<'call> {
    pub(super) name: &'call CStr,
    pub(super) blocking: bool,
    pub(super) count: usize,
    pub(super) offset: usize,
    pub(super) host: UsmPtr,
}
/// Enqueues a copy to or from a program's variable. While it is on its way, its code stays loaded: that is
/// unloaded behind whatever was submitted before.
///
/// # Errors
/// `INVALID_VALUE` for a name that is none, and for more than the variable has.
pub(super) fn device_global_variable<D: Dialect>(
    queue: Borrowed<'_, Queue<D>>,
    program: Borrowed<'_, Program<D>>,
    part: &Part<'_>,
    write: bool,
    events: &[Borrowed<'_, Event<D>>],
    want_event: bool,
) -> Made<D> {
    check_context(&queue, &program)?;
    let Part { name, blocking, count, offset, host } = *part;
    let (at, size) = program.variable(queue.device(), name)?;
    if count == 0 || offset.checked_add(count).is_none_or(|end| end > size) {
        return refused(
            ErrorCode::InvalidValue,
            format!("{count} bytes from {offset} on are not in {name:?}, which has {size}"),
        );
    }
    check_range::<D>(host, count)?;
    let (at, host) = (at.offset(offset)?.addr() as u64, host.addr() as u64);
    let (to, from, command) = match write {
        true => (at, host, ur_command_t::DEVICE_GLOBAL_VARIABLE_WRITE),
        false => (host, at, ur_command_t::DEVICE_GLOBAL_VARIABLE_READ),
    };
    let report = Report::of(blocking, want_event);
    submit(queue, command, events, report, |stream| stream.copy(to, from, count))
}
