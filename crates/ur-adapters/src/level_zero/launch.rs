//! Kernel launches and program variables: what a launch is checked against, and how it gets into a
//! command list, a queue's or a command buffer's.
use super::{
    Event, Kernel, Program, Queue,
    enqueue_usm::check_range,
    kernel::OnDevice,
    native::{arguments::Arguments, list::List},
    submission::{Made, Report, submit_one},
};
use crate::kernels::geometry::Range;
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
fn on_queue<'k>(queue: &Queue, kernel: &'k Kernel) -> Result<&'k OnDevice> {
    check_context(queue, kernel.program())?;
    kernel.on(queue.device())
}
fn check_context(queue: &Queue, program: &Program) -> Result<()> {
    match program.context().same(queue.context()) {
        true => Ok(()),
        false => refused(
            ErrorCode::InvalidContext,
            "the program and the queue are of different contexts",
        ),
    }
}
/// Whether all groups are to run at once, so that they can wait for each other.
///
/// # Errors
/// `UNSUPPORTED_FEATURE` for what this driver has not; `INVALID_VALUE` for a chain without an end.
fn is_cooperative(properties: Option<&ur_kernel_launch_ext_properties_t>) -> Result<bool> {
    let Some(properties) = properties else { return Ok(false) };
    let cluster = chain::extension::<ur_kernel_launch_cluster_property_t>(properties)?;
    if cluster.is_some_and(|one| one.clusterDim != [1; 3]) {
        let why = "groups of this device form no clusters: ask KERNEL_LAUNCH_CAPABILITIES first";
        return refused(ErrorCode::UnsupportedFeature, why);
    }
    let scratch = chain::extension::<ur_kernel_launch_workgroup_property_t>(properties)?;
    if scratch.is_some_and(|one| one.workgroup_mem_size != 0) {
        let why = "local memory that no argument is for: ask KERNEL_LAUNCH_CAPABILITIES first";
        return refused(ErrorCode::UnsupportedFeature, why);
    }
    Ok(properties.flags.contains(ur_kernel_launch_flags_t::COOPERATIVE))
}

/// What C asks for, beside where.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'call> {
    pub(super) offset: Option<&'call [usize]>,
    pub(super) global: &'call [usize],
    pub(super) local: Option<&'call [usize]>,
    pub(super) arguments: &'call [ur_exp_kernel_arg_properties_t],
    pub(super) properties: Option<&'call ur_kernel_launch_ext_properties_t>,
}
/// A launch that was judged, on one device.
#[derive(Debug)]
pub(super) struct Launch<'call> {
    on: &'call OnDevice,
    groups: [u32; 3],
    local: [u32; 3],
    offset: [u32; 3],
    cooperative: bool,
    arguments: Arguments<'call>,
}
impl<'call> Launch<'call> {
    /// `None` where there is nothing to run: a range without items.
    ///
    /// # Errors
    /// As `urEnqueueKernelLaunchWithArgsExp` documents them.
    pub(super) fn new(on: &'call OnDevice, asked: Asked<'call>) -> Result<Option<Self>> {
        let cooperative = is_cooperative(asked.properties)?;
        let range = Range::new(asked.offset, asked.global)?;
        let mut arguments = Arguments::new(asked.arguments, on.facts().arguments)?;
        if range.is_empty() {
            return Ok(None);
        }
        let local = match asked.local {
            Some(local) => on.limits.local(&range, local)?,
            None => on.choose(&range)?,
        };
        let groups = on.limits.groups(&range, local)?;
        let offset = range.offset_words()?.unwrap_or_default();
        arguments.resolve(&on.device)?;
        let local = local.map(|n| n as u32);
        Ok(Some(Self { on, groups, local, offset, cooperative, arguments }))
    }
    /// Puts it into a list.
    ///
    /// # Errors
    /// The driver's own.
    pub(super) fn append(&self, list: &List<'_>) -> Result<()> {
        let mut turn = self.on.native.turn();
        let ends = list.ends();
        let events = (ends.signal, ends.count(), ends.waits());
        if !self.cooperative
            && let Some(mut places) = self.arguments.places(turn.accepted(self.offset))
        {
            let (groups, local) = (self.groups, self.local);
            let at_once = turn.append_with(list.raw(), groups, local, &mut places, events);
            if !at_once.is_unsupported() {
                return at_once.ok();
            }
            turn.refuse();
        }
        turn.group(self.local)?;
        turn.offset(self.offset)?;
        self.arguments.set(&mut turn)?;
        turn.accept(|| self.arguments.sizes());
        turn.append(list.raw(), self.groups, self.cooperative, events).ok()
    }
}

/// Enqueues a kernel with its arguments.
#[expect(clippy::too_many_arguments, reason = "as many as C's")]
pub(super) fn kernel_launch_with_args_exp(
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
    let arguments = arguments.unwrap_or_default();
    let asked = Asked { offset, global, local, arguments, properties };
    let launch = Launch::new(on_queue(&queue, &kernel)?, asked)?;
    let (command, report) = (ur_command_t::KERNEL_LAUNCH, Report::event(want_event));
    submit_one(queue, command, events, report, |list| match &launch {
        Some(launch) => launch.append(list),
        None => list.barrier(),
    })
}

/// The size of groups that a launch would have if C left it to us.
///
/// # Errors
/// As for the launch.
pub(super) fn suggest(
    kernel: Borrowed<'_, Kernel>,
    queue: Borrowed<'_, Queue>,
    offset: &[usize],
    global: &[usize],
    arguments: Option<&[ur_exp_kernel_arg_properties_t]>,
) -> Result<Vec<usize>> {
    let on = on_queue(&queue, &kernel)?;
    let range = Range::new(Some(offset), global)?;
    if let Some(given) = arguments {
        Arguments::new(given, on.facts().arguments)?;
    }
    let local = if range.is_empty() { [1; 3] } else { on.choose(&range)? };
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
/// Enqueues a copy to or from a program's variable. Its module stays until that is done.
///
/// # Errors
/// `INVALID_VALUE` for a name that is none, and for more than the variable has.
pub(super) fn device_global_variable(
    queue: Borrowed<'_, Queue>,
    program: Borrowed<'_, Program>,
    part: &Part<'_>,
    write: bool,
    events: &[Borrowed<'_, Event>],
    want_event: bool,
) -> Made {
    check_context(&queue, &program)?;
    let Part { name, blocking, count, offset, host } = *part;
    let (at, size) = program.variable(queue.device(), name)?;
    if count == 0 || offset.checked_add(count).is_none_or(|end| end > size) {
        return refused(
            ErrorCode::InvalidValue,
            format!("{count} bytes from {offset} on are not in {name:?}, which has {size}"),
        );
    }
    check_range(host, count)?;
    let (at, host) = (at.offset(offset)?.addr(), host.addr());
    let (to, from, command) = match write {
        true => (at, host, ur_command_t::DEVICE_GLOBAL_VARIABLE_WRITE),
        false => (host, at, ur_command_t::DEVICE_GLOBAL_VARIABLE_READ),
    };
    let report = Report::of(blocking, want_event);
    submit_one(queue, command, events, report, |list| list.copy(to, from, count))
}
