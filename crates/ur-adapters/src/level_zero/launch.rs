//! Kernel launches and program variables: how they get into a command list, a queue's or a command buffer's.
use super::{
    Event, Kernel, Program, Queue,
    memory::check_range,
    native::{arguments::Arguments, list::List},
    program::OnDevice,
    submission::{Made, submit_one},
};
use crate::kernels::geometry::Range;
use crate::program::launch::{self, VariablePart};
use ur_adapter::{command::Report, error::Result, object::Borrowed};
use ur_hal::Geometry;
use ur_sys::*;

/// What a caller asks for, beside where.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'call> {
    pub(super) offset: Option<&'call [usize]>,
    pub(super) global: &'call [usize],
    pub(super) local: Option<&'call [usize]>,
    pub(super) arguments: &'call [ur_exp_kernel_arg_properties_t],
    pub(super) properties: Option<&'call ur_kernel_launch_ext_properties_t>,
}
/// A launch that was checked, on one device.
#[derive(Debug)]
pub(super) struct Launch<'call> {
    on: &'call OnDevice,
    geometry: Geometry,
    offset: [u32; 3],
    is_cooperative: bool,
    arguments: Arguments<'call>,
}
impl<'call> Launch<'call> {
    /// `None` where there is nothing to run: a range without items.
    ///
    /// # Errors
    /// As `urEnqueueKernelLaunchWithArgsExp` documents them.
    pub(super) fn new(on: &'call OnDevice, asked: Asked<'call>) -> Result<Option<Self>> {
        let launch::Asked { is_cooperative, cluster, .. } =
            launch::Asked::of(on, asked.properties)?;
        let range = Range::new(asked.offset, asked.global)?;
        let mut arguments = Arguments::new(asked.arguments, on.facts().arguments)?;
        let Some(geometry) = launch::geometry(on, &range, asked.local, 0, cluster)? else {
            return Ok(None);
        };
        let offset = range.offset_words()?.unwrap_or_default();
        arguments.resolve(on.device())?;
        Ok(Some(Self { on, geometry, offset, is_cooperative, arguments }))
    }
    /// Puts it into a list.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub(super) fn append(&self, list: &List<'_>) -> Result<()> {
        let Geometry { groups, local, .. } = self.geometry;
        let mut turn = self.on.function().turn();
        let ends = list.ends();
        let events = (ends.signal, ends.count(), ends.waits());
        if !self.is_cooperative
            && let Some(mut places) = self.arguments.places(turn.accepted(self.offset))
        {
            let at_once = turn.append_with(list.raw(), groups, local, &mut places, events);
            if !at_once.is_unsupported() {
                return at_once.ok();
            }
            turn.refuse();
        }
        turn.group(local)?;
        turn.offset(self.offset)?;
        self.arguments.set(&mut turn)?;
        turn.accept(|| self.arguments.sizes());
        turn.append(list.raw(), groups, self.is_cooperative, events).ok()
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
    let launch = Launch::new(launch::on_queue(queue, &kernel)?, asked)?;
    let (command, report) = (ur_command_t::KERNEL_LAUNCH, Report::event(want_event));
    submit_one(queue, command, events, report, |list| match &launch {
        Some(launch) => launch.append(list),
        None => list.barrier(),
    })
}
/// Enqueues a copy to or from a program's variable. Its module stays until that is done.
///
/// # Errors
/// `INVALID_VALUE` for a name that is none, and for more than the variable has.
pub(super) fn device_global_variable(
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
    let report = Report::of(part.blocking, want_event);
    submit_one(queue, command, events, report, |list| list.copy(to.addr(), from.addr(), part.count))
}
